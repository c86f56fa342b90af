"""The NATS JetStream engine: a log that spreads over machines and survives the loss of one."""

from wakelog.engines.nats.engine import NatsEngine

__all__ = ["NatsEngine"]
