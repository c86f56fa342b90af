"""What the children of the crash tests do. Each function is one child's whole life; see processes.py."""

import ctypes
import itertools
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import wakelog
from tests.crash.answers import Questions, is_complaint, small_store
from tests.crash.workload import Journal, append, named, opened, work_in_threads
from wakelog.config.settings import user_prices
from wakelog.engine import Engine
from wakelog.engines.sqlite import SqliteEngine
from wakelog.engines.sqlite.fork_safety import watch
from wakelog.errors import ConflictError, UnavailableError, WakelogError
from wakelog.instruments.writer_thread import RecordWriter
from wakelog.log.bundle import import_bundle
from wakelog.log.log import Log
from wakelog.log.removal import delete, erase, prune
from wakelog.maintenance.check import check_store
from wakelog.model import events as ev
from wakelog.store.url import user_store


def say(line: str) -> None:
    # One write per line: what a killed process said is whole lines, and nothing waits in a buffer.
    os.write(1, f"{line}\n".encode())


def append_until_killed(path: str, seed: str, threads: int) -> None:
    with opened(path) as engine:
        work_in_threads(engine, Journal(say), seed, threads=threads, commits=100_000)


def append_until_point(path: str, seed: str, point: str, times: int, threads: int) -> None:
    from wakelog.testing.faults import DyingEngine

    engine = DyingEngine(os.path.join(path, "log.db"), point=point, times=times)
    work_in_threads(engine, Journal(say), seed, threads=threads, commits=100_000)


# Deaths at every operation of the disk, one after another, each on a copy of its own.


def die_everywhere(task: str, base: str, copies: str, sample: int, seed: int, **arguments: Any) -> None:
    """Runs a task on copies of the folder `base`, each time dying before another operation of the disk.

    Says how many operations the whole task takes, and for each death in which copy it happened.
    """
    work: Callable[..., None] = globals()[f"_{task}"]
    total = _operations(work, Path(base), Path(copies) / "whole", arguments)
    say(f"total {total}")
    numbers = list(range(1, total + 1))
    if sample:
        numbers = sorted(random.Random(seed).sample(numbers, min(sample, total)))
    for number in numbers:
        copy = Path(copies) / str(number)
        status = _in_fork(partial(_perform, work, Path(base), copy, arguments, number))
        assert os.WIFSIGNALED(status), (number, status)
        assert os.WTERMSIG(status) == signal.SIGKILL, (number, status)
        say(f"died {number}")


def _operations(work: Callable[..., None], base: Path, copy: Path, arguments: dict[str, Any]) -> int:
    shutil.copytree(base, copy)
    return _perform(work, base, copy, arguments, 0)


def _perform(work: Callable[..., None], base: Path, copy: Path, arguments: dict[str, Any], number: int) -> int:
    from wakelog.testing.faults import FaultyDisk, dying_at

    shutil.copytree(base, copy, dirs_exist_ok=True)
    disk = FaultyDisk(before=dying_at(number))
    with opened(copy, vfs=disk.name) as engine:
        work(engine, **arguments)
    return disk.operations


def _in_fork(work: Callable[[], object]) -> int:
    pid = os.fork()
    if not pid:
        try:
            work()
            os._exit(0)
        except BaseException as exc:
            say(f"failed {exc!r}")
            os._exit(1)
    return os.waitpid(pid, 0)[1]


def _create(engine: Engine) -> None:
    log = named(engine, "alpha")
    log.append(ev.NoteAdded(text="created"))


def _import(engine: Engine, bundle: str) -> None:
    with open(bundle, "rb") as source:
        import_bundle(engine, source)


def _erase(engine: Engine, seqs: list[int]) -> None:
    erase(named(engine, "secrets"), seqs)


def _prune(engine: Engine, upto: int) -> None:
    prune(named(engine, "secrets"), upto)


def _delete(engine: Engine, sessions: list[str]) -> None:
    for session in sessions:
        delete(Log(engine, session))  # type: ignore[arg-type]


