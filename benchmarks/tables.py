"""Results as tables, ratios first, in Markdown that also reads well in a terminal.

A dash means that a contender has no way to do it, or was not sent there; *wrong* and *failed* stand where the answer
was not the reference's or the process broke, and no time is shown for these.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable

from benchmarks.kinds import BASE, OURS
from benchmarks.results import Results, Sample
from benchmarks.targets import caveats, judge

Row = list[str]
DASH = "–"


def render(results: Results) -> str:
    """All sections of a run."""
    sections = (
        *(_about, _targets, _appending, _size, _reading, _asking, _together, _same, _startup, _settings, _troubles),
        *(_looking, _parts),
    )
    return "\n\n".join(text for section in sections if (text := section(results)))


def table(header: Row, rows: Iterable[Row], *, text: int = 1) -> str:
    """Aligned: the first `text` columns to the left, the others to the right."""
    lines = [header, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    out = ["| " + " | ".join(_pad(cell, widths[i], i < text) for i, cell in enumerate(line)) + " |" for line in lines]
    rule = "|" + "|".join("-" * (w + 2) if i < text else "-" * (w + 1) + ":" for i, w in enumerate(widths)) + "|"
    return "\n".join([out[0], rule, *out[1:]])


def _pad(cell: str, width: int, is_text: bool) -> str:
    return cell.ljust(width) if is_text else cell.rjust(width)


# Numbers


def number(value: float) -> str:
    """As many digits as a reader can use."""
    if value == 0:
        return "0"
    size = abs(value)
    return (
        f"{value:,.0f}"
        if size >= 100
        else f"{value:.1f}"
        if size >= 10
        else f"{value:.2f}"
        if size >= 0.1
        else f"{value:.3f}"
    )


def spread(sample: Sample | None, show: Callable[[float], str] = number) -> str:
    if sample is None:
        return DASH
    if len(sample.values) < 2:
        return show(sample.median)
    return f"{show(sample.median)} ({show(sample.low)} – {show(sample.high)})"


def middle(sample: Sample | None, scale: float = 1.0) -> str:
    return DASH if sample is None else number(sample.median * scale)


def _total(sample: Sample | None) -> str:
    return DASH if sample is None else f"{sum(sample.values):,.0f}"


def _names(results: Results, prefix: str, size: int) -> list[str]:
    """Who has a finding or a trouble there, in the order of the table of contenders."""
    have = {each.contender for each in results.findings if each.what.startswith(prefix) and each.size == size}
    have |= {each.contender for each in results.troubles if each.what.startswith(prefix) and each.size == size}
    return [about.name for about in results.about if about.name in have]


def _by_rate(results: Results, names: list[str], what: str, size: int) -> list[str]:
    """The fastest first; those without a number last."""

    def rate(name: str) -> float:
        sample = results.sample(name, what, size)
        return 0.0 if sample is None else -sample.median

    return sorted(names, key=rate)


def _bold(name: str) -> str:
    return f"**{name}**" if name.startswith(OURS) else name


def _answer(results: Results, name: str, what: str, size: int) -> str:
    """A time, or what stands in its place."""
    for each in ("read", what.removesuffix("_ms")):
        found = results.trouble(name, each, size, ("wrong", "failed"))
        if found is not None:
            return f"*{found.kind}*"
    return middle(results.sample(name, what, size))


# Sections


def _about(results: Results) -> str:
    rows = [[key, value] for key, value in results.machine.items()]
    wrong = len(results.wrong())
    verified = f"{results.events_verified:,} events of our logs verified, every loaded state compared; {wrong} wrong"
    rows += [
        ["date, command", f"{results.date}, `{results.command}`" + (" (stopped early)" if results.is_cut else "")],
        ["rounds", f"{results.rounds}; medians, in brackets the lowest and the highest round"],
        ["8 KB to a file, synced", f"{spread(results.sync_us)} µs"],
        ["checked", verified],
    ]
    if results.packages:
        rows.append(["contenders", ", ".join(f"{name} {version}" for name, version in results.packages.items())])
    return table(["run", ""], rows, text=2)


def _targets(results: Results) -> str:
    rows = [[t.name, t.wanted, t.found, t.verdict] for t in judge(results)]
    notes = "".join("\n\n" + textwrap.fill(f"**Caution.** {note}", 100) for note in caveats(results))
    return "### Targets\n\n" + table(["what", "target", "this run", ""], rows) + notes


def _appending(results: Results) -> str:
    parts = []
    for size in results.sizes("one."):
        rows = []
        for name in _by_rate(results, _names(results, "one", size), "one.ratio", size):
            failed = results.trouble(name, "one", size, ("wrong", "failed"))
            stopped = results.trouble(name, "one", size, ("stopped",))
            growth = [middle(results.sample(name, f"one.{part}_us", size), 1e-3) for part in ("first", "last")]
            rows.append(
                [
                    _bold(name),
                    f"*{failed.kind}*" if failed else spread(results.sample(name, "one.ratio", size)),
                    spread(results.sample(name, "one.turns_per_s", size)),
                    " → ".join(growth),
                    middle(results.sample(name, "one.cpu_us", size)),
                    middle(results.sample(name, "one.memory_mb", size)),
                    stopped.text if stopped else "",
                ]
            )
        head = [f"one session, {size:,} turns", f"× {BASE}", "turns/s", "ms/turn, first → last tenth", "CPU µs/turn"]
        parts.append(table([*head, "memory MB", "stopped"], rows))
    return "### Appending, every turn durable\n\n" + "\n\n".join(parts) if parts else ""


def _size(results: Results) -> str:
    lengths = results.sizes("one.")
    names = [about.name for about in results.about if any(results.find(about.name, "one.bytes", n) for n in lengths)]
    rows = [[_bold(name), *(middle(results.sample(name, "one.bytes", n), 1e-3) for n in lengths)] for name in names]
    head = ["on disk, KB a turn (1 KB = 1,000 B)", *(f"{length:,} turns" for length in lengths)]
    return "### Size\n\n" + table(head, rows) if rows else ""


def _reading(results: Results) -> str:
    parts = []
    for size in results.sizes("read."):
        rows = []
        for name in _names(results, "read", size):
            done = results.sample(name, "one.done", size)
            rows.append(
                [
                    _bold(name) + (f" ({done.median:,.0f})" if done and done.median < size else ""),
                    middle(results.over_base(name, "read.load_ms", size)),
                    _answer(results, name, "read.load_ms", size),
                    middle(results.sample(name, "read.resume_ms", size)),
                    _answer(results, name, "read.middle_ms", size),
                    _answer(results, name, "read.fork_ms", size),
                    middle(results.sample(name, "read.memory_mb", size)),
                ]
            )
        head = [f"closed session, {size:,} turns", f"load, × {BASE}", "open and load, ms", "fresh process to state, ms"]
        parts.append(table([*head, "state at the middle, ms", "fork at the middle, ms", "memory MB"], rows))
    return "### Reading\n\n" + "\n\n".join(parts) if parts else ""


def _asking(results: Results) -> str:
    parts = []
    for size in results.sizes("read.files"):
        names = [name for name in _names(results, "read", size) if results.find(name, "read.files_ms", size)]
        what = ("read.diff_ms", "read.files_first_ms", "read.files_ms")
        rows = [[_bold(name), *(_answer(results, name, each, size) for each in what)] for name in names]
        head = [f"{size:,} turns", "diff of two turns, ms", "files of the last 5 turns, first time, ms", "again, ms"]
        parts.append(table(head, rows))
    return "### Asking\n\n" + "\n\n".join(parts) if parts else ""


def _together(results: Results) -> str:
    parts = []
    for size in results.sizes("together."):
        rows = []
        for name in _by_rate(results, _names(results, "together", size), "together.turns_per_s", size):
            failed = results.trouble(name, "together", size, ("wrong", "failed"))
            rows.append(
                [
                    _bold(name),
                    f"*{failed.kind}*" if failed else spread(results.over_base(name, "together.turns_per_s", size)),
                    spread(results.sample(name, "together.turns_per_s", size)),
                    middle(results.sample(name, "together.cpu_us", size)),
                    _total(results.sample(name, "together.errors", size)),
                    _total(results.sample(name, "together.wrong", size)),
                ]
            )
        head = [f"{size} sessions at once", f"× {BASE}, as many", "turns/s, all together", "CPU µs/turn", "errors"]
        parts.append(table([*head, "wrong states"], rows))
    return "### Sessions at once\n\n" + "\n\n".join(parts) if parts else ""


def _same(results: Results) -> str:
    rows = []
    for size in results.sizes("same."):
        for name in _names(results, "same", size):
            failed = results.trouble(name, "same", size, ("failed",))
            counts = [_total(results.sample(name, f"same.{part}", size)) for part in ("done", "errors", "lost")]
            rows.append([_bold(name), *(["*failed*", DASH, DASH] if failed else counts)])
    head = ["four writers on one session, all rounds", "acknowledged", "raised an error", "acknowledged and lost"]
    return "### One session, four writers\n\n" + table(head, rows) if rows else ""


def _startup(results: Results) -> str:
    names = [each.contender for each in results.findings if each.what == "start.ms"]
    names.sort(key=lambda name: sum((results.sample(name, "start.ms") or Sample([0.0])).values))
    rows = [
        [_bold(name), spread(results.sample(name, "start.ms")), middle(results.sample(name, "start.memory_mb"))]
        for name in names
    ]
    head = ["import", "ms, beyond an empty program", "memory MB"]
    return "### Starting\n\n" + table(head, rows) if rows else ""


def _settings(results: Results) -> str:
    """What each contender's own connection says, and what its numbers do not tell."""
    rows = []
    for about in results.about:
        durable = {True: "full", False: "**weaker**", None: ""}[about.is_full]
        asked = ", ".join(f"{name} {_said(name, value)}" for name, value in about.settings.items())
        rows.append([_bold(about.name), durable, asked, about.note])
    return "### Durability and what is not done\n\n" + table(
        ["contender", "durable", "asked of it", "note"], rows, text=4
    )


def _said(name: str, value: str) -> str:
    return {"0": "off", "1": "normal", "2": "full", "3": "extra"}.get(value, value) if name == "synchronous" else value


def _troubles(results: Results) -> str:
    told = [each for each in results.troubles if each.kind != "stopped"]
    rows = [[each.contender, f"{each.what}, {each.size:,}", each.kind, _plain(each.text)] for each in told]
    return "### Errors\n\n" + table(["contender", "where", "", "what it said"], rows, text=4) if rows else ""


def _plain(text: str) -> str:
    return text.replace("|", "/").replace("<", "‹").replace(">", "›")


def _looking(results: Results) -> str:
    rows = [[row.what, row.where, spread(row.cost), row.unit] for row in results.looking]
    return "### Looking, wakelog only\n\n" + table(["question", "at", "cost", "unit"], rows) if rows else ""


def _parts(results: Results) -> str:
    if not results.parts:
        return ""
    rows = [
        [
            ("– " if part.level else "") + part.name,
            f"{part.us:,.0f}",
            "" if part.bare_us is None else f"{part.bare_us:,.0f}",
        ]
        for part in results.parts
    ]
    return "### Parts of an append\n\n" + table(["µs a turn", OURS, "bare apsw"], rows)
