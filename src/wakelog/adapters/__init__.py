"""wakelog as the session store of agent frameworks: one leaf file each.

An adapter implements a framework's own store interface over `wakelog.store` and `wakelog.session`. It maps the
framework's concepts onto sessions, turns, calls, messages and data, so that every question of the command line is
meaningful on what it stored. No adapter imports another, and each imports its framework at the top of its own
file; where the framework is missing, `frameworks.missing` names the extra to install.
"""
