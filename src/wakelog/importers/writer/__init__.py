"""Writes steps into the log: one transcript into its session, each record once, however often the file is read."""
