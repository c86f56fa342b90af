"""Somebody who reads the page: opens addresses, clicks, or uses the keyboard alone, and looks at what is there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tests.page.chromium import AXE
from wakelog.http.server import RunningServer

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator

TIMEOUT_MS = 20_000
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
_FOCUSED = """() => {
  const at = document.activeElement;
  if (!at || at === document.body) return null;
  const said = at.getAttribute("aria-label") || at.innerText || at.value || at.title || "";
  const text = said.replace(/\\s+/g, " ").trim();
  return { tag: at.tagName.toLowerCase(), role: at.getAttribute("role") || "", text };
}"""
_FIELD = """() => {
  const at = document.activeElement;
  if (!at?.matches("input, textarea, select")) return "";
  return at.getAttribute("aria-label") || at.labels?.[0]?.innerText || at.placeholder || "";
}"""
_DRAWN = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
_IS_IDLE = """() => !document.querySelector("[aria-busy=true]")
  && ![...document.querySelectorAll("[role=status]")].some((each) => /…$/.test(each.innerText))"""
_WIDER = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


class Reader:
    """One window."""

    def __init__(
        self,
        browser: Browser,
        running: RunningServer,
        *,
        theme: str = "light",
        width: int = 1440,
        height: int = 900,
        calm: bool = False,
        for_axe: bool = False,
        **more: Any,
    ) -> None:
        self.running = running
        self.errors: list[str] = []
        self._open: set[Any] = set()
        self.context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if theme == "dark" else "light",
            reduced_motion="reduce" if calm else "no-preference",
            permissions=["clipboard-read", "clipboard-write"],
            # The policy of the page forbids scripts from elsewhere, which axe is.
            bypass_csp=for_axe,
            **more,
        )
        self.context.set_default_timeout(TIMEOUT_MS)
        self.context.add_init_script("window.canary = () => { window.canarySang = true; };")
        if theme == "contrast":
            self.context.add_init_script("localStorage.setItem('wakelog.theme', 'contrast');")
        self.page = self.context.new_page()
        self.watch(self.page)

    def watch(self, page: Any) -> None:
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda message: self._note(message))
        page.on("request", lambda request: self._asked(request))
        page.on("requestfinished", lambda request: self._open.discard(request))
        page.on("requestfailed", lambda request: self._open.discard(request))

    def _asked(self, request: Any) -> None:
        if request.resource_type != "eventsource":
            self._open.add(request)

    def _note(self, message: Any) -> None:
        # That something is not there is an answer; the page tells it in words.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.errors.append(message.text)

    def close(self) -> None:
        self.context.close()

    # Going and looking

    def go(self, path: str) -> Reader:
        """Opens a path; the key goes along the first time."""
        key = f"#key={self.running.key}" if self.page.url == "about:blank" else ""
        self.page.goto(f"{self.running.url}{path}{key}")
        self.page.wait_for_selector("h1")
        return self

    def settle(self) -> Reader:
        """Waits until every question of the page is answered, and the answers are drawn."""
        for _ in range(1000):
            was_open = bool(self._open)
            self.page.evaluate(_DRAWN)
            if not was_open and not self._open and self.page.evaluate(_IS_IDLE):
                return self
        raise AssertionError(f"the page never comes to rest: {[request.url for request in self._open]}")

    @property
    def path(self) -> str:
        from urllib.parse import unquote

        return unquote(self.page.url.removeprefix(self.running.url))

    def sees(self, text: str | re.Pattern[str]) -> Locator:
        """Waits until a text is on the page."""
        found = self.page.get_by_text(text).filter(visible=True).first
        found.wait_for()
        return found

    def waits_for_path(self, pattern: str) -> None:
        self.page.wait_for_url(lambda url: re.search(pattern, self.path) is not None)

    def button(self, name: str | re.Pattern[str], exact: bool = False) -> Locator:
        return self.page.get_by_role("button", name=name, exact=exact).first

    def link(self, name: str | re.Pattern[str], exact: bool = False) -> Locator:
        return self.page.get_by_role("link", name=name, exact=exact).first

    # By keyboard alone

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def types(self, text: str) -> None:
        self.page.keyboard.type(text)

    def focused(self) -> dict[str, str] | None:
        found: dict[str, str] | None = self.page.evaluate(_FOCUSED)
        return found

    def tabs_to(self, text: str | re.Pattern[str], key: str = "Tab", most: int = 200) -> None:
        """Presses Tab until something with this text has the focus."""
        seen = []
        for _ in range(most):
            self.page.keyboard.press(key)
            now = self.focused()
            said = now["text"] if now else ""
            if re.search(text, said):
                return
            seen.append(said[:40])
        raise AssertionError(f"Tab never reached {text!r}: {seen}")

    def tabs_to_field(self, label: str, most: int = 200) -> None:
        """Presses Tab until a field with this label has the focus."""
        for _ in range(most):
            self.page.keyboard.press("Tab")
            if re.search(label, str(self.page.evaluate(_FIELD))):
                return
        raise AssertionError(f"Tab never reached a field {label!r}")

    # Judging

    def is_too_wide(self) -> int:
        """By how many pixels the page must be scrolled sideways."""
        return int(self.page.evaluate(_WIDER))

    def violations(self) -> list[str]:
        """What axe finds, a line each."""
        self.page.evaluate(AXE.read_text(encoding="utf-8"))
        found = self.page.evaluate("(rules) => axe.run(document, { runOnly: rules })", RULES)
        return [
            f"{each['id']}: {node['target']} {node['failureSummary'][:300]}"
            for each in found["violations"]
            for node in each["nodes"]
        ]

    def has_canary_sung(self) -> bool:
        return bool(self.page.evaluate("() => window.canarySang === true"))
