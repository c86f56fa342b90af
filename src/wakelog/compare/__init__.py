"""Attempts, forks and sessions side by side: their steps, where they part, and what followed."""
