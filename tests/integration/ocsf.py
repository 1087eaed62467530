"""Check documents against the class API Activity of OCSF, by the schema's own words."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

_SCHEMA: Final = json.loads(Path(__file__).with_name("ocsf_api_activity.json").read_text())
_TYPES: Final[Mapping[str, type | tuple[type, ...]]] = {
    **dict.fromkeys(("integer_t", "long_t", "timestamp_t", "port_t"), int),
    "boolean_t": bool,
    "float_t": float,
    "json_t": object,
}


def faults(document: Mapping[str, Any]) -> list[str]:
    """Return what does not fit, each with its place."""
    profiles = set(document.get("metadata", {}).get("profiles", ()))
    found = _faults(document, _SCHEMA["attributes"], profiles, "")
    if document.get("type_uid") != document.get("class_uid", 0) * 100 + document.get("activity_id", 0):
        found.append("/type_uid")
    return found


def _faults(
    values: Mapping[str, Any], attributes: Mapping[str, Any], profiles: set[str], place: str
) -> list[str]:
    found = [f"{place}/{name} is unknown" for name in values.keys() - attributes.keys()]
    for name, attribute in attributes.items():
        profile = attribute.get("profile")
        if name not in values:
            is_meant = profile is None or profile in profiles
            found += (
                [f"{place}/{name} is missing"]
                if attribute.get("requirement") == "required" and is_meant
                else []
            )
            continue
        if profile is not None and profile not in profiles:
            found.append(f"{place}/{name} is of the profile {profile}")
        if attribute.get("deprecated_since"):
            found.append(f"{place}/{name} is deprecated")
        found += _value_faults(values, name, attribute, profiles, f"{place}/{name}")
    return found


def _value_faults(
    values: Mapping[str, Any], name: str, attribute: Mapping[str, Any], profiles: set[str], place: str
) -> list[str]:
    value, found = values[name], []
    if attribute.get("array"):
        if not isinstance(value, list):
            return [f"{place} is no array"]
        members = value
    else:
        members = [value]
    for member in members:
        if attribute["type"] == "object":
            found += _object_faults(member, attribute["object"], profiles, place)
        elif type(member) is not _TYPES.get(attribute["type"], str) and attribute["type"] != "json_t":
            found.append(f"{place} has another type")
    captions = attribute.get("enum")
    if captions and str(value) not in captions:
        found.append(f"{place} has another value")
    sibling = attribute.get("sibling")
    if captions and sibling in values and captions.get(str(value)) not in {values[sibling], "Other"}:
        found.append(f"{place} and {sibling} differ")
    return found


def _object_faults(member: Any, kind: str, profiles: set[str], place: str) -> list[str]:
    if not isinstance(member, dict):
        return [f"{place} is no object"]
    if kind == "object":  # free, as unmapped
        return []
    schema = _SCHEMA["objects"].get(kind)
    if schema is None:
        return [f"{place} is of a kind that is not checked: {kind}"]
    needed = schema["constraints"].get("at_least_one", ())
    lacking = (
        [f"{place} has none of {', '.join(needed)}"] if needed and not member.keys() & set(needed) else []
    )
    return lacking + _faults(member, schema["attributes"], profiles, place)
