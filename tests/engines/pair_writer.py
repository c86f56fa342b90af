"""A process that writes to a shared store and records in a file what was acknowledged: `pair_writer URL NAME OUT`."""

import os
import sys
import threading
import time

import wakelog
from wakelog.errors import UnavailableError
from wakelog.model import events as ev

SESSIONS = 3


def write(store: wakelog.Store, name: str, out: int, stop: threading.Event) -> None:
    session = None
    number = 0
    while not stop.is_set():
        try:
            if session is None:
                session = store.session(name)
            event = ev.FactRecorded(key=f"k{number}", value=number)
            session.append(event, commit_id=f"{name}-{number}")
        except UnavailableError as exc:
            os.write(out, f"lost {name} {number} {exc.kind}\n".encode())
            time.sleep(0.05)
            continue
        os.write(out, f"ack {name} {number}\n".encode())
        number += 1


def main(url: str, name: str, path: str) -> None:
    out = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    stop = threading.Event()
    with wakelog.open(url) as store:
        threads = [
            threading.Thread(target=write, args=(store, f"{name}-{i}", out, stop), daemon=True) for i in range(SESSIONS)
        ]
        for thread in threads:
            thread.start()
        sys.stdin.readline()  # until told to stop
        stop.set()
        for thread in threads:
            thread.join(180)
            assert not thread.is_alive()
        os.write(out, f"again - {store.engine.retries}\n".encode())  # type: ignore[attr-defined]


if __name__ == "__main__":
    main(*sys.argv[1:])
