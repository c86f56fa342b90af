"""Settings that all tests share."""

from hypothesis import HealthCheck, settings

# No deadline: a machine under load is not a bug. The blob brings a failure back on another machine.
settings.register_profile(
    "wakelog", deadline=None, print_blob=True, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("wakelog")
