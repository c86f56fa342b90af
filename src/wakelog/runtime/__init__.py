"""Calls of tools and models: the action state machine, around any existing function.

Start with call.py: one call from its intent to its outcome. policy.py says how a tool may be called, tools.py holds the
values of a call, driver.py runs its steps, outcome.py classifies what happened. resume.py opens a turn and continues
what a dead process left. call_history.py reads from the log what is known of a call. operator.py lets a person settle
one. models.py, streams.py and recorded_streams.py are for model calls; ambient.py holds the context of a call. No other
room runs foreign code.
"""
