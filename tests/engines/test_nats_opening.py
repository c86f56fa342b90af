"""The requirements for a cluster when a store is opened, and the errors if it does not meet them."""

import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from nats.aio.transport import TcpTransport

import wakelog
from tests.engines import nats_logins
from tests.engines.nats_server import NatsServer
from tests.engines.test_nats import engine_on
from tests.ports import free_port
from wakelog.cli.app import run
from wakelog.engines.nats import NatsEngine
from wakelog.engines.nats.errors import JetStreamRefusal, translate_error
from wakelog.engines.nats.layout import LayoutKeeper
from wakelog.engines.nats.streams import StoreStreams
from wakelog.errors import InvalidInputError, NotFoundError, UnavailableError, UnsupportedError
from wakelog.store import Store
from wakelog.store.nats_url import open_nats


@pytest.fixture(scope="module")
def synced() -> Iterator[NatsServer]:
    server = NatsServer(sync="always").start().wait()
    yield server
    server.stop()


def test_a_server_that_syncs_each_message_is_taken(synced: NatsServer) -> None:
    with wakelog.open(synced.url) as store:
        store.session("s").fact("k", 1)
    with wakelog.open(synced.url, create=False) as store:
        assert [e.body["key"] for e in store.session("s").events(kind="fact")] == ["k"]


def test_a_server_that_does_not_sync_each_message_is_refused(nats: NatsServer, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError) as told:
        NatsEngine([nats.address], store=tmp_path.name, replicas=1, monitors=[f"127.0.0.1:{nats.monitor}"])
    assert told.value.kind == "not-synced"
    assert "n1" in told.value.message
    with pytest.raises(NotFoundError):  # and nothing was created
        engine_on(nats, "n", store=tmp_path.name, create=False)


def test_a_server_whose_syncs_cannot_be_seen_is_refused(synced: NatsServer, tmp_path: Path) -> None:
    nobody = free_port()
    for monitors in ([str(nobody)], [f"127.0.0.1:{nobody}"], []):
        with pytest.raises(UnsupportedError) as told:
            NatsEngine([synced.address], store=tmp_path.name, replicas=1, monitors=monitors)
        assert told.value.kind == "sync-unseen"
        assert "sync=always" in told.value.hint
    NatsEngine([synced.address], store=tmp_path.name, replicas=1, monitors=[str(synced.monitor)]).close()


def test_three_replicas_are_demanded_unless_the_url_says_otherwise(nats: NatsServer, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError) as told:
        NatsEngine([nats.address], store=tmp_path.name, vouched=True)
    assert told.value.kind == "too-few-servers"
    assert "start 3 servers" in told.value.hint
    engine_on(nats, "n", store=f"{tmp_path.name}-1").close()
    with pytest.raises(UnsupportedError) as told:
        NatsEngine([nats.address], store=f"{tmp_path.name}-1", vouched=True)
    assert told.value.kind == "too-few-replicas"


@pytest.mark.parametrize("place", ["0", "names"])
@pytest.mark.parametrize(
    "limits",
    [{"max_age": 3_600_000_000_000}, {"max_msgs": 10, "discard": "old"}, {"max_msgs_per_subject": 3}],
    ids=lambda limits: next(iter(limits)),
)
def test_a_stream_that_would_drop_messages_is_refused(
    nats: NatsServer, tmp_path: Path, place: str, limits: dict[str, Any]
) -> None:
    told = _opened_with(nats, tmp_path.name, place, limits)
    assert next(iter(limits)) in told.message
    assert f"nats stream edit wl-{tmp_path.name}-{place}" in told.hint


@pytest.mark.parametrize("wrong", ["no_ack", "persist_mode", "storage"])
def test_a_stream_that_acknowledges_what_is_not_on_a_disk_is_refused(
    nats: NatsServer, tmp_path: Path, wrong: str
) -> None:
    settings: dict[str, Any] = {"no_ack": True, "persist_mode": "async", "storage": "memory"}
    more = {"allow_atomic": False} if wrong == "persist_mode" else {}
    told = _opened_with(nats, tmp_path.name, "0", {wrong: settings[wrong], **more}, anew=wrong != "no_ack")
    assert {"no_ack": "no_ack is on", "persist_mode": "before it syncs", "storage": "in memory"}[wrong] in told.message


