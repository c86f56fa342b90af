"""What changed between two points of a session, who wrote it, and what a rewind would change."""
