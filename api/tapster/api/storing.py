"""Where and how data is kept, as the configuration says."""

from typing import Final

import attrs

from tapster.actors.store import Retention, StoreConfig
from tapster.engine.trace import RetentionLimits

from .config import Config, ConfigError, settings

DAY_MS: Final = 86_400_000
BOUNDS: Final = ("trace_records", "trace_bytes", "trace_record_bytes", "trace_age_days", "trace_per_session")


def store_config(config: Config) -> StoreConfig:
    """What the store needs of a configuration.

    Raises:
        ConfigError: trace bounds are given for the engine whose file keeps the contract's.
    """
    return StoreConfig(
        config.data_dir, config.store, retention=retention(config), assembler_directory=config.assembler_dir
    )


def retention(config: Config) -> Retention:
    """The contract's bounds, with what the configuration raises or adds.

    Raises:
        ConfigError: as ``store_config``.
    """
    keys = {field.name: field.metadata["key"] for field in settings()}
    given = [keys[name] for name in BOUNDS if getattr(config, name) is not None]
    if given and config.store != "sqlite":
        raise ConfigError(
            f"{given[0]} is set, but the {config.store} engine keeps traces within the contract's bounds: "
            "remove the setting or use the sqlite engine"
        )
    bounds = {
        "max_records": config.trace_records,
        "max_total_bytes": config.trace_bytes,
        "max_record_bytes": config.trace_record_bytes,
    }
    limits = attrs.evolve(RetentionLimits(), **{name: bound for name, bound in bounds.items() if bound is not None})
    age_ms = None if config.trace_age_days is None else int(config.trace_age_days * DAY_MS)
    return Retention(limits, age_ms, config.trace_per_session)
