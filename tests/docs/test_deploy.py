"""The files in deploy/ name commands, flags and parameters that exist. No cluster is started from them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import click
import pytest
import yaml  # type: ignore[import-untyped]  # its types are a package of their own

from tests.engines.nats_server import _binary
from wakelog.cli.app import app
from wakelog.http.routes import all_routes
from wakelog.store.nats_url import PARAMETERS

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
VALUES: dict[str, Any] = yaml.safe_load((DEPLOY / "values.yaml").read_text())


def commands() -> Iterator[tuple[str, list[str]]]:
    """Everything that is run as `wakelog …`."""
    for name, service in COMPOSE["services"].items():
        if service["image"] == "wakelog":
            yield f"compose {name}", service["command"]
    for name, part in VALUES["wakelog"].items():
        if isinstance(part, dict) and "args" in part:
            yield f"values {name}", part["args"]
    for line in (DEPLOY / "compose.yaml").read_text().splitlines():
        if "run --rm server-1 " in line:
            yield "compose, to begin with", line.partition("server-1 ")[2].partition("#")[0].split()


@pytest.mark.parametrize("words", [pytest.param(words, id=name) for name, words in commands()])
def test_a_command_is_one_that_wakelog_takes(words: list[str]) -> None:
    command: click.Command = app
    context = click.Context(app)
    while isinstance(command, click.Group):
        found = command.get_command(context, words[0])
        assert found is not None, words
        command, words = found, words[1:]
    context = command.make_context("wakelog", list(words), resilient_parsing=False)
    given = [option for option in words if option.startswith("--")]
    known = {name for parameter in command.params for name in parameter.opts}
    assert set(given) <= known
    context.close()


def test_every_part_of_a_cluster_is_there() -> None:
    services = COMPOSE["services"]
    assert {"n1", "n2", "n3", "db", "server-1", "server-2", "projector", "archiver"} == set(services)
    assert [services[name]["command"][-1] for name in ("n1", "n2", "n3")] == ["n1", "n2", "n3"]
    assert services["projector"]["deploy"]["replicas"] > 1
    assert VALUES["nats"]["config"]["cluster"]["replicas"] == 3
    assert VALUES["nats"]["config"]["jetstream"]["merge"] == {"sync_interval": "always"}
    assert VALUES["wakelog"]["archiver"]["replicas"] == 1
    probed = {VALUES["wakelog"]["servers"][name] for name in ("readiness", "liveness")}
    assert probed <= {route.path for route in all_routes()}
    for text in ((DEPLOY / name).read_text() for name in ("compose.yaml", "values.yaml")):
        assert "NOT RUN" in text
    volumes = {volume.partition(":")[0] for each in services.values() for volume in each.get("volumes", ())}
    assert volumes - {"./nats.conf"} == set(COMPOSE["volumes"])


@pytest.mark.parametrize(
    "url", [COMPOSE["x-wakelog"]["environment"]["WAKELOG_STORE"], VALUES["wakelog"]["env"]["WAKELOG_STORE"]]
)
def test_the_url_of_the_store_has_parameters_that_exist(url: str) -> None:
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query))
    assert (parts.scheme, parts.netloc.count(",")) == ("nats", 2)
    assert query.keys() <= PARAMETERS.keys()
    assert query["index"].startswith("postgresql://")


def test_the_server_takes_its_configuration(tmp_path: Path) -> None:
    text = (DEPLOY / "nats.conf").read_text()
    assert "sync_interval: always" in text
    config = tmp_path / "nats.conf"
    config.write_text(text.replace("store_dir: /data", f'store_dir: "{tmp_path}"'))
    command = [_binary(), "-c", str(config), "--name", "n1", "-t"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
