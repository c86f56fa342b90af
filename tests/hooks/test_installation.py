"""`enable` and `disable`: they change what they say, and leave every other byte."""

import json
import stat
import tomllib
from pathlib import Path

import pytest

from wakelog.errors import ConflictError, InvalidInputError, WakelogError
from wakelog.hooks import agents, installation
from wakelog.hooks.agents import AGENTS, HookedAgent, is_ours
from wakelog.hooks.installation import store_for
from wakelog.hooks.json_text import parse

SAY = '{"type": "command", "command": "say done"}'
GUARD = '{"type":"command","command":"./guard.sh"}'
OTHERS = {
    "tabs": f'{{\n\t"model": "m",\n\t"hooks": {{\n\t\t"Stop": [\n\t\t\t{{"hooks": [{SAY}]}}\n\t\t]\n\t}}\n}}',
    "compact": f'{{"env":{{"A":"1"}},"hooks":{{"PreToolUse":[{{"matcher":"Bash","hooks":[{GUARD}]}}]}}}}',
    "four spaces": '{\n    "permissions": {\n        "allow": ["Bash(ls:*)"]\n    }\n}\n',
    "crlf": '{\r\n  "a": [],\r\n  "hooks": {}\r\n}\r\n',
    "empty lists": '{"hooks": {"Stop": [], "BeforeTool": []}}\n',
    "empty object": "{}",
    "empty file": "",
    "odd blanks": '\n\n  { "b" :1 ,\n"hooks" : { "SessionStart" : [ ] } }   ',
}
MARKED = '{\n  // mine\n  "theme": "dark" /* as ever */\n}\n'


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("WAKELOG_DATA", str(tmp_path / "data"))
    for agent in AGENTS.values():
        monkeypatch.delenv(agent.home_variable, raising=False)
    monkeypatch.setattr(agents, "own_command", lambda: ("wakelog",))
    monkeypatch.setattr("wakelog.hooks.mcp_entries.own_command", lambda: ("wakelog",))
    (tmp_path / "home").mkdir()
    (tmp_path / "project").mkdir()
    return tmp_path / "home"


@pytest.fixture
def project(home: Path) -> Path:
    return home.parent / "project"


def enable(agent: HookedAgent, project: Path, scope="user", **how) -> list[installation.FileChange]:
    changes = installation.plan_enable(agent, scope, project, **how)
    installation.apply(changes, enables=True)
    return changes


def disable(agent: HookedAgent, project: Path, scope=None) -> list[installation.FileChange]:
    changes = installation.plan_disable([agent], project, scope)
    installation.apply(changes, enables=False)
    return changes


def tree(*folders: Path) -> dict[str, bytes | None]:
    return {str(p): p.read_bytes() if p.is_file() else None for folder in folders for p in folder.rglob("*")}


def commands(file: Path) -> dict[str, list[str]]:
    hooks = json.loads(file.read_text())["hooks"]
    return {event: [h["command"] for group in groups for h in group["hooks"]] for event, groups in hooks.items()}


@pytest.mark.parametrize("agent", AGENTS.values(), ids=AGENTS)
@pytest.mark.parametrize("others", OTHERS.values(), ids=OTHERS)
def test_disable_restores_every_byte(home: Path, project: Path, agent: HookedAgent, others: str) -> None:
    file = agent.settings("user", project)
    file.parent.mkdir()
    file.write_bytes(others.encode())
    before = tree(home, project)
    enable(agent, project, mcp=True, brief=True)
    there = commands(file)
    assert all(sum(map(is_ours, there[event])) == 1 for event in agent.events)
    disable(agent, project)
    assert tree(home, project) == before


@pytest.mark.parametrize("agent", AGENTS.values(), ids=AGENTS)
@pytest.mark.parametrize("scope", ["user", "project", "local"])
def test_files_and_folders_that_were_made_are_removed(home: Path, project: Path, agent: HookedAgent, scope) -> None:
    if scope not in agent.scopes:
        with pytest.raises(InvalidInputError, match="has no local settings"):
            enable(agent, project, scope)
        return
    enable(agent, project, scope, mcp=True)
    assert len(tree(home, project)) > 1
    assert installation.receipts() != []
    disable(agent, project)
    assert tree(home, project) == {}
    assert installation.receipts() == []


