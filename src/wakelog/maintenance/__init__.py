"""Maintenance of a store: check, scrub, copy, archive, erase, retention, holds."""
