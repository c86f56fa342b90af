"""Parses shell command lines: which programs they run, and which files they write.

A command line is split into simple commands, with quotes and here-documents. This is not a full shell: what it cannot
parse is split into words, which is enough to find a program's name.
"""

from __future__ import annotations

import functools
import re
import shlex
from typing import Any, Final

import msgspec

from wakelog.model.project_programs import files_made
from wakelog.model.values import Value

LINE_MAX: Final = 20_000
"""Only this many characters of a command line are read."""

_HEREDOC: Final = re.compile(r"<<-?\s*(['\"]?)(\w+)\1([^\n]*)\n(.*?)\n\s*\2(?=\s|$)", re.DOTALL)
_SPLIT: Final = frozenset({"&&", "||", ";", "|", "&", "|&", "(", ")", "\n", ";;"})
_ASSIGN: Final = re.compile(r"[A-Za-z_]\w*=")
_PATCHED: Final = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+?)\s*$", re.MULTILINE)
_MOVED: Final = re.compile(r"^\*\*\* Move to: (.+?)\s*$", re.MULTILINE)
_OPENED: Final = re.compile(
    r"""(?:open\(\s*|Path\(\s*)['"]([^'"]+)['"]\s*(?:,\s*(?:mode=)?['"][wax]|\)\.write_)"""
    r"""|writeFile(?:Sync)?\(\s*['"]([^'"]+)['"]"""
)
_WRITES: Final = re.compile(r"""\.write_(?:text|bytes)\(|\bopen\(\w+,\s*(?:mode=)?['"][wa]|\bwriteFile(?:Sync)?\(""")
_SHELLS: Final = frozenset({"bash", "sh", "zsh", "dash"})
_REMOTE: Final = frozenset({"ssh", "su", "wsl", "wsl.exe", "cmd", "cmd.exe", "powershell", "powershell.exe", "pwsh"})
"""Programs whose last word may be a command line."""
_WINDOWS_PATH: Final = re.compile(r"(?:^|(?<=[;&|\n]))(\s*)((?:[A-Za-z]:|\.{1,2}|\.?\w[\w.-]*)(?:\\[\w.-]+)+)")
"""A program that is named with backslashes."""
_BEFORE: Final = frozenset({"sudo", "time", "nice", "env", "command", "exec", "xargs", "nohup", "timeout", "stdbuf"})
_RUNNERS: Final = (
    ("uv", "run"),
    ("uv", "tool", "run"),
    ("uvx",),
    ("pipx", "run"),
    ("poetry", "run"),
    ("pipenv", "run"),
    ("conda", "run"),
    ("micromamba", "run"),
    ("bundle", "exec"),
    ("npm", "exec"),
    ("pnpm", "exec"),
    ("pnpm", "dlx"),
    ("yarn", "dlx"),
    ("bun", "x"),
    ("npx",),
    ("bunx",),
    ("mise", "exec"),
    ("direnv", "exec"),
    ("dotenv",),
    ("cross-env",),
    ("xvfb-run",),
    ("doppler", "run"),
)
_CONTAINERS: Final = (
    ("docker", "compose", "run"),
    ("docker", "compose", "exec"),
    ("docker-compose", "run"),
    ("docker-compose", "exec"),
    ("docker", "exec"),
    ("docker", "run"),
    ("podman", "exec"),
    ("podman", "run"),
    ("kubectl", "exec"),
)
"""Programs that run a command in the container or from the image that they name first."""
_VALUED: Final = re.compile(
    r"-[nNpewuvCfc]|--(?:name|user|env|workdir|volume|file|package|with|project|directory|from|python|group|extra"
    r"|env-file|network|entrypoint|platform|mount|prefix|cwd|namespace)"
)
"""Options of runners that take the next word as their value."""
_REMOVES: Final = frozenset({"rm", "touch", "unlink", "truncate"})
_MOVES: Final = frozenset({"mv", "cp", "ln", "install"})
_QUOTED: Final = re.compile(r"['\"\\]")
_BARE: Final = re.compile(r"[;&|<>()]+|[^\s;&|<>()]+")
_WORDS: Final = re.compile(r"""(?:[^\s;&|<>()'"\\]+|'[^']*'|"(?:[^"\\]|\\.)*"|\\.)+|[;&|<>()]+""", re.DOTALL)
_PART: Final = re.compile(r"""'([^']*)'|"((?:[^"\\]|\\.)*)"|\\(.)""", re.DOTALL)
_ESCAPED: Final = re.compile(r"""\\(["\\])""")
_INTERPRETER: Final = re.compile(r"python|pypy|node$|deno$|bun$|ruby$|perl$|php$")
_TEMPORARY: Final = re.compile(r"(?:/private)?/(?:var/)?tmp(?:/|$)")
_NOWHERE: Final = re.compile(r"/dev/|&|\d$|\$|-$")


