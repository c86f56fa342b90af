"""Reads an exported bundle, checks what can be checked in it, and folds its state.

Written from docs/reference/format.md, without a look at the code of the library. Standard library only.

    python reader.py BUNDLE [--at SEQ] [--anchor '{"session": id, "seq": n, "hash": hex}']

Prints one JSON document. Whatever --at says, the whole bundle is checked first. Instead of arguments, `-` takes many
command lines from standard input, each a JSON list in a line, and answers each with one document in a line.
"""

import base64
import binascii
import copy
import gzip
import hashlib
import json
import re
import sys
import zlib

VERSION = 1
ZERO = bytes(32)
SAFE = 2**53 - 1
HEX64 = re.compile(r"[0-9a-f]{64}\Z")
HEX = re.compile(r"(?:[0-9a-f]{2})*\Z")
INDEX = re.compile(r"(?:0|[1-9][0-9]*)\Z")
BAD_ESCAPE = re.compile(r"~(?![01])")


class Broken(Exception):
    """Something does not hold. `seq` is the event it was found at; 0: at none in particular."""

    def __init__(self, sentence, seq=0):
        super().__init__(sentence)
        self.seq = seq


# ---------------------------------------------------------------- JSON


def _constant(name):
    raise ValueError(f"{name} is not JSON")


def _float(text):
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"{text} is not a finite number")
    return number


def parse(text, what, seq=0):
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8")
        return json.loads(text, parse_constant=_constant, parse_float=_float)
    except RecursionError:
        raise Broken(f"{what} is nested too deep", seq) from None
    except ValueError as error:
        raise Broken(f"{what} is not JSON: {error}", seq) from None


def parse_object(text, what, seq=0):
    value = parse(text, what, seq)
    if not isinstance(value, dict):
        raise Broken(f"{what} is not a JSON object", seq)
    return value


def is_int(value):
    return isinstance(value, int) and not isinstance(value, bool)


def is_hash(value):
    return isinstance(value, str) and HEX64.match(value) is not None


def utf8(text, what, seq=0):
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise Broken(f"{what} holds a lone surrogate", seq) from None


# ---------------------------------------------------------------- RFC 8785

ESCAPES = {code: f"\\u{code:04x}" for code in range(0x20)}
ESCAPES |= {8: "\\b", 9: "\\t", 10: "\\n", 12: "\\f", 13: "\\r", 0x22: '\\"', 0x5C: "\\\\"}


def canonical_number(number):
    """What JavaScript's Number.prototype.toString makes of it."""
    if is_int(number) and abs(number) <= SAFE:
        return str(number)
    number = float(number)
    if number == 0:
        return "0"
    sign = "-" if number < 0 else ""
    mantissa, _, exponent = repr(abs(number)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    point = len(whole) + int(exponent or 0)  # the value is 0.DIGITS * 10^point
    digits = whole + fraction
    stripped = digits.lstrip("0")
    point -= len(digits) - len(stripped)
    digits = stripped.rstrip("0")
    count = len(digits)
    if count <= point <= 21:
        return sign + digits + "0" * (point - count)
    if 0 < point <= 21:
        return sign + digits[:point] + "." + digits[point:]
    if -6 < point <= 0:
        return sign + "0." + "0" * -point + digits
    exponent = point - 1
    tail = "." + digits[1:] if count > 1 else ""
    return f"{sign}{digits[0]}{tail}e{'+' if exponent > 0 else '-'}{abs(exponent)}"


def canonical_text(value):
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, str):
        return '"' + value.translate(ESCAPES) + '"'
    if isinstance(value, (int, float)):
        return canonical_number(value)
    if isinstance(value, list):
        return "[" + ",".join(canonical_text(item) for item in value) + "]"
    names = sorted(value, key=lambda name: name.encode("utf-16-be", "surrogatepass"))
    return "{" + ",".join(canonical_text(name) + ":" + canonical_text(value[name]) for name in names) + "}"


def canonical(value):
    return utf8(canonical_text(value), "a value")


def equal(one, other):
    """Equal as JSON. In Python, True == 1."""
    return canonical_text(one) == canonical_text(other)


# ---------------------------------------------------------------- state_hash

