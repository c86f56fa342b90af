"""Transcripts of agents that people use at a terminal or in an editor."""
