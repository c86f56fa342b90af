"""Where bytes live: one engine per database, each native to it. They share tests, not code."""
