"""Effects of coding agents' tools, by tool name.

Every agent names its tools differently, so this is a table. An unknown tool counts as external: the effect class that
is never repeated without asking.
"""

from __future__ import annotations

import re
from typing import Final, cast

from wakelog.model.events import Effect

_TABLE: Final = """
read: read grep glob ls notebookread todoread webfetch websearch bashoutput taskoutput toolsearch lsp readfile
read: read_file read_many_files list_directory list_dir search_file_content grep_search glob_search file_search view
read: codebase_search web_fetch web_search google_web_search find_file search_dir search_file open goto scroll_up
read: scroll_down list_files search_files view_image read_lints fetch_rules fetch view_file find_by_name
read: list_code_definition_names readmcpresource listmcpresources list_mcp_resources list_mcp_resource_templates
read: read_mcp_resource tool_search list find codesearch get_internal_docs
pure: todowrite todo_write task_list update_plan think exitplanmode enterplanmode askuserquestion write_todos
pure: request_user_input ask_user question enter_plan_mode exit_plan_mode activate_skill
pure: update_todo_list attempt_completion ask_followup_question new_task taskcreate taskupdate tasklist taskget skill
write: write edit multiedit notebookedit apply_patch write_file replace edit_file create_file str_replace_editor
write: str_replace_based_edit_tool search_replace write_to_file replace_in_file apply_diff insert create delete_file
write: str_replace file_edit file_write save_memory patch
shell: bash shell exec_command local_shell run_shell_command execute_command run_terminal_cmd container.exec
shell: powershell run shell_command run_terminal_command
read: ripgrep_raw_search ripgrep glob_file_search semantic_search semantic_search_full list_dir read_lints
write: search_and_replace insert_content apply_diff reapply
pure: plan_mode_respond manage_todo_list
read: get_errors fetch_webpage list_code_usages get_terminal_output get_changed_files
write: replace_string_in_file multi_replace_string_in_file insert_edit_into_file edit_notebook_file create_directory
shell: run_in_terminal run_commands
read: command_status view_code_item view_content_chunk read_url_content
read: readlints getdiagnostics lsp_diagnostics get_diagnostics
write: replace_file_content multi_replace_file_content strreplace applypatch
shell: run_command
read: read_files search_codebase fetch_web_content rg read_bash list_bash read_agent list_agents checkbackgroundjob
write: editor
pure: checklist ask_question
"""
_EFFECTS: Final = {
    name: kind for kind, _, names in (line.partition(": ") for line in _TABLE.split("\n")) for name in names.split()
}
_READ_COMMAND = re.compile(
    r"\s*(?:cd\s+\S+\s*(?:&&|;)\s*)?(?:ls|cat|head|tail|grep|rg|find(?!.* -(?:delete|exec|ok|fprint))|wc|pwd|which|file"
    r"|stat|du|df|tree|echo|nl|sed\s+-n|git\s+(?:status|log|diff|show|branch|blame|rev-parse|ls-files|grep))\b"
    r"[^>;&`$\n]*(?:\|\s*(?:head|tail|grep|wc|sort|uniq|nl|cat)\b[^>;&`$\n]*)*\s*"
)
"""A command that only reads, as far as its text shows: one line, no redirection, and only filters after it."""

_VERSION = re.compile(r"_v\d$")
"""Ends the name of a tool that replaces an older one: `edit_file_v2`."""
_WRAPPED = re.compile(r"(?:/\S*/)?(?:bash|zsh|sh) -l?c (['\"]?)(.*)\1", re.DOTALL)


def effect_of(tool: str, input: object = None) -> Effect:
    """The effect of a call, by the tool's name, and for a shell by the command."""
    found = _EFFECTS.get(_VERSION.sub("", tool.lower()), "external")
    if found == "shell":
        command = shell_command(input)
        return "read" if command and _READ_COMMAND.fullmatch(command) else "external"
    return cast(Effect, found)


def is_shell(tool: str) -> bool:
    return _EFFECTS.get(_VERSION.sub("", tool.lower())) == "shell"


def shell_command(input: object) -> str:
    """The command of a shell call, as one string."""
    if isinstance(input, str):
        wrapped = _WRAPPED.fullmatch(input)
        return wrapped[2] if wrapped else input
    if not isinstance(input, dict):
        return ""
    command = next((input[k] for k in ("command", "cmd", "script", "CommandLine") if k in input), "")
    if isinstance(input.get("commands"), list):
        return "\n".join(map(str, input["commands"]))
    if isinstance(command, list):
        words = [str(word) for word in command]
        # `bash -lc "…"`: the command is the last word.
        return words[-1] if len(words) > 2 and words[1] in ("-lc", "-c") else " ".join(words)
    return shell_command(command) if isinstance(command, str) else str(command)
