"""What the RFC of selective loading requires, and what this service adds to it."""

RFC = "RFC: Selective server and tool loading"
OURS = "The wire of this service"

REQUIREMENTS_SELECTIVE: dict[str, tuple[str, str]] = {
    "SL-SERVERS": (RFC, "filter_servers makes a registry of these only; no other server is connected to."),
    "SL-SERVERS-MISSING": (RFC, "Names that are not in the registry are a ValueError that lists them."),
    "SL-SERVERS-EMPTY": (RFC, "An empty list gives an empty registry."),
    "SL-SERVER-NAMES": (RFC, "server_names is kept and deprecated."),
    "SL-TOOLS": (RFC, "Of a server in the filter only the named tools are exposed; [] is none."),
    "SL-TOOLS-ALL": (RFC, "None for a server, and a server that the filter does not name, are all tools."),
    "SL-BOTH": (RFC, "Both levels work together."),
    "SL-NEGATIVE": (OURS, "Names with a - in front expose all other tools; a mixture is refused."),
    "SL-REFUSED": (OURS, "A tool that is filtered out, unknown or unlisted never reaches a server."),
    "SL-ALIAS": (OURS, "An alias takes the place of a tool's name."),
    "SL-LONGEST": (OURS, "The longest registered server name in front of a tool's name wins."),
    "SL-DOWN": (OURS, "A server that is down is reported; the others keep working."),
}
