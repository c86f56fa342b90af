"""Other programs' files, as they lie on disk: plain, compressed, or a database that may be in use. Only read."""
