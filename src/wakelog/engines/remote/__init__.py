"""A store behind a server: the engine protocol over HTTP."""

from wakelog.engines.remote.engine import RemoteEngine

__all__ = ["RemoteEngine"]
