"""The store: tables, sessions, every write, and the migrations."""
