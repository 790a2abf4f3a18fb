"""The configuration: a TOML file, then the environment, then flags; later ones win.

Every setting has one name in three spellings: ``server.port`` in the file, ``TAPSTER_PORT`` in the environment, and
``--port`` on the command line. ``tapster config`` shows each value and where it came from.
"""

# ruff: noqa: RUF009 - the helper makes attrs fields, it isn't a shared default
from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, get_args
from urllib.parse import urlsplit

import attrs
import platformdirs

from tapster.engine.activation import ACTIVATION_MODES, ActivationMode
from tapster.engine.errors import RequestError

Origin = Literal["default", "file", "environment", "flag"]
StoreEngine = Literal["sqlite", "files"]
MAX_PORT: Final = 65_535
MAX_CONFIG_BYTES: Final = 1024 * 1024


class ConfigError(RequestError):
    """A setting can't be used; the message names it, its origin and what it takes."""

    code = "CONFIG_INVALID"


def default_data_dir() -> Path:
    """The folder for a person's Tapster data on this system."""
    return Path(platformdirs.user_data_dir("tapster", appauthor=False))


def default_config_file() -> Path:
    """Where the configuration file is looked for when none is named."""
    return Path(platformdirs.user_config_dir("tapster", appauthor=False)) / "tapster.toml"


def _setting(key: str, env: str, help: str, *, default: Any, secret: bool = False) -> Any:
    metadata = {"key": key, "env": env, "help": help, "secret": secret}
    return attrs.field(default=default, metadata=metadata)


