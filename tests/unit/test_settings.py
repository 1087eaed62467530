"""Settings come from the environment and a file, and refuse what is unsafe or unknown."""

import os
import runpy
from pathlib import Path

import pytest
from pydantic import SecretStr, ValidationError

from app.core.access import ApiKey
from app.settings import (
    CLIENT_VARIABLES,
    CONFIG_VARIABLE,
    AuthSettings,
    ConfigurationError,
    DatabaseSettings,
    DirectorySettings,
    HttpSettings,
    KeysSettings,
    Settings,
    is_sample,
    known_variables,
    load,
    variable,
    walk,
)

SAMPLE_KEY = "slc_00000000_" + "a" * 43
POSTGRES = DatabaseSettings(url=SecretStr("postgresql://sluice:Vh3kQz81xWm0@db/sluice"))


@pytest.fixture(autouse=True)
def no_settings(monkeypatch):
    for name in list(os.environ):
        if name.startswith("SLUICE_"):
            monkeypatch.delenv(name)


def faults_of(settings):
    with pytest.raises(ConfigurationError) as caught:
        settings.check()
    return caught.value.faults


def test_defaults_serve_loopback_from_a_file():
    settings = load()
    assert (settings.environment, settings.http.host, settings.http.port) == (
        "development",
        "127.0.0.1",
        8000,
    )
    assert settings.database.sqlite_file == Path("var/sluice.db")
    assert settings.key_file == Path("var/keyring.json")
    assert settings.auth.required


def test_the_environment_reaches_nested_settings_and_lists(monkeypatch):
    monkeypatch.setenv("SLUICE_HTTP__PORT", "9000")
    monkeypatch.setenv("SLUICE_HTTP__ALLOWED_HOSTS", "sluice.internal, localhost:9000")
    monkeypatch.setenv("SLUICE_TELEMETRY__METRICS", "false")
    settings = load()
    assert settings.http.port == 9000
    assert settings.http.allowed_hosts == ("sluice.internal", "localhost:9000")
    assert settings.telemetry.metrics is False


def test_the_environment_wins_over_the_file(monkeypatch, tmp_path):
    file = tmp_path / "sluice.toml"
    file.write_text(
        '[http]\nport = 1\nallowed_hosts = ["a", "b"]\nkeep_alive_s = 7\n[vault]\ndefault_ttl_s = 60\n'
    )
    monkeypatch.setenv("SLUICE_CONFIG", str(file))
    monkeypatch.setenv("SLUICE_HTTP__PORT", "2")
    settings = load()
    assert (settings.http.port, settings.http.keep_alive_s, settings.vault.default_ttl_s) == (2, 7, 60)
    assert settings.http.allowed_hosts == ("a", "b")


@pytest.mark.parametrize("name", ["SLUICE_HTTP_PORT", "SLUICE_HTTP__PROT", "SLUICE_PORT", "SLUICE_HTTP"])
def test_an_unknown_name_stops_the_start_and_is_named(monkeypatch, name):
    monkeypatch.setenv(name, "1")
    with pytest.raises(ConfigurationError, match=rf"Unknown setting {name};"):
        load()


@pytest.mark.parametrize("name", ["SLUICE_TEST_ANYTHING", "SLUICE_URL", "SLUICE_API_KEY"])
def test_names_of_the_tests_and_of_the_command_line_are_left_alone(monkeypatch, name):
    monkeypatch.setenv(name, "1")
    assert load() == Settings()


def test_an_unknown_name_in_the_file_is_named(monkeypatch, tmp_path):
    file = tmp_path / "sluice.toml"
    file.write_text("[http]\nprot = 1\n")
    monkeypatch.setenv("SLUICE_CONFIG", str(file))
    with pytest.raises(ConfigurationError, match="SLUICE_HTTP__PROT is wrong: extra inputs"):
        load()


def test_a_file_that_is_absent_or_broken_is_named(monkeypatch, tmp_path):
    file = tmp_path / "sluice.toml"
    monkeypatch.setenv("SLUICE_CONFIG", str(file))
    with pytest.raises(ConfigurationError, match=r"cannot be read: No such file"):
        load()
    file.write_text("[http\n")
    with pytest.raises(ConfigurationError, match="not a valid TOML file"):
        load()


def test_every_fault_is_reported_at_once_and_no_value_is_repeated(monkeypatch):
    monkeypatch.setenv("SLUICE_HTTP__PORT", "70000")
    monkeypatch.setenv("SLUICE_AUTH__BOOTSTRAP_KEY", "hunter2-hunter2")
    monkeypatch.setenv("SLUICE_DATABASE__URL", "mysql://root:hunter2@db/x")
    monkeypatch.setenv("SLUICE_TRAFFIC__SHARED_URL", "https://root:hunter2@redis/0")
    with pytest.raises(ConfigurationError) as caught:
        load()
    assert len(caught.value.faults) == 4
    assert "SLUICE_HTTP__PORT is wrong: input should be less than or equal to 65535." in caught.value.faults
    assert "hunter2" not in str(caught.value)


def test_secrets_do_not_show_in_the_representation():
    settings = Settings(
        database=POSTGRES,
        auth=AuthSettings(bootstrap_key=SecretStr(str(ApiKey.generate()))),
        keys=KeysSettings(ring=SecretStr("1:c2VjcmV0")),
    )
    shown = repr(settings) + settings.model_dump_json()
    assert "Vh3kQz81xWm0" not in shown
    assert "slc_" not in shown
    assert "c2VjcmV0" not in shown