WHOLE, OPEN, OPEN_TWICE, OPEN_ALL = 0, 1, 2, 99
RULES = {
    "status": WHOLE,
    "turn": WHOLE,
    "lease": WHOLE,
    "goal": WHOLE,
    "last_error": WHOLE,
    "working_set": OPEN_TWICE,
    "data": OPEN_ALL,
}
NO_LEAVES = {"view"}


def escape(name):
    return name.replace("~", "~0").replace("/", "~1")


def leaves(pointer, value, levels):
    if levels > 0 and isinstance(value, dict):
        yield pointer, {}
        for name, member in value.items():
            yield from leaves(f"{pointer}/{escape(name)}", member, levels - 1)
    else:
        yield pointer, value


def state_leaves(document):
    yield "", {}
    for name, part in document.items():
        if name not in NO_LEAVES:
            yield from leaves("/" + escape(name), part, RULES.get(name, OPEN))


def state_hash(document):
    total = 0
    for pointer, value in state_leaves(document):
        total += int.from_bytes(hashlib.shake_256(canonical([pointer, value])).digest(512), "little")
    return hashlib.sha256((total % 2**4096).to_bytes(512, "little")).hexdigest()


# ---------------------------------------------------------------- JSON Patch


def tokens(path, seq):
    if not isinstance(path, str):
        raise Broken("an operation's path is not a string", seq)
    if path == "":
        return []
    if not path.startswith("/") or BAD_ESCAPE.search(path):
        raise Broken(f"{path!r} is not a JSON Pointer", seq)
    return [token.replace("~1", "/").replace("~0", "~") for token in path[1:].split("/")]


def index(token, below, path, seq):
    if not INDEX.match(token) or len(token) > 15 or int(token) >= below:
        raise Broken(f"the delta does not fit: {path!r} is no place in the list", seq)
    return int(token)


def apply(state, delta, kind, seq):
    if not isinstance(delta, list):
        raise Broken("the delta is not a list", seq)
    for operation in delta:
        if not isinstance(operation, dict):
            raise Broken("the delta holds something that is not an operation", seq)
        state = apply_one(state, operation, kind, seq)
    return state


def apply_one(state, operation, kind, seq):
    op, path = operation.get("op"), operation.get("path")
    if op not in ("add", "remove", "replace"):
        raise Broken(f"the delta holds an operation {op!r}", seq)
    if op != "remove" and "value" not in operation:
        raise Broken(f"the operation at {path!r} has no value", seq)
    value = copy.deepcopy(operation.get("value"))
    way = tokens(path, seq)
    if not way:
        if op != "replace" or kind != "session.opened" or not isinstance(value, dict):
            raise Broken(f"{kind} must not {op} the whole document", seq)
        return value
    place = state
    for token in way[:-1]:
        if isinstance(place, dict) and token in place:
            place = place[token]
        elif isinstance(place, list):
            place = place[index(token, len(place), path, seq)]
        else:
            raise Broken(f"the delta does not fit: nothing is at {path!r}", seq)
    last = way[-1]
    if isinstance(place, dict):
        if op != "add" and last not in place:
            raise Broken(f"the delta does not fit: nothing is at {path!r}", seq)
        if op == "remove":
            del place[last]
        else:
            place[last] = value
    elif isinstance(place, list):
        at = index(last, len(place) + (op == "add"), path, seq)
        if op == "add":
            place.insert(at, value)
        elif op == "remove":
            del place[at]
        else:
            place[at] = value
    else:
        raise Broken(f"the delta does not fit: nothing is at {path!r}", seq)
    return state


# ---------------------------------------------------------------- the bundle's parts


class Record:
    __slots__ = ("at", "body", "commit", "form", "hash", "header", "kind", "segment", "seq")


class Commit:
    __slots__ = ("first", "last", "line", "payloads", "records")


class Segment:
    """One session of the ancestry. `first` to `last` are its own events in the bundle; those up to `end` are of the
    history. A parent that a fork leaves before its own first event has an `end` before its `first`: none are."""

    __slots__ = ("commits", "end", "first", "fork", "last", "number", "records", "session")


def read_file(path):
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise Broken(f"the bundle cannot be read: {error.strerror or error}") from None
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise Broken(f"the bundle cannot be unzipped: {error}") from None
    return data


