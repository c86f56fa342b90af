"""Webhooks: sends messages about events to addresses of the user.

hooks_file.py   the configured hooks, in a TOML file
messages.py     which events are sent, and what a message contains
signature.py    secrets and signatures, as in Standard Webhooks
positions.py    how far each hook is in each session, durable
sender.py       sends in order, with retries, at least once
hook_states.py  what the surfaces show about hooks
"""
