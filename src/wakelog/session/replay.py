"""Verbs that run again: the agent's code against the record, or the recorded calls on new inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from wakelog.session.base import Base, S, Where

if TYPE_CHECKING:
    # Loaded by the verbs below: most sessions are never run again.
    from wakelog.replay.call_match import Order
    from wakelog.replay.plan import Plan
    from wakelog.replay.recorded_runtime import Effects
    from wakelog.replay.replay import Replay
    from wakelog.replay.report import Mode
    from wakelog.session.session import Session


class Replaying(Base[S]):
    """What was recorded, run again."""

    def replay(
        self,
        where: Where = None,
        *,
        mode: Mode = "strict",
        effects: Effects = "refuse",
        order: Order = "recorded",
        record: bool = False,
    ) -> Replay[Session[S]]:
        """Runs the agent's own code again from a point: `with session.replay("@4..@7") as replay: run(replay.session)`.

        `strict` answers every call from the record and runs nothing; whatever is different is a DivergenceError that
        names the step. It happens in memory and leaves no trace, unless told to `record`. `fill` answers what is
        recorded and runs the rest; `live` runs everything and compares. Both happen in a fork, made first, and refuse
        calls that write or reach outside unless `effects="allow"`. `replay.report` tells what was the same.

        One call after another is expected in the recorded `order`; calls made side by side are not.
        """
        from wakelog.session.replayed import open_replay

        return open_replay(cast("Session[S]", self), where, mode, effects, order, record)

    def workflow(self, where: Where = None) -> Plan:
        """The recorded tool calls of some turns as a plan that can be looked at, changed, and run on new inputs."""
        from wakelog.replay.workflow import read_plan

        return read_plan(self.log, where)
