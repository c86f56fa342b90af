"""RFC 8785 canonical JSON, for hashes that must not depend on who encoded: `input_hash` and `state_hash`.

msgspec already writes the canonical form except for two things: it prints some floats differently, and it sorts keys by
code point where the RFC sorts by UTF-16 unit (they differ beyond the basic plane). Values without either take the fast
path; the rest go to the rfc8785 library.
"""

from __future__ import annotations

import hashlib
import math
import re

import msgspec

from wakelog.errors import InvalidInputError
from wakelog.model.values import Value
from wakelog.native import core

_encode_sorted = msgspec.json.Encoder(order="sorted").encode
_looks_like_float = re.compile(rb"[0-9][.eE]").search


def canonical(value: Value) -> bytes:
    """The RFC 8785 bytes of a value."""
    data = _encode_sorted(value)
    if b"null" in data:
        _refuse_not_a_number(value)
    # Every float msgspec writes has a dot or an exponent after a digit, so most values are cleared by a glance at the
    # bytes. Text can look the same; then the value itself is asked.
    if (data.isascii() and not _looks_like_float(data)) or _is_plain(value):
        return data
    import rfc8785

    return rfc8785.dumps(value)


def _refuse_not_a_number(value: Value) -> None:
    """msgspec writes NaN and the infinities as null, which would make them equal to None."""
    if type(value) is float and not math.isfinite(value):
        raise InvalidInputError(f"{value} has no canonical form", kind="not-a-value", hint="pass None or a string")
    for item in value.values() if type(value) is dict else value if type(value) in (list, tuple) else ():
        _refuse_not_a_number(item)


def hash_value(value: Value) -> str:
    """SHA-256 of the canonical bytes, in hex: equal for equal values, in every implementation."""
    return hashlib.sha256(canonical(value)).hexdigest()


def is_plain_in_python(value: Value) -> bool:
    """Whether a value has no float inside, and no key with characters beyond the basic plane."""
    kind = type(value)
    if kind is dict:
        return all((k.isascii() or max(k) < "\ud800") and is_plain_in_python(v) for k, v in value.items())
    if kind is list or kind is tuple:
        return all(map(is_plain_in_python, value))
    return kind is not float


def _is_plain_natively(value: Value) -> bool:
    try:
        return bool(core.has_no_float(value))
    except Exception:  # whatever it is, the specification has the last word
        return is_plain_in_python(value)


_is_plain = is_plain_in_python if core is None else _is_plain_natively