def split_lines(data):
    """The lines between the first and the last, and the first; the last is checked here."""
    if not data.endswith(b"\n"):
        raise Broken("the bundle was cut: its last line has no end")
    lines = data[:-1].split(b"\n")
    before = data[: len(data) - len(lines[-1]) - 1]
    end = parse_object(lines[-1], "the last line")
    if "end" not in end or "sha256" not in end:
        raise Broken("the bundle was cut: it has no end line")
    if not is_int(end["end"]) or end["end"] != len(lines) - 1:
        raise Broken(f"the end line counts {end['end']} lines before it, there are {len(lines) - 1}")
    if end["sha256"] != hashlib.sha256(before).hexdigest():
        raise Broken("the bundle was changed: the end line has another sha256")
    if len(lines) < 2:
        raise Broken("the bundle has no first line")
    return lines[0], lines[1:-1]


def read_segments(line):
    head = parse_object(line, "the first line")
    version = head.get("wakelog")
    if not is_int(version) or version < 1:
        raise Broken("this is not a bundle: the first line has no version")
    if version > VERSION:
        raise Broken(f"the bundle is of format version {version}; a reader of that version is needed")
    listed = head.get("segments")
    if not isinstance(listed, list) or not listed:
        raise Broken("the first line lists no segments")
    segments = []
    for number, entry in enumerate(listed):
        if not isinstance(entry, dict) or not isinstance(entry.get("session"), str):
            raise Broken("a segment has no session")
        if not isinstance(entry.get("name", ""), str):
            raise Broken("a segment's name is not a string")
        segment = Segment()
        segment.session, segment.fork = entry["session"], entry.get("fork")
        segment.records, segment.commits, segment.last, segment.number = {}, [], 0, number
        if number == 0:
            if "fork" in entry:
                raise Broken("the first segment is a fork: its parent is missing")
            segment.first = 1
        else:
            fork = segment.fork
            if not isinstance(fork, dict) or not isinstance(fork.get("parent"), str):
                raise Broken(f"{segment.session} does not say where it leaves its parent")
            if not is_int(fork.get("at")) or not is_hash(fork.get("hash")):
                raise Broken(f"{segment.session} does not say where it leaves its parent")
            if fork["at"] < 1:
                raise Broken(f"{segment.session} leaves its parent before the first event")
            segment.first = fork["at"] + 1
        if any(other.session == segment.session for other in segments):
            raise Broken(f"{segment.session} is listed twice")
        if segment.session.partition(".")[0] != listed[0]["session"]:
            raise Broken(f"{segment.session} is not of the tree of {listed[0]['session']}")
        segments.append(segment)
    for segment in segments[:-1]:
        segment.end = min(later.fork["at"] for later in segments[segment.number + 1 :])
    names = [segment.session for segment in segments]
    for before, segment in zip(names, segments[1:], strict=False):
        if segment.fork["parent"] in names and segment.fork["parent"] != before:
            raise Broken(f"{segment.session} does not follow its parent")
    if head.get("session") != names[-1]:
        raise Broken("the last segment is not the bundle's session")
    return segments


def read_record(parts, place, before):
    if not isinstance(parts, list) or len(parts) != 3 or not all(isinstance(part, str) for part in parts):
        raise Broken("a record is not [header, salt, body]", place)
    header_bytes = utf8(parts[0], "the header", place)
    body_bytes = utf8(parts[2], "the body", place)
    record = Record()
    record.hash = hashlib.sha256(before + header_bytes).digest()
    header = record.header = parse_object(parts[0], "the header", place)
    if not is_int(header.get("seq")) or header["seq"] != place:
        raise Broken(f"the header says {header.get('seq')!r} where event {place} should be", place)
    version = header.get("v", 1)
    if not is_int(version) or version < 1:
        raise Broken("the header's version is not a number", place)
    if version > VERSION:
        raise Broken(f"event {place} is of format version {version}; a reader of that version is needed", place)
    if not isinstance(header.get("kind"), str) or not is_int(header.get("at")) or not is_hash(header.get("body_hash")):
        raise Broken("the header lacks its kind, its time or its body_hash", place)
    if not is_int(header.get("turn", 0)):
        raise Broken("the header's turn is not a number", place)
    record.seq, record.kind, record.at = place, header["kind"], header["at"]
    if not HEX.match(parts[1]) or len(parts[1]) not in (0, 32):
        raise Broken("the salt is not 16 bytes in hex", place)
    salt = bytes.fromhex(parts[1])
    if salt and not body_bytes:
        raise Broken("a record has a salt and no body", place)
    record.form = "intact" if salt else "replaced" if body_bytes else "pruned"
    if salt and hashlib.sha256(salt + body_bytes).hexdigest() != header["body_hash"]:
        raise Broken("the body does not have the hash that its header names", place)
    record.body = None
    if body_bytes and not header.get("codec") and not header.get("key_id"):
        record.body = parse_object(parts[2], "the body", place)
    return record


