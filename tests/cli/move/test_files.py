"""Files from the command line: the preview, the restore, undo and redo, diffs; in a real repository."""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import wakelog
from tests.cli.conftest import Cli
from tests.cli.look.test_fields import FIELDS
from tests.cli.stories import check_story
from tests.files.conftest import git_state, run, tree
from tests.files.repository import needs_git
from wakelog.model import events as ev
from wakelog.session import Session

NOW_US = 1_800_000_000_000_000
TOKEN = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"

pytestmark = needs_git


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plain_terminal: None) -> Path:
    """A project in which an agent worked for four turns, through a shell that was captured and a tool that was not."""
    folder = tmp_path / "shop"
    (folder / "src").mkdir(parents=True)
    (folder / "db").mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path))
    (folder / "src/auth.py").write_text("".join(f"line {n}\n" for n in range(1, 41)))
    (folder / "db/schema.sql").write_text("create table t;\n")
    (folder / ".gitignore").write_text("build/\n.wakelog/\n")
    identity = "-c user.name=Ann -c user.email=ann@example.com"
    run(f"git init -q; git add -A; git {identity} commit -qm start", folder)
    with wakelog.open(".wakelog", clock=lambda: NOW_US) as store:
        _work(store.session("fix-auth", folder=""), folder)
    with (folder / "db/schema.sql").open("a") as file:
        file.write("-- mine\n")
    return folder


def _work(session: Session[Any], folder: Path) -> None:
    session.files.capture(folder, folder=folder)

    @session.tool
    def shell(command: str) -> str:
        return run(command, folder)

    with session.turn("look around"):
        shell("ls")
    with session.turn("fix it"):
        shell("sed -i 's/line 3/LINE 3/' src/auth.py; printf 'a\\nb\\n' > src/session.py")
    with session.turn("migrate"):
        shell("echo 'alter table t;' >> db/schema.sql")
        shell("mkdir -p build; echo x > build/out")
        session.append(ev.ActionRecorded(action="p", tool="POST api.stripe.com", effect="external"))
    with session.turn("more"):
        shell("head -c 6000000 /dev/zero > dump.bin; printf '\\0\\1' > icon.bin")
        shell(f"echo 'token = {TOKEN}' > conf.ini")


def _masked(text: str, shop: Path) -> str:
    """Without hashes, ids and places, which are others each time."""
    text = text.replace(str(shop), "SHOP")
    text = re.sub(r"s_[0-9A-Z]{26}", "s_FIX_AUTH", text)
    return re.sub(r"\b[0-9a-f]{7}\b(?=;)|(?<=c:)[0-9a-f]{8}|\b[0-9a-f]{12,64}\b", lambda m: "f" * len(m[0]), text)


STORY: list[tuple[str, ...]] = [
    ("rewind", "@1", "--what", "state,files", "--dry-run"),
    ("rewind", "@1", "--what", "files"),
    ("rewind", "@1", "--what", "state,files", "--yes", "-m", "wrong approach"),
    ("undo",),
    ("redo",),
    ("redo",),
    ("rewind", "@1", "--what", "files", "--force", "--yes"),
    ("undo", "--no-files"),
    ("undo",),
    ("diff", "@2", "--files"),
    ("diff", "@2..@4", "--files", "--stat"),
    ("diff", "@2..@4", "--", "conf.ini", "icon.bin"),
    ("diff", "@2", "/data", "--files"),
    ("show", "e14"),
    ("rewind", "@1", "--what", "conversation"),
    ("rewind", "@1", "--what", "feelings"),
    ("rewind", "@1", "--what", "files", "--root", "nowhere"),
]


def test_people_see_what_they_saw_before(cli: Cli, shop: Path) -> None:
    text = check_story(cli, STORY, "move/files", lambda text: _masked(text, shop), now=NOW_US)
    assert TOKEN not in text


def test_programs_get_every_file_with_its_reason(cli: Cli, shop: Path) -> None:
    before = tree(shop)
    data = cli("rewind", "@1", "--what", "files", "--dry-run", "--json").data
    assert data["what"] == ["files"]
    assert (data["done"], data["results"]) == (False, None)
    assert {f["path"]: f["do"] for f in data["restore"]["files"]} == {
        "src/auth.py": "restore",
        "src/session.py": "delete",
        "db/schema.sql": "conflict",
        "build/": "ignored",
        "dump.bin": "delete",
        "icon.bin": "delete",
        "conf.ini": "delete",
    }
    assert [c["tool"] for c in data["restore"]["not_captured"]] == ["POST api.stripe.com"]
    assert len(data["restore"]["git_head"]) == 40
    assert tree(shop) == before
    result = cli("rewind", "@1", "--what", "files", "--yes", "--json")
    assert result.code == 7
    did = {r["path"]: r["did"] for r in result.data["results"]}
    assert (did["src/auth.py"], did["db/schema.sql"], did["dump.bin"]) == ("restored", "kept", "deleted")
    diff = cli("diff", "@2", "--files", "--ndjson").records
    assert [f["path"] for f in diff[0]["files"]] == ["src/auth.py", "src/session.py"]


