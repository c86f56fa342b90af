"""OpenAI Agents SDK: sessions that keep the items of a conversation.

They keep no state, so the turn's delta is stored as one more item and folded by the reader. One `add_items` a turn is
favourable: the runner makes two or more.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from benchmarks.protocol import AsyncContender, Settings, Unsupported, pragmas
from benchmarks.turns import State, Turn, apply, delta, new_state

_MARK = "delta:"
_IN_A_TURN = 8
"""Items of one turn."""


def items_of(turn: Turn) -> list[dict[str, Any]]:
    calls, outputs = [], []
    for call in turn["tools"]:
        known = {"call_id": call["id"]}
        calls.append({"type": "function_call", **known, "name": call["name"], "arguments": json.dumps(call["input"])})
        outputs.append({"type": "function_call_output", **known, "output": call["output"]})
    change = delta(turn)
    del change["message"]
    said = {"role": "user", "content": turn["message"]["text"]}
    return [said, *calls, *outputs, {"role": "assistant", "content": _MARK + json.dumps(change)}]


def fold_items(items: list[dict[str, Any]]) -> State:
    state, text = new_state(), ""
    for item in items:
        if item.get("role") == "user":
            text = item["content"]
        elif item.get("role") == "assistant":
            change = json.loads(item["content"].removeprefix(_MARK))
            # The role is "user" for the store, which counts turns by it; whose it was follows from the number.
            change["message"] = {"role": "user" if change["n"] % 2 else "assistant", "text": text}
            apply(state, change)
    return state


class AgentsSqlite(AsyncContender):
    kept: Any

    async def aopen(self, beside: Self | None) -> None:
        from agents import SQLiteSession

        self.kept = SQLiteSession(self.session, self._file())

    def _file(self) -> str:
        return str(Path(self.place) / "agents.db")

    async def aappend(self, turn: Turn) -> None:
        await self.kept.add_items(items_of(turn))

    async def aload(self, at: int | None = None) -> State:
        if at is not None:
            raise Unsupported
        return fold_items(await self.kept.get_items())

    def recent_files(self, turns: int) -> list[str]:
        items = self.run(self.kept.get_items(limit=turns * _IN_A_TURN))
        return list(fold_items(items)["files_modified"])

    def settings(self) -> Settings:
        return pragmas(lambda statement: self.kept._get_connection().execute(statement).fetchone()[0])

    async def aclose(self) -> None:
        self.kept.close()


class AgentsAdvanced(AgentsSqlite):
    """Time travel is by making a branch, which is a copy."""

    async def aopen(self, beside: Self | None) -> None:
        from agents.extensions.memory import AdvancedSQLiteSession

        self.kept = AdvancedSQLiteSession(session_id=self.session, db_path=self._file(), create_tables=True)

    async def aload(self, at: int | None = None) -> State:
        if at is None:
            return fold_items(await self.kept.get_items())
        branch = await self.kept.create_branch_from_turn(at + 1)
        items = await self.kept.get_items(branch_id=branch)
        await self.kept.switch_to_branch("main")
        return fold_items(items)

    def fork(self, at: int) -> Callable[[], State]:
        branch = self.run(self.kept.create_branch_from_turn(at + 1))
        return lambda: fold_items(self.run(self.kept.get_items(branch_id=branch)))


class AgentsSqlalchemy(AgentsSqlite):
    async def aopen(self, beside: Self | None) -> None:
        from agents.extensions.memory import SQLAlchemySession

        if beside is None:
            self.kept = SQLAlchemySession.from_url(self.session, url=self._url(), create_tables=True)
        else:
            self.kept = SQLAlchemySession(self.session, engine=beside.kept._engine, create_tables=True)
        await self.kept._ensure_tables()

    def _url(self) -> str:
        return f"sqlite+aiosqlite:///{self._file()}"

    def settings(self) -> Settings:
        return pragmas(lambda statement: self.run(self._ask(statement)))

    async def _ask(self, statement: str) -> Any:
        from sqlalchemy import text

        async with self.kept._engine.connect() as connection:
            return (await connection.execute(text(statement))).scalar()

    async def aclose(self) -> None:
        await self.kept._engine.dispose()


class AgentsSqlalchemyPostgres(AgentsSqlalchemy):
    def _url(self) -> str:
        return self.place.replace("postgresql://", "postgresql+asyncpg://")

    def settings(self) -> Settings:
        return {"synchronous_commit": self.run(self._ask("show synchronous_commit"))}
