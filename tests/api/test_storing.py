"""What the configuration says about the data: trace bounds, folders, and what doesn't go together."""

from pathlib import Path

import pytest

from tapster.actors.store import SessionKey
from tapster.actors.tapster import TapsterConfig, open_tapster
from tapster.api.app import create_app
from tapster.api.backing import Backing
from tapster.api.config import ConfigError, load_config
from tapster.api.storing import store_config
from tests.support.asgi import AsgiClient

BOUNDS = {
    "TAPSTER_TRACE_RECORDS": "1000",
    "TAPSTER_TRACE_BYTES": "50000000",
    "TAPSTER_TRACE_RECORD_BYTES": "3000000",
    "TAPSTER_TRACE_AGE_DAYS": "1.5",
    "TAPSTER_TRACE_PER_SESSION": "10",
}


def test_the_contracts_bounds_are_the_default(tmp_path: Path) -> None:
    config = store_config(load_config({"data_dir": tmp_path}))
    assert config.retention.to_json() == {
        "kind": "bounded-assembly-references",
        "maxRecords": 256,
        "maxRecordBytes": 2 * 1024 * 1024,
        "maxTotalBytes": 16 * 1024 * 1024,
    }


def test_the_contracts_files_keep_its_bounds(tmp_path: Path) -> None:
    config = load_config({"data_dir": tmp_path, "store": "files"}, BOUNDS)
    with pytest.raises(ConfigError, match=r"traces\.max_records"):
        store_config(config)


async def test_storage_states_what_is_in_force(tmp_path: Path) -> None:
    config = store_config(load_config({"data_dir": tmp_path}, BOUNDS))
    async with open_tapster(TapsterConfig(config)) as tapster:
        client = AsgiClient(create_app(Backing(tapster)))
        for number in range(12):
            record = {"schemaVersion": 4, "id": f"t{number}", "recordedAt": 1_000 + number, "status": "prepared"}
            await tapster.store.put_trace(SessionKey("embedded", "s"), record)
        reply = await client.send("GET", "/pmp-dsh-tavern/api/v3/sessions/s/assemblies")
    body = reply.json()
    assert body["storage"] == {
        "kind": "bounded-assembly-references",
        "maxRecords": 1000,
        "maxRecordBytes": 3_000_000,
        "maxTotalBytes": 50_000_000,
        "maxAgeMs": 129_600_000,
        "maxRecordsPerSession": 10,
    }
    assert len(body["records"]) == 10
