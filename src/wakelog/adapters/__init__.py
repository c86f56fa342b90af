"""wakelog as the session store of agent frameworks: one file or folder for each framework.

An adapter implements a framework's own store interface over `wakelog.store` and `wakelog.session`. It maps the
framework's concepts to sessions, turns, calls, messages and data, so that every command works on what it stored. No
adapter imports another. Each imports its framework at the top; `frameworks.missing` names the extra to install.

What adapters share:

    stores.py, held_logs.py             the store, and logs kept open by session name
    ownership.py, compound_names.py     whose session it is, and its name
    message_events.py, item_log.py      messages as events, and the original messages next to them
    shaped_items.py, recorder.py        the same for a framework's own message shape, and for lists of messages
    exact_values.py                     values that JSON in a log does not allow
    takeovers.py                        which adapter takes over a framework's database
"""