def read_commit(line, number):
    line = parse_object(line, f"line {number}")
    what = f"the commit in line {number}"
    for name in ("session", "commit_id", "status"):
        if not isinstance(line.get(name), str):
            raise Broken(f"{what} has no {name}")
    for name in ("first", "last", "at", "epoch", "turn"):
        if not is_int(line.get(name)):
            raise Broken(f"{what} has no {name}")
    for name in ("prev", "hash"):
        if not is_hash(line.get(name)):
            raise Broken(f"{what} has no {name}")
    commit = Commit()
    commit.line, commit.first, commit.last = line, line["first"], line["last"]
    records = line.get("records")
    if commit.first < 1 or commit.last < commit.first or not isinstance(records, list):
        raise Broken(f"{what} holds no events")
    if len(records) != commit.last - commit.first + 1:
        raise Broken(f"{what} does not hold the events {commit.first} to {commit.last}", commit.first)
    commit.records = []
    before = bytes.fromhex(line["prev"])
    for offset, parts in enumerate(records):
        record = read_record(parts, commit.first + offset, before)
        record.commit = commit
        before = record.hash
        commit.records.append(record)
    if before.hex() != line["hash"]:
        raise Broken("the chain is broken: the commit's hash is not that of its headers", commit.last)
    commit.payloads = {}
    payloads = line.get("payloads", {})
    if not isinstance(payloads, dict):
        raise Broken(f"the payloads of {what} are not an object", commit.first)
    for name, text in payloads.items():
        try:
            content = base64.b64decode(text, validate=True)
        except (TypeError, ValueError, binascii.Error):
            raise Broken(f"payload {name} is not base64", commit.first) from None
        if base64.b64encode(content).decode() != text:
            raise Broken(f"payload {name} is not base64", commit.first)
        if hashlib.sha256(content).hexdigest() != name:
            raise Broken(f"the content of payload {name} has another hash", commit.first)
        commit.payloads[name] = content
    return commit


def place_commits(segments, lines):
    """Puts each commit where it belongs, and checks that the chain runs through all of them."""
    position = 0
    for number, text in enumerate(lines, 2):
        commit = read_commit(text, number)
        session = commit.line["session"]
        while segments[position].session != session:
            position += 1
            if position == len(segments):
                raise Broken(f"line {number} is a commit of {session}, out of place", commit.first)
        segment = segments[position]
        if segment.commits:
            first, prev = segment.last + 1, segment.commits[-1].line["hash"]
        elif segment.fork:
            first, prev = segment.first, segment.fork["hash"]
        else:
            first, prev = 1, ZERO.hex()
        if commit.first != first:
            raise Broken(f"event {first} of {session} should follow, not {commit.first}", first)
        if commit.line["prev"] != prev:
            raise Broken("the chain is broken: the commit does not go on from the hash before it", commit.first)
        segment.commits.append(commit)
        segment.last = commit.last
        for record in commit.records:
            record.segment = segment
            segment.records[record.seq] = record
    segments[-1].end = segments[-1].last
    for segment in segments:
        if segment.last < segment.first or segment.last < segment.end:
            raise Broken(f"events of {segment.session} are missing", segment.last + 1)
        before = record_at(segments, segment.number, segment.first - 1)
        if segment.fork and (before is None or before.hash.hex() != segment.fork["hash"]):
            raise Broken(f"{segment.session} names another hash for the event it was forked at", segment.first)
        check_first(segment)
        for seq in range(segment.first, segment.last + 1):
            record = segment.records[seq]
            if before is not None and record.at < before.at:
                raise Broken("time goes back", seq)
            before = record
    return [record_at(segments, len(segments) - 1, seq) for seq in range(1, segments[-1].last + 1)]


