"""Names of streams and subjects.

A store has one stream for each shard, one for names and one for heartbeats. Every subject contains its shard, the kind
of message, the namespace, the root of the fork tree, and the session in that tree (the *leaf*, `0` for the root
itself):

    wl.STORE.SHARD.c.NS.ROOT.LEAF          commits, in order; the newest is the head
    wl.STORE.SHARD.p.NS.ROOT.LEAF.FIRST    parts of a commit that is too big for one message
    wl.STORE.SHARD.o.NS.ROOT.LEAF.PARENT   the session was opened, as a fork of PARENT (`-`: no fork)
    wl.STORE.SHARD.i.NS.ROOT.LEAF.ID       the commit with an id that its caller chose (a hash of it)
    wl.STORE.SHARD.j.NS.ROOT.LEAF          lists of such ids, if many were stored at once
    wl.STORE.SHARD.s.NS.ROOT.LEAF.SEQ      a snapshot, in parts
    wl.STORE.SHARD.t.NS.ROOT.LEAF          the session's name
    wl.STORE.SHARD.r.NS.ROOT.LEAF          rewritten commits, whose original message was erased
    wl.STORE.SHARD.d.NS.ROOT.LEAF          what a removal still has to do
    wl.STORE.SHARD.x.NS.ROOT.LEAF          the session was deleted
    wl.STORE.SHARD.layout                  the shard's generation of the layout (layout.py)
    wl.STORE.names.n.NS.NAME               the session bound to a name; marks are under `m`
    wl.STORE.names.k.KIND.NAME             what servers share: API keys and names of namespaces
    wl.STORE.names.layout                  the layout: how many shards there are
    wl.STORE.beats.NS.ROOT.LEAF            the last heartbeat
    wlnews.STORE.SHARD.NS.ROOT.LEAF        sent by the server when a commit was stored; not stored
"""

from __future__ import annotations

import functools
import hashlib
import re

from wakelog.model.ids import SessionId

ROOT_LEAF = "0"
NO_PARENT = "-"
_PLAIN = re.compile(r"[A-Za-z0-9_-]+")
_UNSAFE = re.compile(rb"[^A-Za-z0-9_-]")


def token(text: str) -> str:
    """`text` escaped as one part of a subject. Different texts give different parts."""
    if _PLAIN.fullmatch(text):
        return text
    return _UNSAFE.sub(lambda m: b"=%02X" % m[0][0], text.encode("utf-8", "surrogatepass")).decode() or "="


def digest_token(text: str) -> str:
    """A part of a subject for text of any length. The text itself is in the message."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class Subjects:
    """The subjects of one namespace of one store."""

    def __init__(self, store: str, ns: str) -> None:
        self.store = token(store)
        self.ns = token(ns)
        self.ns_name = ns
        self.names_stream = f"wl-{self.store}-names"
        self.beats_stream = f"wl-{self.store}-beats"
        self.layout = f"wl.{self.store}.names.layout"
        self.beats = f"wl.{self.store}.beats.{self.ns}.>"
        self.news = f"wlnews.{self.store}.*.{self.ns}.>"

    def stream(self, shard: int) -> str:
        return f"wl-{self.store}-{shard}"

    def all_of(self, place: int | str) -> str:
        """The pattern of all subjects of a stream."""
        return f"wl.{self.store}.{place}.>"

    def republish(self, shard: int) -> tuple[str, str]:
        """Which stored messages the server announces, and on which subject."""
        return f"wl.{self.store}.{shard}.c.>", f"wlnews.{self.store}.{shard}.>"

    def fence(self, shard: int) -> str:
        return f"wl.{self.store}.{shard}.layout"

    def of(self, shard: int, kind: str, session: SessionId, *rest: object) -> str:
        """A subject of one session."""
        own = f"wl.{self.store}.{shard}.{kind}.{self.ns}.{_tokens(session)}"
        return ".".join((own, *map(str, rest))) if rest else own

    def kind(self, shard: int, kind: str) -> str:
        """All messages of one kind in this namespace."""
        return f"wl.{self.store}.{shard}.{kind}.{self.ns}.>"

    def opening(self, shard: int, session: SessionId, parent: SessionId | None) -> str:
        return self.of(shard, "o", session, NO_PARENT if parent is None else leaf_of(parent))

    def forks(self, shard: int, session: SessionId) -> str:
        """The openings of all direct forks of a session."""
        root = session.partition(".")[0]
        return f"wl.{self.store}.{shard}.o.{self.ns}.{token(root)}.*.{leaf_of(session)}"

    def session_of(self, subject: str) -> SessionId:
        """The session that a subject of this namespace is about."""
        parts = subject.split(".")
        root, leaf = parts[4:6] if parts[0] == "wlnews" or parts[2] == "beats" else parts[5:7]
        return SessionId(root if leaf == ROOT_LEAF else f"{root}.{leaf}")

    def name(self, name: str) -> str:
        return f"wl.{self.store}.names.n.{self.ns}.{digest_token(name)}"

    def mark(self, name: str) -> str:
        return f"wl.{self.store}.names.m.{self.ns}.{digest_token(name)}"

    def note(self, kind: str, name: str) -> str:
        """A note of the whole store; `name` is a digest, or `*` for all of a kind."""
        return f"wl.{self.store}.names.k.{token(kind)}.{name}"

    def beat(self, session: SessionId) -> str:
        return f"wl.{self.store}.beats.{self.ns}.{_tokens(session)}"


@functools.lru_cache(maxsize=4096)
def _tokens(session: SessionId) -> str:
    root, _, leaf = session.partition(".")
    return f"{token(root)}.{token(leaf or ROOT_LEAF)}"


def leaf_of(session: SessionId) -> str:
    return token(session.partition(".")[2] or ROOT_LEAF)
