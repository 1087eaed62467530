"""What the interceptor proposal (SEP-2624) requires of a host, and what this service adds to it."""

PROPOSAL = "Interceptor proposal (SEP-2624)"
OURS = "The wire of this service"

REQUIREMENTS_INTERCEPTORS: dict[str, tuple[str, str]] = {
    "IC-CAPABILITY": (PROPOSAL, "A host declares the extension and the events that it supports."),
    "IC-LIST": (PROPOSAL, "interceptors/list answers descriptors; defaults are left out of the wire."),
    "IC-LIST-EVENT": (
        PROPOSAL,
        "With an event, only interceptors that hook it are listed; a pattern is -32602.",
    ),
    "IC-NAMES": (PROPOSAL, "Names are unique within a host."),
    "IC-CONFIG-SCHEMA": (PROPOSAL, "A configSchema is an object schema; a config against it is -32602."),
    "IC-VALIDATION": (PROPOSAL, "A validator answers a ValidationResult and changes nothing."),
    "IC-NEGATIVE": (PROPOSAL, "A negative verdict is a normal result."),
    "IC-MUTATION": (
        PROPOSAL,
        "A mutator answers a MutationResult with the whole payload, unchanged where unmodified.",
    ),
    "IC-FORM": (PROPOSAL, "A replacement payload has the form of the one that was given."),
    "IC-UNKNOWN": (PROPOSAL, "An unknown name is -32602."),
    "IC-HOOK": (PROPOSAL, "An event or phase that is not hooked is -32602 with the advertised hooks."),
    "IC-TIMEOUT": (
        PROPOSAL,
        "What exceeds timeoutMs is cancelled: -32000 with interceptor, timeoutMs and phase.",
    ),
    "IC-FAILURE": (PROPOSAL, "A failure is a JSON-RPC error -32603 and never a verdict."),
    "IC-POLICY": (OURS, "A tenant's policy recommends mode, failOpen and priorityHint."),
    "IC-ALONE": (OURS, "At /mcp/interceptors there is nothing but interceptors."),
    "IC-PIPELINE": (OURS, "Pipelines are interceptors too."),
}
