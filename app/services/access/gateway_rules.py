"""Check what a policy says of the gateway against the tenant's pipelines."""

from collections.abc import Mapping

from app.core.contracts.gateway_pipelines import flattened
from app.core.contracts.gateway_policy import GatewayPolicy
from app.core.contracts.pipelines import Pipeline
from app.core.errors import BlockedByPolicyError, InvalidArgumentsError
from app.store.pipelines import StoredPipeline


def check_gateway(policy: GatewayPolicy, stored: Mapping[str, StoredPipeline]) -> None:
    """Refuse entries that the gateway could not run as they are written; ``stored`` are pipelines by name."""

    def find(name: str) -> Pipeline | None:
        pipeline = stored.get(name)
        return (
            None
            if pipeline is None
            else Pipeline.model_validate({**pipeline.document, "name": pipeline.name})
        )

    for number, entry in enumerate(policy.pipelines):
        try:
            flattened(entry, find)
        except BlockedByPolicyError as error:
            pointer = f"/gateway/pipelines/{number}{error.details['pointer']}"
            raise InvalidArgumentsError(error.message, details={"pointer": pointer}) from None
