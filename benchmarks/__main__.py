"""The command: `python -m benchmarks`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import msgspec

from benchmarks import pages, profiling, suite, tables
from benchmarks.results import Results
from benchmarks.scratch import FOLDER
from benchmarks.workload import make_turns


def main(arguments: list[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    if options.read:
        results = msgspec.json.decode(Path(options.read).read_bytes(), type=Results)
    else:
        results = _run(options, arguments)
    print(tables.render(results))
    if options.json:
        Path(options.json).write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=1) + b"\n")
    if options.write_docs:
        pages.write(tables.render(results))
    if options.profile:
        print("\n### Profile of 1,000 appends, by own time\n")
        print(profiling.profile(make_turns(1_000), options.folder))


def _run(options: argparse.Namespace, arguments: list[str] | None) -> Results:
    size = suite.QUICK if options.quick else suite.FULL
    if options.rounds:
        size = msgspec.structs.replace(size, rounds=options.rounds)
    shown = ["--quick"] * options.quick + [f"--rounds {options.rounds}"] * bool(options.rounds)
    return suite.run(
        size,
        options.folder,
        command=" ".join(["python -m benchmarks", *shown]),
        parts=options.profile or options.write_docs,
        say=lambda what: print(f"… {what}", file=sys.stderr, flush=True),
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="wakelog beside the bare loops")
    parser.add_argument("--quick", action="store_true", help="shorter sessions, fewer rounds")
    parser.add_argument("--rounds", type=int, metavar="N", help="how often everything is measured")
    parser.add_argument("--json", metavar="FILE", help="write the results, every round of them")
    parser.add_argument("--read", metavar="FILE", help="show results written before instead of running")
    parser.add_argument("--profile", action="store_true", help="also show where the time of an append goes")
    parser.add_argument("--write-docs", action="store_true", help=f"put the tables into {pages.PAGE.name}")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where to write; should be on a real disk")
    return parser


if __name__ == "__main__":
    main()