class ShellCommand(msgspec.Struct, frozen=True):
    """One simple command: its words without assignments, wrappers and runners, and the files it redirects to."""

    words: tuple[str, ...]
    outputs: tuple[str, ...] = ()
    is_piped: bool = False
    """Whether its exit code is lost, because another command follows."""
    here: str = ""
    """The here-document it reads."""

    @property
    def program(self) -> str:
        return self.words[0].rsplit("/", 1)[-1] if self.words else ""


def command_line(arguments: Value) -> str:
    """Returns the command line in a call's input; empty if it has none."""
    if isinstance(arguments, str):
        return arguments
    if not isinstance(arguments, dict):
        return ""
    for name in ("command", "cmd", "script", "commandLine", "CommandLine", "code"):
        value: Any = arguments.get(name)
        if isinstance(value, str):
            return value
        if isinstance(value, list) and all(isinstance(v, str) for v in value):
            if len(value) >= 3 and value[0].rsplit("/", 1)[-1] in _SHELLS and value[1].startswith("-"):
                return str(value[2])
            return shlex.join(value)
    return ""


@functools.lru_cache(maxsize=256)
def shell_commands(line: str) -> tuple[ShellCommand, ...]:
    """Returns the simple commands of a command line, in order."""
    documents: list[str] = []

    def keep(match: re.Match[str]) -> str:
        documents.append(match[4])
        return f" __HERE{len(documents) - 1}__ {match[3]}\n"

    line = _HEREDOC.sub(keep, line[:LINE_MAX]).replace("\\\n", " ")
    if "\\" in line:
        line = _WINDOWS_PATH.sub(lambda m: m[1] + m[2].replace("\\", "/"), line)
    commands: list[ShellCommand] = []
    words: list[str] = []
    for token in [*_tokens(line), ";"]:
        if token in _SPLIT:
            if words:
                commands.append(_command(words, documents, is_piped=token in ("|", "|&", "||", ";", "&", "\n")))
            words = []
        else:
            words.append(token)
    if "pipefail" in line:
        commands = [msgspec.structs.replace(command, is_piped=False) for command in commands]
    if commands and not line.rstrip().endswith("&"):
        commands[-1] = msgspec.structs.replace(commands[-1], is_piped=False)
    return tuple(inner for command in commands if command.words for inner in _unwrapped(command))


def _unwrapped(command: ShellCommand) -> tuple[ShellCommand, ...]:
    """Returns the commands inside `bash -c "…"` or `ssh host "…"`, or the command itself."""
    words = command.words
    is_shell = command.program in _SHELLS and len(words) == 3 and re.fullmatch(r"-\w*c", words[1])
    if is_shell or (command.program in _REMOTE and len(words) > 1 and " " in words[-1]):
        inner = shell_commands(words[-1])
        return tuple(msgspec.structs.replace(c, is_piped=c.is_piped or command.is_piped) for c in inner) or (command,)
    return (command,)


def _tokens(line: str) -> list[str]:
    line = line.replace("\n", " ; ")
    # Regular expressions are many times faster than shlex, and give the same for most lines.
    if not _QUOTED.search(line):
        return _BARE.findall(line)
    if not _WORDS.sub("", line).strip():
        return [_PART.sub(_unquoted, word) for word in _WORDS.findall(line)]
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";&|<>()")
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        return list(lexer)
    except ValueError:
        return re.split(r"\s+", re.sub(r"(\|\||&&|[;|\n])", r" \1 ", line).strip())


def _unquoted(part: re.Match[str]) -> str:
    if part[1] is not None:
        return part[1]
    return part[3] if part[2] is None else _ESCAPED.sub(r"\1", part[2])


def _command(words: list[str], documents: list[str], *, is_piped: bool) -> ShellCommand:
    kept: list[str] = []
    outputs: list[str] = []
    here = ""
    rest = iter(words)
    for word in rest:
        if word.startswith("__HERE"):
            here = documents[int(word[6:-2])] if word[6:-2].isdigit() else ""
        elif ">" in word and set(word) <= set("<>&|"):
            target = next(rest, "")
            if word in (">", ">>", ">|", "&>", "&>>") and target and not _NOWHERE.match(target):
                outputs.append(target)
            if kept and kept[-1] in ("1", "2"):
                kept.pop()
        elif word in ("<", "<<<"):
            next(rest, "")
        else:
            kept.append(word)
    return ShellCommand(tuple(_bare(kept)), tuple(outputs), is_piped, here)


