"""A process that migrates a store with extra steps and kills itself before statement NUMBER: `URL NUMBER`. With 0, it
survives.
"""

import os
import signal
import sys
from typing import Any

from wakelog.engine import MigrationStep
from wakelog.engines.postgres import migrations as on_postgres
from wakelog.engines.sqlite import migrations as on_sqlite
from wakelog.store import open as open_store

STATEMENTS = (
    "create table if not exists wl_extra (a text not null primary key)",
    "create index {}if not exists wl_extra_a on wl_extra (a)",
    "create table if not exists wl_more (b text not null primary key)",
)


def steps(engine: Any) -> tuple[MigrationStep, ...]:
    """The real steps and one more, with several statements."""
    concurrently = "concurrently " if hasattr(engine, "ns") else ""
    module = on_postgres if hasattr(engine, "ns") else on_sqlite
    extra = MigrationStep(99, "for the test", tuple(text.format(concurrently) for text in STATEMENTS))
    return (*module.STEPS, extra)


def main(url: str, number: int) -> None:
    store = open_store(url, create=False)
    module: Any = on_postgres if hasattr(store.engine, "ns") else on_sqlite
    module.STEPS = steps(store.engine)
    count = 0

    def counted() -> None:
        nonlocal count
        count += 1
        if count == number:
            os.kill(os.getpid(), signal.SIGKILL)

    if module is on_postgres:
        run = on_postgres._run

        async def counting(db: Any, statement: str) -> None:
            counted()
            await run(db, statement)

        on_postgres._run = counting
    else:
        take = module.take

        def taking(db: Any, step: MigrationStep) -> bool:
            def trace(cursor: Any, statement: str, bindings: Any) -> bool:
                if "create" in statement or "insert" in statement:
                    counted()
                return True

            db.exec_trace = trace
            return bool(take(db, step))

        module.take = taking
    print("ready", flush=True)
    sys.stdin.readline()
    print([step.version for step in store.engine.migrate()])  # type: ignore[attr-defined]
    store.close()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