def test_the_json_is_what_the_page_says(cli: Cli, shop: Path) -> None:
    rewound = cli("rewind", "@1", "--what", "state,files", "--yes", "--json").data
    undone = cli("undo", "--json").data
    diff = cli("diff", "@2", "--files", "--json").data
    pairs = {
        "rewind": rewound,
        "restore": rewound["restore"],
        "undo": undone,
        "filediff": diff,
        "lines": diff["files"][0],
    }
    for section, found in pairs.items():
        assert found.keys() == FIELDS[section], section
    assert cli("redo", "--json").data.keys() == FIELDS["undo"]
    assert rewound["restore"]["files"][0].keys() == {"path", "do", "why", "added", "removed", "turn", "by", "rescue"}
    assert rewound["results"][0].keys() == undone["files"][0].keys() == {"path", "did", "why", "saved"}


def test_rewinds_undone_and_done_again_end_where_they_should(cli: Cli, shop: Path) -> None:
    """Rewind twice, undo twice, redo once: the state, the files and git are what each step says."""
    git = git_state(shop)
    with wakelog.open(".wakelog") as store:
        session = store.resume("fix-auth")
        run("git checkout -q db/schema.sql; echo 'alter table t;' >> db/schema.sql", shop)
        git = git_state(shop)
        seen = [(session.log.state_hash(), tree(shop))]
        for point in ("@2", "@1"):
            assert cli("rewind", point, "--what", "state,files", "--yes").code == 7, (
                "the call to stripe was not captured"
            )
            seen.append((session.log.state_hash(), tree(shop)))
        cli("undo")
        assert (session.log.state_hash(), tree(shop)) == seen[1]
        cli("undo")
        assert session.log.state_hash() == seen[0][0]
        held = {"conf.ini", "dump.bin"}  # one held a secret, the other is too large: copies are in the rescue folder
        assert {p: f for p, f in seen[0][1].items() if p not in held} == tree(shop)
        assert sorted(p.name for p in (shop / ".wakelog/rescue").rglob("*.*") if p.is_file()) == [
            ".gitignore",
            *sorted(held),
        ]
        cli("redo")
        assert (session.log.state_hash(), tree(shop)) == seen[1]
    assert git_state(shop) == git


def test_a_dry_run_writes_nothing_at_all(cli: Cli, shop: Path) -> None:
    with wakelog.open(".wakelog") as store:
        head = store.resume("fix-auth").head
        before = tree(shop)
        assert cli("rewind", "@1", "--what", "state,files", "--dry-run").code == 0
        assert (store.resume("fix-auth").head, tree(shop)) == (head, before)
    assert not (shop / ".wakelog/rescue").exists()


def test_hostile_names_are_inert(cli: Cli, shop: Path) -> None:
    with wakelog.open(".wakelog") as store:
        store.resume("fix-auth").append(
            ev.FileChanged(
                path="evil\x1b]0;t\x07\u202e.py", change="deleted", before="\x1b[31mred", missing={"x": "\x1b"}
            ),
            ev.FileChanged(path="b", before="a\x1b[2J\n", after="c\u202e\n", before_mode="\x1b", after_mode="1"),
        )
    for args in (
        ("rewind", "@1", "--what", "files", "--dry-run"),
        ("rewind", "@1", "--what", "files", "--yes"),
        ("diff", "@0", "@", "--files"),
        ("show", "@4", "--with-output"),
    ):
        result = cli(*args)
        assert not any(c in result.out for c in "\x1b\x07\u202e"), args


def test_at_a_terminal_the_answer_is_no_and_the_diff_can_be_seen_first(shop: Path) -> None:
    before = tree(shop)
    out = _type("d\nn\n", ["rewind", "@1", "--what", "files"])
    assert "Proceed? [y/N/d=diff]" in out
    assert "-LINE 3" in out
    assert "Nothing was done." in out
    assert tree(shop) == before
    assert "Restored the files" in _type("y\n", ["rewind", "@1", "--what", "files"])
    assert tree(shop) != before


def _type(keys: str, args: list[str]) -> str:
    """Runs a command at a terminal of its own, with this typed in."""
    ours, theirs = pty.openpty()
    env = {**os.environ, "TERM": "dumb", "COLUMNS": "100"}
    command = [sys.executable, "-m", "wakelog", *args]
    with subprocess.Popen(command, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env) as child:
        os.close(theirs)
        os.write(ours, keys.encode())
        assert child.stdout is not None
        out = child.stdout.read().decode()
        child.wait(180)
    os.close(ours)
    return out