def append_under_interrupts(path: str, seed: str, times: int) -> None:
    """Appends in three threads, while one of them, the main one, is interrupted again and again, at any place."""
    with opened(path) as engine:
        journal, log = Journal(say), named(engine, "alpha")
        stop = threading.Event()
        errors: list[BaseException] = []

        def keep_on(name: str) -> None:
            other = named(engine, name)
            for number in itertools.count():
                if stop.is_set():
                    return
                try:
                    append(random.choice([log, other]), journal, f"{seed}-{name}.{number}")
                except UnavailableError as exc:
                    if exc.kind != "answer-unknown":
                        errors.append(exc)

        threads = [threading.Thread(target=keep_on, args=(name,)) for name in ("beta", "gamma")]
        for thread in threads:
            thread.start()
        armed = False

        def interrupt(*_: object) -> None:
            nonlocal armed
            if armed:
                armed = False
                raise KeyboardInterrupt

        signal.signal(signal.SIGALRM, interrupt)
        interrupted = 0
        for number in range(times):
            try:
                armed = True
                signal.setitimer(signal.ITIMER_REAL, random.uniform(0.00001, 0.002))
                append(log, journal, f"{seed}.{number}")
                armed = False
            except KeyboardInterrupt:
                interrupted += 1
            except UnavailableError as exc:
                armed = False
                if exc.kind != "answer-unknown":
                    errors.append(exc)
        stop.set()
        for thread in threads:
            thread.join()
        append(log, journal, f"{seed}.end")
        assert not errors, errors
        say(f"interrupted {interrupted}")


# Forks. Parent and child go on with the same objects.


def fork_among_threads(path: str, seed: str, forks: int) -> None:
    """Forks while threads append and wait; each child goes on with what it inherited, and the parent with its own."""
    with opened(path) as engine:
        shared = named(engine, "alpha")
        stop = threading.Event()
        errors: list[BaseException] = []

        def keep_on(name: str) -> None:
            journal, log = Journal(say), named(engine, name)
            try:
                for number in itertools.count():
                    if stop.is_set():
                        return
                    append(random.choice([log, shared]), journal, f"{seed}-{name}.{number}")
            except BaseException as exc:
                errors.append(exc)

        def keep_waiting() -> None:
            while not stop.is_set():
                engine.wait(shared.id, after=1 << 40, timeout_s=0.05)

        threads = [threading.Thread(target=keep_on, args=(name,)) for name in ("beta", "gamma")]
        threads.append(threading.Thread(target=keep_waiting))
        for thread in threads:
            thread.start()
        children = [
            _fork(partial(_go_on, engine, shared, f"{seed}-child{i}"), gently=bool(i % 2)) for i in range(forks)
        ]
        _go_on(engine, shared, f"{seed}-parent")
        statuses = [os.waitpid(pid, 0)[1] for pid in children]
        stop.set()
        for thread in threads:
            thread.join()
        assert statuses == [0] * forks, statuses
        assert not errors, errors


def _go_on(engine: Engine, shared: Log, seed: str) -> None:
    journal = Journal(say)
    for number in range(15):
        append(shared, journal, f"{seed}.{number}")
    append(named(engine, "beta"), journal, f"{seed}.own")


def _fork(work: Callable[[], object], *, gently: bool) -> int:
    """Forks a child that does its work and ends, gently with all that Python does then, or at once."""
    pid = os.fork()
    if pid:
        return pid
    try:
        work()
        if gently:
            # Other threads of the parent are not here; the interpreter need not wait for them.
            threading._shutdown = lambda: None  # type: ignore[attr-defined]
            sys.stdout.flush()
            sys.exit(0)
        os._exit(0)
    except Exception as exc:
        say(f"failed {exc!r}")
        os._exit(1)


def fork_then_close_first(path: str, seed: str) -> None:
    """The parent closes the store while its child is still writing: the child's log must not go with it."""
    engine = SqliteEngine(Path(path) / "log.db")
    log, journal = named(engine, "alpha"), Journal(say)
    append(log, journal, f"{seed}.before")
    told, tell = os.pipe()
    asked, ask = os.pipe()

    def work() -> None:
        append(log, Journal(say), f"{seed}.child")
        os.write(tell, b"1")
        os.read(asked, 1)  # until the parent has closed
        for number in range(20):
            append(log, Journal(say), f"{seed}.child.{number}")
        # No goodbye: what was acknowledged must be there without closing.
        os._exit(0)

    pid = _fork(work, gently=False)
    os.read(told, 1)
    append(log, journal, f"{seed}.after")
    engine.close()
    os.write(ask, b"1")
    assert os.waitpid(pid, 0)[1] == 0


