"""What is in the model's window, what left it and how it comes back, and the handoff to the next run.

Two tiers. Messages and raw outputs are transient: they can be evicted, or stand aside for a summary. Goal, facts,
decisions, dead ends and pending calls are durable: they live in the state, and enter every window from there.
"""