@pytest.mark.parametrize("agent", AGENTS.values(), ids=AGENTS)
def test_enabling_twice_changes_nothing(home: Path, project: Path, agent: HookedAgent) -> None:
    enable(agent, project, mcp=True)
    before = tree(home.parent)
    assert not any(change.is_change for change in enable(agent, project, mcp=True))
    assert not any(change.is_change for change in enable(agent, project))
    assert tree(home.parent) == before
    disable(agent, project)
    assert tree(home, project) == {}
    assert disable(agent, project) == []


@pytest.mark.parametrize("others", ['{"a": 1}', '{\n  "hooks": {\n    "Stop": [\n      {"hooks": []}\n    ]\n  }\n}\n'])
def test_what_was_changed_since_stays(home: Path, project: Path, others: str) -> None:
    agent = AGENTS["claude-code"]
    file = agent.settings("user", project)
    file.parent.mkdir()
    file.write_text(others)
    enable(agent, project)
    # The agent itself writes the file anew, as it does when somebody changes a setting.
    changed = json.loads(file.read_text())
    changed["hooks"]["Stop"].append({"hooks": [{"type": "command", "command": "say bye"}]})
    changed["hooks"]["PreToolUse"][0]["hooks"].append({"type": "command", "command": "./guard.sh"})
    changed["new"] = True
    file.write_text(json.dumps(changed, indent=4))
    disable(agent, project)
    left = json.loads(file.read_text())
    wanted = json.loads(others)
    stop = [*wanted.get("hooks", {}).get("Stop", []), {"hooks": [{"type": "command", "command": "say bye"}]}]
    guard = [{"hooks": [{"type": "command", "command": "./guard.sh"}]}]
    assert left == {**wanted, "hooks": {"Stop": stop, "PreToolUse": guard}, "new": True}


@pytest.mark.parametrize("agent", AGENTS.values(), ids=AGENTS)
@pytest.mark.parametrize("others", ["", "\n", "{}", "{ }", "{\n}\n", '{\n  "hooks": {\n  }\n}\n', '{"a": 1 }'])
def test_a_file_with_more_at_its_ends_is_otherwise_restored(home, project: Path, agent: HookedAgent, others) -> None:
    file = agent.settings("user", project)
    file.parent.mkdir()
    file.write_text(others)
    enable(agent, project, mcp=True)
    file.write_text(f"\n{file.read_text()}\n\n")
    disable(agent, project)
    assert file.read_text() == f"\n{others}\n\n"


def test_comments_that_were_written_since_stay(home: Path, project: Path) -> None:
    agent = AGENTS["gemini"]
    file = agent.settings("user", project)
    file.parent.mkdir()
    file.write_text('{\n  "hooks": { // mine\n  }\n}\n')
    enable(agent, project, mcp=True)
    there = file.read_text().replace('"timeout": 5000', '"timeout": 9000')
    file.write_text(there.replace('"mcpServers"', '// a server\n  "mcpServers"'))
    disable(agent, project)
    left = file.read_text()
    assert parse(left, comments=True).value == {"hooks": {}}
    assert "// mine" in left
    assert "// a server" in left


def test_comments_after_our_table_stay(home: Path, project: Path) -> None:
    file, _ = AGENTS["codex"].mcp_settings("user", project)
    file.parent.mkdir()
    file.write_text('model = "m"\n')
    enable(AGENTS["codex"], project, mcp=True)
    file.write_text(file.read_text() + "\n# a note\n[other] # and more\n")
    disable(AGENTS["codex"], project)
    assert file.read_text() == 'model = "m"\n\n# a note\n[other] # and more\n'


