"""Count findings for the metrics: by types of a fixed table, so that no text of a tenant becomes a label."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from app.core.content.secret_labels import is_secret

_ANY_SECRET = "SECRET"  # noqa: S105 - a label, not a secret


@dataclass(frozen=True, slots=True)
class FindingCounter:
    """Passes the counts of recorded calls on; ``types`` are the labels and kinds that may become metrics.

    ``observe`` is told the type in lower case and how many there were. A secret of a kind that the table lacks counts
    as ``secret``; anything else that it lacks, such as the name of a tenant's own policy, is left out.
    """

    types: frozenset[str]
    observe: Callable[[str, int], None]

    def __call__(self, counts: Mapping[str, int]) -> None:
        """Count the findings of one call."""
        for name, number in counts.items():
            if name in self.types:
                self.observe(name.lower(), number)
            elif is_secret(name):
                self.observe(_ANY_SECRET.lower(), number)


def unobserved(_counts: Mapping[str, int]) -> None:
    """Count nothing."""
