"""What the proposal of progressive disclosure requires, and what this service adds to it."""

PROPOSAL = "Progressive disclosure proposal"
OURS = "The wire of this service"

REQUIREMENTS_DISCLOSURE: dict[str, tuple[str, str]] = {
    "PD-STAGES": (PROPOSAL + " 2, 3.1", "Tools are listed by minimal descriptions through tools/list."),
    "PD-SELECTION": (
        PROPOSAL + " 3.1",
        "A minimal description is enough to choose the tool, and tells its purpose.",
    ),
    "PD-MINIMAL": (
        PROPOSAL + " 3.1",
        "A minimal description has no parameter schemas, examples or usage instructions.",
    ),
    "PD-OPEN-SCHEMA": (PROPOSAL + " 3.1", "Input schemas are simplified to an open object."),
    "PD-RESOURCE": (
        PROPOSAL + " 2, 3.2, 4.1",
        "The resource tool_descriptions is exposed via resources/list.",
    ),
    "PD-FULL-SCHEMA": (PROPOSAL + " 3.2", "Full descriptions include complete input schemas."),
    "PD-EXAMPLES": (PROPOSAL + " 3.2", "Full descriptions include usage examples."),
    "PD-ERRORS": (PROPOSAL + " 3.2", "Full descriptions include error handling guidance."),
    "PD-QUERY": (PROPOSAL + " 3.2, 4.3", "The resource accepts a tools parameter of comma-separated names."),
    "PD-NAME": (PROPOSAL + " 4.1", "The resource's name says that it contains tool descriptions."),
    "PD-MIME": (PROPOSAL + " 4.1", "The resource is application/json."),
    "PD-WORKFLOW": (
        PROPOSAL + " 4.1, 4.2",
        "Its description explains its relation to tools/list, fetching first, the syntax and the consequences.",
    ),
    "PD-WORKFLOW-CLEAR": (
        PROPOSAL + " 4.2",
        "It has steps, tells selection from learning, gives concrete URIs and says what fetching authorizes.",
    ),
    "PD-EXACT-NAMES": (PROPOSAL + " 4.3", "Tool names match exactly as shown in tools/list."),
    "PD-MISSING": (PROPOSAL + " 4.3, 6.1", "A read without the parameter returns MISSING_TOOL_SELECTION."),
    "PD-MAP": (PROPOSAL + " 4.4", "The resource is a JSON object from tool names to full descriptions."),
    "PD-ONLY-ASKED": (PROPOSAL + " 4.4", "It contains only the tools of the parameter, and no preamble."),
    "PD-DYNAMIC": (PROPOSAL + " 4.4", "It is made at the time of the request."),
    "PD-GATE": (PROPOSAL + " 5.1, 6.2", "A call without a read before fails with TOOL_DESCRIPTION_REQUIRED."),
    "PD-AUTHORIZES": (PROPOSAL + " 5.1", "A read authorizes the tool for the lifetime of the session."),
    "PD-ISOLATED": (PROPOSAL + " 5.1, 5.2", "Authorization is isolated per session."),
    "PD-LIFECYCLE": (PROPOSAL + " 5.2", "Authorization ends with the session."),
    "PD-LAYERS": (PROPOSAL + " 5.3, 10.1", "Authorization is additive: a read grants access to no tool."),
    "PD-NOT-FOUND": (PROPOSAL + " 6.3", "An unknown tool has an error entry that names the available ones."),
    "PD-FILES": (
        PROPOSAL + " 7",
        "Descriptions may be stored as one file per tool, read again when a file changes.",
    ),
    "PD-SAME-ACCESS": (PROPOSAL + " 10.2", "The resource describes only tools that the caller may use."),
    "PD-RATE": (PROPOSAL + " 10.3", "Reads are limited in rate."),
    "PD-SWITCH": (
        OURS,
        "Staged or flat is a switch of the server, the tenant and the key; flat is as without all this.",
    ),
    "PD-TEMPLATE": (OURS, "A template names the parameter, for clients that look for it there."),
    "PD-STRUCTURED": (
        OURS,
        "The refusal is structured content too, where the tool's output schema allows that.",
    ),
    "PD-HANDLE": (OURS, "Without sessions a handle carries the authorization; further reads extend it."),
    "PD-STOLEN": (OURS, "A handle of another caller, and one that does not exist, is -32602."),
    "PD-WITHOUT-HANDLE": (OURS, "What holds without a handle is a setting: refuse, per caller, or off."),
    "PD-CHANGED": (OURS, "A changed definition revokes the authorization."),
    "PD-ORDER": (
        OURS,
        "An unknown tool is refused as unknown; arguments are looked at after the read was checked.",
    ),
}
