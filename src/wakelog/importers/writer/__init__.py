"""Steps written into the log: one transcript into its session, each record once, however often it is read."""
