"""What this service adds to the proposal's tool filter: lists of tools that follow it."""

OURS = "The wire of this service"

REQUIREMENTS_TOOLS: dict[str, tuple[str, str]] = {
    "TF-LIST": (
        OURS,
        "_meta dev.sluice/toolFilter of tools/list narrows that answer alone; what is left out stays callable.",
    ),
    "TF-CURSOR": (OURS, "A cursor of a narrowed list holds for the same choice only."),
    "TF-SESSION": (
        OURS,
        "With applyToSession a session lists what tool_filter suggested, and its streams hear list_changed.",
    ),
}
