"""The system of record for LLM training performance."""

__version__ = "0.1.0"
