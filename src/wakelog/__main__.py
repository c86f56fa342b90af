"""`python -m wakelog` is the command line."""

from wakelog.cli import main

main()
