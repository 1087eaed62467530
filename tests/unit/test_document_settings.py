"""The settings of an index on another server refuse what it would not understand, and never repeat a secret."""

import pytest
from pydantic import ValidationError

from app.settings import ConfigurationError, DocumentsSettings, Settings

URL = "https://search.example:9200"


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "opensearch", "api_key": "heron-lantern"},
        {"kind": "qdrant", "user": "ann", "password": "heron-lantern"},
        {"kind": "elasticsearch", "user": "ann", "api_key": "heron-lantern"},
        {"url": "https://ann:heron-lantern@search.example"},
        {"url": "file:///etc/passwd"},
        {"prefix": "../other"},
        {"ca_file": "/nowhere/ca.pem"},
    ],
)
def test_wrong_combinations_are_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(ValidationError) as refused:
        DocumentsSettings.model_validate({"url": URL, **wrong})
    assert "heron-lantern" not in str(refused.value.errors(include_input=False))


def test_production_checks_certificates() -> None:
    section = DocumentsSettings(url=URL, verify=False)
    with pytest.raises(ConfigurationError, match="SLUICE_DOCUMENTS__VERIFY"):
        Settings(environment="production", documents=section).check()
    Settings(documents=section).check()
