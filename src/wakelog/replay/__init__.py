"""Replay: runs again what was recorded.

recording.py reads the recorded calls, call_match.py finds the recorded call for each call of the agent,
recorded_runtime.py answers it in place of the runtime, and report.py says what is the same and what is not.
plan_from_recording.py needs no agent: it makes a plan of the recorded calls, which plan_run.py runs on new inputs.
"""
