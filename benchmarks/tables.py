"""Results as tables, ratios first, in Markdown that also reads well in a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from benchmarks.contenders import BASE, OURS
from benchmarks.results import Results, Sample
from benchmarks.targets import caveats, judge

Row = list[str]


def render(results: Results) -> str:
    """All sections of a run."""
    sections = [
        _about,
        _targets,
        _appending,
        _size,
        _reading,
        _together,
        _recording,
        _startup,
        _looking,
        _parts,
    ]
    return "\n\n".join(text for section in sections if (text := section(results)))


def table(header: Row, rows: Iterable[Row]) -> str:
    """Aligned: the first column to the left, the others to the right."""
    lines = [header, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    out = ["| " + " | ".join(_pad(cell, widths[i], i) for i, cell in enumerate(line)) + " |" for line in lines]
    rule = "|" + "|".join("-" * (w + 2) if i == 0 else "-" * (w + 1) + ":" for i, w in enumerate(widths)) + "|"
    return "\n".join([out[0], rule, *out[1:]])


def _pad(cell: str, width: int, column: int) -> str:
    return cell.ljust(width) if column == 0 else cell.rjust(width)


def _spread(sample: Sample, show: Callable[[float], str]) -> str:
    if len(sample.values) < 2:
        return show(sample.median)
    return f"{show(sample.median)} ({show(sample.low)} – {show(sample.high)})"


def _ratio(sample: Sample) -> str:
    return _spread(sample, "{:.2f}".format)


def _whole(sample: Sample) -> str:
    return _spread(sample, "{:,.0f}".format)


def _tenths(sample: Sample) -> str:
    return _spread(sample, "{:,.1f}".format)


def _about(results: Results) -> str:
    rows = [[key, value] for key, value in results.machine.items()]
    checked = results.checked
    rows += [
        ["date, command", f"{results.date}, `{results.command}`"],
        ["rounds", f"{results.rounds}; medians, with the lowest and the highest round behind them"],
        ["8 KB to a file, synced", f"{_whole(results.sync_us)} µs"],
        ["checked", f"{checked.logs} logs of {checked.events:,} events verified, {checked.states} states compared"],
    ]
    width = max(len(row[0]) for row in rows), max(len(row[1]) for row in rows)
    out = [f"| {left.ljust(width[0])} | {right.ljust(width[1])} |" for left, right in rows]
    head = f"| {'run'.ljust(width[0])} | {''.ljust(width[1])} |"
    return "\n".join([head, f"|{'-' * (width[0] + 2)}|{'-' * (width[1] + 2)}|", *out])


def _targets(results: Results) -> str:
    rows = [[t.name, t.wanted, t.found, t.verdict] for t in judge(results)]
    notes = "".join(f"\n\n**Caution.** {note}" for note in caveats(results))
    return "### Targets\n\n" + table(["what", "target", "this run", ""], rows) + notes


def _appending(results: Results) -> str:
    rows = [
        [
            f"{row.turns:,} turns, {row.contender}",
            _ratio(row.ratio),
            _whole(row.turns_per_s),
            _whole(row.cpu_us),
            f"{row.first_tenth_us.median:,.0f} → {row.last_tenth_us.median:,.0f}",
        ]
        for row in results.appending
    ]
    head = ["one session", f"× {BASE}", "turns/s", "CPU µs/turn", "µs/turn, first → last tenth"]
    return "### Appending, one durable commit per turn\n\n" + table(head, rows)


def _size(results: Results) -> str:
    lengths = sorted({row.turns for row in results.appending})
    names = list(dict.fromkeys(row.contender for row in results.appending))
    sizes = {(row.contender, row.turns): row.bytes_per_turn.median / 1000 for row in results.appending}
    rows = [[name, *(f"{sizes[name, length]:.2f}" for length in lengths)] for name in names]
    head = ["on disk, KB a turn (1 KB = 1,000 B)", *(f"{length:,} turns" for length in lengths)]
    return "### Size\n\n" + table(head, rows)


def _reading(results: Results) -> str:
    rows = [
        [f"{row.turns:,} turns, {row.contender}", *map(_tenths, (row.load_ms, row.middle_ms, row.fork_ms))]
        for row in results.reading
        if row.turns > 100 or len({each.turns for each in results.reading}) == 1
    ]
    head = ["closed session", "open and load, ms", "state at the middle, ms", "fork at the middle, ms"]
    return "### Reading\n\n" + table(head, rows)


def _together(results: Results) -> str:
    rows = [
        [
            f"{row.sessions}, {row.contender}",
            _ratio(row.ratio),
            _whole(row.turns_per_s),
            _whole(row.cpu_us),
            str(row.failed),
        ]
        for row in results.together
    ]
    head = ["sessions at once", f"× {BASE}, as many", "turns/s, all together", "CPU µs/turn", "refused"]
    return "### Sessions at once\n\n" + table(head, rows)


def _recording(results: Results) -> str:
    rows = [
        [row.contender, _ratio(row.ratio), _whole(row.turns_per_s), _whole(row.commits_per_s)]
        for row in results.recording
    ]
    head = ["eight durable commits a turn", f"× {BASE}", "turns/s", "commits/s"]
    return "### Full recording\n\n" + table(head, rows)


def _startup(results: Results) -> str:
    rows = [[row.code, _whole(row.ms)] for row in results.startup]
    return "### Starting\n\n" + table(["a fresh interpreter", "ms, beyond an empty program"], rows)


def _looking(results: Results) -> str:
    rows = [[row.what, row.where, _tenths(row.cost), row.unit] for row in results.looking]
    return "### Looking\n\n" + table(["question", "at", "cost", "unit"], rows) if rows else ""


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
