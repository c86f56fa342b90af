"""Replay: what was recorded, run again.

recording.py reads what was recorded, call_match.py finds the recorded call for each call of the agent,
recorded_runtime.py answers it in place of the runtime, and report.py says how far the two are the same.
plan_from_recording.py needs no agent: it makes a plan of the recorded calls, which plan_run.py runs on new inputs.
"""
