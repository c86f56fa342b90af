"""What an agent decided, and why, derived from its own words and calls where it did not record it itself."""
