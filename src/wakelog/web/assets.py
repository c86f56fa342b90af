"""The built files of the page, by path.

All of them are read once and kept in memory: they are small, and a request can only name a file in this table. Without
a build, as in a checkout without `make page`, the table is empty.
"""

from __future__ import annotations

import functools
import gzip
from pathlib import Path

import msgspec

from wakelog.errors import UnsupportedError

# The page may only load its own files and talk to its own server: no inline script or style, no frame, no plugin. With
# `require-trusted-types-for`, the browser refuses text as markup, except through the one policy of the page's library.
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types svelte-trusted-html",
    )
)

HEADERS = {
    "content-security-policy": POLICY,
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}

FOREVER = "public, max-age=31536000, immutable"
"""For files whose name changes with their content."""
NEVER = "no-store"

STATIC = Path(__file__).parent / "static"
START = "index.html"

_MEDIA = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
_SMALL = 1024


class Asset(msgspec.Struct, frozen=True):
    """One file. `packed` is its gzipped content, or empty if that saves nothing."""

    content: bytes
    packed: bytes
    media: str
    is_fixed: bool
    """Its name changes with its content, so a browser may cache it forever."""

    def answer(self, accept: str) -> tuple[dict[str, str], bytes]:
        """The headers and body for a browser that accepts these encodings."""
        headers = {**HEADERS, "content-type": self.media, "cache-control": FOREVER if self.is_fixed else NEVER}
        if self.packed:
            headers["vary"] = "accept-encoding"
            if "gzip" in accept:
                headers["content-encoding"] = "gzip"
                return headers, self.packed
        return headers, self.content


def read_assets(folder: Path) -> dict[str, Asset]:
    """The files in a folder by relative path; only known types."""
    found = {}
    for path in sorted(folder.rglob("*")):
        media = _MEDIA.get(path.suffix)
        if media is None or not path.is_file():
            continue
        name = path.relative_to(folder).as_posix()
        content = path.read_bytes()
        packed = gzip.compress(content, mtime=0) if len(content) > _SMALL else b""
        found[name] = Asset(content, packed, media, is_fixed=name.startswith("assets/"))
    return found


@functools.cache
def page_assets() -> dict[str, Asset]:
    """The files of the page; empty if it was not built."""
    assets = read_assets(STATIC)
    return assets if START in assets else {}


def require_page() -> None:
    """UnsupportedError if the page was not built."""
    if not page_assets():
        raise UnsupportedError(
            "the page was not built into this installation",
            kind="page-missing",
            hint="in a clone: make page, or pip install '.[ui]'; both bring a Node.js where there is none",
        )
