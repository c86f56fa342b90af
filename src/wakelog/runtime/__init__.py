"""Calls: the action state machine at work, around any function that exists already.

policy.py says how one tool is to be called, beginning.py finds out whether it was called before and records the intent,
calling.py runs it and records the outcome, recovery.py settles what a dead process left, opening.py opens a turn and
continues a cut one, flow.py stamps what rests on what. The only room that runs foreign code.
"""
