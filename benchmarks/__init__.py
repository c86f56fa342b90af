"""Benchmarks: wakelog beside the bare loops it could at best be as fast as, in one interleaved run.

python -m benchmarks [--quick] [--rounds N] [--json FILE] [--profile] [--write-docs]
"""