def test_hooks_without_a_receipt_are_removed_too(home: Path, project: Path) -> None:
    agent = AGENTS["codex"]
    file = agent.settings("user", project)
    file.parent.mkdir()
    file.write_text('{\n  "hooks": {}\n}\n')
    enable(agent, project)
    (home.parent / "data" / "enabled.json").unlink()
    disable(agent, project)
    assert json.loads(file.read_text()) == {}


@pytest.mark.parametrize("agent", AGENTS.values(), ids=AGENTS)
@pytest.mark.parametrize(
    "broken", ['{"a": 1,}', "{'a': 1}", "[]", '{"hooks": []}', '{"hooks": {"SessionStart": {}}}', "\xff"]
)
def test_broken_settings_are_refused_and_left(home: Path, project: Path, agent: HookedAgent, broken: str) -> None:
    file = agent.settings("user", project)
    file.parent.mkdir()
    file.write_bytes(broken.encode("latin-1"))
    before = tree(home.parent)
    with pytest.raises(WakelogError, match="is broken") as caught:
        enable(agent, project)
    assert caught.value.kind == "bad-agent-settings"
    assert tree(home.parent) == before


def test_comments_are_kept_where_the_agent_allows_them(home: Path, project: Path) -> None:
    gemini, claude = AGENTS["gemini"], AGENTS["claude-code"]
    for agent in (gemini, claude):
        agent.settings("user", project).parent.mkdir()
        agent.settings("user", project).write_text(MARKED)
    enable(gemini, project, mcp=True)
    assert "// mine" in gemini.settings("user", project).read_text()
    disable(gemini, project)
    assert gemini.settings("user", project).read_text() == MARKED
    with pytest.raises(WakelogError, match="is broken"):
        enable(claude, project)


def test_worktree_create_is_never_registered() -> None:
    assert all("WorktreeCreate" not in agent.events for agent in AGENTS.values())


@pytest.mark.parametrize(
    "others", ["", 'model = "gpt"  # mine\n', '[mcp_servers.other]\ncommand = "x"', "\n# end\n[a]\nb=1\r\n"]
)
def test_codex_config_keeps_its_comments(home: Path, project: Path, others: str) -> None:
    agent = AGENTS["codex"]
    file = home / ".codex" / "config.toml"
    file.parent.mkdir()
    file.write_bytes(others.encode())
    enable(agent, project, mcp=True)
    there = tomllib.loads(file.read_bytes().decode())
    assert there["mcp_servers"]["wakelog"] == {"command": "wakelog", "args": ["mcp"]}
    assert file.read_bytes().startswith(others.encode())
    file.write_bytes(file.read_bytes() + b"\n[later]\nx = 1 # one\n")
    disable(agent, project)
    left = file.read_text()
    assert tomllib.loads(left) == {**tomllib.loads(others), "later": {"x": 1}}
    assert "# one" in left
    assert all(line in left for line in others.splitlines() if "#" in line)


@pytest.mark.parametrize("is_touched", [False, True])
@pytest.mark.parametrize("agent", AGENTS.values(), ids=AGENTS)
def test_a_server_of_our_name_that_somebody_else_wrote_stays(
    home: Path, project: Path, agent: HookedAgent, is_touched: bool
) -> None:
    file, _ = agent.mcp_settings("user", project)
    file.parent.mkdir(exist_ok=True)
    theirs = '{"mcpServers": {"wakelog": {"command": "mine"}}}\n'
    if agent.name == "codex":
        theirs = '[mcp_servers.wakelog]\ncommand = "mine"\n'
    file.write_text(theirs)
    enable(agent, project, mcp=True)
    assert theirs.strip("{}\n") in file.read_text()
    if is_touched:
        file.write_text(file.read_text() + "\n")
    disable(agent, project)
    assert file.read_text() == theirs + "\n" * is_touched


def test_a_link_and_a_mode_survive(home: Path, project: Path) -> None:
    agent = AGENTS["claude-code"]
    file = agent.settings("user", project)
    file.parent.mkdir()
    real = home / "dotfiles.json"
    real.write_text('{"a": 1}')
    real.chmod(0o640)
    file.symlink_to(real)
    enable(agent, project)
    assert file.is_symlink()
    assert "hooks" in json.loads(real.read_text())
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


