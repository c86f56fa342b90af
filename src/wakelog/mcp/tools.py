"""The tools an agent gets. Every call names its session; the server keeps nothing between calls except what is in the
store.

Tools that write are in this file, tools that read in reads.py. Whatever an agent records counts as the agent's word,
not the user's.
"""

from __future__ import annotations

import secrets
from typing import Annotated, Any, Literal

from mcp.server.mcpserver import Context
from pydantic import Field

from wakelog.mcp.answers import ANSWER_MAX, answer, shorten
from wakelog.mcp.entries import AgentEntry, check, claim, draft
from wakelog.mcp.lazy_store import LazyStore
from wakelog.mcp.reads import BUDGET, Id, Point, ReadTools, brief_within, with_tool_errors
from wakelog.mcp.turns import Turns
from wakelog.model import events as ev
from wakelog.session import Session


class Tools(ReadTools):
    """All tools of a store: those that read, and those that write."""

    def __init__(self, place: LazyStore) -> None:
        super().__init__(place)
        self._turns = Turns()

    def _answer(self, session: Session[Any], **more: Any) -> str:
        head = session.head
        status = {
            "session_id": session.id,
            "name": session.name,
            "status": head.status,
            "turn": head.turn,
            "e": head.seq,
        }
        if head.status in ("closed", "archived"):
            more["note"] = f"it is {head.status}: fork it to continue it, or open another"
        return answer({**status, **more})

    @with_tool_errors
    def open_session(
        self,
        name: Annotated[str, Field(description="Short name of the task.", max_length=200)],
        goal: str = "",
        ctx: Context = None,  # type: ignore[assignment]
    ) -> str:
        """Opens a session for a task, or continues the one of that name. Keep the session_id: other tools need it."""
        store, client = self._place.written, _client(ctx)
        is_new = store.engine.find(name) is None
        session = store.session(name, agent=client)
        if goal and session.log.part("goal") is None and session.status not in ("closed", "archived"):
            session.append(claim(ev.GoalSet(goal=goal), client))
        return self._answer(session, is_new=is_new, goal=shorten(session.log.part("goal")), **self._busy(session, ctx))

    @with_tool_errors
    def resume_session(
        self,
        session_id: Id,
        ctx: Context = None,  # type: ignore[assignment]
    ) -> str:
        """Shows a session's status and brief, and unpauses it. Use it after a restart."""
        session = self._session(session_id)
        if session.status == "paused":
            session.life.unpause(why="resumed through MCP")
        busy = self._busy(session, ctx)
        room = ANSWER_MAX - len(self._answer(session, **busy)) - 20
        return self._answer(session, brief=brief_within(session, BUDGET, room), **busy)

    def _busy(self, session: Session[Any], ctx: Context) -> dict[str, str]:
        words = self._turns.busy(session, _client(ctx))
        return {"busy": f"{words}: fork it to work beside it"} if words else {}

    @with_tool_errors
    def start_turn(
        self,
        session_id: Id,
        input: Annotated[str, Field(description="The request you got.")],
        ctx: Context = None,  # type: ignore[assignment]
    ) -> str:
        """Starts a turn: one request and your work on it. A turn you left open is marked interrupted. Refused if
        another client has a turn open: fork the session then."""
        session = self._session(session_id)
        self._turns.start(session, _client(ctx), input)
        return self._answer(session)

    @with_tool_errors
    def record(
        self,
        session_id: Id,
        entries: Annotated[list[AgentEntry], Field(min_length=1, max_length=100)],
        id: Annotated[str, Field(description="Your id: a repeated call stores nothing twice.", max_length=200)] = "",
        ctx: Context = None,  # type: ignore[assignment]
    ) -> str:
        """Records what happened: all entries or none. Use it as you work. Each `kind` needs its own field: text
        (message), tool (tool_call, after it has ended), choice (decision), key and value (fact), tried (dead_end), path
        (file), name (artefact) or goal (goal)."""
        for place, entry in enumerate(entries):
            check(entry, place)
        session, client = self._session(session_id), _client(ctx)
        self._turns.refuse_to_record(session, client)
        drafts = [draft(e, _action(e, id, i), client) for i, e in enumerate(entries)]
        head = session.append(*drafts, commit_id=f"mcp:{id}" if id else "")
        return answer({"e": head.seq, "turn": head.turn})

    @with_tool_errors
    def end_turn(
        self,
        session_id: Id,
        outcome: Literal["completed", "failed", "interrupted"] = "completed",
        ctx: Context = None,  # type: ignore[assignment]
    ) -> str:
        """Ends the turn. Use it when you stop."""
        session = self._session(session_id)
        self._turns.end(session, _client(ctx), outcome)
        return self._answer(session)

    @with_tool_errors
    def checkpoint(self, session_id: Id, name: Annotated[str, Field(min_length=1, max_length=200)]) -> str:
        """Names this position. To come back, rewind to cp:NAME."""
        session = self._session(session_id)
        session.checkpoint(name)
        return self._answer(session, checkpoint=f"cp:{name}")

    @with_tool_errors
    def rewind(self, session_id: Id, to: Point, why: str = "") -> str:
        """Takes the state back to a position. Events stay in the log; files and other effects are not undone."""
        session = self._session(session_id)
        session.rewind(to, why=why)
        return self._answer(session)

    @with_tool_errors
    def fork(self, session_id: Id, at: Point = "", name: Annotated[str, Field(max_length=200)] = "") -> str:
        """Creates a session with the same history up to a position, to try another way."""
        return self._answer(self._session(session_id).fork(at or None, name=name))

    @with_tool_errors
    def reconcile(
        self,
        session_id: Id,
        action: str,
        outcome: Literal["succeeded", "failed", "never_ran"],
        output: Any = None,
        why: Annotated[str, Field(description="How you know.")] = "",
        ctx: Context = None,  # type: ignore[assignment]
    ) -> str:
        """Records the outcome of an uncertain call (see pending), once you have found it out."""
        session = self._session(session_id)
        session.calls.reconcile(action, outcome, output=output, by=f"mcp:{_client(ctx)}", why=why)
        return self._answer(session)

    @with_tool_errors
    def close_session(self, session_id: Id, outcome: str = "completed", why: str = "") -> str:
        """Ends the session. Use it when the task is done. Open turns and calls are settled first."""
        session = self._session(session_id)
        session.life.end(outcome, why=why)
        return self._answer(session)


READING, WRITING = (
    tuple(name for name in vars(tools) if not name.startswith("_") and callable(getattr(tools, name)))
    for tools in (ReadTools, Tools)
)
"""The names of the tools that read and of those that write, in the order of the list of tools."""


def _action(entry: AgentEntry, id: str, place: int) -> str:
    """The action id of a recorded tool call. A repeated request gets the same one, so that it is the same commit."""
    return f"{entry.tool}-{id}-{place}" if id else f"{entry.tool}-{secrets.token_hex(4)}"


def _client(ctx: Context | None) -> str:
    """What the client calls itself."""
    params = getattr(getattr(ctx, "session", None), "client_params", None)
    info = getattr(params, "client_info", None) or getattr(params, "clientInfo", None)
    return str(getattr(info, "name", "") or "agent")[:100]
