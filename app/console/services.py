"""What the pages call: the use cases, never the store."""

from dataclasses import dataclass, field

from app.console.live import LivePages
from app.services.access.access import AccessService
from app.services.access.console_sessions import ConsoleSessions
from app.services.access.identity.issuers import IssuerService
from app.services.access.policies import PolicyService
from app.services.access.traffic import Traffic
from app.services.audit.anchoring import LogLag
from app.services.audit.audit import AuditService
from app.services.documents.collections import CollectionService
from app.services.documents.ingestion import IngestionService
from app.services.documents.trials import SearchTrials
from app.services.gateway.providers import ProviderService
from app.services.invoke.explaining import ExplainService
from app.services.invoke.invoke import InvokeService
from app.services.invoke.pipelines import PipelineService
from app.services.previews.catalogs import ClientCatalogs
from app.services.servers.server_admin import ServerService
from app.services.servers.user_grants import UserGrants
from app.services.vault.tenant_erasure import TenantErasure
from app.services.vault.vault import VaultService


@dataclass(frozen=True, slots=True)
class ConsoleServices:
    """The use cases behind the pages; ``requests`` holds a tenant to its rate, as for other requests."""

    sessions: ConsoleSessions
    access: AccessService
    issuers: IssuerService
    audit: AuditService
    policies: PolicyService
    pipelines: PipelineService
    servers: ServerService
    providers: ProviderService
    client_catalogs: ClientCatalogs
    grants: UserGrants
    invoke: InvokeService
    explaining: ExplainService
    vault: VaultService
    tenant_erasure: TenantErasure
    collections: CollectionService
    ingestion: IngestionService
    trials: SearchTrials
    lag: LogLag
    version: str
    requests: Traffic = field(default_factory=Traffic)
    live: LivePages = field(default_factory=LivePages)
