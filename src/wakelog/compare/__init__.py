"""Compares attempts, forks and sessions: their steps, where they first differ, and what followed."""
