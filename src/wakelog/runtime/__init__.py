"""Calls: the action state machine at work, around any function that exists already.

call.py is one call through intent, run and outcome. tools.py is what is called and how it is driven, policy.py how one
tool is to be called, outcome.py what came of it. resume.py opens a turn and goes on from what a dead process left;
call_history.py is what the log knows of a call; operator.py is what a person says about one. models.py and streams.py
are about calls of models, ambient.py about what is around a call. This is the only room that runs foreign code.
"""
