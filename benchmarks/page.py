"""The web page on much: a session of 100,000 events in a store of 20,000, beside one of 100 events, in a browser.

    python -m benchmarks.page [--quick]

Both are opened in turns, in one run, by the same browser: what counts is the ratio. "First useful paint" is when the
first events stand on the screen. While the long session is scrolled at 60 rows a second, every frame is looked at for
rows that are not there yet. Memory is what the page's script holds after it was scrolled from end to end in jumps.
Search is typed letter by letter; each answer is timed in the browser. Where no browser can be had, a line says so.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import wakelog
from benchmarks.scratch import FOLDER, empty_folder
from benchmarks.serving import served
from scripts.browser import find_browser
from wakelog import events as ev
from wakelog.cli.demo import transfer
from wakelog.engines.memory import MemoryEngine
from wakelog.log import Log
from wakelog.model.ids import root_id
from wakelog.store import Store
from wakelog.web.assets import page_assets

PAINT, BLANK, HEAP_MB, SEARCH_MS = 1.5, 0.0, 150.0, 100.0
"""What is held: the ratio of first paints, the share of frames with a blank row, the heap, the median answer."""
WORDS = ("migration", "tidy the cache", "part12", "file07", "needle")
ROW, RATE = 28, 60
"""The height of a row, and how many are scrolled in a second."""
_ANSWERS = """() => performance.getEntriesByType("resource")
  .filter((each) => each.name.includes("/v1/search")).map((each) => each.duration)"""
_WATCH = """
window.firstPaint = 0;
const look = () => {
  const rows = document.querySelectorAll(".events .one");
  const isThere = [...rows].some((row) => row.innerText.trim() && !row.querySelector(".wait"));
  if (isThere) window.firstPaint = performance.now();
  else requestAnimationFrame(look);
};
addEventListener("DOMContentLoaded", look);
"""
_SCROLL = """async ([seconds, speed]) => {
  const list = [...document.querySelectorAll("#main *")].filter((each) => each.querySelector(".one"))
    .find((each) => each.scrollHeight > each.clientHeight + 1000);
  const box = list.getBoundingClientRect();
  const isSeen = (row) => {
    const at = row.getBoundingClientRect();
    return at.bottom > box.top && at.top < box.bottom;
  };
  let frames = 0, blank = 0;
  const began = performance.now();
  const start = list.scrollTop;
  while (performance.now() - began < seconds * 1000) {
    list.scrollTop = start + speed * (performance.now() - began) / 1000;
    await new Promise((done) => requestAnimationFrame(done));
    frames++;
    const rows = [...list.querySelectorAll(".one")].filter(isSeen);
    if (!rows.length || rows.some((row) => row.querySelector(".wait"))) blank++;
  }
  return { frames, blank, top: list.scrollTop, height: list.scrollHeight };
}"""
_JUMP = """async (share) => {
  const list = [...document.querySelectorAll("#main *")].filter((each) => each.querySelector(".one"))
    .find((each) => each.scrollHeight > each.clientHeight + 1000);
  list.scrollTop = share * list.scrollHeight;
  for (let frame = 0; frame < 600; frame++) {
    await new Promise((done) => requestAnimationFrame(done));
    const rows = [...list.querySelectorAll(".one")];
    if (rows.length && !rows.some((row) => row.querySelector(".wait"))) return frame;
  }
  throw new Error("rows stay blank");
}"""


def fill(folder: Path, sessions: int, events: int) -> None:
    """A store of many small sessions, one long one (`long`) and one of 100 events (`short`). All are made in memory,
    where nothing is synced, and stored together."""
    few, many = MemoryEngine(), MemoryEngine()
    _long(Store(few, redact=None), "long", events)
    _long(Store(few, redact=None), "short", 100)
    for number in range(sessions):
        opened = ev.SessionOpened(name=f"small-{number:05}", goal=f"tidy part{number % 50} of the cache")
        log = Log.create(many, root_id(time.time_ns() // 1000, os.urandom(10)), opened, redact=None)
        log.append(ev.TurnStarted(input=f"tidy part{number}"), ev.TurnEnded())
    with wakelog.open(folder) as target:
        transfer(few, target.engine)
        # Nobody asks for the small ones by name, so the names need not be claimed, one by one.
        if commits := [commit for head in Store(many).sessions() for commit in many.read(head.session)]:
            target.engine.submit(*commits).result()
        target.index.catch_up()


def _long(store: Store, name: str, size: int) -> None:
    log = store.session(name, goal="read every file of a large repository").log
    while (left := size - log.head().seq) > 0:
        turn = log.head().turn + 1
        events: list[ev.Event] = [ev.TurnStarted(input=f"go on with part{turn}")]
        for number in range(max(0, min(98, left - 2))):
            output = f"{number} lines" + (" and a needle" if turn % 97 == 0 else "")
            path = f"src/part{turn % 50:02}/file{number:02}.py"
            events.append(
                ev.ActionRecorded(
                    action=f"r{turn}-{number}", tool="read_file", input={"path": path}, output_summary=output
                )
            )
        log.append(*events, ev.TurnEnded())


class Visit:
    """One window on a server."""

    def __init__(self, browser: Any, url: str, key: str) -> None:
        self.url = url
        self.context = browser.new_context(viewport={"width": 1440, "height": 900})
        self.context.add_init_script(_WATCH)
        self.page = self.context.new_page()
        self.page.goto(f"{url}/#key={key}")
        self.page.wait_for_selector("#main *")

    def first_paint(self, session: str) -> float:
        """Milliseconds from the beginning of the load until events stand there."""
        self.page.goto(f"{self.url}/s/{session}?view=compact")
        self.page.wait_for_function("() => window.firstPaint > 0", timeout=120_000)
        return float(self.page.evaluate("() => window.firstPaint"))

    def heap_mb(self) -> float:
        client = self.context.new_cdp_session(self.page)
        client.send("HeapProfiler.collectGarbage")
        used = client.send("Runtime.getHeapUsage")["usedSize"]
        client.detach()
        return float(used) / 1e6

    def search_ms(self) -> list[float]:
        """How long each answer took while the words were typed, with what the page adds."""
        self.page.goto(f"{self.url}/search")
        self.page.wait_for_selector("input[type=search]:focus")
        for word in WORDS:
            self.page.fill("input[type=search]", "")
            for letter in word:
                self.page.keyboard.type(letter)
                self.page.wait_for_function("() => !document.querySelector('[aria-busy=true]')")
        return [float(each) for each in self.page.evaluate(_ANSWERS)]


@contextmanager
def _browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=find_browser(), args=["--no-sandbox"])
        yield found
        found.close()


def run(sessions: int, events: int, rounds: int) -> list[tuple[str, float, str, float]]:
    """Each thing measured: what, how much, its unit, and what it may be at most."""
    with empty_folder(FOLDER) as folder:
        began = time.perf_counter()
        fill(folder / "much", sessions, events)
        fill(folder / "little", 0, 100)
        print(f"made {sessions:,} sessions and {events:,} events in {time.perf_counter() - began:.0f} s", flush=True)
        with (
            served(folder / "much") as much,
            served(folder / "little") as little,
            _browser() as browser,
        ):
            big, small = Visit(browser, *much), Visit(browser, *little)
            paints: list[tuple[float, float]] = []
            for number in range(rounds + 1):
                pair = big.first_paint("long"), small.first_paint("short")
                if number:  # the first fills the caches of server and browser
                    paints.append(pair)
            for slow, quick in paints:
                print(f"  first useful paint: {slow:6.0f} ms beside {quick:6.0f} ms", flush=True)
            alone = small.heap_mb()
            scrolled = big.page.evaluate(_SCROLL, [5, ROW * RATE])
            for share in (0.1, 0.5, 0.9, 0.25, 0.75, 1.0, 0.0):
                big.page.evaluate(_JUMP, share)
            heap = big.heap_mb()
            answers = big.search_ms()
    ratio = statistics.median(slow / quick for slow, quick in paints)
    print(f"  {scrolled['frames']} frames while scrolling, {scrolled['blank']} with a blank row")
    print(f"  heap {heap:.0f} MB beside {alone:.0f} MB; {len(answers)} searches, slowest {max(answers):.0f} ms")
    return [
        ("first useful paint, long beside short", ratio, "times", PAINT),
        ("frames with a blank row", scrolled["blank"] / max(1, scrolled["frames"]), "share", BLANK),
        ("memory after scrolling from end to end", heap, "MB", HEAP_MB),
        ("search as you type, median", statistics.median(answers), "ms", SEARCH_MS),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the size, and fewer rounds")
    quick = parser.parse_args().quick
    missing = (
        "playwright is not installed" if importlib.util.find_spec("playwright") is None
        else "there is no chromium" if not find_browser()
        else "the page was not built" if not page_assets() else ""
    )  # fmt: skip
    if missing:
        print(f"!!! THE PAGE IS NOT MEASURED: {missing}; make test-page brings what is needed", file=sys.stderr)
        return
    found = run(*((2_000, 10_000, 3) if quick else (20_000, 100_000, 7)))
    for what, value, unit, most in found:
        print(f"{what:42} {value:8.2f} {unit:6} {'within' if value <= most else 'OVER'} {most:g}")
    if any(value > most for _, value, _, most in found):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
