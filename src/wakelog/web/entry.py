"""How a browser gets in: a key in the fragment of an address becomes a cookie.

A fragment is never sent, so the key is in no log and in no Referer. The page sends it once, as any program would, and
gets a cookie that no script can read, that ends with the browser, and that is sent only with what the page itself asks.

A browser that is started with an address shows it to everybody who lists this machine's processes. So that address has
a ticket instead, which is taken once.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from urllib.parse import quote

_TICKET = "once-"


def cookie_name(host: str) -> str:
    """Cookies do not tell ports apart, so their name does."""
    port = host.rpartition(":")[2]
    return f"wakelog-{port if port.isdecimal() else 'page'}"


def set_cookie(host: str, key: str, *, is_secure: bool) -> str:
    secure = "; Secure" if is_secure else ""
    return f"{cookie_name(host)}={key}; Path=/; HttpOnly; SameSite=Strict{secure}"


def end_cookie(host: str) -> str:
    return f"{cookie_name(host)}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0"


def key_in(cookies: str, host: str) -> str:
    """The key in a Cookie header, or nothing."""
    wanted = cookie_name(host)
    for pair in cookies.split(";"):
        name, _, value = pair.strip().partition("=")
        if name == wanted:
            return value
    return ""


def is_own_request(method: str, headers: Mapping[str, str], host: str) -> bool:
    """Whether a request with a cookie was made by the page itself, or typed by its reader. Another server on this
    machine is of the same site for a browser, so the cookie alone does not say so."""
    if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return False
    if method in ("GET", "HEAD"):
        return True
    origin = headers.get("origin", "").lower()
    return origin in (f"http://{host.lower()}", f"https://{host.lower()}")


class Tickets:
    """Words that stand for a key once."""

    def __init__(self) -> None:
        self._keys: dict[str, str] = {}

    def make(self, key: str) -> str:
        ticket = _TICKET + secrets.token_urlsafe(32)
        self._keys[ticket] = key
        return ticket

    def take(self, word: str) -> str:
        """The key that a ticket stands for, which ends it; any other word as it is."""
        if not word.startswith(_TICKET):
            return word
        for ticket in self._keys:
            if hmac.compare_digest(ticket, word):
                return self._keys.pop(ticket)
        return ""


def entry_address(base: str, key: str, path: str = "/") -> str:
    """The address that lets a browser in."""
    return f"{base}{path}#key={quote(key)}"
