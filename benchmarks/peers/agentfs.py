"""AgentFS: three recorded tool calls and one key a turn, each its own commit.

A key for each turn is favourable; rewriting whole lists would be the plain way. There is no way to read as of a turn
but to read all keys; a fork is a copy of the file.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Self

from benchmarks.protocol import AsyncContender, Settings
from benchmarks.turns import State, Turn, apply, delta, new_state

_PREFIX = "turn:"


class AgentFs(AsyncContender):
    async def aopen(self, beside: Self | None) -> None:
        from agentfs_sdk import AgentFS, AgentFSOptions

        file = str(Path(self.place) / f"{self.session}.db")
        self._fs: Any = await AgentFS.open(AgentFSOptions(id=self.session, path=file))

    async def aappend(self, turn: Turn) -> None:
        now = time.time()
        for call in turn["tools"]:
            await self._fs.tools.record(call["name"], now, now, parameters=call["input"], result=call["output"])
        await self._fs.kv.set(f"{_PREFIX}{turn['n']:06d}", delta(turn))

    async def aload(self, at: int | None = None) -> State:
        state = new_state()
        for row in sorted(await self._fs.kv.list(_PREFIX), key=lambda row: str(row["key"])):
            if at is not None and row["value"]["n"] > at:
                break
            apply(state, row["value"])
        return state

    def settings(self) -> Settings:
        return {name: self.run(self._ask(name)) for name in ("journal_mode", "synchronous")}

    async def _ask(self, name: str) -> Any:
        cursor = await self._fs.get_database().execute(f"pragma {name}")
        return (await cursor.fetchone())[0]

    async def aclose(self) -> None:
        await self._fs.close()
