"""Bundles: one session with its ancestry in a portable file that can be verified on its own.

A bundle is lines of JSON, optionally gzipped. The bytes that are hashed travel as JSON strings, unchanged, so that a
reader needs SHA-256 and a JSON parser and nothing of wakelog (docs/reference/format.md):

    {"wakelog": 1, "session": id, "segments": [{"session", "fork": {"parent", "at", "hash"}, "name"}], "encryption"?}
    {"session", "commit_id", "first", "last", "prev", "hash", …, "records": [[header, salt, body]], "payloads":
    {hash: base64}} …
    {"end": lines, "sha256": of all lines before}

Everything is checked before anything is written: form, end line, chain, bodies, payloads, and that the deltas fold.
Importing what is already there changes nothing; importing on a session that went another way is a conflict.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
import itertools
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import IO, NoReturn

import msgspec

from wakelog.codec.envelope import TEXT, from_text, is_encrypted, refusal, to_text
from wakelog.codec.pack import pack_snapshot
from wakelog.codec.records import refuse_newer
from wakelog.codec.value_count import is_heavy_json
from wakelog.engine import Engine, Surgery
from wakelog.engines.memory import MemoryEngine
from wakelog.errors import CorruptLogError, InvalidInputError, WakelogError
from wakelog.log import encrypted_bundle
from wakelog.log.bundle_ancestry import ancestry_of, fit, shared_commits
from wakelog.log.log import Log
from wakelog.log.reader import fold_at
from wakelog.log.verify import NONSENSE, name_fault, verify, verify_beyond
from wakelog.model.ids import SessionId, parse_session_id, root_of
from wakelog.model.names import is_name
from wakelog.model.records import FORMAT_VERSION, Commit, ForkPoint, Head, Record
from wakelog.state.fold import Fold

BUNDLE_MAX = 1 << 30
"""The largest unpacked size of a bundle, unless the importer sets another."""
_TOP_MAX = 4 << 20
"""The longest first line, which lists the sessions: enough for ten thousand forks of forks."""
_PIECE = 1 << 18
_GZIP = b"\x1f\x8b"
# The fewest bytes of a commit's line for each of its values: a record is a list of three, and its header alone has 100.
_BYTES_PER_VALUE, _SLACK = 12, 100
_encode = msgspec.json.Encoder().encode


class _Fork(msgspec.Struct, frozen=True):
    parent: str
    at: int
    hash: str


class _Segment(msgspec.Struct, frozen=True, omit_defaults=True):
    session: str
    fork: _Fork | None = None
    name: str = ""


class _First(msgspec.Struct, frozen=True, omit_defaults=True):
    wakelog: int
    session: str
    segments: tuple[_Segment, ...]
    encryption: str = ""
    """The key ring of an encrypted bundle (encrypted_bundle.py)."""


class _Line(msgspec.Struct, frozen=True, omit_defaults=True):
    session: str
    commit_id: str
    first: int
    last: int
    prev: str
    hash: str
    at: int
    epoch: int
    status: str
    turn: int
    turns: tuple[int, int]
    kinds: tuple[str, ...]
    records: tuple[tuple[str, str, str], ...]
    paths: tuple[str, ...] = ()
    payloads: dict[str, str] = {}
    fingerprint: str = ""


class _End(msgspec.Struct, frozen=True):
    end: int
    sha256: str


_decode_first = msgspec.json.Decoder(_First).decode
_decode_line = msgspec.json.Decoder(_Line).decode
_decode_end = msgspec.json.Decoder(_End).decode


def export_bundle(log: Log, out: IO[bytes], *, beyond: bool = False, encrypted: bool = False) -> Head:
    """Writes a session and its ancestry to `out`; returns the exported head. Events of ancestors after the shared part
    are left out, unless `beyond` allows those that the proof needs (bundle_ancestry.py). With `encrypted`, a session of
    an encrypted store stays encrypted; that needs no key."""
    if not _is_binary(out, "write"):
        raise InvalidInputError(
            f"a bundle is written to a binary file, not to {type(out).__name__}",
            kind="bad-bundle",
            hint='with open("session.wakelog", "wb") as out: session.export_bundle(out)',
        )
    digest = hashlib.sha256()
    lines = 0
    for value in _lines(log, head := log.head(), beyond, encrypted):
        line = _encode(value) + b"\n"
        digest.update(line)
        out.write(line)
        lines += 1
    out.write(_encode(_End(lines, digest.hexdigest())) + b"\n")
    return head


def _is_binary(file: object, verb: str) -> bool:
    return hasattr(file, verb) and not isinstance(file, io.TextIOBase)


def _lines(log: Log, head: Head, beyond: bool, encrypted: bool) -> Iterator[_First | _Line]:
    ancestry = ancestry_of(log)
    ring = encrypted_bundle.below(log.engine).ring if encrypted else ""
    described = []
    for each in ancestry:
        fork = _Fork(each.fork.parent, each.fork.at, each.fork.hash.hex()) if each.fork else None
        described.append(_Segment(each.session, fork, each.name))
    commits: Iterable[Commit]
    if encrypted:
        commits = encrypted_bundle.encrypted_commits(encrypted_bundle.below(log.engine).below, ancestry, head)
    else:
        shared = list(shared_commits(log, ancestry, head, beyond))  # refused before anything is written
        commits = itertools.chain(shared, log.engine.read(log.id, upto=head.seq, payloads=True))
    yield _First(FORMAT_VERSION, log.id, tuple(described), ring)
    for commit in commits:
        for record in commit.records if not encrypted else ():
            if is_encrypted(record.body):
                raise refusal(record.body)
        yield _Line(
            session=commit.session,
            commit_id=commit.commit_id,
            first=commit.first,
            last=commit.last,
            prev=commit.prev.hex(),
            hash=commit.hash.hex(),
            at=commit.at,
            epoch=commit.epoch,
            status=commit.status,
            turn=commit.turn,
            turns=commit.turns,
            kinds=commit.kinds,
            records=tuple(
                (r.header.decode(), r.salt.hex(), to_text(r.body) if is_encrypted(r.body) else r.body.decode())
                for r in commit.records
            ),
            paths=commit.paths,
            payloads={digest.hex(): base64.b64encode(content).decode() for digest, content in commit.payloads},
            fingerprint=commit.fingerprint.hex(),
        )


def import_bundle(
    engine: Engine,
    source: IO[bytes],
    *,
    size_max: int | None = None,
    before: Callable[[SessionId], None] = lambda session: None,
    for_encrypted: Callable[[Engine, str], Engine] = encrypted_bundle.refuse_encrypted,
) -> Log:
    """Imports a bundle, all of it or nothing, after verifying all of it. Sessions that are stored already stay as they
    are. `size_max` limits the unpacked size. `before` is called with the session before anything is written. For an
    encrypted bundle, `for_encrypted` returns the engine to import into, by the bundle's key ring."""
    if not _is_binary(source, "read"):
        raise InvalidInputError(
            f"a bundle is read from a binary file, not from {type(source).__name__}",
            kind="bad-bundle",
            hint='with open("session.wakelog", "rb") as source: store.import_bundle(source)',
        )
    most = BUNDLE_MAX if size_max is None else size_max
    if (take_bundle := engine.abilities.take_bundle) is not None:
        data = source.read()
        before(_session_of(data, most))
        return Log(engine, take_bundle(data))
    first, commits = _parse(source, most)
    trial: Engine = MemoryEngine()
    plain: list[Commit] | None = commits
    try:
        if first.encryption:
            trial = encrypted_bundle.trial_of(engine, first.encryption, commits)
            plain = encrypted_bundle.decrypted_commits(trial, commits)
        else:
            trial.submit(*commits).result()
        log = Log(trial, SessionId(first.session))
        report = verify(log)
        fold = fold_at(trial, log.segments, report.events).fold if plain is not None else None
        beyond = [fault for each in ancestry_of(log)[:-1] for fault in verify_beyond(log, each.session)]
        names = {SessionId(each.session): each.name for each in first.segments}
        misnamed = {each.session for each in log.segments if name_fault(trial, each, names.get(each.session, ""))}
    except (WakelogError, *NONSENSE) as exc:
        raise CorruptLogError(f"the bundle does not hold together: {exc}", kind="bundle-corrupt") from exc
    if not report.ok or beyond:
        fault = (*report.integrity, *report.completeness, *beyond)[0]
        raise CorruptLogError(f"the bundle does not verify: {fault.what}", kind="bundle-corrupt", seq=fault.seq)
    before(SessionId(first.session))
    if first.encryption:
        engine = for_encrypted(engine, first.encryption)
    if plain is None or fold is None:
        encrypted_bundle.store_encrypted(engine, commits)
    elif not _store(engine, SessionId(first.session), plain, fold):
        return Log(engine, SessionId(first.session))
    for session, name in names.items():
        # An older store may have bound what only looks like a name. A name that is not in the session's first event may
        # be that of somebody else's session; the format does not refuse it.
        if is_name(name) and session not in misnamed:
            engine.claim(name, session)
    return Log(engine, SessionId(first.session))


