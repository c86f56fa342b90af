"""Rules over the live log: each reads events in order and flags what needs attention."""
