"""Codex: the rollout files of its sessions, and the output of `codex exec --json`."""
