"""Benchmark runs: trajectories and logs of evaluations."""
