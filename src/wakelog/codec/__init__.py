"""Events to bytes and back: the one place that knows the stored form (docs/reference/format.md).

A change of stored bytes is a new format version, never a refactor.
"""
