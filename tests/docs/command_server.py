"""`wakelog` as a command that is loaded already: a process that imported all of it forks for each command of a page.

What a command does is the same, in a process of its own with its caller's folder, environment and files. Only the
interpreter's start and the imports, which take most of its time, are done once. README and the tutorials run the
installed script instead.
"""

import contextlib
import gc
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from wakelog.cli import main

ROOT = Path(__file__).resolve().parents[2]
CLIENT = """#!{python} -IS
import json, os, socket, sys
asked = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    socket.send_fds(server, [len(asked).to_bytes(8, "big")], [0, 1, 2])
    server.sendall(asked)
    sys.exit(server.recv(1)[0])
"""


@contextlib.contextmanager
def commands(folder: Path) -> Iterator[Path]:
    """A folder for PATH with such a `wakelog` in it."""
    # Not in the folder of the test: the path of a socket has at most a hundred characters.
    with tempfile.TemporaryDirectory(prefix="wl-") as short, socket.socket(socket.AF_UNIX) as listening:
        address = f"{short}/s"
        listening.bind(address)
        listening.listen()
        script = folder / "wakelog"
        script.write_text(CLIENT.format(python=sys.executable, address=address))
        script.chmod(0o755)
        command = [sys.executable, "-m", "tests.docs.command_server", str(listening.fileno())]
        with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, pass_fds=[listening.fileno()]) as server:
            try:
                yield folder
            finally:
                server.kill()


def serve(listening: socket.socket) -> None:
    """Forks for each command."""
    _load()
    gc.freeze()  # or each child walks through, and thereby copies, all that was loaded
    while True:
        client, _ = listening.accept()
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if os.fork() == 0:
            listening.close()
            if (command := os.fork()) == 0:
                _become(client)
                _run()
            code = os.waitstatus_to_exitcode(os.waitpid(command, 0)[1])
            client.sendall(bytes([code % 256]))
            os._exit(0)
        client.close()


def _load() -> None:
    """Imports what commands import when they are named."""
    import click

    import wakelog.engines.sqlite
    import wakelog.index
    import wakelog.session
    import wakelog.store  # noqa: F401
    from wakelog.cli.app import LazyGroup

    group = LazyGroup("wakelog")
    for name in group.list_commands(click.Context(group)):
        group.get_command(click.Context(group), name)


def _become(client: socket.socket) -> None:
    """Takes over the caller's files, folder and environment."""
    size, files, _, _ = socket.recv_fds(client, 8, 3)
    with client.makefile("rb") as told:
        words, folder, environment = json.loads(told.read(int.from_bytes(size, "big")))
    client.close()
    for target, file in enumerate(files):
        os.dup2(file, target)
        os.close(file)
    # Made anew, because a stream remembers what kind of file it was opened on.
    sys.stdin, sys.stdout = os.fdopen(0), os.fdopen(1, "w")
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace")
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    sys.argv = ["wakelog", *words]


def _run() -> NoReturn:
    """Runs the command, and leaves out taking the interpreter apart."""
    code: Any = 1
    try:
        main()
    except SystemExit as exc:
        code = exc.code
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code or 0)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
