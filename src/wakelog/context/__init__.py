"""What is in the model's window, what was evicted and how to restore it, and the handoff to the next run.

There are two tiers. Messages and raw outputs are transient: they can be evicted, or replaced by a summary. The goal,
facts, decisions, dead ends and pending calls are durable: they are part of the state and of every window.
"""
