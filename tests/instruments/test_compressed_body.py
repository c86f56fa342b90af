"""Requests and answers that are compressed: what is recorded of them, and that they are sent on as they came."""

import gzip
import http.client
import importlib
import importlib.util
import json
import zlib
from collections.abc import Callable
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


def send(through: Through, body: bytes, encoding: str) -> int:
    url = urlsplit(through.to().url)
    connection = http.client.HTTPConnection(url.netloc)
    connection.request("POST", f"{url.path}/v1/chat/completions", body, {"content-encoding": encoding})
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
    assert remote.headers[0]["content-encoding"] == encoding
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
