"""A process that invokes a graph on one thread: `counting_run STORE NAME TURNS DURABILITY`.

It prints a line for each turn whose invocation returned. A turn that another run came before is done again."""

import random
import sys
import time

from tests.adapters.langgraph.counting_graph import counting, turn_of
from wakelog.adapters.langgraph import WakelogSaver
from wakelog.errors import ConflictError


def main(place: str, name: str, turns: str, durability: str) -> None:
    with WakelogSaver(place) as saver:
        graph = counting(saver)
        print("ready", flush=True)
        for n in range(int(turns)):
            for wait_s in (0.02 * 2**n for n in range(20)):
                try:
                    graph.invoke(*turn_of(f"{name}-{n}"), durability=durability)
                except ConflictError as exc:
                    if exc.kind != "thread-moved-on":
                        raise
                    time.sleep(random.uniform(0, wait_s))  # as a program does that shares a thread
                else:
                    print(f"{name}-{n}", flush=True)
                    break


if __name__ == "__main__":
    main(*sys.argv[1:])
