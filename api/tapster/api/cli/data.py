"""The configured data without a server: opened for one command, never made by it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tapster.actors.store import Engine, open_engine, usable_folder
from tapster.api.config import Config
from tapster.api.storing import store_config
from tapster.engine.errors import RequestError


class NoData(RequestError):
    """The data folder holds nothing yet."""

    code = "NO_DATA"
    status = 404


def has_data(config: Config) -> bool:
    """Whether the configured engine has data there.

    Raises:
        StoreUnusable: this user can't see.
    """
    with usable_folder(config.data_dir):
        return config.database.exists() if config.store == "sqlite" else config.data_dir.is_dir()


@contextmanager
def data_engine(config: Config) -> Iterator[Engine]:
    """The engine of data that is there.

    Raises:
        NoData: there is none.
        StoreError: a process has it open, or it can't be used.
    """
    if not has_data(config):
        raise NoData(f"there is no {config.store} data in {config.data_dir}: give --data-dir, or start tapster serve")
    engine = open_engine(store_config(config))
    try:
        yield engine
    finally:
        engine.close()