@attrs.frozen
class Config:
    """Every setting with its default; ``origins`` says where each value came from."""

    data_dir: Path = _setting(
        "data_dir", "TAPSTER_DATA_DIR", "Folder of the database and everything else Tapster keeps.",
        default=attrs.Factory(default_data_dir),
    )  # fmt: skip
    store: StoreEngine = _setting(
        "store.engine", "TAPSTER_STORE", "Where data is kept: sqlite or files.", default="sqlite"
    )
    host: str = _setting("server.host", "TAPSTER_HOST", "Address to listen on.", default="127.0.0.1")
    port: int = _setting("server.port", "TAPSTER_PORT", "Port to listen on; 0 takes a free one.", default=7788)
    token: str | None = _setting(
        "server.token", "TAPSTER_TOKEN", "Bearer token for Tapster's own routes; none means no token is asked for.",
        default=None, secret=True,
    )  # fmt: skip
    allow_remote: bool = _setting(
        "server.allow_remote", "TAPSTER_ALLOW_REMOTE", "Answer clients that aren't on this machine.", default=False
    )
    allowed_hosts: tuple[str, ...] = _setting(
        "server.allowed_hosts", "TAPSTER_ALLOWED_HOSTS", "Extra names accepted in the Host header.", default=()
    )
    provider_url: str | None = _setting(
        "provider.url", "TAPSTER_PROVIDER_URL", "Base address of an OpenAI-compatible server.", default=None
    )
    provider_key: str | None = _setting(
        "provider.key", "TAPSTER_PROVIDER_KEY", "Key for that server.", default=None, secret=True
    )
    model: str = _setting("provider.model", "TAPSTER_MODEL", "Model to ask for.", default="default")
    locale: str = _setting("page.locale", "TAPSTER_LOCALE", "Language of the page: zh-CN or en.", default="zh-CN")
    shutdown_grace_s: float = _setting(
        "server.shutdown_grace_s", "TAPSTER_SHUTDOWN_GRACE_S", "Seconds that live work may take to finish at a stop.",
        default=10.0,
    )  # fmt: skip
    idle_s: float = _setting(
        "sessions.idle_s", "TAPSTER_SESSION_IDLE_S", "Seconds without messages after which a session is put to sleep.",
        default=900.0,
    )  # fmt: skip
    session_mode: ActivationMode = _setting(
        "sessions.mode", "TAPSTER_SESSION_MODE",
        "How new sessions activate world books: sillytavern, or tavern as the contract has it.",
        default="sillytavern",
    )  # fmt: skip
    max_live_sessions: int = _setting(
        "sessions.max_live", "TAPSTER_MAX_LIVE_SESSIONS",
        "Sessions awake at once; one more puts the longest unused to sleep.", default=2048,
    )  # fmt: skip
    session_pending: int = _setting(
        "sessions.max_pending", "TAPSTER_SESSION_MAX_PENDING",
        "Work under way for one session: a message counts 1, a preview 1 for each 10 ms it takes.", default=64,
    )  # fmt: skip
    max_pending: int = _setting(
        "server.max_pending", "TAPSTER_MAX_PENDING", "The same for all sessions together; more is answered 503.",
        default=1024,
    )  # fmt: skip
    session_streams: int = _setting(
        "sessions.max_streams", "TAPSTER_SESSION_MAX_STREAMS",
        "Live streams of one session; one more is answered 503.", default=64,
    )  # fmt: skip
    max_streams: int = _setting(
        "server.max_streams", "TAPSTER_MAX_STREAMS", "The same for all sessions together.", default=256
    )
    max_connections: int = _setting(
        "server.max_connections", "TAPSTER_MAX_CONNECTIONS",
        "Connections at once; one more is answered 503 and closed.", default=512,
    )  # fmt: skip
    trace_records: int | None = _setting(
        "traces.max_records", "TAPSTER_TRACE_RECORDS", "Trace records kept in all (sqlite); 256 when not set.",
        default=None,
    )  # fmt: skip
    trace_bytes: int | None = _setting(
        "traces.max_bytes", "TAPSTER_TRACE_BYTES", "Bytes of trace records kept in all (sqlite); 16 MiB when not set.",
        default=None,
    )  # fmt: skip
    trace_record_bytes: int | None = _setting(
        "traces.max_record_bytes", "TAPSTER_TRACE_RECORD_BYTES",
        "Bytes of one trace record, beyond which only its outline is kept (sqlite); 2 MiB when not set.", default=None,
    )  # fmt: skip
    trace_age_days: float | None = _setting(
        "traces.max_age_days", "TAPSTER_TRACE_AGE_DAYS", "Days that trace records are kept (sqlite); any when not set.",
        default=None,
    )  # fmt: skip
    trace_per_session: int | None = _setting(
        "traces.max_per_session", "TAPSTER_TRACE_PER_SESSION",
        "Trace records kept of one session (sqlite); no bound of its own when not set.", default=None,
    )  # fmt: skip
    assembler_dir: Path | None = _setting(
        "store.assembler_dir", "TAPSTER_ASSEMBLER_DIR",
        "Folder of assembly-presets.json (files); the data folder itself when not set.", default=None,
    )  # fmt: skip
    origins: Mapping[str, Origin] = attrs.field(factory=dict, eq=False, repr=False)

    @property
    def database(self) -> Path:
        """The one database file of the sqlite engine."""
        return self.data_dir / "tapster.db"


def settings() -> tuple[attrs.Attribute[Any], ...]:
    """The settings in order, without the book-keeping."""
    return tuple(field for field in attrs.fields(Config) if "key" in field.metadata)


def load_config(
    flags: Mapping[str, object] | None = None,
    environment: Mapping[str, str] | None = None,
    file: Path | None = None,
) -> Config:
    """Read the file, then the environment, then flags (by field name; None means not given).

    Raises:
        ConfigError: a value doesn't fit, a key is unknown, or a named file can't be read.
    """
    values: dict[str, Any] = {}
    origins: dict[str, Origin] = {}
    from_file = _flatten(_read_file(file))
    known = {field.metadata["key"] for field in settings()}
    unknown = sorted(set(from_file) - known)
    if unknown:
        raise ConfigError(
            f"the configuration file has an unknown key: {unknown[0]}; known keys: {', '.join(sorted(known))}"
        )
    for field in settings():
        candidates: tuple[tuple[Origin, object], ...] = (
            ("file", from_file.get(field.metadata["key"])),
            ("environment", (environment or {}).get(field.metadata["env"]) or None),
            ("flag", (flags or {}).get(field.name)),
        )
        for origin, value in candidates:
            if value is not None:
                values[field.name] = _convert(field, value, origin)
                origins[field.name] = origin
    return Config(**values, origins=origins)


