"""Runs of agents on benchmarks: trajectories and logs of evaluations."""
