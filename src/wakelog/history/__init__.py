"""Questions about one session's past, answered from its log: where, what, who wrote it, what changed and why.

Everything here reads; nothing here writes. session/ offers the answers as verbs.
"""