def _read_file(file: Path | None) -> dict[str, Any]:
    path = file or default_config_file()
    try:
        with path.open("rb") as opened:
            data = opened.read(MAX_CONFIG_BYTES + 1)
        if len(data) > MAX_CONFIG_BYTES:
            raise ConfigError(f"the configuration file {path} is larger than {MAX_CONFIG_BYTES // 1024} KiB")
        return tomllib.loads(data.decode("utf-8-sig"))
    except (FileNotFoundError, NotADirectoryError):
        if file is None:
            return {}
        raise ConfigError(f"there is no configuration file {path}") from None
    except OSError as error:
        raise ConfigError(f"the configuration file {path} can't be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"the configuration file {path} isn't TOML: {error}") from error


def _flatten(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            flat |= _flatten(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat


def _convert(field: attrs.Attribute[Any], value: object, origin: Origin) -> object:
    label = f"{field.metadata['key']} (from {origin})"
    kind = str(field.type).removesuffix(" | None")
    match kind:
        case "Path":
            return _path(str(value), label)
        case "bool":
            return _boolean(value, label)
        case "int" | "float":
            return _number(value, kind, label)
        case "tuple[str, ...]":
            items = value if isinstance(value, list | tuple) else str(value).split(",")
            return tuple(str(item).strip() for item in items if str(item).strip())
        case "StoreEngine":
            return _one_of(value, get_args(StoreEngine), label)
        case "ActivationMode":
            return _one_of(value, ACTIVATION_MODES, label)
        case _ if field.name == "provider_url":
            return _address(str(value), label)
        case _:
            return str(value)


def _path(value: str, label: str) -> Path:
    if not value or "\0" in value:
        raise ConfigError(f"{label} is {value!r}; it takes a path")
    try:
        return Path(value).expanduser()
    except RuntimeError as error:
        raise ConfigError(f"{label} is {value!r}; there is no such home folder") from error


def _one_of(value: object, words: tuple[str, ...], label: str) -> object:
    if value not in words:
        raise ConfigError(f"{label} is {value!r}; it takes {' or '.join(words)}")
    return value


def _boolean(value: object, label: str) -> bool:
    words = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
    if isinstance(value, bool):
        return value
    if str(value).strip().lower() not in words:
        raise ConfigError(f"{label} is {value!r}; it takes true or false")
    return words[str(value).strip().lower()]


def _number(value: object, kind: str, label: str) -> float:
    try:
        number = int(str(value)) if kind == "int" else float(str(value))
    except ValueError:
        raise ConfigError(f"{label} is {value!r}; it takes a number") from None
    if number < 0:
        raise ConfigError(f"{label} is {value!r}; it can't be negative")
    if not math.isfinite(number):
        raise ConfigError(f"{label} is {value!r}; it takes a finite number")
    if number < 1 and label.startswith(("server.max_", "sessions.max_")):
        raise ConfigError(f"{label} is {value!r}; it must be at least 1")
    if label.startswith("server.port ") and number > MAX_PORT:
        raise ConfigError(f"{label} is {value!r}; the largest port is {MAX_PORT}")
    return number


def _address(value: str, label: str) -> str:
    try:
        parts = urlsplit(value)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and not re.search(r"\s", value)
        is_usable = is_usable and parts.port != 0
    except ValueError:
        is_usable = False
    if not is_usable:
        raise ConfigError(f"{label} is {value!r}; it takes an address such as http://127.0.0.1:8080/v1")
    return value
