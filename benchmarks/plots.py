"""How cost grows with the length of a session, drawn: time a turn, bytes a turn, time to load.

Ours and the base are drawn thick and in colours of their own; peers get colours that stay apart also for people who see
colours differently, and a marker each. Both axes are logarithmic: what is flat is flat, what is quadratic climbs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.kinds import BASE, OURS
from benchmarks.results import Results

Points = list[tuple[float, float]]

_SHOWN = (
    OURS,
    "wakelog, full recording",
    "wakelog, all lists",
    BASE,
    "langgraph sqlite",
    "langgraph sqlite, delta",
    "langgraph postgres",
    "openai-agents sqlite",
    "openai-agents advanced",
    "adk sqlite",
    "eventsourcing sqlite",
    "dbos sqlite",
    "agentfs",
    "agno sqlite",
)
"""Who is drawn; a plot of all would show nothing."""
# Okabe and Ito's colours, which stay apart in every kind of colour vision, and three more.
_COLOURS = ("#0072B2", "#56B4E9", "#0072B2", "#000000", "#D55E00", "#E69F00", "#CC79A7", "#009E73", "#7FC97F",
            "#8B4513", "#B8A000", "#999999", "#7570B3", "#F0027F")  # fmt: skip
_MARKERS = "osD^vP<>XdphH*"
_THICK = (OURS, BASE)


def draw(results: Results, folder: Path) -> dict[str, str]:
    """Writes each plot as SVG and PNG; gives the SVGs' names with their titles."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    # The same run gives the same files: no dates, no random ids, text as text.
    pyplot.rcParams.update({"svg.hashsalt": "wakelog", "svg.fonttype": "none", "font.size": 10})
    folder.mkdir(parents=True, exist_ok=True)
    drawn = {}
    for name, title, axis, points in (
        ("append", "Time of a durable turn, by the length of the session", "ms a turn", _times(results)),
        ("size", "Bytes on disk a turn, by the length of the session", "KB a turn", _bytes(results)),
        ("load", "Open and load, by the length of the session", "ms", _loads(results)),
    ):
        if not points:
            continue
        _plot(pyplot, points, title, axis, folder / name)
        drawn[f"{name}.svg"] = title
    return drawn


def _times(results: Results) -> dict[str, Points]:
    """From the longest session each got to."""
    found: dict[str, Points] = {}
    for name in _SHOWN:
        for length in reversed(results.sizes("one.")):
            curve = [each for each in results.findings if (each.contender, each.what) == (name, f"curve.{length}")]
            if curve:
                found[name] = sorted((each.size, each.sample.median / 1e3) for each in curve)
                break
    return found


def _bytes(results: Results) -> dict[str, Points]:
    return _by_length(results, "one.bytes", 1e-3)


def _loads(results: Results) -> dict[str, Points]:
    return _by_length(results, "read.load_ms", 1.0)


def _by_length(results: Results, what: str, scale: float) -> dict[str, Points]:
    """A point for each length; one that was stopped stands where it came to."""
    found: dict[str, Points] = {}
    for name in _SHOWN:
        for length in results.sizes(what):
            sample = results.sample(name, what, length)
            done = results.sample(name, "one.done", length)
            if sample is not None:
                found.setdefault(name, []).append((done.median if done else length, sample.median * scale))
    return {name: sorted(points) for name, points in found.items()}


def _plot(pyplot: Any, curves: dict[str, Points], title: str, axis: str, path: Path) -> None:
    from matplotlib import ticker

    figure, axes = pyplot.subplots(figsize=(9.5, 5.4), layout="constrained")
    last = sorted(curves, key=lambda name: -curves[name][-1][1])
    for name in last:
        style = _SHOWN.index(name)
        is_thick = name in _THICK
        xs, ys = zip(*curves[name], strict=True)
        axes.plot(
            xs,
            ys,
            label=name,
            color=_COLOURS[style],
            marker=_MARKERS[style],
            markersize=6 if is_thick else 4.5,
            linewidth=2.8 if is_thick else 1.3,
            linestyle="--" if name.startswith(f"{OURS},") else "-",
            zorder=3 if is_thick else 2,
        )
    axes.set(xscale="log", yscale="log", xlabel="turns in the session", ylabel=axis)
    axes.set_title(title, loc="left", fontsize=12, fontweight="bold")
    for which in (axes.xaxis, axes.yaxis):
        which.set_major_formatter(lambda value, _: f"{value:,.10g}")
        which.set_minor_formatter(lambda value, _: "")
    # Between the powers of ten too, else a plot of one power has one number at its side.
    axes.yaxis.set_minor_locator(ticker.LogLocator(subs=(2, 5)))
    axes.yaxis.set_minor_formatter(lambda value, _: f"{value:,.10g}")
    axes.grid(True, which="major", color="#dddddd", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=9, title="highest first")
    figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})
    figure.savefig(path.with_suffix(".png"), dpi=110, metadata={"Software": None})
    pyplot.close(figure)
