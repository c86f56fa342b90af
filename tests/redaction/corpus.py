"""Reads the corpus: texts with secrets, made up when read, and texts without.

No file holds anything that a scanner of repositories could take for a secret. A positive is a template: `{b62:36}`
stands for 36 random characters, `§` for nothing (it splits a well-known prefix), `<<…>>` encloses what is replaced.
Random means seeded by the row's number: the corpus is the same on every run, and no secret in it is real.
"""

import base64
import json
import random
import re
import string
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

FOLDER = Path(__file__).parent

_ALPHABETS = {
    "b62": string.ascii_letters + string.digits,
    "b64": string.ascii_letters + string.digits + "+/",
    "b64u": string.ascii_letters + string.digits + "-_",
    "b32": string.ascii_uppercase + "234567",
    "alpha": string.ascii_letters,
    "hex": "0123456789abcdef",
    "b32l": string.ascii_lowercase + "234567",
    "d": string.digits,
    "sym": string.ascii_lowercase + string.digits + "!@#%^&*(-_=+)",
}
_SLOT = re.compile(r"\{(b62|b64u|b64|b32l|b32|alpha|hex|d|sym|uuid|jwt|basic|snow|sig|pemjson|pem):([^}]+)\}")


@dataclass(frozen=True)
class Positive:
    names: tuple[str, ...]
    text: str
    redacted: str
    secrets: tuple[str, ...]


def positives() -> list[Positive]:
    return [_positive(row, number) for number, row in enumerate(_read("positives.json"))]


def negatives() -> list[str]:
    return [_fill(text, random.Random(number)) for number, text in enumerate(_read("negatives.json"))]


def make(template: str, seed: int) -> str:
    return _fill(template, random.Random(seed)).replace("<<", "").replace(">>", "")


def templates() -> list[str]:
    """The secrets of the corpus without their surroundings, as templates for `make`."""
    return sorted({part for row in _read("positives.json") for part in re.findall(r"<<(.*?)>>", row["text"])})


def _read(name: str) -> list:
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


def _positive(row: dict, number: int) -> Positive:
    filled = _fill(row["text"], random.Random(number))
    names = iter(row["names"])
    redacted = re.sub(r"<<(.*?)>>", lambda _: f"[redacted:{next(names)}]", filled, flags=re.DOTALL)
    secrets = tuple(re.findall(r"<<(.*?)>>", filled, flags=re.DOTALL))
    return Positive(tuple(row["names"]), re.sub(r"<<(.*?)>>", r"\1", filled, flags=re.DOTALL), redacted, secrets)


def _fill(template: str, rng: random.Random) -> str:
    def slot(match: re.Match[str]) -> str:
        kind, argument = match.groups()
        return _MAKERS[kind](argument, rng) if kind in _MAKERS else _random(kind, int(argument), rng)

    return _SLOT.sub(slot, template).replace("§", "")


def _random(kind: str, size: int, rng: random.Random) -> str:
    return "".join(rng.choices(_ALPHABETS[kind], k=size))


def _uuid(_: str, rng: random.Random) -> str:
    return "-".join(_random("hex", size, rng) for size in (8, 4, 4, 4, 12))


def _jwt(algorithm: str, rng: random.Random) -> str:
    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()

    return ".".join(
        [part({"alg": algorithm, "typ": "JWT"}), part({"sub": rng.randrange(10**9)}), _random("b64u", 43, rng)]
    )


def _basic(login: str, _: random.Random) -> str:
    return base64.b64encode(login.encode()).decode()


def _snowflake(size: str, rng: random.Random) -> str:
    """The number of an account, as Discord's tokens begin with it."""
    digits = str(rng.randrange(1, 10)) + _random("d", int(size) - 1, rng)
    return base64.b64encode(digits.encode()).decode().rstrip("=")


def _signature(form: str, rng: random.Random) -> str:
    """32 bytes in base64, as they stand in a URL."""
    text = base64.b64encode(rng.randbytes(32)).decode()
    return quote(text, safe="") if form == "quoted" else text


def _pem(name: str, rng: random.Random) -> str:
    lines = [_random("b64", 64, rng) for _ in range(rng.randrange(2, 20))]
    return "\n".join([f"-----BEGIN {name}-----", *lines, _random("b64", 22, rng) + "==", f"-----END {name}-----"])


def _pemjson(name: str, rng: random.Random) -> str:
    return _pem(name, rng).replace("\n", "\\n")


_MAKERS: dict[str, Callable[[str, random.Random], str]] = {
    "uuid": _uuid,
    "jwt": _jwt,
    "basic": _basic,
    "snow": _snowflake,
    "sig": _signature,
    "pem": _pem,
    "pemjson": _pemjson,
}
