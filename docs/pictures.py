"""The pictures of the README: recordings of real runs, and the architecture.

    .venv/bin/python docs/pictures.py
    .venv-adapters/together/bin/python docs/pictures.py three-frameworks

The first recording runs `examples/demo.py`, which kills an agent inside a call and runs it again, and keeps what it
printed. The other runs `examples/three_frameworks.py`, which needs the environment of `make test-adapters
ONLY=together`. All are plain SVG: text, rectangles and one style sheet; no script, no font and no address to load from.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "pictures"

FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace"
LINE, CHAR, PAD = 18, 7.85, 16
INK, PAPER, FAINT, GREEN, RED, BLUE, YELLOW = (
    "#e6e6e6",
    "#16181d",
    "#8b949e",
    "#5fd38d",
    "#ff7b72",
    "#79b8ff",
    "#e3b341",
)


# The recording


def record() -> list[str]:
    """What the demo prints up to the first question, with what differs from run to run made steady."""
    lines = printed("demo.py")
    end = next(place for place, line in enumerate(lines) if line.startswith("── wakelog log"))
    return [re.sub(r"post-[0-9a-f]{12}", "post-863606a99a8e", line).rstrip() for line in lines[: end - 1]]


def record_comparison() -> list[str]:
    """What `wakelog compare` says of three frameworks, without what differs from run to run."""
    lines = printed("three_frameworks.py")
    start = next(place for place, line in enumerate(lines) if line.startswith("$ wakelog compare"))
    kept = [line.rstrip() for line in lines[start:] if not line.startswith(("time ", "tokens "))]
    return [re.sub(r"^(  [A-C]  )e\d+ +", r"\1", line) for line in kept]


def printed(example: str) -> list[str]:
    env = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1"}
    done = subprocess.run([sys.executable, ROOT / "examples" / example], env=env, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{example} failed:\n{done.stderr}")
    return done.stdout.strip().split("\n")


def colour_of_comparison(line: str) -> str:
    if line.startswith("$ "):
        return YELLOW
    if line.startswith(("A by", "first")):
        return BLUE
    if line.startswith("no difference"):
        return GREEN
    if " refund {" in line or line.startswith(" " * 13 + "- e"):
        return RED
    if line.startswith("  context"):
        return YELLOW
    return FAINT if line.startswith(("outcome", "steps", "calls", "untrusted", "  then", "  unknown")) else INK


def colour(line: str) -> str:
    if line.startswith("── "):
        return BLUE
    if line.startswith(("killed", "stopped")):
        return RED
    if line.startswith(("done", "messages in the channel")):
        return GREEN
    if line.startswith("$ "):
        return YELLOW
    return INK if line.startswith(("turn", "  ")) else FAINT


def draw_recording(lines: list[str]) -> str:
    """The lines as a terminal that fills, a line at a time; readers who want no motion see it full at once."""
    width = max(map(len, lines)) * CHAR + 2 * PAD
    height = len(lines) * LINE + 2 * PAD
    texts, delay = [], 0.0
    for row, line in enumerate(lines):
        if not line:
            delay += 0.5
            continue
        delay += 0.9 if line.startswith(("killed", "$ ", "── ")) else 0.25
        texts.append(
            f'<text x="{PAD}" y="{PAD + LINE * (row + 0.75):.0f}" fill="{colour(line)}" '
            f'style="animation-delay:{delay:.2f}s">{escape(line)}</text>'
        )
    style = (
        f"text{{font:13px {FONT};white-space:pre;opacity:0;animation:show .01s forwards}}"
        "@keyframes show{to{opacity:1}}"
        "@media (prefers-reduced-motion:reduce){text{animation:none;opacity:1}}"
    )
    title = "An agent is killed inside a call, run again, and goes on without doing anything twice"
    return svg(width, height, style, [f'<rect width="100%" height="100%" rx="8" fill="{PAPER}"/>', *texts], title)


def draw_comparison(lines: list[str]) -> str:
    """The lines as a terminal that stands still."""
    texts = [
        f'<text x="{PAD}" y="{PAD + LINE * (row + 0.75):.0f}" fill="{colour_of_comparison(line)}">{escape(line)}</text>'
        for row, line in enumerate(lines)
        if line
    ]
    style = f"text{{font:13px {FONT};white-space:pre}}"
    title = "The same task done by three frameworks in one store: what they did differently first, and what was said"
    back = f'<rect width="100%" height="100%" rx="8" fill="{PAPER}"/>'
    return svg(max(map(len, lines)) * CHAR + 2 * PAD, len(lines) * LINE + 2 * PAD, style, [back, *texts], title)


# The architecture

ROWS = (
    ("your agent", ("Python agent", "MCP client", "MCP traffic", "HTTP client")),
    ("surfaces", ("library", "wakelog mcp", "wakelog proxy", "wakelog serve")),
    ("verbs", ("record · call · decide", "diff · why · compare", "rewind · fork · resume", "context · brief")),
    ("log", ("typed, hash-chained events", "state = fold of deltas", "snapshots, forks, leases", "redaction, erasure")),
    ("engines", ("SQLite", "PostgreSQL", "HTTP", "memory")),
)
ASIDE = "index (rebuilt from the log): search, SQL, cost"


def draw_architecture() -> str:
    """One row for each layer; a call goes down, an answer comes up."""
    box, gap, left, tall = 215, 12, 110, 46
    width, height = left + 4 * (box + gap) + PAD, len(ROWS) * (tall + 26) + 2 * PAD + 40
    shapes = [f'<rect width="100%" height="100%" rx="8" fill="{PAPER}"/>']
    for row, (name, boxes) in enumerate(ROWS):
        y = PAD + row * (tall + 26)
        shapes.append(f'<text x="{PAD}" y="{y + 28}" fill="{BLUE}">{name}</text>')
        for column, words in enumerate(boxes):
            x = left + column * (box + gap)
            shapes.append(
                f'<rect x="{x}" y="{y}" width="{box}" height="{tall}" rx="6" fill="#22262e" stroke="#3d444d"/>'
            )
            shapes.append(
                f'<text x="{x + box / 2}" y="{y + 28}" fill="{INK}" text-anchor="middle">{escape(words)}</text>'
            )
        if row:
            middle = left + 2 * (box + gap) - gap / 2
            shapes.append(f'<path d="M{middle} {y - 22}v16m-4 -5l4 5l4 -5" stroke="{FAINT}" fill="none"/>')
    y = PAD + len(ROWS) * (tall + 26)
    shapes.append(f'<text x="{left}" y="{y + 14}" fill="{FAINT}">{escape("beside it: " + ASIDE)}</text>')
    return svg(width, height, f"text{{font:13px {FONT}}}", shapes, "The layers of wakelog, from an agent to the disk")


def svg(width: float, height: float, style: str, shapes: list[str], title: str) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img">'
    return "\n".join([head, f"<title>{escape(title)}</title>", f"<style>{style}</style>", *shapes, "</svg>"]) + "\n"


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    pictures = {
        "crash-and-resume": lambda: draw_recording(record()),
        "architecture": draw_architecture,
        "three-frameworks": lambda: draw_comparison(record_comparison()),
    }
    for name in sys.argv[1:] or ("crash-and-resume", "architecture"):
        drawn = pictures[name]()
        (PICTURES / f"{name}.svg").write_text(drawn, encoding="utf-8")
        print(f"docs/pictures/{name}.svg: {len(drawn)} bytes")


if __name__ == "__main__":
    main()
