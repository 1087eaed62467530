"""What the proposal of primitive groups requires, and what this service adds to it."""

PROPOSAL = "Primitive grouping proposal"
OURS = "The wire of this service"

REQUIREMENTS_GROUPS: dict[str, tuple[str, str]] = {
    "PG-CAPABILITY": (
        PROPOSAL,
        "A server that supports groups declares it, and whether its list may change.",
    ),
    "PG-UNIQUE": (PROPOSAL, "The name of a group is unique."),
    "PG-LIST": (PROPOSAL, "groups/list answers {groups: [{name, title?, description?}]}."),
    "PG-OMITTED": (PROPOSAL, "Only the name is required: what a group has not is not there."),
    "PG-META": (PROPOSAL, "Each primitive names its groups in _meta, groups and middlewares too."),
    "PG-MERGED": (PROPOSAL, "The key stands beside what was in _meta before, and nowhere without groups."),
    "PG-MANY": (PROPOSAL, "A primitive may be in several groups, and a group in several others."),
    "PG-LIST-CHANGED": (PROPOSAL, "A change of a group sends notifications/groups/list_changed."),
    "PG-MEMBERSHIP-CHANGED": (PROPOSAL, "A change of membership sends the list_changed of that primitive."),
    "PG-GET": (OURS, "groups/get answers a group with its members; an unknown one is -32602 at /name."),
    "PG-PAGES": (OURS, "groups/list is paged in a stable order; a stale cursor is -32602."),
    "PG-NARROWED": (OURS, "A list request may name groups, and lists only what is in them or below."),
    "PG-NARROWED-UNKNOWN": (OURS, "An unknown group in a list request is -32602 with its place."),
    "PG-ENDPOINT": (OURS, "At /mcp/groups/{name} only what is in the group or below exists."),
    "PG-ENDPOINT-UNKNOWN": (OURS, "The endpoint of a group that is not there is 404."),
    "PG-ENDPOINT-SESSION": (OURS, "A session belongs to the endpoint where it began."),
    "PG-VISIBLE": (OURS, "A group of which a caller may use nothing does not exist for that caller."),
    "PG-ACCESS": (OURS, "Access by group holds for calls and reads; unknown and forbidden look the same."),
    "PG-AGENTIC": (OURS, "Where it is allowed, a model switches groups off and on in its own session."),
    "PG-AGENTIC-OFF": (OURS, "Without leave, and without a session, there are no such tools."),
}
