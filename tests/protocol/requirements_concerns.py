"""What the proposal of concern-based filtering requires, and what this service adds to it."""

PROPOSAL = "Concern-based filtering proposal"
OURS = "The wire of this service"

REQUIREMENTS_CONCERNS: dict[str, tuple[str, str]] = {
    "CB-CAPABILITY": (
        PROPOSAL + ", Concern Declaration, option A",
        "The server's capabilities have the array concerns; a server without concerns has no such field.",
    ),
    "CB-LIST": (
        PROPOSAL + ", Concern Declaration, option B",
        "listConcerns returns the same definitions as the capability.",
    ),
    "CB-DEFINITION": (
        PROPOSAL + ", Concern Definition",
        "A concern has name, description, values (a set or a range) and default.",
    ),
    "CB-INITIALIZED": (
        PROPOSAL + ", Concern Configuration, option A",
        "The host may configure concerns in the initialized notification.",
    ),
    "CB-UPDATE": (
        PROPOSAL + ", Concern Configuration, option B",
        "updateConcerns succeeds and takes effect for all lists that follow.",
    ),
    "CB-INITIALIZE": (
        PROPOSAL + ", Concern Configuration, option C",
        "The host may configure concerns in the initialize request.",
    ),
    "CB-PREFERENCES": (
        PROPOSAL + ", Concern Configuration, option D",
        "Preferences may be stored per user and apply without being sent.",
    ),
    "CB-UNDECLARED": (
        PROPOSAL + ", Configuration Format",
        "An entry that the server does not declare is ignored, with a warning.",
    ),
    "CB-OUTSIDE": (
        PROPOSAL + ", New Protocol Methods",
        "A value outside values is clamped, ignored or an error.",
    ),
    "CB-DEFAULT": (
        PROPOSAL + ", Configuration Format",
        "A concern that is not configured uses the declared default; here where the policy says so.",
    ),
    "CB-RULE": (
        PROPOSAL + ", Filtering Mechanism",
        "A primitive is listed if for every configured concern its mapped value, if any, matches.",
    ),
    "CB-KINDS": (
        PROPOSAL + ", Filtering Mechanism",
        "Filtering applies to all primitives that support concerns.",
    ),
    "CB-INTERNAL": (PROPOSAL + ", Implementation Flexibility", "The mapping is internal to the server."),
    "CB-META": (
        PROPOSAL + ", Implementation Flexibility",
        "A primitive may say its values in _meta.concerns, for debugging.",
    ),
    "CB-UNAWARE": (
        PROPOSAL + ", Backward Compatibility",
        "A client that knows nothing of concerns gets the full set.",
    ),
    "CB-NO-ACCESS": (
        PROPOSAL + ", Security Implications",
        "Filtering is no access control: what is not listed can be called.",
    ),
    "CB-PRECEDENCE": (
        OURS,
        "The request's _meta, then the last update, initialized, initialize, stored preferences.",
    ),
    "CB-MERGE": (OURS, "An update merges, null removes, replace replaces."),
    "CB-HANDLE": (OURS, "Without sessions an update returns a handle that belongs to its caller."),
    "CB-CURSOR": (OURS, "A cursor is bound to the effective configuration; a stale one is -32602."),
    "CB-CACHE": (OURS, "A filtered list is private and not to be kept."),
    "CB-TOLD": (OURS, "After an update the session is told that its lists changed, and no other is."),
    "CB-REPLICAS": (OURS, "Every replica knows what a session configured."),
    "CB-WARNINGS": (OURS, "A list says in its _meta what was not taken as it was said."),
}
