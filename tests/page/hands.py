"""Two ways to use the page: by clicks, and by the keyboard alone. A job is written once and done with both."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable

from tests.page.reader import Reader

PLACES = {
    "Sessions": "s",
    "Live": "l",
    "Search": "f",
    "Compare": "d",
    "Sources": "t",
    "Cost": "c",
    "Audit": "a",
    "Store": "h",
}
"""The pages of the navigation, and the key after g that leads there."""


class Hands(ABC):
    """What a person does, however."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader

    @abstractmethod
    def visit(self, place: str) -> None:
        """Goes to a page of the navigation."""

    @abstractmethod
    def press(self, name: str) -> None:
        """Presses a button, a link or a tab, by its name; a pattern."""

    @abstractmethod
    def write(self, label: str, text: str) -> None:
        """Writes into a field."""

    @abstractmethod
    def choose_tab(self, name: str, key: str) -> None:
        """Opens a tab of the inspector."""

    @abstractmethod
    def open_session(self, name: str) -> None:
        """From the list of sessions into one of them."""

    @abstractmethod
    def select_turn(self, number: int) -> None:
        """Selects a turn on a session's page."""

    def _is_open(self) -> None:
        self.reader.waits_for_path("^/s/")
        self.reader.page.get_by_role("tab").first.wait_for()
        self.reader.page.locator("[role=tabpanel]").first.wait_for()

    def task(self, label: str, name: str, **fields: str) -> str:
        """Fills in what a task on the command line needs, and tells the command that was copied."""
        self.press(rf"^More for {label}")
        self.press(name)
        for field, text in fields.items():
            self.write(field, text)
        self.press("^Copy command$")
        self.reader.sees("Command copied")
        return str(self.reader.page.evaluate("() => navigator.clipboard.readText()"))

    def copy(self, label: str, form: str) -> str:
        """Copies something in one of its forms, and tells what was copied."""
        self.press(rf"^Copy {label}")
        self.press(f"^{form}$")
        self.reader.sees(f"{form} copied")
        return str(self.reader.page.evaluate("() => navigator.clipboard.readText()"))


class Clicks(Hands):
    def visit(self, place: str) -> None:
        self.reader.page.get_by_role("navigation", name="Pages").get_by_role("link", name=place).click()

    def press(self, name: str) -> None:
        page = self.reader.page
        pattern = re.compile(name)
        found = page.get_by_role("button", name=pattern).or_(page.get_by_role("link", name=pattern))
        found = found.or_(page.get_by_role("tab", name=pattern)).or_(page.get_by_role("checkbox", name=pattern))
        # The name of a summary is not that of a role which playwright knows.
        found = found.or_(page.locator("summary[aria-label]").and_(page.get_by_label(pattern)))
        found.filter(visible=True).first.click()

    def write(self, label: str, text: str) -> None:
        self.reader.page.get_by_label(re.compile(label)).filter(visible=True).first.fill(text)

    def choose_tab(self, name: str, key: str) -> None:
        self.reader.page.get_by_role("tab", name=re.compile(f"^{name}")).first.click()

    def open_session(self, name: str) -> None:
        self.reader.page.get_by_placeholder(re.compile("^Filter")).fill(name)
        self.reader.page.get_by_role("gridcell").get_by_role("link", name=name, exact=True).first.click()
        self._is_open()

    def select_turn(self, number: int) -> None:
        turns = self.reader.page.get_by_role("navigation", name="Turns")
        turns.get_by_role("button", name=re.compile(rf"^@{number}\b")).click()
        self.reader.waits_for_path(rf"/@{number}\b")


class Keyboard(Hands):
    def visit(self, place: str) -> None:
        self._leave_field()
        self.reader.press("g", PLACES[place])

    def press(self, name: str) -> None:
        self.reader.tabs_to(name)
        self.reader.press("Enter")

    def write(self, label: str, text: str) -> None:
        self.reader.tabs_to_field(label)
        self.reader.press("Control+a")
        self.reader.types(text)

    def choose_tab(self, name: str, key: str) -> None:
        self.reader.press(key)
        self.reader.page.get_by_role("tab", name=re.compile(f"^{name}"), selected=True).first.wait_for()

    def open_session(self, name: str) -> None:
        self.reader.press("/")
        self.reader.types(name)
        self.reader.press("Escape")
        self.reader.page.get_by_role("gridcell").get_by_role("link", name=name, exact=True).first.wait_for()
        for _ in range(8):
            self.reader.press("j")
            active = self.reader.page.locator(".isActive").filter(has=self.reader.page.get_by_text(name, exact=True))
            if active.count():
                break
        self.reader.press("Enter")
        self._is_open()

    def select_turn(self, number: int) -> None:
        for _ in range(2 * number):
            before = self.reader.page.url
            self.reader.press("]")
            self.reader.page.wait_for_function("(before) => location.href !== before", arg=before)
            if re.search(rf"/@{number}\b", self.reader.path):
                return
        raise AssertionError(f"] never came to turn {number}")

    def _leave_field(self) -> None:
        now = self.reader.focused()
        if now is not None and now["tag"] in ("input", "textarea"):
            self.reader.press("Tab")


Way = Callable[[Reader], Hands]
HANDS: dict[str, Way] = {"clicks": Clicks, "keyboard": Keyboard}
