"""What the hooks of coding agents say, and how it gets into the log.

A hook runs inside somebody's work: it must be quick, silent, and never the reason that something fails. So it only
writes down what it was told, in a spool (spool.py), and the next command takes the spool into the log (intake.py).

    spool           what a hook does: append one framed line; imports next to nothing
    shell_files     files before and after a shell command, which only a hook can see
    spool_files     the other end: reads lines back, and takes files away once they are in the log
    hook_events     records into events of one session
    intake          takes the spool in, together with transcripts
    routes          which store a session goes to
    start_brief     what an agent is told when it starts, if somebody wants that
    agents          which agents there are, where their settings are, which of their events are worth having
    json_text       edits a JSON file as text, so that only what is added differs
    hook_entries, mcp_entries    our part in an agent's settings
    installation    what `enable` adds and `disable` removes
    health          whether recording works, for `doctor`
"""
