"""One file per command, or per few that belong together: parse, call one verb, render."""
