"""The PostgreSQL engine: many processes on many machines, one store."""

from wakelog.engines.postgres.engine import PostgresEngine

__all__ = ["PostgresEngine"]