def _store(engine: Engine, session: SessionId, commits: list[Commit], fold: Fold) -> bool:
    """Stores the commits that the engine lacks, all at once; returns whether there were any. `fold` is the final
    state."""
    commits, emptied = fit(engine, commits)
    if not commits:
        return False
    if emptied:
        # Something was erased or pruned elsewhere since this copy was made; remove it here too.
        stale = {c.session: min(e.first for e in emptied if e.session == c.session) for c in emptied}
        engine.operate(Surgery(tuple(commits), tuple(emptied), stale_from=stale))
    else:
        if commits[-1].session == session:
            commits[-1] = msgspec.structs.replace(commits[-1], snapshot=pack_snapshot(fold.dump()))
        engine.submit(*commits).result()
    return True


def _session_of(data: bytes, size_max: int) -> SessionId:
    """The session that the first line names."""
    try:
        top = next(_read_lines(io.BytesIO(data), size_max), b"")
        refuse_newer(top, "wakelog")
        return parse_session_id(_decode_first(top).session)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as exc:
        _refuse(str(exc), exc)


def _parse(source: IO[bytes], size_max: int) -> tuple[_First, list[Commit]]:
    """Line by line, so that no more than one of them is held as text."""
    digest = hashlib.sha256()
    lines = _read_lines(source, size_max)
    top = next(lines, b"")
    last = next(lines, b"")
    count = 1
    reader: _Reader | None = None
    commits: list[Commit] = []
    try:
        refuse_newer(top, "wakelog")
        digest.update(top)
        reader = _Reader(_decode_first(top))
        for line in lines:
            # A line is known not to be the end only when another one follows.
            commits.append(reader.commit(last))
            digest.update(last)
            last, count = line, count + 1
        end = _decode_end(last)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as exc:
        _refuse(str(exc), exc)
    except (ValueError, binascii.Error) as exc:
        if isinstance(exc, WakelogError):
            raise
        _refuse(str(exc), exc)
    if end.end != count or end.sha256 != digest.hexdigest():
        _refuse("its end line does not fit what comes before: it was cut or changed")
    if not commits:
        _refuse("it has no content")
    return reader.first, commits


