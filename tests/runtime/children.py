"""Agents in processes of their own, killed with `kill -9`. See test_crash.py; started as tests/crash/processes.py does.

The world outside is a file: a tool appends a line to it and syncs it, and that is its effect. A process that imported
everything forks one child for each life of an agent. The child counts its moments, before and after each commit and
around each effect, and kills itself at the one it was told.
"""

import asyncio
import contextlib
import json
import os
import random
import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import wakelog
from tests.runtime.lives import MortalEngine, World
from wakelog.engines.sqlite import SqliteEngine
from wakelog.errors import ConflictError, NotAllowedError
from wakelog.session import Session
from wakelog.store import Store

STOPPED, LOST = 3, 5
"""How an agent ends that the runtime stopped for somebody to look; and one whose turn another process has."""


def say(line: str) -> None:
    os.write(1, f"{line}\n".encode())


class Moments:
    """As `Life`, but the end is real."""

    def __init__(self, last: int = 0) -> None:
        self.last = last
        self.moments = 0
        self._lock = threading.Lock()

    def moment(self) -> None:
        with self._lock:
            self.moments += 1
            if self.moments == self.last:
                os.kill(os.getpid(), signal.SIGKILL)

    def breathe(self) -> None:
        """A dead process does not come here."""


class WorldFile(World):
    """The world as a file. A line that is there was done, whatever became of who did it."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path
        with contextlib.suppress(FileNotFoundError):
            self.done = [tuple(json.loads(line)) for line in Path(path).read_text().splitlines()]

    def do(self, tool: str, given: Any, key: str) -> str:
        self._put(tool, given, key)
        return super().do(tool, given, key)

    def _put(self, *what: Any) -> None:
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, f"{json.dumps(what)}\n".encode())
        os.fsync(file)
        os.close(file)


class Agent:
    """One life: a store, the world, and the tools between them."""

    def __init__(self, store: str, world: str, last: int = 0) -> None:
        self.life = Moments(last)
        self.world = WorldFile(world)
        self.store = Store(MortalEngine(SqliteEngine(Path(store) / "log.db"), self.life))  # type: ignore[arg-type]
        self.session: Session[Any] = self.store.session("agent", goal="all of it", data={"done": []})

    def act(self, tool: str, n: int, *, once: bool = False) -> str:
        call = wakelog.current_call()
        assert call is not None
        self.life.moment()
        answer = (self.world.do_once if once else self.world.do)(tool, n, call.key)
        self.life.moment()
        return answer

    def sync_tools(self) -> dict[str, Callable[[int], Any]]:
        session = self.session

        @session.tool(effect="read")
        def look(n: int) -> str:
            self.life.moment()
            return f"seen {n}"

        @session.tool
        def send(n: int) -> str:
            return self.act("send", n)

        @session.tool(key=lambda n: f"order-{n}")
        def charge(n: int) -> str:
            return self.act("charge", n)

        @session.tool(uncertain="retry")
        def post(n: int) -> str:
            return self.act("post", n, once=True)

        @session.tool(effect="pure")
        def add(n: int) -> int:
            self.life.moment()
            return n + 1

        return {"look": look, "send": send, "charge": charge, "post": post, "add": add}

    def run_sync(self) -> None:
        tools = self.sync_tools()
        with self.session.turn("do it all") as turn:
            if turn.data["done"]:
                return
            said: list[Any] = [self.session.model(self._model, messages=["go"], model="m-1")]
            for tool, n in (("look", 1), ("send", 1), ("send", 1), ("charge", 1), ("post", 1), ("add", 1), ("send", 2)):
                said.append(tools[tool](n))
                self.session.message("assistant", f"{tool} {said[-1]}")
            turn.data["done"] = said

    def run_threads(self) -> None:
        tools = self.sync_tools()
        with self.session.turn("do it all") as turn, ThreadPoolExecutor(3) as pool:
            first = list(pool.map(tools["send"], [1, 2, 3]))
            second = list(pool.map(tools["look"], [1, 2]))
            turn.data["done"] = [*first, *second, tools["charge"](1)]

    def run_ids(self) -> None:
        """A script that asks nobody whether its work was done: its turns have ids."""
        tools = self.sync_tools()
        with self.session.turn("first", id="first") as turn:
            turn.data["done"] = [tools["look"](1), tools["send"](1), tools["charge"](1)]
        self.life.moment()

        def second(turn: Any) -> list[str]:
            said = [tools["send"](2), tools["post"](1), tools["send"](1)]
            self.session.fact("said", said)
            turn.data["done"] += said
            return said

        said = self.session.run_turn("second", second)
        self.life.moment()
        assert said == self.session.state().facts["said"].value

    async def run_async(self) -> None:
        session = self.session

        @session.tool(effect="read")
        async def look(n: int) -> str:
            await asyncio.sleep(0)
            self.life.moment()
            return f"seen {n}"

        @session.tool
        async def send(n: int) -> str:
            await asyncio.sleep(0)
            answer = self.act("send", n)
            await asyncio.sleep(0)
            return answer

        def plain(n: int) -> str:
            return self.act("plain", n)

        session.tool(plain)
        async with session.turn("do it all") as turn:
            if turn.data["done"]:
                return
            said: list[Any] = [await session.aio.model(self._amodel, messages=["go"], model="m-1"), await look(1)]
            said += await asyncio.gather(send(1), send(2), send(3))
            said.append((await session.aio.call("plain", {"n": 1})).unwrap())
            said.append(await send(1))
            turn.data["done"] = said

    def _model(self, messages: list[str], model: str) -> dict[str, Any]:
        self.life.moment()
        return {"text": "I will", "usage": {"input_tokens": 3, "output_tokens": 2}}

    async def _amodel(self, messages: list[str], model: str) -> dict[str, Any]:
        await asyncio.sleep(0)
        return self._model(messages, model)


def live(variant: str, store: str, world: str, last: int = 0, *, lease: bool = False) -> int:
    """One life of an agent: its exit code."""
    agent = Agent(store, world, last)
    if lease:
        try:
            agent.session.life.take_lease(f"process {os.getpid()}", ttl_s=60)
        except ConflictError as exc:
            say(f"refused {exc.kind}")
            return LOST
    if agent.session.data["done"] and variant != "ids":
        return 0
    try:
        if variant == "async":
            asyncio.run(agent.run_async())
        else:
            getattr(agent, f"run_{variant}")()
    except NotAllowedError as exc:
        if exc.kind not in ("uncertain-call", "call-running"):
            raise
        return STOPPED
    except ConflictError as exc:
        if exc.kind not in ("turn-taken-over", "leased", "fenced"):
            raise
        return LOST
    finally:
        if not last:
            os.environ["MOMENTS"] = str(agent.life.moments)
    return 0


def _tell_windows(session: Session[Any]) -> None:
    """Says what a model would be shown now. Whether its provider accepts that is for the test to check: the providers'
    packages take seconds to import."""
    for shape in ("openai", "anthropic"):
        shown = session.context.window(shape=shape, record=False)
        say(f"window {json.dumps({'shape': shape, 'system': shown.system, 'messages': list(shown)})}")


def look_after(store: str, world: str, reconciles: bool) -> int:
    """What somebody does who looks after a dead agent: is everything in order? What became of what is uncertain?"""
    agent = Agent(store, world)
    session = agent.session
    _tell_windows(session)
    assert session.verify().ok
    if reconciles:
        agent.world.reconcile(session)
    return 0


def tell(store: str, world: str) -> int:
    """How it ended."""
    agent = Agent(store, world)
    session, state = agent.session, agent.session.state()
    _tell_windows(session)
    told = {
        "effects": sorted(f"{tool} {n}: {count}" for (tool, n), count in agent.world.count().items()),
        "done": sorted(map(str, session.data["done"])),
        "turn": [state.turn.number, state.turn.status],
        "pending": sorted(state.pending_actions),
        "verified": session.verify().ok,
    }
    say(f"told {json.dumps(told)}")
    return 0


def die_everywhere(variant: str, folder: str, sample: int, seed: int, twice: bool = False) -> None:
    """Lets agents die, each at another of their moments, and live again until they are through. Tells of each."""
    _warm_up()
    whole = Path(folder) / "whole"
    total = _through(variant, whole, [0], honest=False)
    moments = list(range(1, total + 1))
    rng = random.Random(seed)
    if sample:
        moments = sorted(rng.sample(moments, min(sample, total)))
    for last in moments:
        deaths = [last, *([rng.randint(1, total) for _ in range(2)] if twice else []), 0]
        _through(variant, Path(folder) / str(last), deaths, honest=bool(last % 2))


def _warm_up() -> None:
    """Imports what is imported when it is first used, once for all children."""
    with wakelog.open("memory:") as store:
        session = store.session("agent", data={})
        with session.turn("x") as turn:
            session.tool(effect="read")(lambda: 1)()
            turn.data["x"] = 1
        _tell_windows(session)
        assert session.verify().ok


def come_through(variant: str, store: str, world: str) -> None:
    """Whatever was left behind: an agent that is run again, by somebody who tells the truth, comes through."""
    for _ in range(5):
        assert _in_fork(partial(look_after, store, world, True)) == 0
        if _in_fork(partial(live, variant, store, world)) == 0:
            break
    assert _in_fork(partial(tell, store, world)) == 0


def _through(variant: str, folder: Path, deaths: list[int], *, honest: bool) -> int:
    """Lives of one agent, until one comes through; how many moments the last one had."""
    folder.mkdir(parents=True)
    store, world = str(folder / "store"), str(folder / "world")
    lives = 0
    told, tell_moments = os.pipe()
    while True:
        last = deaths[min(lives, len(deaths) - 1)]
        lives += 1
        code = _in_fork(partial(live, variant, store, world, last), tell_moments)
        if code == 0:
            break
        assert code in (-signal.SIGKILL, STOPPED), (code, last)
        assert lives < 20, "it never comes to an end"
        assert _in_fork(partial(look_after, store, world, honest or code == STOPPED)) == 0, (last, lives)
    # Once more, by somebody who did not know that it is through.
    assert _in_fork(partial(live, variant, store, world)) == 0
    assert _in_fork(partial(tell, store, world)) == 0
    moments = int(os.read(told, 100) or b"0")
    os.close(told)
    os.close(tell_moments)
    say(f"lived {lives} {json.dumps(deaths)}")
    return moments


def _in_fork(work: Callable[[], int], tell_moments: int = -1) -> int:
    """The exit code of some work in a child; negative when it was killed."""
    pid = os.fork()
    if not pid:
        code = 1
        try:
            code = work()
            if tell_moments >= 0 and code == 0:
                os.write(tell_moments, os.environ.get("MOMENTS", "0").encode())
        except BaseException as exc:
            import traceback

            say(f"failed {exc!r}")
            traceback.print_exc()
        os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def run_at_once(variant: str, store: str, world: str, lease: bool, lives: int) -> None:
    """One of several processes that run the same script at the same moment, and again when another was quicker."""
    say("ready")
    sys.stdin.readline()
    for _ in range(lives):
        code = live(variant, store, world, lease=lease)
        say(f"ended {code}")
        if code in (0, STOPPED):
            return


def send_slowly(store: str, is_async: bool) -> None:
    """A script whose one call waits for a word from outside. Says what it is told when it may not begin."""
    session: Session[Any] = wakelog.open(store).session("agent")

    def wait() -> str:
        say("ready")
        return sys.stdin.readline().strip()

    async def run() -> None:
        @session.tool(effect="read")
        async def look() -> str:
            return wait()

        async with session.turn("go") as turn:
            said = await look()
            say(f"attempt {turn.attempt} {said}")

    try:
        if is_async:
            asyncio.run(run())
        else:
            with session.turn("go") as turn:
                said = session.tool(effect="read")(wait)()
                say(f"attempt {turn.attempt} {said}")
    except ConflictError as exc:
        say(f"refused {exc.kind} {exc.message}")


def main() -> None:
    function: Any = globals()[sys.argv[1]]
    function(**json.loads(sys.argv[2]))


if __name__ == "__main__":
    main()