def fork_and_outlive(path: str, seed: str) -> None:
    """A child that inherited a store outlives its parent, does nothing with it, and ends as Python programs do."""
    engine = SqliteEngine(Path(path) / "log.db")
    append(named(engine, "alpha"), Journal(say), f"{seed}.before")
    if not os.fork():
        say("child")
        sys.stdin.readline()
        sys.exit(0)
    engine.close()
    os._exit(0)


def fork_behind_pythons_back(path: str, seed: str) -> None:
    """A fork that runs none of Python's hooks, with connections open."""
    engine = SqliteEngine(Path(path) / "log.db")
    log, journal = named(engine, "alpha"), Journal(say)
    append(log, journal, f"{seed}.before")
    pid = ctypes.PyDLL(None).fork()
    if not pid:
        _look(log)
        sys.exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    append(log, journal, f"{seed}.after")
    os._exit(0)


def fork_of_closed_store(path: str) -> None:
    engine = SqliteEngine(Path(path) / "log.db")
    log = named(engine, "alpha")
    engine.close()
    if not os.fork():
        try:
            log.append(ev.NoteAdded(text="x"))
        except UnavailableError as exc:
            say(exc.kind)
        os._exit(0)
    os.wait()


def fork_in_signal_handler(path: str, seed: str) -> None:
    """Forks in the middle of an append of the very thread that forks, which therefore cannot be waited for."""
    engine = SqliteEngine(Path(path) / "log.db")
    log, journal = named(engine, "alpha"), Journal(say)
    children: list[int] = []

    def handle(*_: object) -> None:
        children.append(_fork(partial(_look, log), gently=False))

    signal.signal(signal.SIGALRM, handle)
    for number in range(60):
        signal.setitimer(signal.ITIMER_REAL, random.uniform(0, 0.001))
        append(log, journal, f"{seed}.{number}")
    signal.setitimer(signal.ITIMER_REAL, 0)
    assert children
    statuses = [os.waitpid(pid, 0)[1] for pid in children]
    assert not any(statuses), statuses
    engine.close()


def fork_inside_fork(path: str, seed: str) -> None:
    """Forks while another fork of the same thread waits for its turn, as a signal handler can do."""
    engine, writer = SqliteEngine(Path(path) / "log.db"), RecordWriter()
    log, journal = named(engine, "alpha"), Journal(say)
    append(log, journal, f"{seed}.before")
    inner: list[int] = []

    class Interrupted:
        """Stands where the connections are closed: all other hooks have run by then."""

        def disconnect_all(self) -> None:
            inner.append(_fork(partial(_look, log), gently=False))

        def start_over(self) -> None:
            """Has nothing to forget."""

    interrupted = Interrupted()
    watch(interrupted)
    outer = _fork(partial(_look, log), gently=False)
    assert [os.waitpid(pid, 0)[1] for pid in (*inner, outer)] == [0, 0]
    assert writer.pause(), "the writer is thought to hang"
    writer.resume()
    append(log, journal, f"{seed}.after")
    engine.close()


def _look(log: Log) -> None:
    """Sees the truth, or is told that it cannot."""
    try:
        list(log.entries())
        say("looked")
    except UnavailableError as exc:
        say(exc.kind)


# Several processes at once. They begin together, when their parent says so.


def _wait_for_go() -> None:
    say("ready")
    sys.stdin.readline()


def append_along(path: str, names: list[str], seed: str, count: int) -> None:
    """Appends to each of the sessions in turn, and says what was acknowledged."""
    with opened(path) as engine:
        logs, journal = [named(engine, name) for name in names], Journal(say)
        _wait_for_go()
        for number in range(count):
            append(logs[number % len(logs)], journal, f"{seed}.{number}")


