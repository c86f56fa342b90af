"""How a browser signs in: a key in the fragment of an address becomes a cookie.

A fragment is never sent, so the key is in no log and in no Referer. The page sends it once, like any program, and gets
a cookie that no script can read, that ends with the browser, and that is sent only with the page's own requests.

The address that a browser is started with is visible in this machine's list of processes. So that address contains a
ticket instead, which is valid once.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from urllib.parse import quote

_TICKET = "once-"


def cookie_name(host: str) -> str:
    """Browsers share cookies between ports, so the name contains the port."""
    port = host.rpartition(":")[2]
    return f"wakelog-{port if port.isdecimal() else 'page'}"


def set_cookie(host: str, key: str, *, is_secure: bool) -> str:
    secure = "; Secure" if is_secure else ""
    return f"{cookie_name(host)}={key}; Path=/; HttpOnly; SameSite=Strict{secure}"


def end_cookie(host: str) -> str:
    return f"{cookie_name(host)}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0"


def key_in(cookies: str, host: str) -> str:
    """The key in a Cookie header; empty if there is none."""
    wanted = cookie_name(host)
    for pair in cookies.split(";"):
        name, _, value = pair.strip().partition("=")
        if name == wanted:
            return value
    return ""


def is_own_request(method: str, headers: Mapping[str, str], host: str) -> bool:
    """Whether a request with a cookie was made by the page itself, or typed by the user. The cookie alone does not
    prove that, because for a browser another server on this machine is the same site."""
    if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return False
    if method in ("GET", "HEAD"):
        return True
    origin = headers.get("origin", "").lower()
    return origin in (f"http://{host.lower()}", f"https://{host.lower()}")


class Tickets:
    """Words that can be exchanged for a key once."""

    def __init__(self) -> None:
        self._keys: dict[str, str] = {}

    def make(self, key: str) -> str:
        ticket = _TICKET + secrets.token_urlsafe(32)
        self._keys[ticket] = key
        return ticket

    def take(self, word: str) -> str:
        """The key of a ticket, which is used up; any other word unchanged."""
        if not word.startswith(_TICKET):
            return word
        for ticket in self._keys:
            if hmac.compare_digest(ticket, word):
                return self._keys.pop(ticket)
        return ""


def entry_address(base: str, key: str, path: str = "/") -> str:
    """The address that signs a browser in."""
    return f"{base}{path}#key={quote(key)}"
