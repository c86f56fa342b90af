"""Integrity: verification, anchors, and bundles."""

from __future__ import annotations

import gzip
import hashlib
import json

from wakelog.conformance.bench import Bench, Remote, fact, message, want
from wakelog.conformance.kit import check
from wakelog.conformance.wire import ServerFault


@check("integrity", needs="verify")
def verify_finds_nothing(bench: Bench) -> None:
    """Verifying an unaltered session finds no fault, and names its head and number of events."""
    session = bench.open()
    head = session.add(message("a"))
    report = session.get("verify").ok()
    want(([], [], 2, head["hash"]), _verdict(report), "integrity, completeness, events, head", bench.last)


def _verdict(report: dict[str, object]) -> tuple[object, ...]:
    return report["integrity"], report["completeness"], report["events"], report["head_hash"]


@check("integrity", needs="verify")
def verify_holds_anchor(bench: Bench) -> None:
    """An anchor is a head. A log that contains it verifies; for any other, the report says so."""
    session = bench.open()
    head = session.add(message("a"))
    anchor = session.get("anchor").ok()
    want((head["seq"], head["hash"]), (anchor["seq"], anchor["hash"]), "anchor", bench.last)
    session.add(message("b"))
    good = {"seq": anchor["seq"], "hash": anchor["hash"]}
    report = session.post("verify", good).ok()
    want(([], [], True), (report["integrity"], report["completeness"], report["anchored"]), "report", bench.last)
    for wrong in ({**good, "hash": "00" * 32}, {**good, "seq": 99}):
        reply = session.post("verify", wrong)
        if not reply.ok()["integrity"] and not reply.json["completeness"]:
            raise ServerFault("a fault: the log does not lead through this anchor", "none", reply.request)


@check("integrity", needs="bundle")
def bundle_proves_itself(bench: Bench) -> None:
    """A bundle has every event of the history; its hashes chain from zero to the head's hash."""
    session = bench.open()
    session.add(message("a"), fact("n", "é"))
    head = session.add(message("b"))
    _check_bundle(session, head["hash"])
    child = bench.fork(session, "e2")
    _check_bundle(child, child.add(message("c"))["hash"])


def _check_bundle(session: Remote, head_hash: str) -> None:
    """Reads a bundle by docs/reference/format.md, without our code."""
    reply = session.get("bundle")
    reply.want(200)
    content = gzip.decompress(reply.content) if reply.content[:2] == b"\x1f\x8b" else reply.content
    lines = content.splitlines(keepends=True)
    end = json.loads(lines[-1])
    digest = hashlib.sha256(b"".join(lines[:-1])).hexdigest()
    want((len(lines) - 1, digest), (end["end"], end["sha256"]), "last line", reply.request)
    hashes: dict[tuple[str, int], str] = {}
    for line in lines[1:-1]:
        commit = json.loads(line)
        chain = bytes.fromhex(commit["prev"])
        for seq, (header, salt, body) in enumerate(commit["records"], commit["first"]):
            stored_header = json.loads(header)
            body_hash = hashlib.sha256(bytes.fromhex(salt) + body.encode()).hexdigest()
            want(
                (seq, body_hash), (stored_header["seq"], stored_header["body_hash"]), "seq and body_hash", reply.request
            )
            chain = hashlib.sha256(chain + header.encode()).digest()
            hashes[commit["session"], seq] = chain.hex()
        want(commit["hash"], chain.hex(), f"hash after event {commit['last']}", reply.request)
    listed = {each["seq"]: each["hash"] for each in session.events()}
    for (owner, seq), found in hashes.items():
        if owner == session.id:
            want(listed.get(seq), found, f"hash of event {seq}", reply.request)
    want(head_hash, hashes.get((session.id, max(listed))), "hash of the last event", reply.request)


@check("integrity", needs="bundle")
def bundle_is_taken_whole(bench: Bench) -> None:
    """An altered or cut bundle is refused completely; a bundle whose session already exists changes nothing."""
    session = bench.open()
    head = session.add(message("alter me"))
    content = session.get("bundle").content
    for wrong in (content.replace(b"alter me", b"ALTER ME"), content[: len(content) // 2]):
        reply = bench.client.ask("POST", "/v1/bundles", raw=wrong)
        if reply.status < 400 or reply.status == 403:
            reply.want(400)
        session.check_unchanged(head, reply)
    reply = bench.client.ask("POST", "/v1/bundles", raw=content)
    want(session.id, reply.ok(201)["session"], "session", reply.request)
    session.check_unchanged(head, reply)
