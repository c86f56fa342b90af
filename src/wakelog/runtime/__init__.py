"""Calls: the action state machine at work, around any function that exists already.

policy.py says how one tool is to be called, calling.py records the intent, runs it and records the outcome, recovery.py
settles what a dead process left, flow.py stamps what rests on what. The only room that runs foreign code.
"""