def _bare(words: list[str]) -> list[str]:
    """Removes what comes before the program: assignments, `sudo`, `npx`, `uv run`."""
    while words:
        name = words[0].rsplit("/", 1)[-1]
        if _ASSIGN.match(words[0]) or name in ("do", "then", "else", "if", "!", "{", "while"):
            words = words[1:]
        elif name in _BEFORE:
            words = words[1:]
            while words and (words[0].startswith("-") or re.fullmatch(r"[\d.]+[smh]?", words[0])):
                words = words[1:]
        elif not (inner := _inner_command(words)):
            return words
        else:
            words = inner
    return words


def _inner_command(words: list[str]) -> list[str]:
    """The command that a runner runs; empty if there is none."""
    for prefix in _RUNNERS:
        if words[0] == prefix[0] and (rest := _after(words, prefix)):
            return rest
    for prefix in _CONTAINERS:
        if words[0] == prefix[0] and (rest := _after(words, prefix)):
            return _without_options(rest[1:])
    return []


def _after(words: list[str], prefix: tuple[str, ...]) -> list[str]:
    """What comes after these words, between which options may stand; empty if a command does not start so."""
    for part in prefix:
        if words[:1] != [part]:
            return []
        words = _without_options(words[1:])
    return words


def _without_options(words: list[str]) -> list[str]:
    while words and words[0].startswith("-"):
        words = words[2 if _VALUED.fullmatch(words[0]) and len(words) > 2 else 1 :]
    return words


def written_files(line: str) -> list[str]:
    """Returns the files that a command line writes, moves or removes, as it names them, but in full after a `cd` into a
    directory for temporary files. A name may be a pattern."""
    results: list[str] = []
    place = ""
    for command in shell_commands(line):
        if command.program == "cd":
            place = command.words[1] if len(command.words) > 1 and _TEMPORARY.match(command.words[1]) else ""
        names = [*command.outputs, *_written_by(command)]
        if _INTERPRETER.match(command.program):
            names += _written_by_script(command.here)
            names += [name for word in command.words[1:] if len(word) > 20 for name in _written_by_script(word)]
        results += [name if not place or name[:1] in "/~$" else f"{place}/{name}" for name in names]
    return list(dict.fromkeys(results))


def _written_by_script(script: str) -> list[str]:
    """The files that a script given on the command line opens to write. A name in a variable is not known."""
    results = [m[1] or m[2] for m in _OPENED.finditer(script)]
    return results or (["(a file)"] if _WRITES.search(script) else [])


def patched_files(patch: str) -> list[str]:
    """Returns the files that a patch in the format of `apply_patch` changes."""
    return [*_PATCHED.findall(patch), *_MOVED.findall(patch)]


def _written_by(command: ShellCommand) -> list[str]:
    program, words = command.program, command.words[1:]
    plain = [w for w in words if w and not w.startswith("-")]
    if program in ("applypatch", "apply_patch"):
        return patched_files(command.here or " ".join(words)) or ["(a patch)"]
    if program == "sed" and any(re.match(r"-\w*i|--in-place", w) for w in words):
        return plain[1:] if not any(w in ("-e", "-f") for w in words) else plain[-1:]
    if program == "perl" and any(re.match(r"-\w*i", w) for w in words):
        return plain[1:]
    if program == "tee":
        return [w for w in plain if not w.startswith("/dev/")]
    if program in _REMOVES:
        return plain
    if program in _MOVES:
        return plain[-1:] if program != "mv" else plain
    if made := files_made(program, words):
        return made
    if program == "patch":
        return plain[:1] or ["(a patch)"]
    if program == "git" and plain:
        verb, rest = plain[0], plain[1:]
        if verb in ("mv", "rm", "restore") and "--staged" not in words:
            return rest
        if verb == "apply" and not {"--check", "--stat"} & set(words):
            return rest[:1] or ["(a patch)"]
        if verb == "checkout" and "--" in words:
            return list(words[words.index("--") + 1 :])
        if verb == "checkout" and "-b" not in words:
            return [path for path in rest if re.search(r"\.\w{1,5}$", path)]
    return []