def _opened_with(nats: NatsServer, name: str, place: str, more: dict[str, Any], *, anew: bool = False) -> Any:
    """Changes a stream of a store behind its back, some settings only by making it `anew`; the refusal to open it."""
    engine = engine_on(nats, "n", store=name)
    stream = f"wl-{name}-{place}"
    config = engine._await(engine._connection.api(f"STREAM.INFO.{stream}"))["config"] | more
    if anew:
        engine._await(engine._connection.api(f"STREAM.DELETE.{stream}"))
    engine._await(engine._connection.api(f"STREAM.{'CREATE' if anew else 'UPDATE'}.{stream}", config))
    engine.close()
    with pytest.raises(UnsupportedError) as told:
        engine_on(nats, "n", store=name)
    assert told.value.kind == "stream-drops"
    assert stream in told.value.message
    return told.value


def test_a_server_before_2_12_is_refused(tmp_path: Path) -> None:
    with _old_server("2.11.9") as port, pytest.raises(UnsupportedError) as told:
        NatsEngine([f"127.0.0.1:{port}"], replicas=1, vouched=True)
    assert told.value.kind == "server-too-old"
    assert "2.11.9" in told.value.message


class _old_server:
    """Sends what a server sends when a client connects, and nothing more."""

    def __init__(self, version: str) -> None:
        info = f'{{"server_id":"X","server_name":"old","version":"{version}","jetstream":true,"headers":true,'
        self._info = f'INFO {info}"max_payload":1048576,"proto":1}}\r\n'.encode()

    def __enter__(self) -> int:
        self._socket = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._serve, daemon=True).start()
        return int(self._socket.getsockname()[1])

    def _serve(self) -> None:
        try:
            client, _ = self._socket.accept()
            with client:
                client.sendall(self._info)
                while data := client.recv(4096):
                    if b"PING" in data:
                        client.sendall(b"PONG\r\n")
        except OSError:
            pass

    def __exit__(self, *_: object) -> None:
        self._socket.close()


def test_a_server_without_jetstream_is_refused(tmp_path: Path) -> None:
    server = NatsServer(folder=tmp_path / "plain", plain=True).start().wait()
    try:
        with pytest.raises(UnsupportedError) as told:
            NatsEngine([server.address], replicas=1, vouched=True)
        assert told.value.kind == "no-jetstream"
    finally:
        server.stop()


@pytest.mark.parametrize(
    ("publish", "subscribe", "missing"),
    [
        ('"$JS.API.INFO"', '"_INBOX.>"', "publish to $JS.API.STREAM.NAMES"),
        ('"$JS.API.>"', '"_INBOX.>"', "publish to wl.wakelog.0.layout"),
        ('"$JS.API.>", "wl.>"', '"wlnews.>"', "subscribe to _INBOX.>"),
    ],
    ids=["api", "stream", "inbox"],
)
def test_what_a_user_may_not_do_is_told(tmp_path: Path, publish: str, subscribe: str, missing: str) -> None:
    allowed = f"permissions: {{ publish: [{publish}], subscribe: [{subscribe}] }}"
    more = f"authorization {{ users: [ {{ user: a, password: b, {allowed} }} ] }}"
    server = NatsServer(folder=tmp_path / "limited", more=more).start().wait()
    try:
        with pytest.raises(wakelog.NotAllowedError) as told:
            open_nats(server.url.replace("nats://", "nats://a:b@"), True)
        assert told.value.kind == "login-refused"
        assert missing in told.value.message
        assert "wlnews." in told.value.hint
    finally:
        server.stop()


