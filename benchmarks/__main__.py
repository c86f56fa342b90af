"""The command: `python -m benchmarks`."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from pathlib import Path

import msgspec

from benchmarks import compare, pages, profiling, suite, tables
from benchmarks.kinds import Kind, choose, kind_of
from benchmarks.results import Results
from benchmarks.scratch import FOLDER
from benchmarks.turns import make_turns

SAVED = Path(__file__).with_name("saved.json")
"""The last run that was worth keeping; committed."""


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    # Installed libraries are compiled; ours, run from its source, is too when nothing forbids it.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    # A polite stop is a Ctrl-C: servers and processes are ended, and what was measured is kept.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    saved = _read(Path(options.against)) if Path(options.against).exists() else None
    results = _read(Path(options.read)) if options.read else _run(options, saved)
    print(tables.render(results))
    if saved is not None and not options.save and not options.read:
        print("\n" + compare.render(compare.compare(results, saved), saved))
    for path in filter(None, (options.json, SAVED if options.save else None)):
        _write(results, Path(path))
    if options.plots or options.write_docs:
        from benchmarks import plots

        shown = plots.draw(results, Path(options.plots) if options.plots else pages.PLOTS)
        if options.write_docs:
            pages.write(pages.with_plots(tables.render(results), shown))
    if options.profile:
        print("\n### Profile of 1,000 appends, by own time\n")
        print(profiling.profile(make_turns(1_000), options.folder))
    for trouble in results.wrong():
        print(f"wrong: {trouble.contender}, {trouble.what} at {trouble.size:,}: {trouble.text}", file=sys.stderr)
    return 1 if results.wrong() else 0


def _run(options: argparse.Namespace, saved: Results | None) -> Results:
    size = suite.QUICK if options.quick else suite.FULL
    if options.rounds:
        size = msgspec.structs.replace(size, rounds=options.rounds)
    if options.minutes:
        size = msgspec.structs.replace(size, minutes=options.minutes)
    if options.lengths:
        chosen = tuple(length for length in suite.FULL.lengths if length.turns in options.lengths)
        size = msgspec.structs.replace(size, lengths=chosen)
    words = ["--quick"] * options.quick + [f"--only {name!r}" for name in options.only]
    words += [f"--rounds {options.rounds}"] * bool(options.rounds)
    return suite.run(
        size,
        _kinds(options),
        options.folder,
        command=" ".join(["python -m benchmarks", *words]),
        say=_say,
        keep=lambda results: _write(results, Path(options.json)) if options.json else None,
        known=saved.seconds if saved and not (options.quick or options.only) else None,
        before=_read(Path(options.more)) if options.more else None,
    )


def _kinds(options: argparse.Namespace) -> list[Kind]:
    if options.quick and not options.only:
        return [kind_of(name) for name in suite.QUICK_KINDS]
    kinds = choose(options.only)
    for kind in kinds:
        if kind.missing():
            _say(f"not taking part: {kind.name}; not installed: {', '.join(kind.missing())} (make bench installs them)")
    return [kind for kind in kinds if not kind.missing()]


def _read(path: Path) -> Results:
    return msgspec.json.decode(path.read_bytes(), type=Results)


def _write(results: Results, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.encode(results.trimmed()) + b"\n")


def _say(what: str) -> None:
    print(f"… {what}", file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="wakelog beside what people would use instead, and beside bare loops"
    )
    add = parser.add_argument
    add("--quick", action="store_true", help="ours and bare loops only, shorter sessions, fewer rounds")
    add("--only", nargs="+", default=[], metavar="NAME", help="contenders whose names begin so; the base always runs")
    add("--rounds", type=int, metavar="N", help="how often everything is measured")
    add("--minutes", type=float, metavar="N", help="begin no round that would end later than this")
    add("--lengths", nargs="+", type=int, default=[], metavar="N", help="sessions of these many turns only")
    add("--more", metavar="FILE", help="add rounds to a run written before, up to --rounds of them")
    add("--json", metavar="FILE", help="write the results, every round of them")
    add("--read", metavar="FILE", help="show results written before instead of running")
    add("--against", metavar="FILE", default=str(SAVED), help="the run to compare with; by default the saved one")
    add("--save", action="store_true", help=f"keep this run as {SAVED.name}, which later ones are compared with")
    add("--plots", metavar="FOLDER", help="draw the growth plots there")
    add("--write-docs", action="store_true", help=f"put tables and plots into {pages.PAGE.name}")
    add("--profile", action="store_true", help="also show where the time of an append goes")
    add("--folder", type=Path, default=FOLDER, help="where to write; should be on a real disk")
    return parser


if __name__ == "__main__":
    sys.exit(main())
