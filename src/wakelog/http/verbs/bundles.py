"""Bundles: a session with its ancestry, out and in."""

from __future__ import annotations

import tempfile
from typing import IO, cast

from wakelog.engines.remote.wire import Imported
from wakelog.http.routes import Call, Raw, route
from wakelog.log.bundle import export_bundle, import_bundle

MEDIA = "application/x-ndjson"
SPOOL_MAX = 8 << 20


@route("GET", "/sessions/{session}/bundle", media=MEDIA, by_head=True)
def bundle(call: Call) -> Raw:
    """A session and its ancestry in the portable form that proves itself (docs/reference/format.md)."""
    out = cast(IO[bytes], tempfile.SpooledTemporaryFile(SPOOL_MAX))  # noqa: SIM115 - closed when it is sent
    try:
        export_bundle(call.session().log, out)
        out.seek(0)
    except BaseException:
        out.close()
        raise
    return Raw(out, MEDIA)


@route("POST", "/bundles", scope="admin", status=201)
def take_bundle(call: Call, body: IO[bytes]) -> Imported:
    """Takes in a bundle, plain or gzipped, all of it or nothing, after verifying it whole.

    What is there already is left as it is. Its history was made elsewhere, under other rules, and is neither redacted
    nor judged: so it needs `admin`.
    """
    with body:
        head = import_bundle(call.space.engine, body, size_max=call.server.settings.bundle_max).head()
    call.space.forget(head.session)
    return Imported(head.session, head.name, head)
