"""Webhooks: what a person or a program elsewhere should hear of at once, sent to an address of theirs.

hooks_file.py   which hooks there are, in a TOML file
messages.py     which events are told, and what is told of each
signature.py    secrets and signatures, as Standard Webhooks has them
positions.py    how far each hook is in each session, durable
sender.py       sends in order, again after a while, at least once
"""
