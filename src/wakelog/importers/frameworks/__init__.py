"""Databases in which agent frameworks keep their sessions."""
