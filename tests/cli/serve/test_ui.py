"""`wakelog ui`: what it says before it serves."""

from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.web.pages import built, not_built

__all__ = ["built", "not_built"]


@pytest.mark.usefixtures("not_built", "plain_terminal")
def test_without_a_page_one_line_says_how_to_build_it(cli: Cli, tmp_path: Path) -> None:
    result = cli("--store", str(tmp_path / "store"), "ui")
    assert result.code != 0
    assert "the page was not built" in result.err
    assert "make page" in result.err
    assert not (tmp_path / "store").exists()


@pytest.mark.usefixtures("built", "plain_terminal")
def test_a_store_on_a_server_has_its_page_there(cli: Cli) -> None:
    result = cli("--store", "http://127.0.0.1:9", "ui", "--json")
    assert result.error["hint"] == "open http://127.0.0.1:9"


@pytest.mark.usefixtures("built", "plain_terminal")
@pytest.mark.parametrize(("flags", "scope"), [((), "read"), (("--write",), "write")])
def test_it_may_change_things_only_with_write(
    flags: tuple[str, ...], scope: str, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    seen: list[tuple[str, str]] = []

    def run(server, sock, *, tls=None) -> None:
        key = server.keys.find(server.launch_token, server.clock())
        seen.append((key.scope, server.settings.url))
        sock.close()
        server.close()

    monkeypatch.setattr("wakelog.http.server.run", run)
    monkeypatch.setattr("webbrowser.open", opened.append)
    result = cli("--store", str(tmp_path / "store"), "ui", "--port", "0", "--json", *flags)
    assert result.code == 0, result.err
    assert seen == [(scope, str(tmp_path / "store"))]
    told = result.data
    assert told["write"] is (scope == "write")
    assert told["address"].startswith(told["url"] + "/#key=wlk_")
    [address] = opened
    assert "#key=once-" in address, "the browser's arguments hold a ticket, and not the key"