def test_settings_cannot_be_changed():
    with pytest.raises(ValidationError):
        Settings().http.port = 1


@pytest.mark.parametrize(
    ("url", "file"),
    [
        ("sqlite:///var/x.db", Path("var/x.db")),
        ("sqlite:////srv/x.db", Path("/srv/x.db")),
        ("sqlite+aiosqlite:///x%20y.db?timeout=5", Path("x y.db")),
        ("postgresql://u:p@h/d", None),
    ],
)
def test_the_sqlite_file_is_read_from_the_url(url, file):
    assert DatabaseSettings(url=SecretStr(url)).sqlite_file == file


def test_the_key_ring_lies_beside_the_database_unless_named():
    beside = Settings(database=DatabaseSettings(url=SecretStr("sqlite:////srv/a/x.db")))
    assert beside.key_file == Path("/srv/a/keyring.json")
    assert Settings(database=POSTGRES).key_file == Path("var/keyring.json")
    assert Settings(keys=KeysSettings(file=Path("/k/ring"))).key_file == Path("/k/ring")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_development_listens_on_loopback_only(host):
    assert "loopback" in faults_of(Settings(http=HttpSettings(host=host)))[0]


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "[::1]", "localhost"])
def test_development_takes_any_loopback_address(host):
    Settings(http=HttpSettings(host=host)).check()


def test_sqlite_refuses_a_second_process():
    assert "SQLite serves one process" in faults_of(Settings(http=HttpSettings(workers=2)))[0]
    Settings(http=HttpSettings(workers=2), database=POSTGRES).check()


def test_the_address_of_a_poolers_server_is_postgresqls_and_where_migrations_go():
    direct = SecretStr("postgresql://u:Vh3kQz81xWm0@server/d")
    assert Settings(database=POSTGRES).database.owner_url == POSTGRES.url.get_secret_value()
    pooled = DatabaseSettings(url=SecretStr("postgresql://u:Vh3kQz81xWm0@pooler/d"), direct_url=direct)
    Settings(database=pooled).check()
    assert pooled.owner_url == direct.get_secret_value()
    assert pooled.display_name == "PostgreSQL database server/d"
    beside_sqlite = Settings(database=DatabaseSettings(direct_url=direct))
    assert "SLUICE_DATABASE__DIRECT_URL" in faults_of(beside_sqlite)[0]
    for name in ("direct_url", "read_url"):
        with pytest.raises(ValidationError):
            DatabaseSettings(url=POSTGRES.url, **{name: SecretStr("sqlite:///x.db")})
    beside_sqlite = Settings(database=DatabaseSettings(read_url=direct))
    assert "SLUICE_DATABASE__READ_URL" in faults_of(beside_sqlite)[0]


def test_production_takes_any_address_with_sound_settings():
    Settings(
        environment="production",
        http=HttpSettings(host="0.0.0.0"),
        database=POSTGRES,
        auth=AuthSettings(bootstrap_key=SecretStr(str(ApiKey.generate()))),
        keys=KeysSettings(ring=SecretStr("1:kX0q2uV9mC4yZt7bR1sLwPj3nE6oHd8fGaKiUxTvYcM=")),
    ).check()


@pytest.mark.parametrize(
    ("section", "named"),
    [
        ({"auth": AuthSettings(required=False)}, "SLUICE_AUTH__REQUIRED"),
        ({"auth": AuthSettings(bootstrap_key=SecretStr(SAMPLE_KEY))}, "SLUICE_AUTH__BOOTSTRAP_KEY"),
        (
            {"keys": KeysSettings(ring=SecretStr("1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="))},
            "SLUICE_KEYS__RING",
        ),
        (
            {"database": DatabaseSettings(url=SecretStr("postgresql://u:password@h/d"))},
            "SLUICE_DATABASE__URL",
        ),
        (
            {"database": DatabaseSettings(url=SecretStr("postgresql://u:ChangeMe9@h/d"))},
            "SLUICE_DATABASE__URL",
        ),
        (
            {
                "database": DatabaseSettings(
                    url=POSTGRES.url, direct_url=SecretStr("postgresql://u:password@h/d")
                )
            },
            "SLUICE_DATABASE__DIRECT_URL",
        ),
        (
            {"directory": DirectorySettings(url=SecretStr("postgresql://u:password@h/d"), shard="east")},
            "SLUICE_DIRECTORY__URL",
        ),
    ],
)
def test_production_refuses_what_development_takes(section, named):
    Settings(**section).check()
    faults = faults_of(Settings(environment="production", **section))
    assert len(faults) == 1
    assert named in faults[0]


def test_random_keys_are_never_taken_for_samples():
    assert not any(is_sample(str(ApiKey.generate())) for _ in range(5000))


def test_every_setting_has_a_name_of_its_own_and_a_description():
    names = [variable(section, name) for section, name, _ in walk()]
    assert len(names) == len(set(names)) == len(known_variables() - {CONFIG_VARIABLE, *CLIENT_VARIABLES})
    assert all(field.description and field.description.endswith(".") for _, _, field in walk())


@pytest.mark.parametrize("page", ["configuration", "licences", "policy"])
def test_generated_pages_are_up_to_date(page):
    docs = Path(__file__).parents[2] / "docs"
    rendered = runpy.run_path(str(docs / "generate.py"))[f"render_{page}"]()
    assert (docs / f"{page}.md").read_text(encoding="utf-8") == rendered, "run: python docs/generate.py"
