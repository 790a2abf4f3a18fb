"""Configuration: file, environment, flags, in that order; every refusal names the setting."""

from pathlib import Path

import pytest

from tapster.api.config import ConfigError, load_config


def test_later_origins_win(tmp_path: Path) -> None:
    file = tmp_path / "tapster.toml"
    file.write_text('[server]\nport = 1\nhost = "::1"\n[provider]\nmodel = "file"\n', encoding="utf-8")
    config = load_config({"port": 3}, {"TAPSTER_PORT": "2", "TAPSTER_MODEL": "environment"}, file)
    assert (config.host, config.port, config.model) == ("::1", 3, "environment")
    assert config.origins == {"host": "file", "port": "flag", "model": "environment"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[server]\nport = 'x'", "server.port"),
        ("[server]\nprot = 1", "server.prot"),
        ("[store]\nengine = 'oracle'", "store.engine"),
        ("not toml", "isn't TOML"),
        ("[server]\nallow_remote = 'maybe'", "server.allow_remote"),
        ("[server]\nport = -1", "server.port"),
        ("[server]\nport = 65536", "server.port"),
        ("[server]\nshutdown_grace_s = inf", "server.shutdown_grace_s"),
        ("[server]\nshutdown_grace_s = nan", "server.shutdown_grace_s"),
        *(
            (f"[provider]\nurl = '{url}'", "provider.url")
            for url in ("ht tp://x", "ftp://x", "127.0.0.1", "http://", "http://x:99999")
        ),
    ],
)
def test_a_refusal_names_the_setting(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "tapster.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=said):
        load_config(file=file)


def test_a_named_file_must_exist(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no configuration file"):
        load_config(file=tmp_path / "none.toml")


def test_an_empty_environment_value_counts_as_absent() -> None:
    assert load_config(environment={"TAPSTER_PORT": ""}, file=None).port == 7788
