"""The release script: fragments become a section, and none is lost."""

from pathlib import Path

import pytest

from scripts.release import collect, make_section, read_fragments


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "changes").mkdir()
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2.0"\n')
    (tmp_path / "changes" / "README.md").write_text("how to\n")
    (tmp_path / "changes" / "a.added.md").write_text("A thing.\nIt does this.\n")
    (tmp_path / "changes" / "b.fixed.md").write_text("Another.\n")
    (tmp_path / "CHANGELOG.md").write_text(
        "# Changelog\n\n## Unreleased\n\nSee changes/.\n\n## 1.1.0 (2026-01-01)\n\n- Old.\n"
    )
    return tmp_path


def test_fragments_become_the_newest_section_and_are_deleted(project: Path) -> None:
    collect(project, "2026-02-03")
    assert (project / "CHANGELOG.md").read_text() == (
        "# Changelog\n\n## Unreleased\n\nSee changes/.\n\n"
        "## 1.2.0 (2026-02-03)\n\n### Added\n\n- A thing.\n  It does this.\n\n### Fixed\n\n- Another.\n\n"
        "## 1.1.0 (2026-01-01)\n\n- Old.\n"
    )
    assert [path.name for path in (project / "changes").iterdir()] == ["README.md"]


def test_a_version_is_released_once(project: Path) -> None:
    collect(project, "2026-02-03")
    with pytest.raises(SystemExit, match="already has a section"):
        collect(project, "2026-02-04")


def test_a_file_that_is_no_fragment_is_named(project: Path) -> None:
    (project / "changes" / "c.improved.md").write_text("?\n")
    with pytest.raises(SystemExit, match=r"c\.improved\.md is not a fragment"):
        read_fragments(project)


def test_a_heading_without_changes_is_left_out(project: Path) -> None:
    section = make_section("1.2.0", "2026-02-03", [project / "changes" / "b.fixed.md"])
    assert "Added" not in section
    assert "### Fixed" in section


def test_what_is_collected_before_a_release_takes_more_and_gets_its_date_at_the_release(project: Path) -> None:
    collect(project, "unreleased")
    (project / "changes" / "c.added.md").write_text("A third.\n")
    (project / "changes" / "d.removed.md").write_text("Gone.\n")
    collect(project, "2026-02-03")
    assert (project / "CHANGELOG.md").read_text() == (
        "# Changelog\n\n## Unreleased\n\nSee changes/.\n\n"
        "## 1.2.0 (2026-02-03)\n\n### Added\n\n- A thing.\n  It does this.\n- A third.\n\n### Fixed\n\n- Another.\n\n"
        "### Removed\n\n- Gone.\n\n"
        "## 1.1.0 (2026-01-01)\n\n- Old.\n"
    )


def test_collecting_twice_before_a_release_loses_and_repeats_nothing(project: Path) -> None:
    collect(project, "unreleased")
    once = (project / "CHANGELOG.md").read_text()
    collect(project, "unreleased")
    assert (project / "CHANGELOG.md").read_text() == once


def test_a_dry_run_shows_the_section_and_changes_no_file(project: Path) -> None:
    before = {path: path.read_text() for path in project.rglob("*.md")}
    assert collect(project, "2026-02-03", dry_run=True).startswith("## 1.2.0 (2026-02-03)\n\n### Added\n\n- A thing.")
    assert {path: path.read_text() for path in project.rglob("*.md")} == before
