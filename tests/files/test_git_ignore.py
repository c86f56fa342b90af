"""Ignored is what git ignores: compared with git itself, over random trees and rules."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.files.conftest import Shell
from tests.files.repository import needs_git
from tests.files.test_manifest import settle as _settle
from wakelog.files.capture import Capture
from wakelog.files.git import Chain, Reader, is_ignored
from wakelog.files.wildmatch import parse

NAMES = [
    *(
        "a",
        "b",
        "c",
        "foo",
        "bar",
        "ab",
        "abc",
        "a.txt",
        "b.txt",
        "foo.o",
        "A",
        ".hid",
        "x y",
        "foo ",
        " lead",
        "é",
        "-",
    ),
    *("[a]", "a\\b", "!n", "#h", "a\nb", "a*b", "]", "foo\n", "a-c"),
]
PIECES = [
    *("a", "b", "foo", "*", "**", "***", "?", "*.txt", "f*o", "a**", "**b", "?c", "ab?", ".*", "x y", "é", "A"),
    *(
        "[ab]",
        "[!a]",
        "[^b]",
        "[a-c]",
        "[é]",
        "[]]",
        "[]-a]",
        "[!]a]",
        "[[]a]",
        "[\\]]",
        "[a\\-c]",
        "[z-a]",
        "[a",
        "[a-]",
    ),
    *(
        "[[:alpha:]]",
        "[[:nope:]]",
        "[[:digit:]a-b]",
        "[[:alpha:",
        "\\#h",
        "\\!n",
        "\\a",
        "\\*",
        "a\\\\b",
        "a\\*b",
        "foo\\ ",
    ),
]
piece = st.sampled_from(PIECES)
pattern = st.builds(
    lambda bang, root, pieces, end, tail: bang + root + "/".join(pieces) + end + tail,
    st.sampled_from(["", "", "!"]),
    st.sampled_from(["", "", "", "/"]),
    st.lists(piece, min_size=1, max_size=3),
    st.sampled_from(["", "", "/"]),
    st.sampled_from(["", "", "", "", " ", "  ", "\\ ", "\t", "\r", "\\"]),
)
lines = st.lists(st.one_of(pattern, st.sampled_from(["", "# note", "/", "!", "\\", " "])), min_size=1, max_size=4)


def _listed(root: str) -> set[str]:
    """What git would add."""
    command = ["git", "ls-files", "-z", "--others", "--exclude-standard"]
    told = subprocess.run(command, cwd=root, capture_output=True, check=True).stdout
    return {os.fsdecode(name) for name in told.split(b"\0") if name}


def _wanted(root: str) -> set[str]:
    """What is left when ignored entries are removed, from the top down."""
    reader = Reader()
    found: set[str] = set()

    def walk(folder: str, chain: Chain) -> None:
        chain = reader.enter(chain, folder)
        for entry in os.scandir(folder):
            is_folder = entry.is_dir(follow_symlinks=False)
            if entry.name == ".git" or is_ignored(chain, entry.path, is_folder):
                continue
            if is_folder:
                walk(entry.path, chain)
            else:
                found.add(os.path.relpath(entry.path, root))

    walk(root, reader.start(root))
    return found


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> str:
    """One repository for all examples, because creating one takes longer than checking a tree."""
    root = os.path.realpath(tmp_path_factory.mktemp("ground"))
    subprocess.run(["git", "init", "-q", root], check=True)
    Path(root, ".git/info").mkdir(exist_ok=True)
    return root


def _cleared(root: str) -> None:
    for name in os.listdir(root):
        path = os.path.join(root, name)
        if name != ".git":
            shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)


@needs_git
@given(
    paths=st.lists(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map("/".join), min_size=4, max_size=20),
    top=lines,
    deep=lines,
    where=st.integers(0, 5),
    exclude=lines,
    own=lines,
)
@example(paths=["foo/keep", "foo/x"], top=["foo/**", "!foo/keep"], deep=["#"], where=0, exclude=["#"], own=["#"])
@example(paths=["foo/a.txt", "b.txt"], top=["*.txt", "!foo"], deep=["#"], where=0, exclude=["#"], own=["#"])
def test_random_trees_and_rules_are_judged_as_git_does(
    ground: str, paths: list[str], top: list[str], deep: list[str], where: int, exclude: list[str], own: list[str]
) -> None:
    _cleared(ground)
    for path in paths:
        place = os.path.join(ground, path)
        try:
            os.makedirs(os.path.dirname(place), exist_ok=True)
            Path(place).touch()
        except OSError:
            continue  # a file of that name is where a folder would be
    inner = sorted(p for p, _, _ in os.walk(ground) if ".git" not in p.split(os.sep))
    home = Path(os.environ["HOME"], ".config/git")
    home.mkdir(parents=True, exist_ok=True)
    files = {
        Path(inner[where % len(inner)], ".gitignore"): deep,
        Path(ground, ".gitignore"): top,
        Path(ground, ".git/info/exclude"): exclude,
        home / "ignore": own,
    }
    for file, text in files.items():
        file.write_text("\n".join(text), newline="")
    assert _wanted(ground) == _listed(ground)


@needs_git
def test_the_users_own_file_may_be_anywhere(repo: Path, shell: Shell) -> None:
    shell("touch a.tmp b.txt; echo '*.tmp' > ~/mine; git config core.excludesFile '~/mine'")
    assert _wanted(str(repo)) == _listed(str(repo)) == {"b.txt"}


@needs_git
def test_a_rule_file_may_end_lines_as_windows_does_and_begin_with_a_mark(repo: Path, shell: Shell) -> None:
    (repo / ".gitignore").write_bytes(b"\xef\xbb\xbf*.tmp\r\n*.log\r\n")
    shell("touch a.tmp b.log c.txt")
    assert _wanted(str(repo)) == _listed(str(repo)) == {".gitignore", "c.txt"}


@needs_git
def test_a_rule_file_that_is_a_link_does_not_count(repo: Path, shell: Shell) -> None:
    shell("echo '*' > ../rules; ln -s ../rules .gitignore; touch a")
    assert "a" in _wanted(str(repo))
    assert "a" in _listed(str(repo))


@needs_git
def test_a_root_below_the_top_hears_the_rules_above(repo: Path, shell: Shell) -> None:
    shell("mkdir -p a/b; printf '*.tmp\\n/a/b/no\\n' > .gitignore; echo '!yes.tmp' > a/.gitignore")
    shell("cd a/b; touch x.tmp yes.tmp no f")
    assert _wanted(str(repo / "a/b")) >= {"f", "yes.tmp"}
    assert not _wanted(str(repo / "a/b")) & {"x.tmp", "no"}


@needs_git
def test_what_is_tracked_is_not_ignored(repo: Path, shell: Shell) -> None:
    shell("mkdir out; echo 1 > keep.log; echo 1 > out/keep; echo 1 > out/junk; printf '*.log\\nout/\\n' > .gitignore")
    shell("git add -f keep.log out/keep; git commit -qm x; echo 1 > other.log")
    capture = Capture([repo], folder=repo)
    picture = capture.before()
    shell("echo 2 > keep.log; echo 2 > out/keep; echo 2 > out/junk; echo 2 > other.log")
    changed = {e.path: e.missing for e in capture.changes(picture)}
    assert changed.pop("keep.log") == changed.pop("out/keep") == {}
    assert set(changed) == {"out/", "other.log"}
    assert all("ignored by git" in missing.values() for missing in changed.values())


@needs_git
def test_a_repository_inside_has_its_own_rules(repo: Path, shell: Shell) -> None:
    shell("echo '*.tmp' > .gitignore; mkdir sub; cd sub; git init -q; echo '*.log' > .gitignore; touch a.tmp a.log")
    seen = Capture([repo], folder=repo).before().seen
    assert seen["sub/a.tmp"].kind == "file"
    assert seen["sub/a.log"].kind == "ignored"


def test_rules_that_change_count_at_once(repo: Path, shell: Shell) -> None:
    shell("touch a.tmp b.log; echo '*.tmp' > .gitignore")
    capture = Capture([repo], folder=repo)
    first = capture.before().seen
    shell("echo '*.log' > .gitignore")  # as long as before, and within the same tick of the clock
    second = capture.before().seen
    assert (first["a.tmp"].kind, first["b.log"].kind) == ("ignored", "file")
    assert (second["a.tmp"].kind, second["b.log"].kind) == ("file", "ignored")
    shell("rm .gitignore")
    assert {seen.kind for seen in capture.before().seen.values()} == {"file"}


def test_a_rule_taken_away_makes_nothing_and_a_rule_added_deletes_nothing(repo: Path, shell: Shell) -> None:
    """Otherwise a restore would delete settings and builds that existed all the time."""
    shell("mkdir -p build __pycache__; echo 1 > build/out; echo 1 > __pycache__/x; echo KEY=1 > .env; echo 1 > x.log")
    (repo / ".gitignore").write_text("build/\n.env\n__pycache__\n*.log\n")
    _settle(repo)
    capture = Capture([repo], folder=repo)
    picture = capture.before()
    shell("rm .gitignore; echo 2 > build/made; echo 2 >> x.log")
    events = {e.path: (e.change, e.missing) for e in capture.changes(picture)}
    assert events == {
        ".gitignore": ("deleted", {}),
        "build/made": ("modified", {"before": "ignored by git"}),
        "x.log": ("modified", {"before": "ignored by git"}),
    }
    _settle(repo)
    picture = capture.before()
    shell("printf 'build/\\n.env\\n__pycache__\\n*.log\\n' > .gitignore; echo 3 > build/out; echo 3 > x.log")
    told = {e.path: (e.change, e.before, e.missing) for e in capture.changes(picture)}
    assert told.pop(".gitignore")[0] == "created"
    assert told == {
        "build/out": ("modified", "1\n", {"after": "ignored by git"}),
        "x.log": ("modified", "1\n2\n", {"after": "ignored by git"}),
    }


@pytest.mark.parametrize("line", ["", "#x", "/", "!", "foo\\", "[a", "[[:nope:]]", "   ", "[/]"])
def test_lines_that_say_nothing(line: str) -> None:
    assert parse(line) is None


def test_without_git_installed_the_rules_still_count(repo: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    shell("echo '*.tmp' > .gitignore; touch a.tmp b")
    monkeypatch.setenv("PATH", "/nowhere")
    seen = Capture([repo], folder=repo).before().seen
    assert (seen["a.tmp"].kind, seen["b"].kind) == ("ignored", "file")
