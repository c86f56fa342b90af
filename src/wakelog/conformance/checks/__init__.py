"""The checks, a file for each group or two. Importing a file enters its checks into the list."""