class _Reader:
    """Parses lines into commits of the sessions that the first line lists."""

    def __init__(self, first: _First) -> None:
        self.first = first
        if first.wakelog != FORMAT_VERSION:
            _refuse(f"there is no version {first.wakelog} of the format")
        self._segments = {s.session: s for s in first.segments}
        if first.session not in self._segments or len(self._segments) != len(first.segments):
            _refuse("its first line does not describe its sessions")
        for parent, child in itertools.pairwise((None, *first.segments)):
            if child is None or (child.fork.parent if child.fork else None) != (parent.session if parent else None):
                _refuse("its sessions are not one line of forks")
        if first.segments[-1].session != first.session:
            _refuse("its first line does not end with the session it names")
        self._tree = root_of(parse_session_id(first.session))
        self._seen: set[str] = set()

    def commit(self, line: bytes) -> Commit:
        value = _decode_line(line)
        segment = self._segments.get(value.session)
        if segment is None or root_of(parse_session_id(value.session)) != self._tree:
            _refuse(f"a commit is of session {value.session}, which the first line does not name")
        fork = segment.fork if value.session not in self._seen else None
        self._seen.add(value.session)
        if fork is not None and (value.first, value.prev) != (fork.at + 1, fork.hash):
            _refuse(f"session {value.session} does not begin where the first line says that it was forked")
        if not value.fingerprint and value.commit_id != value.hash[:16] and all(salt for _, salt, _ in value.records):
            _refuse(f"the id of the commit at event {value.first} is neither a caller's nor from its hash")
        return _commit(value, fork, encrypted=bool(self.first.encryption))


