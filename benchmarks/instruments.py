"""What recording costs a model call, beside the same call without it.

    python -m benchmarks.instruments [--quick]

The real OpenAI client asks a stand-in that answers at once, in a process of its own: against it recording looks worst,
a model takes a second and more. The ways are taken in shuffled order, a block of calls each, so that a slow moment hits
all of them; the difference is taken inside a round. `instrument` is `wakelog.instrument`, `record` the proxy of
`wakelog record`, both into a store on disk. `short` sends one message, `long` 99 of a kilobyte each; `slow` is `short`
to a stand-in that takes 0.2 s, as a quick model does. After the run every call must be in the record.
"""

from __future__ import annotations

import argparse
import random
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import openai

import wakelog
from benchmarks.scratch import FOLDER, empty_folder
from wakelog.instruments.endpoints import Endpoints
from wakelog.instruments.proxy import ModelProxy
from wakelog.instruments.recorder import ConversationRecorder
from wakelog.store import Store

STAND_IN = """
import json, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
choice = {"index": 0, "message": {"role": "assistant", "content": "Yes. " * 40}, "finish_reason": "stop"}
usage = {"prompt_tokens": 80, "completion_tokens": 40, "total_tokens": 120}
answer = json.dumps({"id": "c", "object": "chat.completion", "created": 1, "model": "gpt-4.1", "choices": [choice],
                     "usage": usage}).encode()
class Handler(BaseHTTPRequestHandler):
    protocol_version, wbufsize, disable_nagle_algorithm = "HTTP/1.1", -1, True
    def log_message(self, *args): pass
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        time.sleep(0.2 if self.path.startswith("/slow") else 0)
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)
server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""
WAYS = ("bare", "instrument", "record")
BLOCK = 20


class Caller:
    """The client, in one of the ways."""

    def __init__(self, way: str, url: str, store: Store, length: int) -> None:
        self._way, self._store, self._number = way, store, 0
        self._history: list[Any] = [
            {"role": ("user", "assistant")[n % 2], "content": f"{n} " + "word " * 200} for n in range(length - 1)
        ]
        self.recorder = ConversationRecorder(lambda number: store.session(f"record-{number}"), source="bench")
        endpoints = Endpoints({"OPENAI_BASE_URL": url})
        self.proxy = ModelProxy(endpoints, self.recorder)
        if way == "record":
            url = endpoints.variables(self.proxy.address, {})["OPENAI_BASE_URL"]
        self._client = openai.OpenAI(api_key="none", base_url=url, max_retries=0)

    def block(self, calls: int) -> list[float]:
        """Seconds for each of some calls."""
        if self._way == "instrument":
            wakelog.instrument("openai", store=self._store)
        times = [self._call() for _ in range(calls)]
        if self._way == "instrument":
            wakelog.uninstrument()
        self.recorder.writer.wait(self.recorder.writer.put(lambda: None))  # nobody else is timed while it writes
        return times

    def _call(self) -> float:
        self._number += 1
        messages = [*self._history, {"role": "user", "content": f"question {self._number}"}]
        began = time.perf_counter()
        self._client.chat.completions.create(model="gpt-4.1", messages=messages)
        return time.perf_counter() - began

    def close(self) -> None:
        self._client.close()
        self.recorder.close()


def measure(url: str, folder: Path, length: int, rounds: int, calls: int) -> dict[str, list[list[float]]]:
    """For each way, the times of each round's block."""
    times: dict[str, list[list[float]]] = defaultdict(list)
    with wakelog.open(folder / f"store-{length}") as store:
        callers = {way: Caller(way, url, store, length) for way in WAYS}
        with callers["record"].proxy:
            for number in range(rounds + 1):
                for way in random.sample(WAYS, len(WAYS)):
                    block = callers[way].block(calls)
                    if number:  # the first one warms up
                        times[way].append(block)
        for caller in callers.values():
            caller.close()
        sessions = [store.resume(head.session) for head in store.sessions()]
        done = sum(1 for session in sessions for _ in session.events(kind="action.succeeded"))
    if done != 2 * calls * (rounds + 1):
        raise RuntimeError(f"{done} of {2 * calls * (rounds + 1)} calls are in the record")
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    rounds = 5 if parser.parse_args().quick else 25
    server = subprocess.Popen([sys.executable, "-c", STAND_IN], stdout=subprocess.PIPE)
    assert server.stdout is not None
    url = f"http://127.0.0.1:{int(server.stdout.readline())}"
    print(f"| request, {rounds} rounds | ms a call | more than bare, ms |")
    print("|---|---:|---:|")
    try:
        for name, path, length, calls in (
            ("short", "/v1", 1, BLOCK),
            ("long", "/v1", 99, BLOCK),
            ("slow", "/slow/v1", 1, BLOCK // 4),
        ):
            with empty_folder(FOLDER) as folder:
                times = measure(url + path, folder, length, rounds, calls)
            middle = {way: [statistics.median(block) * 1000 for block in times[way]] for way in WAYS}
            for way in WAYS:
                more = statistics.median(a - b for a, b in zip(middle[way], middle["bare"], strict=True))
                print(f"| {name}, {way} | {statistics.median(middle[way]):.2f} | {more:.2f} |")
    finally:
        server.terminate()
        server.wait()
        server.stdout.close()


if __name__ == "__main__":
    main()
