"""DBOS: a turn is a durable workflow of four steps, the message and three calls; it returns the turn's delta.

There is no state but what the workflows returned, so reading lists them and folds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

from benchmarks.protocol import Contender, Settings, pragmas
from benchmarks.turns import State, Turn, apply, delta, new_state


class DbosSqlite(Contender):
    one_in_a_process = True

    def __init__(self, place: str, session: str = "bench", beside: Self | None = None) -> None:
        from dbos import DBOS, SetWorkflowID

        super().__init__(place, session)
        self._dbos: Any = DBOS
        self._name: Any = SetWorkflowID
        self.play: Any = beside.play if beside else self._launch()

    def _launch(self) -> Any:
        config = {"name": "bench", "system_database_url": self._url(), "run_admin_server": False}
        self._dbos(config={**config, "log_level": "ERROR", "enable_otlp": False})

        @self._dbos.step()  # type: ignore[untyped-decorator]  # untyped library
        def say(message: Any) -> Any:
            return message

        @self._dbos.step()  # type: ignore[untyped-decorator]  # as above
        def call_tool(call: Any) -> Any:
            return {"id": call["id"], "output": call["output"], "summary": call["summary"]}

        @self._dbos.workflow()  # type: ignore[untyped-decorator]  # as above
        def play(turn: Turn) -> Any:
            say(turn["message"])
            for call in turn["tools"]:
                call_tool(call)
            return delta(turn)

        self._dbos.launch()
        return play

    def _url(self) -> str:
        return f"sqlite:///{Path(self.place) / 'dbos.db'}"

    def append(self, turn: Turn) -> None:
        with self._name(f"{self.session}-{turn['n']:06d}"):
            self.play(turn)

    def load(self, at: int | None = None) -> State:
        state = new_state()
        for change in self._changes():
            if at is not None and change["n"] > at:
                break
            apply(state, change)
        return state

    def _changes(self, **options: Any) -> list[dict[str, Any]]:
        prefix = f"{self.session}-"
        flows = self._dbos.list_workflows(workflow_id_prefix=prefix, load_input=False, load_output=True, **options)
        return [flow.output for flow in sorted(flows, key=lambda flow: str(flow.workflow_id))]

    def recent_files(self, turns: int) -> list[str]:
        return [change["file"] for change in self._changes(limit=turns, sort_desc=True)]

    def settings(self) -> Settings:
        return pragmas(self._ask)

    def _ask(self, statement: str) -> Any:
        from dbos._dbos import _get_dbos_instance
        from sqlalchemy import text

        with _get_dbos_instance()._sys_db.engine.connect() as connection:
            return connection.execute(text(statement)).scalar()

    def close(self) -> None:
        self._dbos.destroy()


class DbosPostgres(DbosSqlite):
    def _url(self) -> str:
        return self.place

    def settings(self) -> Settings:
        return {"synchronous_commit": self._ask("show synchronous_commit")}
