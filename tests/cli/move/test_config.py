"""`config` from the command line; the rules themselves are tried in tests/config/test_settings.py."""

from pathlib import Path

from tests.cli.conftest import Cli


def test_set_then_get_and_where_it_came_from(move: Cli, folder: Path) -> None:
    assert move("config", "set", "retention.keep", "90d").code == 0
    file = folder / "home/.config/wakelog/config.toml"
    assert file.read_text() == '[retention]\nkeep = "90d"\n'
    assert move("config", "get", "retention.keep").out == "90d\n"
    origins = {f["key"]: (f["origin"], f["where"]) for f in move("config", "list", "--json").data}
    assert origins["retention.keep"] == ("user", str(file))
    assert origins["store.path"] == ("environment", "WAKELOG_STORE")


def test_set_says_when_something_stronger_hides_it(move: Cli) -> None:
    Path("wakelog.toml").write_text('[retention]\nkeep = "30d"\n')
    result = move("config", "set", "retention.keep", "90d", "--user")
    assert "not in force" in result.out
    assert move("config", "get", "retention.keep").out == "30d\n"


def test_store_path_of_a_file_is_used(move: Cli, folder: Path) -> None:
    (folder / "deep/er").mkdir(parents=True)
    Path("wakelog.toml").write_text('[store]\npath = "demo"\n')
    import os

    os.chdir("deep/er")
    result = move("store", "path", env={"WAKELOG_STORE": ""})
    assert result.out == f"{folder}/demo\n"
    assert move("--store", "elsewhere", "store", "path").out == "elsewhere\n"


def test_a_broken_file_does_not_stop_the_command_that_mends_it(move: Cli) -> None:
    Path("wakelog.toml").write_text('[retention]\nkeep = "90x"\n')
    assert move("gc").code == 2
    assert move("config", "set", "retention.keep", "90d").code == 0
    assert move("gc").code == 0


def test_path_lists_the_files(move: Cli, folder: Path) -> None:
    Path("wakelog.toml").write_text("")
    data = move("config", "path", "--json").data
    assert [(f["origin"], f["exists"]) for f in data] == [("project", True), ("user", False)]
