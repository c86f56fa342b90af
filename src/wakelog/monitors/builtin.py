"""The rules that come with wakelog, each with its usual settings."""

from __future__ import annotations

from wakelog.monitors.keeping import Budget, LeaseTakeover, PendingEvicted, Stall
from wakelog.monitors.repeating import Loop, RepeatedFailure, RetryDivergence
from wakelog.monitors.rules import Rule
from wakelog.monitors.trusting import SecretSeen, UntrustedEffect


def built_in(*, on_effect: str = "flag") -> list[Rule]:
    """All of them. `on_effect` says what an untrusted effect leads to: `flag`, or `ask`: the session is paused."""
    return [
        RepeatedFailure(),
        Loop(),
        UntrustedEffect(pause=on_effect == "ask"),
        RetryDivergence(),
        Budget(),
        Stall(),
        LeaseTakeover(),
        PendingEvicted(),
        SecretSeen(),
    ]
