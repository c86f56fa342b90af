"""Events that a program sent while it ran, stored in a file."""
