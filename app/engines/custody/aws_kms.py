"""Open the key ring with a key of a key service that speaks as AWS KMS does (extra ``kms``).

Requests are signed (SigV4) by botocore, with region, endpoint and credentials from the environment, as for the tools of
AWS.
"""

from dataclasses import dataclass
from typing import Any, Final

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.session import get_session

from app.engines.cipher import KeyRingError
from app.engines.custody.sealed_ring import CONTEXT, CustodianDownError

SCHEME: Final = "aws-kms:"
MOST_BYTES: Final = 4096
_CHANGED: Final = frozenset({"InvalidCiphertextException", "IncorrectKeyException"})
_CONTEXT: Final = {"for": CONTEXT.decode()}


@dataclass(frozen=True, slots=True)
class KmsCustodian:
    """A key of the service: ``aws-kms:`` and its ARN, id or alias."""

    uri: str
    patience_s: float = 5.0

    @property
    def name(self) -> str:
        """Return where the key is."""
        return self.uri

    def seal(self, content: bytes) -> bytes:
        """Return ``content`` sealed."""
        if len(content) > MOST_BYTES:
            raise KeyRingError(
                "The key ring has too many versions for a key service: remove those that wrap nothing."
            )
        sealed: bytes = self._asked("encrypt", Plaintext=content)["CiphertextBlob"]
        return sealed

    def open(self, sealed: bytes) -> bytes:
        """Return what was sealed."""
        content: bytes = self._asked("decrypt", CiphertextBlob=sealed)["Plaintext"]
        return content

    def _asked(self, operation: str, **arguments: Any) -> dict[str, Any]:
        config = Config(
            connect_timeout=self.patience_s, read_timeout=self.patience_s, retries={"total_max_attempts": 2}
        )
        try:
            client = get_session().create_client("kms", config=config)
            answer: dict[str, Any] = getattr(client, operation)(
                KeyId=self.uri.removeprefix(SCHEME), EncryptionContext=_CONTEXT, **arguments
            )
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code", "")
            if code in _CHANGED:
                raise KeyRingError(
                    "The key ring was not sealed by this key of the service, or was changed."
                ) from None
            raise CustodianDownError(f"The key service refuses this ({code}).") from None
        except BotoCoreError as error:
            raise CustodianDownError(f"The key service does not answer ({type(error).__name__}).") from None
        return answer
