"""Prose in the docs stays within 100 characters a line. Code, tables, links and generated pages are as long as they
must be."""

import re

from tests.docs.pages import ROOT
from tests.every import every

WIDTH = 100
GENERATED = {"cli.md", "python.md"}
PAGES = [
    path
    for pattern in ("*.md", "docs/*.md", "docs/*/*.md", "changes/*.md")
    for path in sorted(ROOT.glob(pattern))
    if path.name not in GENERATED and path.name != "CHANGELOG.md"
]
_NOT_PROSE = re.compile(r" {4}|\s*\||\s*<|!\[|\[[\w-]+\]: |\s*- \[.*\]\(.*\)$|.*`[0-9a-f]{64}`")


@every("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_prose_stays_within_a_hundred_characters(path) -> None:
    is_code, long = False, []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.lstrip().startswith(("```", "~~~")):
            is_code = not is_code
        elif not is_code and len(line) > WIDTH and not _NOT_PROSE.match(line):
            long.append(number)
    assert not long, f"{path.name} has lines of more than {WIDTH} characters: {long}"
