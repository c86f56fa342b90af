"""Encryption at rest: the engine below sees encrypted bytes, everything above sees plain ones."""
