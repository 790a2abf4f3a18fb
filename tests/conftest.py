"""What every test shares."""

from hypothesis import HealthCheck, settings

# A shared machine is slow now and then; what a property costs is measured in benchmarks, not by a deadline here.
settings.register_profile("tapster", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tapster")
