"""The settings of how callers authenticate."""

from pydantic import Field, SecretStr, field_validator

from app.core.access import KEY_PATTERN
from app.settings.sections import Section


class AuthSettings(Section):
    """How callers authenticate."""

    required: bool = Field(
        default=True,
        description="Require keys. If off, every caller is the development caller with all roles; never in production.",
    )
    bootstrap_key: SecretStr | None = Field(
        default=None,
        description="First API key, `slc_<8 hex digits>_<43 of base64url>`; without it, the first start in "
        "development creates one and prints it once.",
    )

    @field_validator("bootstrap_key")
    @classmethod
    def well_formed(cls, key: SecretStr | None) -> SecretStr | None:
        """Refuse a key of another format, without repeating it."""
        if key is not None and not KEY_PATTERN.fullmatch(key.get_secret_value()):
            raise ValueError("a key must have the form slc_<8 hex digits>_<43 characters of base64url>")
        return key
