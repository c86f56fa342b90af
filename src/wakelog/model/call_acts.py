"""Acts: what kind of thing a call did. It looked, wrote files, ran a check, recorded work, or ran something else.

The tool's name and declared effect decide; a shell is classified by the programs on its command line. Which of these
are checks is in check_programs.py.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Final, Literal

from wakelog.model.check_programs import check_of_tool, checks_in
from wakelog.model.command_lines import ShellCommand, command_line, shell_commands, written_files
from wakelog.model.values import Value

Act = Literal["look", "write", "check", "record", "plan", "run"]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_LOOKS: Final = _words(
    "ls cat head tail grep egrep rg ag ack find fd wc pwd which whereis type file stat du df tree less more nl od xxd "
    "hexdump strings jq yq sort uniq cut awk tr diff cmp comm date whoami id env printenv uname ps top lsof man echo "
    "printf true false test [ cd pushd popd export set source . sleep open scroll_down scroll_up goto search_dir "
    "search_file find_file column basename dirname realpath readlink history ping nslookup dig column fold decompile "
    "disassemble read cksum md5sum sha256sum rev tac bat eza exa"
)
_GIT_LOOKS: Final = _words(
    "status log diff show branch blame grep ls-files ls-tree rev-parse remote describe config shortlog reflog fetch "
    "cat-file merge-base rev-list name-rev ls-remote for-each-ref worktree tag stash"
)
_GIT_RECORDS: Final = frozenset({"add", "commit", "push", "tag", "pull"})
_RECORDS: Final = frozenset({"submit", "exit_forfeit", "exit"})
_MANAGERS: Final = _words(
    "npm pnpm yarn bun pip pip3 uv poetry cargo brew apt gem conda docker docker-compose podman kubectl helm terraform "
    "systemctl"
)
"""Programs whose verb tells whether they only show something."""
_TOPICS: Final = _words("compose container image network volume system pip env state services")
"""What may stand before that verb."""
_SHOWS: Final = _words(
    "list ls ps show info inspect logs images status why outdated view get describe tree search df top"
)
_GH_CHANGES: Final = _words("create merge close reopen edit comment delete review rerun cancel ready upload fork sync")
_SENDS: Final = re.compile(
    r"(?:-X|--request=)?(?:POST|PUT|PATCH|DELETE)$|-d$|--data|--json$|-F$|--form$|-T$|--upload-file$"
)
"""The words of `curl` with which it changes something."""
SHELL_TOOLS: Final = re.compile(
    r"(bash|shell|local_shell|shell_command|exec(ute)?(_bash|_command)?|run_(shell_|terminal_)?(command|cmd)|terminal"
    r"|container\.exec)$",
    re.I,
)
WRITE_TOOLS: Final = re.compile(
    r"((multi_?|search_?|fs_?)?(edit|write|create|replace|insert|update)(_?(to|in|into|string|edit|new))*_?(files?)?"
    r"(_?content)?"
    r"|notebook_?edit|apply_?(patch|diff)|str_?replace.*|(multi_?)?replace_string_in_file|delete_?file|text_editor)(_v\d)?$",
    re.I,
)
_LOOK_TOOLS: Final = re.compile(
    r"((read|get|search|list|find|view|glob|grep|ls|fetch|web_?search|web_?fetch|calculate|think|query|describe|lookup"
    r"|read_?file|tool_?search|bash_?output)([_A-Z].*)?|(codebase|file|semantic|code)_?search)$"
)
_PLAN_TOOLS: Final = re.compile(
    r"((manage_|update_)?todo_?(write|list)?|write_?todos|update_?(plan|topic)|exit_?plan_?mode|enter_?plan_?mode"
    r"|task_?(create|update|list)|think|ask_?(user|followup).*)$",
    re.I,
)
_SERVER: Final = re.compile(r"(?:mcp__)?\w+?__")
"""The server's name before the name of a tool."""
PATHS: Final = (
    *("file_path", "path", "notebook_path", "absolute_path", "filename", "target_file", "filePath", "file"),
    *("TargetFile", "AbsolutePath"),
)
"""The arguments in which tools name a file."""


def plain_name(tool: str) -> str:
    """The name of a tool without its server's."""
    return _SERVER.sub("", tool)


def act_of_call(tool: str, effect: str, arguments: Value, *, has_files: bool = False) -> Act:
    """Classifies a call, whether it succeeded or not."""
    act = _act_of_tool(tool, effect, has_files)
    if act == "run" and SHELL_TOOLS.search(tool):
        return _shell_act(command_line(arguments))
    return "look" if act == "write" and _is_view(arguments) else act


@functools.lru_cache(maxsize=1024)
def _act_of_tool(tool: str, effect: str, has_files: bool) -> Act:
    """Classifies a tool by its name and effect. A shell is `run` until its command line is read."""
    tool = plain_name(tool)
    if _PLAN_TOOLS.match(tool):
        return "plan"
    if SHELL_TOOLS.search(tool):
        return "run"
    if check_of_tool(tool):
        return "check"
    if effect == "write" or has_files or WRITE_TOOLS.match(tool):
        return "write"
    if effect in ("read", "pure") or _LOOK_TOOLS.match(tool):
        return "look"
    return "run"


def _is_view(arguments: Value) -> bool:
    return isinstance(arguments, dict) and arguments.get("command") in ("view", "read")


def _shell_act(line: str) -> Act:
    acts = [act_of_command(command) for command in shell_commands(line)]
    return act_of_line(acts, writes=bool(written_files(line)))


def act_of_line(acts: Sequence[Act], *, writes: bool) -> Act:
    """Classifies a command line by its commands and whether it writes files."""
    if "check" in acts:
        return "check"
    if writes:
        return "write"
    for act in ("run", "record"):
        if act in acts:
            return act
    return "look"


def act_of_command(command: ShellCommand) -> Act:
    """Classifies one command of a command line."""
    if checks_in([command]):
        return "check"
    program, words = command.program, command.words
    if program == "git":
        verb = next((w for w in words[1:] if not w.startswith("-")), "")
        return "record" if verb in _GIT_RECORDS else "look" if verb in _GIT_LOOKS else "run"
    if program in _RECORDS:
        return "record"
    if program in _LOOKS or program == "sed" or words[-1:] == ("--version",):
        return "look"
    if program == "curl":
        return "run" if any(_SENDS.match(word) for word in words) else "look"
    if program == "gh":
        return "run" if words[2:3] and words[2] in _GH_CHANGES else "look"
    verbs = [word for word in words[1:] if not word.startswith("-")]
    verb = next((word for word in verbs if word not in _TOPICS), "")
    return "look" if program in _MANAGERS and verb in _SHOWS else "run"
