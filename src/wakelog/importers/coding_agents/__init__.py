"""Transcripts of the agents that people work with at a terminal or in an editor."""