def test_a_user_with_the_permissions_of_the_manual_can_do_everything(tmp_path: Path) -> None:
    allowed = 'permissions: { publish: ["$JS.API.>", "wl.wakelog.>"], subscribe: ["_INBOX.>", "wlnews.wakelog.>"] }'
    more = f"authorization {{ users: [ {{ user: a, password: b, {allowed} }} ] }}"
    server = NatsServer(folder=tmp_path / "limited", more=more).start().wait()
    try:
        with wakelog.open(server.url.replace("nats://", "nats://a:b@")) as store:
            session = store.session("s")
            session.fact("k", 1)
            fork = session.fork(name="f")
            fork.fact("k", 2)
            assert store.engine.wait(session.id, after=1, timeout_s=30)
            store.delete(fork)
            assert [each.name for each in store.sessions()] == ["s"]
    finally:
        server.stop()


def test_a_server_that_accepts_only_small_messages_is_refused(tmp_path: Path) -> None:
    server = NatsServer(folder=tmp_path / "small", more="max_payload: 16KB").start().wait()
    try:
        with pytest.raises(UnsupportedError) as told:
            open_nats(server.url, True)
        assert told.value.kind == "too-big"
        assert "max_payload" in told.value.hint
    finally:
        server.stop()


@pytest.mark.parametrize("code", [10008, 10009])
def test_a_cluster_without_a_leader_is_told_with_what_to_do(code: int) -> None:
    told = translate_error(JetStreamRefusal(503, code, "JetStream system temporarily unavailable"))
    assert (type(told), told.kind) == (UnavailableError, "unreachable")
    assert "majority" in told.hint


def test_a_cluster_that_is_away_is_told_after_a_while(tmp_path: Path) -> None:
    nobody = free_port()
    with pytest.raises(UnavailableError) as told:
        NatsEngine([f"127.0.0.1:{nobody}"], patience_s=0.3)
    assert told.value.kind == "unreachable"


def test_a_wrong_password_is_told_at_once(tmp_path: Path) -> None:
    server = NatsServer(folder=tmp_path / "locked", more="authorization { user: a, password: b }").start().wait()
    try:
        with pytest.raises(wakelog.NotAllowedError) as told:
            open_nats(server.url.replace("nats://", "nats://a:wrong@"), True)
        assert told.value.kind == "login-refused"
        engine = open_nats(server.url.replace("nats://", "nats://a:b@"), True)
        assert ":b@" not in engine.abilities.place
        engine.close()
    finally:
        server.stop()


def test_a_tls_url_sends_nothing_to_a_server_without_tls(synced: NatsServer) -> None:
    with pytest.raises(UnavailableError) as told:
        open_nats(synced.url.replace("nats://", "tls://a:secret@"), True)
    assert told.value.kind == "tls-failed"
    assert "offers none" in told.value.message


@pytest.mark.parametrize("demands", ["", "allow_non_tls: true"], ids=["demands", "offers"])
def test_a_tls_url_is_encrypted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, demands: str) -> None:
    certificate, key = nats_logins.make_certificate(tmp_path)
    tls = f'tls {{ cert_file: "{certificate}", key_file: "{key}" }}\n{demands}'
    server = NatsServer(folder=tmp_path / "tls", more=tls).start().wait()
    try:
        url = server.url.replace("nats://", "tls://")
        with pytest.raises(UnavailableError) as told:
            open_nats(url, True)
        assert told.value.kind == "tls-failed"  # nobody vouches for the certificate
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        engine = open_nats(url, True)
        transport = engine._connection._client._transport
        assert isinstance(transport, TcpTransport)
        assert transport._io_writer is not None
        assert transport._io_writer.get_extra_info("cipher") is not None
        engine.close()
    finally:
        server.stop()


def test_a_credentials_file_logs_in(tmp_path: Path) -> None:
    config, credentials = nats_logins.make_account(tmp_path)
    server = NatsServer(folder=tmp_path / "locked", more=config).start().wait()
    try:
        with pytest.raises(wakelog.NotAllowedError):
            open_nats(server.url, True)
        with wakelog.open(f"{server.url}&creds={credentials}") as store:
            store.session("s").fact("k", 1)
    finally:
        server.stop()


