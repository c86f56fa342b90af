"""Settings: which source wins, unknown keys, and edits that keep the rest of a file."""

from pathlib import Path

import pytest

import wakelog
from wakelog.config import settings as config
from wakelog.config.settings import write_setting
from wakelog.errors import InvalidInputError
from wakelog.store.url import default_url


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("WAKELOG_STORE", "WAKELOG_CONFIG", "XDG_CONFIG_HOME", *(s.variable for s in config.SETTINGS.values())):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return tmp_path


def _user(home: Path, text: str) -> Path:
    file = home / "home/.config/wakelog/config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def test_defaults(home: Path) -> None:
    found = config.load()
    assert {f.origin for f in found.values()} == {"default"}
    assert config.policy(found).keeps_everything


def test_order_is_environment_project_user(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _user(home, '[retention]\nkeep = "1d"\nmax_size = "1GB"\nkeep_last = 5\n')
    Path("wakelog.toml").write_text('[retention]\nkeep = "2d"\nmax_size = "2GB"\n')
    monkeypatch.setenv("WAKELOG_RETENTION_KEEP", "3d")
    found = config.load()
    assert [found[f"retention.{k}"].value for k in ("keep", "max_size", "keep_last")] == ["3d", "2GB", 5]
    policy = config.policy(found)
    assert (policy.keep_us, policy.max_bytes, policy.keep_last) == (3 * 86_400_000_000, 2 * 10**9, 5)


def test_nearest_project_file_counts_and_pyproject_needs_our_table(home: Path) -> None:
    (home / "work/pyproject.toml").write_text('[tool.other]\nx = "tool.wakelog"\n')
    (home / "wakelog.toml").write_text('retention = { keep = "1d" }\n')
    assert config.project_file() == home / "wakelog.toml"
    (home / "work/pyproject.toml").write_text('[tool.wakelog.retention]\nkeep = "2d"\n')
    assert config.load()["retention.keep"].value == "2d"


def test_store_path_counts_from_its_file(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "wakelog.toml").write_text('[store]\npath = "sub/logs"\n')
    assert default_url() == str(home / "sub/logs")
    monkeypatch.setenv("WAKELOG_STORE", "here")
    assert default_url() == "here"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[retention]\nkep = '1d'\n", "retention.keep"),
        ("[stroe]\npath = 'x'\n", "store.path"),
        ("colour = 'red'\n", "there are: store.path"),
    ],
)
def test_unknown_keys_are_errors_with_a_suggestion(home: Path, text: str, says: str) -> None:
    Path("wakelog.toml").write_text(text)
    with pytest.raises(InvalidInputError) as caught:
        config.load()
    assert caught.value.kind == "unknown-setting"
    assert "wakelog.toml" in caught.value.message
    assert says in caught.value.hint


@pytest.mark.parametrize(
    "text", ["[retention]\nkeep = 'soon'\n", "[retention]\nkeep_last = -1\n", "[retention]\naction = 'burn'\n", "= x"]
)
def test_bad_values_name_the_file(home: Path, text: str) -> None:
    Path("wakelog.toml").write_text(text)
    with pytest.raises(InvalidInputError, match=r"wakelog\.toml"):
        config.load()


def test_set_keeps_comments_and_the_rest(home: Path) -> None:
    file = home / "wakelog.toml"
    file.write_text('# ours\n[store]\npath = "x" # here\n\n[retention]\nkeep = "1d"\n')
    write_setting(file, "retention.keep", "2d")
    write_setting(file, "retention.keep_last", "7")
    assert file.read_text() == '# ours\n[store]\npath = "x" # here\n\n[retention]\nkeep = "2d"\nkeep_last = 7\n'


def test_set_in_a_pyproject_touches_our_table_only(home: Path) -> None:
    file = home / "pyproject.toml"
    before = '[project]\nname = "x"\n\n[tool.wakelog.store]\npath = "y"\n'
    file.write_text(before)
    write_setting(file, "retention.keep", "2d")
    assert file.read_text() == before + '\n[tool.wakelog.retention]\nkeep = "2d"\n'


def test_set_in_an_inline_table(home: Path) -> None:
    file = home / "wakelog.toml"
    file.write_text('# ours\nretention = { keep = "1d" }\n')
    write_setting(file, "retention.keep", "2d")
    assert file.read_text() == '# ours\nretention = { keep = "2d" }\n'


def test_set_where_our_tables_stand_apart(home: Path) -> None:
    file = home / "pyproject.toml"
    before = '[tool.wakelog.store]\npath = "y"\n\n[project]\nname = "x"\n\n[tool.other]\nx = 1\n'
    file.write_text(before)
    write_setting(file, "retention.keep", "2d")
    write_setting(file, "store.path", "z")
    assert config.read(file)["retention.keep"] == "2d"
    assert 'path = "z"' in file.read_text()
    assert '[project]\nname = "x"\n' in file.read_text()


def test_set_refuses_what_is_no_table(home: Path) -> None:
    file = home / "wakelog.toml"
    file.write_text("retention = 1\n")
    with pytest.raises(InvalidInputError, match="not a table"):
        write_setting(file, "retention.keep", "2d")
    assert file.read_text() == "retention = 1\n"


def test_a_project_cannot_turn_redaction_off(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("wakelog.toml").write_text("[redact]\nenabled = false\n")
    with pytest.raises(InvalidInputError, match="only by you"):
        config.load()
    with wakelog.open(home / "store") as store:
        assert store.redact is not None
    Path("wakelog.toml").unlink()
    with pytest.raises(InvalidInputError):
        write_setting(Path("wakelog.toml").absolute(), "redact.enabled", "false")
    write_setting(config.user_file(), "redact.enabled", "false")
    with wakelog.open(home / "store") as store:
        assert store.redact is None
    monkeypatch.setenv("WAKELOG_REDACT_ENABLED", "true")
    with wakelog.open(home / "store") as store:
        assert store.redact is not None
