"""Reads other programs' files: plain, compressed, or a database that may be in use. Never writes."""
