"""What an adapter says where its framework is missing, or is a release nobody tried."""

import re
import warnings
from pathlib import Path

import pytest

from wakelog.adapters import frameworks

ROOT = Path(__file__).parents[2]
RANGE = re.compile(r'warn_outside\("(\S+)", oldest="\S+", newest="(\S+)"\)')


def test_a_missing_framework_is_an_import_error_that_names_the_extra() -> None:
    error = frameworks.missing("LangGraph", "langgraph")
    assert isinstance(error, ImportError)
    assert "pip install 'wakelog[langgraph]'" in str(error)


@pytest.mark.parametrize(
    ("installed", "inside"),
    [("1.0", True), ("1.2.3rc1", True), ("2.0.6", True), ("0.9.9", False), ("2.1", False)],
)
def test_a_release_outside_the_tested_range_is_warned_about(monkeypatch, installed, inside) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda _name: installed)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        frameworks.warn_outside("some-framework", oldest="1.0", newest="2.0.5")
    assert [str(warning.message).startswith("wakelog's adapter was tested with") for warning in said] == [True] * (
        not inside
    )


def test_the_tested_range_ends_at_the_release_that_the_suite_pins() -> None:
    sources = (ROOT / "src/wakelog/adapters").rglob("*.py")
    told = {place for path in sources for place in RANGE.findall(path.read_text("utf-8"))}
    pins = [path.read_text("utf-8").split() for path in (ROOT / "tests/adapters").glob("*/constraints.txt")]
    pages = [path.read_text("utf-8") for path in (ROOT / "docs/how-to").glob("*.md")]
    assert len(told) == 10
    for framework, newest in told:
        assert any(f"{framework}=={newest}" in pinned for pinned in pins), framework
        assert any(re.search(rf"Tested with .*\b{re.escape(newest)}\b", page) for page in pages), framework
