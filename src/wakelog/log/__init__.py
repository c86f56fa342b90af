"""A typed log for one session, over any engine: sealing, chain, snapshots, forks, payloads, verification."""

from wakelog.log.log import Log

__all__ = ["Log"]
