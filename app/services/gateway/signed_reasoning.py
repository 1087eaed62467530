"""Keep reasoning as its provider signed it, sealed in the scope of its conversation, and give it back there alone."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from app.core.errors import ConflictError
from app.engines.cipher import KeyKeeper, KeyRingError, ScopeKeys, SealBrokenError
from app.services.gateway.request_vaults import RequestVault
from app.services.vault.opening import key_unavailable
from app.services.vault.vault import DEFAULT_TTL_S
from app.store.database import Database
from app.store.vault.allocation import Allocation, find_scopes
from app.store.vault.conversations import list_signed, put_signed
from app.store.vault.numbering import Numbering, Want

_LABEL = "signed block"


class SignedBlockGoneError(ConflictError):
    """A turn needs a signed block that the conversation's scope does not have, or has no more."""


@dataclass(frozen=True, slots=True)
class SignedBlocks:
    """Signed blocks of all conversations, by the digest that the API's family gives them."""

    database: Database
    key_keeper: KeyKeeper
    default_ttl_s: int = DEFAULT_TTL_S
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    async def keep(self, vault: RequestVault, blocks: Mapping[str, bytes], ttl_s: int | None = None) -> None:
        """Seal ``blocks`` (by digest, as they came) in the scope of the conversation, which is made if it is new."""
        if not blocks:
            return
        await self.database.retried(lambda: self._keep(vault, blocks, ttl_s))

    async def fetch(self, vault: RequestVault, digests: Collection[str]) -> dict[str, bytes]:
        """Return the blocks with ``digests``; raise SignedBlockGoneError if this conversation lacks one of them."""
        wanted = list(dict.fromkeys(digests))
        if not wanted:
            return {}
        tenant, name = vault.caller.tenant, vault.scope.name
        async with self.database.transaction(tenant, write=False) as tx:
            row = (await find_scopes(tx, [(tenant, name)])).get((tenant, name))
            if row is None or not row.live(self.now()):
                raise _gone()
            if row.owner not in {None, vault.vault.identity(vault.caller)}:
                raise _gone()
            if row.dek_wrapped is None or row.kek_version is None:
                raise _gone()
            try:
                keys = self.key_keeper.open(tenant, name, row.generation, row.kek_version, row.dek_wrapped)
            except KeyRingError as error:
                raise key_unavailable(error) from None
            lookups = [_lookup(keys, digest) for digest in wanted]
            sealed = await list_signed(tx, tenant, name, lookups)
        try:
            return {
                digest: keys.open(_LABEL + digest, 0, sealed[lookup])
                for digest, lookup in zip(wanted, lookups, strict=True)
            }
        except (KeyError, SealBrokenError):
            raise _gone() from None

    async def _keep(self, vault: RequestVault, blocks: Mapping[str, bytes], ttl_s: int | None) -> None:
        tenant, scope = vault.caller.tenant, vault.scope
        want = Want(
            tenant,
            scope.name,
            (),
            self.now() + timedelta(seconds=ttl_s or self.default_ttl_s),
            owner=scope.owner,
            identity=vault.vault.identity(vault.caller),
        )
        async with self.database.transaction(tenant) as tx:
            numbering = Numbering(self.key_keeper, self.now())
            await Allocation(tx, numbering).run([want])
            keys: ScopeKeys = numbering.uses[want.place]
            sealed = {
                _lookup(keys, digest): keys.seal(_LABEL + digest, 0, raw) for digest, raw in blocks.items()
            }
            await put_signed(tx, tenant, scope.name, sealed, self.now())
        numbering.keep()


def _lookup(keys: ScopeKeys, digest: str) -> bytes:
    return keys.lookup(_LABEL, digest.encode(), canonical=False)


def _gone() -> SignedBlockGoneError:
    return SignedBlockGoneError(
        "This turn holds signed reasoning that its conversation does not have any more (it expired, was erased, or "
        "belongs to another conversation), so the turn was not sent. Leave the reasoning out, or begin again."
    )
