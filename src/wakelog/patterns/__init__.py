"""What sessions do again and again: chains of steps, what followed errors, and how sets of sessions differ."""
