"""What a call does to the world, by its tool and its command."""

import pytest

from wakelog.importers.common.tools import effect_of, shell_command


@pytest.mark.parametrize(
    ("command", "effect"),
    [
        ("ls -l src", "read"),
        ("cd shop && git log --oneline | head -5", "read"),
        ("find . -name '*.py'", "read"),
        ("ls\nrm -rf build", "external"),
        ("find . -name '*.pyc' -delete", "external"),
        ("find . -type f -exec rm {} +", "external"),
        ("cat a > b", "external"),
    ],
)
def test_a_command_only_reads_if_all_of_it_does(command: str, effect: str) -> None:
    assert effect_of("Bash", {"command": command}) == effect


def test_several_commands_of_one_call_are_lines() -> None:
    assert shell_command({"commands": ["ls", "rm x"]}) == "ls\nrm x"
    assert effect_of("run_commands", {"commands": ["ls"]}) == "read"
    assert effect_of("run_commands", {"commands": ["ls", "rm x"]}) == "external"


def test_a_command_may_be_named_with_capital_letters() -> None:
    assert effect_of("run_command", {"CommandLine": "ls src"}) == "read"
    assert effect_of("run_command", {"CommandLine": "make"}) == "external"


def test_a_tool_with_a_version_in_its_name_is_the_tool() -> None:
    assert effect_of("edit_file_v2", {"path": "a.py"}) == "write"
    assert effect_of("run_terminal_command_v2", {"command": "ls src"}) == "read"
