"""`wakelog serve`: what it says, what it refuses, and that it serves."""

import contextlib
import json
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import wakelog
from tests.cli.conftest import Cli
from tests.http.asking import Asker
from tests.http.processes import ServerProcess


@pytest.fixture
def desk(cli: Cli, plain_terminal: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WAKELOG_STORE", "store")
    return cli


def test_it_serves_the_store_with_a_key_for_this_run(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "store") as server:
        with wakelog.open(server.url, key=server.key) as store:
            store.session("s").fact("k", 1)
        assert server.stop() in (0, -signal.SIGTERM)
    with wakelog.open(tmp_path / "store") as store:
        assert store.resume("s").state().facts["k"].value == 1


def test_commands_work_on_a_server_as_on_a_folder(desk: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ServerProcess(tmp_path / "store") as server:
        monkeypatch.setenv("WAKELOG_KEY", server.key)
        with wakelog.open(server.url, key=server.key) as store:
            session = store.session("s", goal="see zebras")
            with session.turn(user="look for zebras"):
                session.fact("k", "v")
        there, here, now = ("--store", server.url), ("--store", "store"), time.time_ns() // 1000
        for args in (("ls",), ("log", "s"), ("state", "-s", "s"), ("search", "zebras"), ("diff", "s"), ("verify", "s")):
            # Both at the same moment: how long ago something was is told in seconds.
            assert desk(*args, *there, now=now).out == desk(*args, *here, now=now).out, args
        told = desk("note", "s@1", "-m", "from afar", *there)
        assert told.code == 0, told.err
        assert "from afar" in desk("log", "s", "--events", *here).out
        exported = desk("export", "s", "-o", "s.wakelog", *there)
        assert exported.code == 0, exported.err
        brought = desk("import", "s.wakelog", "--store", f"{server.url}/ns/other")
        assert brought.code == 0, brought.err
        assert desk("ls", "--json", "--store", f"{server.url}/ns/other").data[0]["name"] == "s"
        assert server.url in desk("store", "info", *there).out


def test_people_are_told_where_and_with_which_key(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "wakelog", "serve", "--store", str(tmp_path / "store"), "--port", "0"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(3)]
    finally:
        process.kill()
        process.communicate()
    assert "http://127.0.0.1:" in said[0]
    assert "wlk_" in said[1]


def test_without_a_key_nothing_is_served_beyond_this_machine(desk: Cli) -> None:
    result = desk("serve", "--host", "0.0.0.0", "--port", "0", "--json")
    assert (result.code, result.error["kind"]) == (6, "no-keys")
    assert "wakelog key new" in result.error["hint"]
    assert desk("serve", "--no-launch-key", "--port", "0", "--json").error["kind"] == "no-keys"


def test_only_the_names_it_was_told_are_answered_beyond_this_machine(tmp_path: Path, desk: Cli) -> None:
    token = desk("key", "new", "ci", "--scope", "read", "--store", str(tmp_path / "store")).out.strip()
    with ServerProcess(tmp_path / "store", "--host", "0.0.0.0", "--host-name", "logs.example") as server:
        assert not server.key
        for host, status in (("logs.example:1", 200), ("other.example", 403)):
            assert Asker(server.url, token).get("/v1/info", headers={"Host": host}).status == status


def test_its_log_is_lines_of_json_for_programs(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "wakelog", "serve", "--store", str(tmp_path / "s"), "--port", "0", "--json"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        said = ""
        assert process.stdout is not None
        while not said.endswith("\n}\n"):
            said += process.stdout.readline()
        url = json.loads(said)["data"]["url"]
        while True:
            try:
                Asker(url).get("/healthz")
                break
            except ConnectionRefusedError:
                continue
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=180)
    finally:
        process.kill()
        process.wait()
    lines: list[Any] = [json.loads(line) for line in err.splitlines()]
    events = [line["event"] for line in lines]
    assert events[0] == "started"
    assert events[-1] == "stopped"
    [request] = [line for line in lines if line["event"] == "request"]
    assert (request["route"], request["status"], request["level"]) == ("/healthz", 200, "info")


@pytest.mark.parametrize(
    "args", [("--port", "70000"), ("--max-body", "big"), ("--log", "xml"), ("--tls-cert", "no.pem")]
)
def test_wrong_options_are_told(desk: Cli, args: tuple[str, ...]) -> None:
    assert desk("serve", *args).code == 2


def test_without_the_extra_its_name_is_told(tmp_path: Path) -> None:
    without = "import sys; sys.modules['uvicorn'] = None; from wakelog.cli.app import run; sys.exit(run(sys.argv[1:]))"
    command = [sys.executable, "-c", without, "serve", "--store", str(tmp_path), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180)
    error = json.loads(done.stderr)["error"]
    assert error["kind"] == "missing-extra"
    assert "wakelog[server]" in error["hint"]


def test_it_speaks_tls_and_the_library_looks_at_the_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, key = _self_signed(tmp_path)
    server = ServerProcess(tmp_path / "store", "--tls-cert", str(certificate), "--tls-key", str(key))
    server.url = server.url.replace("http:", "https:")
    with server.started_by(lambda: _answers(server.port)):
        with pytest.raises(wakelog.UnavailableError) as told:
            wakelog.open(server.url, key=server.key)
        assert told.value.kind == "server-unreachable"
        assert "certificate" in told.value.message
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        with wakelog.open(server.url, key=server.key) as store:
            assert store.session("s").fact("k", 1) == 2


def _answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5):
        return True
    return False


def _self_signed(folder: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1, and its key."""
    import datetime
    import ipaddress

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    files = folder / "cert.pem", folder / "key.pem"
    files[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    files[1].write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return files
