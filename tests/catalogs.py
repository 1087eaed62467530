"""Catalogs made by hand, for tests of what is done with them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from app.core.catalog.primitives import GROUPS_META, NAME_FIELD, Catalog, Primitive, PrimitiveKind
from app.core.client_features import NO_FEATURES, ClientFeatures
from app.core.tools.disclosure import short_form


def primitive(
    kind: PrimitiveKind,
    server: str,
    own_name: str,
    *,
    name: str | None = None,
    groups: tuple[str, ...] = (),
    within: frozenset[str] | None = None,
    concerns: Mapping[str, Any] | None = None,
    staged: bool = False,
    **members: Any,
) -> Primitive:
    """Return a primitive as the catalog holds it; ``members`` are more of its definition."""
    separate = kind in {PrimitiveKind.TOOL, PrimitiveKind.PROMPT}
    shown = name or (f"{server}__{own_name}" if separate else own_name)
    definition: dict[str, Any] = {NAME_FIELD[kind]: shown, **members}
    if kind is PrimitiveKind.TOOL:
        definition.setdefault("description", f"Does {own_name}.")
        definition.setdefault("inputSchema", {"type": "object"})
    if groups:
        definition["_meta"] = {**definition.get("_meta", {}), GROUPS_META: list(groups)}
    return Primitive(
        kind=kind,
        server=server,
        own_name=own_name,
        name=shown,
        definition=definition,
        digest=f"digest of {shown}",
        groups=groups,
        within=frozenset(groups) if within is None else within,
        concerns=concerns or {},
        short=short_form(definition, None) if kind is PrimitiveKind.TOOL else None,
        staged=staged,
    )


def tool(server: str, own_name: str, **options: Any) -> Primitive:
    return primitive(PrimitiveKind.TOOL, server, own_name, **options)


def catalog_of(*primitives: Primitive) -> Catalog:
    found: dict[PrimitiveKind, dict[str, Primitive]] = {kind: {} for kind in NAME_FIELD}
    for one in primitives:
        found[one.kind][one.name] = one
    return Catalog(found)


@dataclass
class Shelf:
    """Catalogs by tenant."""

    catalogs: dict[str, Catalog] = field(default_factory=dict)

    async def get(self, tenant: str, features: ClientFeatures = NO_FEATURES) -> Catalog:
        return self.catalogs.get(tenant, catalog_of())
