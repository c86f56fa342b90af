"""Codex: the rollouts of its sessions, and what `codex exec --json` prints."""