@pytest.mark.parametrize(
    ("url", "word"),
    [
        ("nats://h/s?replicas=9", "replicas"),
        ("nats://h/s?shards=no", "shards"),
        ("nats://h/s?sync=sometimes", "sync"),
        ("nats://h/s?patience=long", "patience"),
        ("nats://h/s?replica=1", "replica"),
        ("nats://h/s?patience=-1", "patience"),
        ("nats://h/s?patience=nan", "patience"),
        ("nats://h/s?creds=/no/such/file", "/no/such/file"),
        ("nats://h:99999999/s", "h:99999999"),
        ("nats://h:port/s", "h:port"),
        ("nats:///s", "no server"),
    ],
)
def test_a_url_that_makes_no_sense_is_told(url: str, word: str) -> None:
    with pytest.raises(InvalidInputError) as told:
        wakelog.open(url)
    assert told.value.kind == "bad-url"
    assert word in told.value.message


def test_a_stream_that_is_gone_is_told(nats: NatsServer, tmp_path: Path) -> None:
    engine = engine_on(nats, "n", store=tmp_path.name, patience_s=0.3)
    session = Store(engine).session("s")
    engine._await(engine._connection.api(f"STREAM.DELETE.{engine._subjects.stream(0)}"))
    with pytest.raises(UnavailableError) as told:
        engine.head(session.id)
    assert told.value.kind == "stream-missing"
    engine.close()


@pytest.mark.parametrize("step", ["names", "shards", "layout"])
def test_a_store_whose_creation_was_stopped_is_created_as_asked(
    nats: NatsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    name = f"{tmp_path.name}-{step}"

    async def stop(*_: object) -> None:
        raise UnavailableError("stopped")

    with monkeypatch.context() as patched:
        if step == "layout":
            patched.setattr(LayoutKeeper, "create", stop)
        else:
            create = StoreStreams.create_shard

            async def create_some(self: StoreStreams, shard: int, replicas: int) -> None:
                await (stop() if shard == (0 if step == "names" else 2) else create(self, shard, replicas))

            patched.setattr(StoreStreams, "create_shard", create_some)
        with pytest.raises(UnavailableError, match="stopped"):
            engine_on(nats, "n", store=name, shards=4)
    with pytest.raises(NotFoundError):  # who only looks creates nothing
        engine_on(nats, "n", store=name, create=False)
    engine = engine_on(nats, "n", store=name, shards=4)
    assert len(engine.placement()) == 4
    engine.close()


def test_many_who_make_a_store_at_once_make_one(nats: NatsServer, tmp_path: Path) -> None:
    engines: list[NatsEngine] = []
    gate = threading.Barrier(4)

    def make() -> None:
        gate.wait(60)
        engines.append(engine_on(nats, "n", store=tmp_path.name, shards=2))

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(engines) == 4
    sessions = {Store(engine).session("same").id for engine in engines}
    assert len(sessions) == 1
    for engine in engines:
        engine.close()


def test_a_store_is_created_shown_and_given_more_shards_by_commands(
    nats: NatsServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"nats://{nats.address}/{tmp_path.name}?replicas=1&sync=always"
    plain = str(tmp_path / "plain.db")

    def said(code: int, *args: str) -> str:
        assert run([*args]) == code
        answer = capsys.readouterr()
        return answer.out + answer.err

    assert "shard 1" in said(0, "store", "create", url, "--shards", "2")
    assert "n1" in said(0, "--store", url, "store", "info")
    assert "shard 3" in said(0, "--store", url, "store", "shards", "4")
    assert f"store already: nats://{nats.address}/{tmp_path.name}#default" in said(5, "store", "create", url)
    refused = said(2, "--store", url, "store", "shards", "1000")
    assert "2000 open files" in refused
    assert "--yes" in refused
    assert "--yes" in said(2, "store", "create", url.replace(tmp_path.name, "big"), "--shards", "65")
    assert "shard 3" in said(0, "--store", url, "store", "shards")
    assert "only a store on a NATS cluster" in said(6, "store", "create", plain, "--shards", "2")
    assert "created" in said(0, "store", "create", plain)
    assert "shards" not in said(5, "store", "create", plain)
    assert "has no shards" in said(6, "--store", plain, "store", "shards")