def record_at(segments, number, seq):
    """The record at `seq` in the history of segment `number`; None when the bundle does not hold it."""
    for segment in segments[number::-1]:
        if seq >= segment.first:
            return segment.records.get(seq)
    return None


def hash_at(segments, number, seq):
    if seq == 0:
        return ZERO
    record = record_at(segments, number, seq)
    return record.hash if record else None


def check_first(segment):
    record = segment.records[segment.first]
    expected = "session.forked" if segment.fork else "session.opened"
    if record.kind != expected:
        raise Broken(f"{segment.session} starts with {record.kind}", record.seq)
    if segment.fork and record.form == "intact" and record.body is not None:
        for name in ("parent", "at", "hash"):
            if not equal(record.body.get(name), segment.fork[name]):
                raise Broken(f"the first line and session.forked name a different {name}", record.seq)


# ---------------------------------------------------------------- what vouches for what is gone


def find_erasures(segments):
    """What the payload.erased events say: (event, {record: its body now}), the newest last.

    An event of session S names positions in S's history. It need not be in the bundle's own history.
    """
    erasures = []
    for segment in segments:
        for event in segment.records.values():
            if event.kind != "payload.erased" or event.body is None:
                continue
            entries = event.body.get("erased")
            if not isinstance(entries, list):
                continue
            bodies = {}
            for entry in entries:
                if isinstance(entry, dict) and is_int(entry.get("seq")) and isinstance(entry.get("body"), dict):
                    bodies[record_at(segments, segment.number, entry["seq"])] = entry["body"]
            erasures.append((event, bodies))
    erasures.sort(key=lambda erasure: (erasure[0].at, erasure[0].segment.number, erasure[0].seq))
    return erasures


def check_replaced(history, erasures):
    """Each replaced record has the body that the newest payload.erased gives for it. Returns how many there are.

    An erase event may itself be replaced, by a newer one that took something out of it; it counts if it is in order.
    """
    newest = {}
    for event, bodies in reversed(erasures):
        if event.form == "intact" or (event in newest and equal(newest[event], event.body)):
            newest = bodies | newest
    replaced = [record for record in history if record.form == "replaced"]
    for record in replaced:
        if record not in newest:
            raise Broken("the body was replaced, and no payload.erased says by what", record.seq)
        if record.body is None or not equal(newest[record], record.body):
            raise Broken("the body is not the one that payload.erased gives for it", record.seq)
    return len(replaced)


def find_prune(segments, segment, seq):
    """The newest range.pruned of the segment's session that covers `seq`."""
    for record in sorted(segment.records.values(), key=lambda record: -record.seq):
        if record.kind != "range.pruned" or record.form != "intact" or record.body is None:
            continue
        upto = record.body.get("upto")
        if is_int(upto) and seq <= upto < record.seq:
            known = hash_at(segments, segment.number, upto)
            if known is None or known.hex() != record.body.get("last_hash"):
                raise Broken(f"range.pruned names another hash for event {upto}", record.seq)
            if upto > segment.end:
                raise Broken(f"{segment.session} was pruned beyond the fork that leaves it", record.seq)
            return record, upto
    raise Broken("the body was pruned, and no range.pruned says so", seq)


def payload(segments, record, mention):
    at = mention.get("at", 0)
    if not is_int(at):
        raise Broken("a payload is mentioned without a place", record.seq)
    place = record_at(segments, record.segment.number, at) if at else record
    if place is None:
        raise Broken(f"a payload should be with event {at}, which is not there", record.seq)
    content = place.commit.payloads.get(mention["$payload"])
    if content is None and all(other.form == "intact" for other in place.commit.records):
        raise Broken("a payload is missing where nothing was erased or pruned", record.seq)
    return content


