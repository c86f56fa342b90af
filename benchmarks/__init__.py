"""Benchmarks: wakelog beside what people would use instead, and beside the bare loops that set the limit, in one run.

make bench          # everything, with the peers, in an environment of its own
make bench-quick    # a few measures of wakelog beside the bare loops, compared with the saved run

python -m benchmarks [--quick] [--only NAME …] [--rounds N] [--json FILE] [--read FILE] [--save] [--write-docs]
"""
