"""What every test shares."""

from hypothesis import settings

# A shared machine is slow now and then; what a property costs is measured in benchmarks, not by a deadline here.
settings.register_profile("tapster", deadline=None)
settings.load_profile("tapster")
