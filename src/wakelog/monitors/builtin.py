"""The rules that come with wakelog, each with its usual settings."""

from __future__ import annotations

from wakelog.monitors.repetition_rules import Loop, RepeatedFailure, RetryDivergence
from wakelog.monitors.rules import Rule
from wakelog.monitors.session_rules import BudgetRule, LeaseTakeover, PendingEvicted, Stall
from wakelog.monitors.trust_rules import SecretSeen, UntrustedEffect


def built_in(*, on_effect: str = "flag") -> list[Rule]:
    """All of them. `on_effect` says what an untrusted effect leads to: `flag`, or `ask`: the session is paused."""
    return [
        RepeatedFailure(),
        Loop(),
        UntrustedEffect(pause=on_effect == "ask"),
        RetryDivergence(),
        BudgetRule(),
        Stall(),
        LeaseTakeover(),
        PendingEvicted(),
        SecretSeen(),
    ]
