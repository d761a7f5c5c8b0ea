"""Bytes that nobody wrote on purpose, and what must hold of everything that reads them."""
