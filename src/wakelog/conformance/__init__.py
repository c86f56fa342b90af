"""The conformance kit: checks the requirements of docs/reference/protocol.md against a server at any address.

It speaks HTTP through the standard library and imports nothing of wakelog but the errors. So it cannot share mistakes
with the server or the client that it checks. It is low in the order of the rooms for the same reason.

    kit.py      what a check is; running checks
    wire.py     requests, replies and tails; ServerFault if one is wrong
    bench.py    what checks share: sessions with unique names, which are removed in the end
    checks/     the checks, one file for each group or two
"""

from wakelog.conformance.kit import CAPABILITIES, Check, Result, all_checks, run

__all__ = ["CAPABILITIES", "Check", "Result", "all_checks", "run"]