def _commit(value: _Line, fork: _Fork | None, *, encrypted: bool) -> Commit:
    return Commit(
        session=parse_session_id(value.session),
        commit_id=value.commit_id,
        first=value.first,
        last=value.last,
        prev=_unhex(value.prev),
        hash=_unhex(value.hash),
        at=value.at,
        epoch=value.epoch,
        status=value.status,
        turn=value.turn,
        turns=value.turns,
        kinds=value.kinds,
        paths=value.paths,
        records=tuple(
            Record(header.encode(), _unhex(salt), _body(body, encrypted=encrypted))
            for header, salt, body in value.records
        ),
        payloads=tuple((_unhex(h), base64.b64decode(c, validate=True)) for h, c in value.payloads.items()),
        fingerprint=_unhex(value.fingerprint),
        fork=ForkPoint(parse_session_id(fork.parent), fork.at, _unhex(fork.hash)) if fork else None,
        late=True,  # it happened, whatever the session's status was; the chain decides where it goes
    )


def _unhex(text: str) -> bytes:
    """Bytes have exactly one spelling; else two different bundles would mean the same."""
    value = bytes.fromhex(text)
    if value.hex() != text:
        _refuse(f"{text[:64]!r} is not written in lower-case hex digits")
    return value


def _body(text: str, *, encrypted: bool) -> bytes:
    # A plain body in an encrypted bundle is left as it is: whether it may be there, the encrypted engine says.
    return from_text(text) if encrypted and text.startswith(TEXT) else text.encode()


# Lines, plain or gzipped. A gzipped file of a megabyte may unpack to a gigabyte: it is unpacked piece by piece, so that
# the limit holds before the memory is taken, and no line is decoded that would become much bigger than it is.


def _read_lines(source: IO[bytes], size_max: int) -> Iterator[bytes]:
    """The lines of a bundle, with their ends; InvalidInputError when it is larger than `size_max` when unpacked."""
    rest = bytearray()
    size = 0
    is_top = True
    for piece in _pieces(source):
        size += len(piece)
        if size > size_max:
            raise InvalidInputError(
                f"the bundle is larger than {size_max:,} bytes when unpacked",
                kind="bundle-too-large",
                hint="a server takes larger ones with `wakelog serve --max-bundle`",
            )
        *whole, last = piece.split(b"\n")
        for part in whole:
            rest += part
            rest += b"\n"
            yield _line(rest)
            rest.clear()
            is_top = False
        rest += last
        if is_top and len(rest) > _TOP_MAX:
            raise InvalidInputError(
                f"the first line of the bundle is larger than {_TOP_MAX:,} bytes", kind="bundle-too-large"
            )
    if rest:
        yield _line(rest)


def _refuse(why: str, cause: BaseException | None = None) -> NoReturn:
    raise InvalidInputError(f"this is not a complete wakelog bundle: {why}", kind="bad-bundle") from cause


def _line(line: bytearray) -> bytes:
    data = bytes(line)
    if len(data) < 3:
        _refuse("it has an empty line")
    if is_heavy_json(data, _SLACK + len(data) // _BYTES_PER_VALUE):
        _refuse("a line holds more values than a commit of its size")
    return data


def _pieces(source: IO[bytes]) -> Iterator[bytes]:
    piece = source.read(2)
    if piece != _GZIP:
        while piece:
            yield piece
            piece = source.read(_PIECE)
        return
    unzip = zlib.decompressobj(wbits=31)
    try:
        while piece and not unzip.eof:
            yield unzip.decompress(piece, _PIECE)
            piece = unzip.unconsumed_tail or source.read(_PIECE)
    except zlib.error as exc:
        _refuse(str(exc), exc)
    if not unzip.eof:
        _refuse("it is cut off")
