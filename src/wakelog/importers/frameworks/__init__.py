"""Databases of agent frameworks."""
