"""Replay: what was recorded, run again.

recording.py reads what was recorded, matching.py finds for each call of the agent the recorded one, answering.py
answers it in place of the runtime, report.py says how far the two are the same. workflow.py needs no agent: it makes a
plan of the recorded calls, which carrying.py runs again on new inputs.
"""