def read_base(segments, record):
    base = record.body.get("base")
    if isinstance(base, dict) and "$payload" in base:
        content = payload(segments, record, base)
        if content is None:
            raise Broken("the base of range.pruned is missing", record.seq)
        base = parse(content, "the base of range.pruned", record.seq)
    if not isinstance(base, dict):
        raise Broken("the base of range.pruned is not a state", record.seq)
    return copy.deepcopy(base)


# ---------------------------------------------------------------- summaries


def check_summary(commit):
    line, records, seq = commit.line, commit.records, commit.first
    if any(record.at != line["at"] for record in records):
        raise Broken("the commit's time is not that of its events", seq)
    kinds = list(dict.fromkeys(record.kind for record in records))
    if not equal(line.get("kinds"), kinds):
        raise Broken("the commit lists other kinds than its events have", seq)
    turns = [record.header["turn"] for record in records if record.header.get("turn", 0)]
    if not equal(line.get("turns"), [min(turns), max(turns)] if turns else [0, 0]):
        raise Broken("the commit lists other turns than its events have", seq)
    paths = line.get("paths", [])
    fingerprint = line.get("fingerprint", "")
    if any(record.form != "intact" for record in records):
        if paths or fingerprint:
            raise Broken("the commit still has paths or a fingerprint of what was erased or pruned", seq)
        return
    if all(record.body is not None for record in records):
        changed = [record.body.get("path") for record in records if record.kind == "file.changed"]
        if not equal(paths, list(dict.fromkeys(path for path in changed if isinstance(path, str)))):
            raise Broken("the commit lists other paths than its events have", seq)
    if not fingerprint and line["commit_id"] != line["hash"][:16]:
        raise Broken("the commit's id is neither a caller's nor from its hash", seq)
    if fingerprint and not is_hash(fingerprint):
        raise Broken("the commit's fingerprint is not a hash", seq)


def check_after(commit, state):
    lease, turn = state.get("lease"), state.get("turn")
    after = [
        lease.get("epoch") if isinstance(lease, dict) else None,
        state.get("status"),
        turn.get("number") if isinstance(turn, dict) else None,
    ]
    if not equal(after, [commit.line["epoch"], commit.line["status"], commit.line["turn"]]):
        raise Broken("the commit's epoch, status or turn is not that of the state after it", commit.last)


# ---------------------------------------------------------------- the fold


def step(state, record):
    if record.body is None:
        raise Broken(f"the body of event {record.seq} is encrypted; it cannot be read", record.seq)
    return apply(state, record.body.get("delta", []), record.kind, record.seq)


def check_checkpoint(record, state, erasures):
    wanted = record.body.get("state_hash", "")
    if record.kind != "checkpoint.named" or wanted == "":
        return
    for event, bodies in erasures:
        later = event.seq > record.seq or event.seq > event.segment.end
        if later and any(erased is not None and erased.seq <= record.seq for erased in bodies):
            return
    if state_hash(state) != wanted:
        raise Broken("the state is not the one whose hash the checkpoint recorded", record.seq)


def fold(segments, erasures, at):
    """The state at `at`, having folded all there is."""
    branches = {record_at(segments, segment.number, segment.first - 1): None for segment in segments[1:]}
    wanted, lost = {}, 0
    for segment in segments:
        before = record_at(segments, segment.number, segment.first - 1)
        state = copy.deepcopy(branches[before]) if before else {}
        seq = segment.first
        while seq <= segment.end:
            record = segment.records[seq]
            if record.form == "pruned":
                witness, upto = find_prune(segments, segment, seq)
                state = read_base(segments, witness)
                if seq <= at < upto:
                    lost = upto
                seq, record = upto, segment.records[upto]
            else:
                if record.body is not None:
                    check_checkpoint(record, state, erasures)
                state = step(state, record)
            if record.commit.last == seq:
                check_after(record.commit, state)
            if record in branches:
                branches[record] = copy.deepcopy(state)
            if seq == at:
                wanted = copy.deepcopy(state)
            seq += 1
        fold_beyond(segment, state, branches)
    if lost:
        raise Broken(f"the state at {at} is no longer known: the session was pruned up to {lost}", at)
    return wanted


