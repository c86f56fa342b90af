"""The conformance kit: what docs/reference/protocol.md asks of a server, as checks against any address.

It speaks HTTP through the standard library and imports nothing of ours but the errors, so that neither the server nor
the client it judges can lend it their mistakes. It stands low in the order of the rooms for the same reason: there is
nothing below it to lean on.

    wire.py         requests, replies, tails; what a wrong one is
    operations.py   the operations, and which may be missing
    kit.py          what a check is; running them
    bench.py        what checks have in common: sessions with names of their own, removed in the end
    checks/         the checks, a file for each group or two
"""

from wakelog.conformance.kit import CAPABILITIES, Check, Result, all_checks, run

__all__ = ["CAPABILITIES", "Check", "Result", "all_checks", "run"]
