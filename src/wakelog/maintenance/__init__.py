"""Looking after a store: check, scrub, copy, archive, erase, retention, holds."""