def test_a_file_that_changed_after_it_was_shown_is_not_written(home: Path, project: Path) -> None:
    agent = AGENTS["claude-code"]
    changes = installation.plan_enable(agent, "user", project)
    file = agent.settings("user", project)
    file.parent.mkdir()
    file.write_text('{"b": 2}')
    with pytest.raises(ConflictError, match="meanwhile"):
        installation.apply(changes, enables=True)
    assert file.read_text() == '{"b": 2}'


def test_receipts_hold_nothing_of_the_users_settings(home: Path, project: Path) -> None:
    file = AGENTS["claude-code"].settings("user", project)
    file.parent.mkdir()
    file.write_text('{"env": {"TOKEN": "hush-hush"}}')
    enable(AGENTS["claude-code"], project, mcp=True)
    assert "hush" not in (home.parent / "data" / "enabled.json").read_text()


@pytest.mark.parametrize(
    ("command", "is_it"),
    [
        ("wakelog hook claude-code", True),
        ("/opt/x/bin/wakelog hook codex --brief", True),
        ("'/my tools/wakelog' hook gemini", True),
        ("/usr/bin/python3 -m wakelog hook codex", True),
        ("echo wakelog", False),
        ("my-wakelog hook codex", False),
        ("wakelog doctor", False),
        (None, False),
    ],
)
def test_our_commands_are_told_from_others(command, is_it: bool) -> None:
    assert is_ours(command) is is_it


def test_a_brief_can_be_asked_for_later_and_changes_one_command(home: Path, project: Path) -> None:
    agent = AGENTS["claude-code"]
    file = agent.settings("user", project)
    file.parent.mkdir()
    file.write_text('{\n  "model": "m"\n}\n')
    enable(agent, project)
    before = commands(file)
    enable(agent, project, brief=True)
    assert {e: c for e, c in commands(file).items() if c != before[e]} == {
        "SessionStart": ["wakelog hook claude-code --brief"]
    }
    disable(agent, project)
    assert file.read_text() == '{\n  "model": "m"\n}\n'


def test_the_store_that_was_named_gets_the_sessions(home: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAKELOG_CONFIG", str(home / "none.toml"))
    monkeypatch.delenv("WAKELOG_STORE", raising=False)
    agent = AGENTS["codex"]
    assert store_for("codex", str(project), installation.receipts()) == str(home.parent / "data" / "store")
    (project / ".wakelog").mkdir()
    assert store_for("codex", str(project / "below"), installation.receipts()) == str(project / ".wakelog")
    enable(agent, project, "project", store="/named/for/project")
    assert store_for("codex", str(project / "below"), installation.receipts()) == "/named/for/project"
    assert store_for("codex", "/elsewhere", installation.receipts()) == str(home.parent / "data" / "store")
    enable(agent, project, "user", store="/named/for/all")
    assert store_for("codex", "/elsewhere", installation.receipts()) == "/named/for/all"
    assert store_for("codex", str(project), installation.receipts()) == "/named/for/project"
    assert store_for("gemini", "/elsewhere", installation.receipts()) == str(home.parent / "data" / "store")


@pytest.mark.parametrize("content", [b'{"bad": ', b'{"a": "\xe9"}', b"[]"])
def test_a_broken_file_that_has_nothing_of_ours_does_not_stop_the_others(
    home: Path, project: Path, content: bytes
) -> None:
    broken, whole = AGENTS["gemini"], AGENTS["claude-code"]
    file = broken.settings("user", project)
    file.parent.mkdir()
    file.write_bytes(content)
    before = tree(home, project)
    enable(whole, project)
    installation.apply(installation.plan_disable(AGENTS.values(), project), enables=False)
    assert tree(home, project) == before


def test_a_broken_file_with_our_hooks_is_named(home: Path, project: Path) -> None:
    agent = AGENTS["claude-code"]
    enable(agent, project)
    file = agent.settings("user", project)
    file.write_text(file.read_text()[:-9])
    with pytest.raises(InvalidInputError, match="is broken"):
        disable(agent, project)