def fold_beyond(segment, state, branches):
    """Events that are not of the history: nothing is asked of them but that their commits' summaries are right.

    Nothing may vouch for a body that was replaced there. From such a one on, the state is not known.
    """
    if state is not None and segment.last > segment.end:
        state = copy.deepcopy(state)
    for seq in range(max(segment.first, segment.end + 1), segment.last + 1):
        record = segment.records[seq]
        if state is None or record.form != "intact" or record.body is None:
            return
        state = step(state, record)
        if record.commit.last == seq:
            check_after(record.commit, state)
        if record in branches:
            branches[record] = copy.deepcopy(state)


def check_anchor(segments, anchor):
    names = [segment.session for segment in segments]
    if not isinstance(anchor, dict) or not is_int(anchor.get("seq")) or anchor["seq"] < 0:
        raise Broken("the anchor is not a session, a seq and a hash")
    if not is_hash(anchor.get("hash")) or not isinstance(anchor.get("session"), str):
        raise Broken("the anchor is not a session, a seq and a hash")
    seq = anchor["seq"]
    if anchor["session"] not in names:
        raise Broken(f"the anchor is for {anchor['session']}, which is not in the bundle", seq)
    known = hash_at(segments, names.index(anchor["session"]), seq)
    if known is None:
        raise Broken(f"the anchor knows event {seq}, which is not in the bundle: newer events were left out", seq)
    if known.hex() != anchor["hash"]:
        raise Broken("the anchor has another hash for this event", seq)


def count_missing(segments, history):
    """Mentions whose payload was erased or pruned. What is there must have the size they say."""
    missing = 0
    for record in history:
        if record.form != "intact" or record.body is None:
            continue
        for mention in record.body.values():
            if not isinstance(mention, dict) or not isinstance(mention.get("$payload"), str):
                continue
            content = payload(segments, record, mention)
            if content is None:
                missing += 1
            elif not equal(mention.get("size", 0), len(content)):
                raise Broken("a payload does not have the size that its mention says", record.seq)
    return missing


def read_bundle(path, at, anchor):
    first, rest = split_lines(read_file(path))
    segments = read_segments(first)
    history = place_commits(segments, rest)
    erasures = find_erasures(segments)
    replaced = check_replaced(history, erasures)
    for segment in segments:
        for commit in segment.commits:
            check_summary(commit)
    head = len(history)
    wanted = head if at is None else at
    state = fold(segments, erasures, wanted)
    missing = count_missing(segments, history)
    if anchor is not None:
        check_anchor(segments, anchor)
    if not 0 <= wanted <= head:
        raise Broken(f"there is no event {wanted}: the session has {head}", wanted)
    return {
        "session": segments[-1].session,
        "events": wanted,
        "head_hash": (history[wanted - 1].hash if wanted else ZERO).hex(),
        "state_hash": state_hash(state),
        "state": state,
        "erased": replaced,
        "pruned": sum(record.form == "pruned" for record in history),
        "payloads_gone": missing,
        "ok": True,
    }


def arguments(words):
    path, at, anchor = None, None, None
    words = list(words)
    while words:
        word = words.pop(0)
        if word in ("--at", "--anchor"):
            if not words:
                raise Broken(f"{word} needs a value")
            value = words.pop(0)
            if word == "--at":
                if not INDEX.match(value) or len(value) > 15:
                    raise Broken("--at needs a seq")
                at = int(value)
            else:
                anchor = parse(value, "the anchor")
        elif path is None:
            path = word
        else:
            raise Broken(f"{word} is one argument too many")
    if path is None:
        raise Broken("usage: reader.py BUNDLE [--at SEQ] [--anchor JSON]")
    return path, at, anchor


def answer(words):
    try:
        return read_bundle(*arguments(words))
    except Broken as broken:
        return {"ok": False, "error": str(broken), "seq": broken.seq}
    except RecursionError:
        return {"ok": False, "error": "a value is nested too deep", "seq": 0}
    except Exception as error:
        return {"ok": False, "error": f"the bundle is not as it should be: {error!r}", "seq": 0}


def main(words):
    commands = map(json.loads, sys.stdin) if words == ["-"] else [words]
    code = 0
    for command in commands:
        result = answer(command)
        code = code if result["ok"] else 1
        sys.stdout.write(json.dumps(result) + "\n")
        sys.stdout.flush()
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
