"""Requests and answers that are compressed: what is recorded of them, and that they are sent on as they came."""

import gzip
import http.client
import importlib
import importlib.util
import json
import os
import tracemalloc
import zlib
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest
import zstandard

from tests.every import every
from tests.instruments.apis import ANSWER, APIS, CALL, QUESTION, Api
from tests.instruments.conftest import Recorded, Through
from tests.runtime.providers import Provider
from wakelog.errors import UnsupportedError
from wakelog.instruments.compressed_body import decoded_body

LIMIT = 1 << 20
ASKED = {"model": "m", "messages": [{"role": "user", "content": QUESTION}]}
SAID = json.dumps(ASKED).encode()


def raw_deflate(body: bytes) -> bytes:
    made = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return made.compress(body) + made.flush()


def frames(body: bytes) -> bytes:
    return zstandard.compress(body[:10]) + zstandard.compress(body[10:])


ENCODED: list[tuple[str, Callable[[bytes], bytes]]] = [
    ("gzip", gzip.compress),
    ("x-gzip", lambda body: gzip.compress(body[:10]) + gzip.compress(body[10:])),
    ("deflate", zlib.compress),
    ("deflate", raw_deflate),
    ("zstd", zstandard.compress),
    ("zstd", frames),
    ("GZIP, zstd", lambda body: zstandard.compress(gzip.compress(body))),
    ("identity", bytes),
    ("", bytes),
]


@every("encoding", ENCODED)
def test_an_encoded_body_is_decoded(encoding: tuple[str, Callable[[bytes], bytes]]) -> None:
    name, encode = encoding
    assert decoded_body(encode(SAID), name, LIMIT) == SAID


@every("encoding", [each for each in ENCODED if each[0] not in ("identity", "")])
def test_a_body_that_decodes_to_too_much_or_is_damaged_is_refused(
    encoding: tuple[str, Callable[[bytes], bytes]],
) -> None:
    name, encode = encoding
    assert len(decoded_body(encode(b" " * LIMIT), name, LIMIT)) == LIMIT
    for broken in (encode(b" " * (LIMIT + 1)), encode(b" " * (64 * LIMIT)), b"\0not encoded\0"):
        with pytest.raises(ValueError):
            decoded_body(broken, name, LIMIT)


def test_an_encoding_that_nobody_can_undo_is_named() -> None:
    with pytest.raises(UnsupportedError, match="a body in the encoding 'compress'"):
        decoded_body(SAID, "gzip, compress", LIMIT)


@pytest.mark.skipif(importlib.util.find_spec("brotli") is None, reason="brotli is not installed")
def test_brotli_is_read_where_its_package_is() -> None:
    brotli = importlib.import_module("brotli")

    assert decoded_body(brotli.compress(SAID), "br", LIMIT) == SAID
    for broken in (brotli.compress(b" " * (64 * LIMIT)), brotli.compress(SAID)[:-3], b"\0not encoded\0"):
        with pytest.raises(ValueError):
            decoded_body(broken, "br", LIMIT)


@pytest.mark.skipif(importlib.util.find_spec("brotli") is None, reason="brotli is not installed")
def test_a_few_bytes_of_brotli_take_no_more_memory_than_one_of_their_blocks() -> None:
    compressor = importlib.import_module("brotli").Compressor(quality=5)
    blank = b" " * (1 << 24)
    bomb = b"".join(compressor.process(blank) for _ in range(16)) + compressor.finish()
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="it has more than"):
            decoded_body(bomb, "br", LIMIT)
        assert tracemalloc.get_traced_memory()[1] < 4 * len(blank)
    finally:
        tracemalloc.stop()


def test_the_work_for_a_body_of_many_members_grows_with_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    fed = 0
    new_member = zlib.decompressobj

    class Member:
        def __init__(self, bits: int) -> None:
            self._inside = new_member(bits)

        def decompress(self, data: bytes, most: int) -> bytes:
            nonlocal fed
            fed += len(data)
            return self._inside.decompress(data, most)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._inside, name)

    body = gzip.compress(os.urandom(1000)) * 1000
    monkeypatch.setattr("wakelog.instruments.compressed_body.zlib.decompressobj", Member)
    assert len(decoded_body(body, "gzip", LIMIT)) == 1_000_000
    assert fed < 10 * len(body)


def send(through: Through, body: bytes, encoding: str) -> int:
    url = urlsplit(through.to().url)
    connection = http.client.HTTPConnection(url.netloc)
    connection.putrequest("POST", f"{url.path}/v1/chat/completions")
    for each in encoding.split(", "):  # a list may also come as several headers
        connection.putheader("content-encoding", each)
    connection.putheader("content-length", str(len(body)))
    connection.endheaders(body)
    reply = connection.getresponse()
    reply.read()
    connection.close()
    return reply.status


@pytest.mark.parametrize(("encoding", "encode"), ENCODED[:-2])
def test_a_compressed_request_is_recorded_and_sent_on_as_it_came(
    through: Through, recorded: Recorded, remote: Provider, encoding: str, encode: Callable[[bytes], bytes]
) -> None:
    remote.plays.append(APIS["chat"].says(ANSWER))
    body = encode(SAID)
    assert send(through, body, encoding) == 200
    assert remote.bodies == [body]
    assert encoding.endswith(remote.headers[0]["content-encoding"])
    through.close()
    assert recorded.said() == [("user", QUESTION), ("assistant", ANSWER)]
    assert through.warnings == []


@pytest.mark.parametrize(("encoding", "body"), [("compress", SAID), ("gzip", b"damaged"), ("zstd", SAID)])
def test_a_request_that_cannot_be_decoded_passes_and_is_told_as_missed(
    through: Through, recorded: Recorded, remote: Provider, encoding: str, body: bytes
) -> None:
    remote.plays.append(APIS["chat"].says(ANSWER))
    assert send(through, body, encoding) == 200
    assert remote.bodies == [body]
    through.close()
    (said,) = through.warnings
    assert said.startswith(("a request ", "a body "))
    assert recorded.sessions == []


@pytest.mark.parametrize("stream", [False, True], ids=["at once", "stream"])
def test_an_answer_that_is_compressed_though_nobody_asked_is_recorded(
    through: Through, recorded: Recorded, remote: Provider, api: Api, stream: bool
) -> None:
    answers = api.streams if stream else api.says
    remote.plays += [answers(call=True), answers(ANSWER)]
    for play in remote.plays:
        play.is_gzipped = True
    client = through.to(api.library)
    api.ask(client, api.first(), stream=stream)
    assert api.ask(client, [*api.first(), *api.then()], stream=stream) == ANSWER
    through.close()
    assert through.warnings == []
    (tool,) = recorded.of("action.recorded")
    assert (tool.body["tool"], tool.body["input"]) == (CALL[1], CALL[2])
    assert recorded.said()[-1] == ("assistant", ANSWER)
    assert [e.body.get("outcome", "completed") for e in recorded.of("turn.ended")] == ["completed"]
