"""Events that a program sent while it ran, kept in a file."""
