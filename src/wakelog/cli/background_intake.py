"""Imports what hooks record while a long command runs, so that live sessions are up to date."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from wakelog.cli.context import open_store
from wakelog.hooks.spool import is_waiting

EVERY_S = 5.0


@contextlib.contextmanager
def background_intake(every_s: float = EVERY_S) -> Iterator[None]:
    """Looks every few seconds until the block ends. What cannot be imported stays in the spool for the next command."""
    stop = threading.Event()

    def work() -> None:
        while not stop.wait(every_s):
            if is_waiting():
                from wakelog.hooks.intake import take_in

                with contextlib.suppress(Exception):  # must not end the command; the next one reports it
                    take_in(open_store)

    thread = threading.Thread(target=work, name="wakelog intake", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
