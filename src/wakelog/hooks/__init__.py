"""Records what the hooks of coding agents report.

A hook runs inside somebody's work: it must be quick and silent, and never make anything fail. So it only appends its
input to a spool (spool.py). The next wakelog command moves the spool into the log (intake.py).

    spool           what a hook runs: appends one framed line; imports next to nothing
    shell_files     the files around a shell command, which only a hook can see
    git_place       the repository, branch and commit of a folder, for the hook
    spool_files     the reading end of the spool: reads lines, and removes files once they are in the log
    shell_changes   compares the files before and after a shell command
    hook_events     turns records into events of one session
    intake          moves the spool into the log, together with transcripts
    start_brief     what an agent is told when it starts, if enabled
    agents          the supported agents: their settings files and the events to record
    json_text       edits a JSON file as text, so that only the additions differ
    hook_entries, mcp_entries    our entries in an agent's settings
    installation    what `enable` adds and `disable` removes
    health          whether recording works, for `doctor`
"""
