"""What an adapter says where its framework is missing, or is a release nobody tried."""

import warnings

import pytest

from wakelog.adapters import frameworks


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
