"""Finds a position in a session and reads what is there: selectors, slices, messages, files."""
