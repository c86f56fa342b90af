"""The web page on the server: its files, the entry of browsers, and their cookies.

The page's paths differ from the API's, so they are looked up before the routes. They need no key, because a file of the
page says nothing about the store. Everything else on the page comes from the API, with the key of the cookie.
"""

from __future__ import annotations

from urllib.parse import parse_qsl, unquote

from wakelog.errors import NotFoundError
from wakelog.http.request import NDJSON, Request
from wakelog.http.response import Rendered
from wakelog.web.addresses import is_page, twin_of
from wakelog.web.assets import START, page_assets
from wakelog.web.entry import Tickets, end_cookie, is_own_request, key_in, set_cookie

ENTER, LEAVE = "/enter", "/leave"


class PageRoutes:
    """Answers requests for the web page."""

    def __init__(self, tickets: Tickets) -> None:
        self.tickets = tickets

    def token_of(self, request: Request) -> str:
        """The key in a request's header or in the page's cookie."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if token:
            return token.strip() if scheme.lower() == "bearer" else ""
        if not is_own_request(request.method, request.headers, request.host):
            return ""
        return key_in(request.headers.get("cookie", ""), request.host)

    def find_file(self, request: Request) -> Rendered | None:
        """A file of the page, the page itself, or a redirect to its JSON; None if the API must answer."""
        if request.method not in ("GET", "HEAD"):
            return None
        whole = [unquote(part, errors="replace") for part in request.path.split("/")[1:]]
        asset = page_assets().get("/".join(whole))
        segments, form = _split_form(whole)
        if asset is None and is_page(segments):
            accept = request.headers.get("accept", "")
            if form == ".ndjson":
                # A redirect cannot carry the Accept header, so the request itself is changed.
                request.redirect_to(self._twin(segments, request), NDJSON)
                return None
            if form or ("application/json" in accept and "text/html" not in accept):
                return Rendered(307, {"location": self._twin(segments, request), "cache-control": "no-store"})
            asset = page_assets().get(START)
        if asset is None:
            return None
        headers, body = asset.answer(request.headers.get("accept-encoding", ""))
        return Rendered(200, headers, body)

    def _twin(self, segments: list[str], request: Request) -> str:
        pairs = parse_qsl(request.query.decode("latin-1"), max_num_fields=100)
        twin = twin_of(segments, pairs)
        if twin is None:
            raise NotFoundError(
                f"the page {request.path[:200]} has no JSON",
                kind="no-such-route",
                hint="GET /openapi.json lists the routes",
            )
        return twin

    def answer_enter(self, request: Request, token: str) -> Rendered:
        """The answer to a browser that sent a valid key."""
        cookie = set_cookie(request.host, token, is_secure=request.is_secure)
        return Rendered(204, {"set-cookie": cookie, "cache-control": "no-store"})

    def answer_leave(self, request: Request) -> Rendered:
        return Rendered(204, {"set-cookie": end_cookie(request.host), "cache-control": "no-store"})


def _split_form(segments: list[str]) -> tuple[list[str], str]:
    """Splits `.json` or `.ndjson` off the last segment. `/.json` and `/sessions.json` both mean the first page."""
    *before, last = segments
    form = next((form for form in (".ndjson", ".json") if last.endswith(form)), "")
    bare = [*before, last.removesuffix(form)]
    return [""] if form and bare == ["sessions"] else bare, form