def count_up(path: str, times: int) -> None:
    """Adds one to a counter, `times` times: reads it, and writes it back insisting on the head that was read."""
    with opened(path) as engine:
        log, conflicts = named(engine, "counter"), 0
        _wait_for_go()
        while times:
            seq = log.head().seq
            value = log.state(seq)["data"].get("count", 0)
            patch = [{"op": "add", "path": "/data/count", "value": value + 1}]
            try:
                head = log.append(ev.StatePatched(patch=patch), expect=seq)
            except ConflictError:
                conflicts += 1
                continue
            say(f"counted {value + 1} {head.seq}")
            times -= 1
        say(f"conflicts {conflicts}")


def open_new(paths: list[str], names: list[str]) -> None:
    """Opens store after store, each at the same moment as the others do, and the same sessions in them."""
    from wakelog.store import open as open_store

    for path in paths:
        _wait_for_go()
        with open_store(path) as store:
            for name in names:
                say(f"opened {store.session(name).id}")


def follow_along(path: str, count: int) -> None:
    with opened(path) as engine:
        log = named(engine, "alpha")
        _wait_for_go()
        for entry in itertools.islice(log.follow(), count):
            say(f"saw {entry.seq} {entry.hash.hex()}")


def watch_changes(path: str, count: int) -> None:
    """Follows the whole store by its feed, and says each commit it hears of."""
    with opened(path) as engine:
        cursor, heard = "", 0
        _wait_for_go()
        while heard < count:
            news = engine.changes(cursor)
            for change in news:
                say(f"heard {change.session} {change.seq}")
                cursor = change.cursor
            heard += len(news)
            if not news:
                engine.wait(None, after=0, timeout_s=0.05)


# A user who may not write.


def read_without_rights(path: str, sessions: list[str], wait: bool = False) -> None:
    """As a user without rights: says what it can read of a store, and what it hears when it writes."""
    with tempfile.TemporaryDirectory() as elsewhere, opened(elsewhere) as engine:
        small_store(engine)  # so that everything is imported while Python's own files can be read
        dict(Questions(engine).ask(engine))
    _give_up_rights()
    try:
        engine = SqliteEngine(Path(path) / "log.db")
    except WakelogError as exc:
        say(f"open {type(exc).__name__} {exc.kind}")
        return
    if wait:
        _wait_for_go()
    questions = Questions(engine)
    assert not any(is_complaint(answer) for _, answer in questions.ask(engine))
    assert questions.sessions == sessions, questions.sessions
    for session in questions.sessions:
        say(f"read {session} {engine.head(session).hash.hex()}")
    log = Log(engine, questions.sessions[0])
    for write in (
        partial(log.append, ev.NoteAdded(text="x")),
        partial(engine.claim, "new name", log.id),
        partial(erase, log, [1]),
    ):
        try:
            write()
        except WakelogError as exc:
            say(f"write {type(exc).__name__} {exc.kind}")
    engine.close()


def check_without_rights(path: str, home: str) -> None:
    """Checks a store without the right to write it, and with a home folder that may not be entered; says what is not
    well."""
    os.environ["HOME"] = home
    for variable in [name for name in os.environ if name.startswith(("XDG_", "WAKELOG_"))]:
        del os.environ[variable]
    is_first = True
    for _ in range(2):  # first with rights, to import everything: Python itself may be where only root can read
        with wakelog.open(path) as store:
            said = [f"{check.level} {check.what} {check.found}" for check in check_store(store) if check.level != "ok"]
        said += [f"own store {user_store(must_exist=True)!r}, prices {bool(user_prices())}"]
        if is_first:
            _give_up_rights()
        is_first = False
    say("\n".join(said))


def _give_up_rights() -> None:
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)


# Memory


def read_in_little_memory(short: str, long: str) -> None:
    """Reads a short session and then a long one, event by event; says how many there were and the memory in between."""
    counts, peaks = [], []
    for path in (short, long):
        with opened(path) as engine:
            log = named(engine, "alpha")
            counts.append(sum(bool(entry.body) for entry in log.entries()))
            log.state()
        peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    say(" ".join(map(str, (*counts, *peaks))))


def main() -> None:
    function: Any = globals()[sys.argv[1]]
    function(**json.loads(sys.argv[2]))


if __name__ == "__main__":
    main()
