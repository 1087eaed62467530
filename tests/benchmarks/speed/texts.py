"""Texts to measure with: support mail with personal data in it, the same for the same seed."""

import random

SENTENCES = (
    "The parcel that I ordered in March has still not arrived, and the tracking page shows nothing new.",
    "Our team looked at the logs of that night and found two restarts, neither of which explains the gap.",
    "Please move the meeting to Thursday, since the auditors want to see the draft before the weekend.",
    "The invoice was paid twice by mistake; kindly return the second amount to the account below.",
    "After the update the export fails for large files, while small ones still go through as before.",
    "We would like to extend the contract by a year under the same conditions as agreed last spring.",
)
FIRST = ("Maria", "Thomas", "Aisha", "Kenji", "Olivia", "Pavel", "Ingrid", "Carlos", "Grace", "Samuel")
LAST = ("Keller", "Okafor", "Lindgren", "Tanaka", "Moreau", "Novak", "Hughes", "Santos", "Brennan", "Weiss")


def personal(draw: random.Random) -> str:
    """Return one sentence with something in it that must be found."""
    name = f"{draw.choice(FIRST)} {draw.choice(LAST)}"
    number = f"{draw.randrange(201, 989)}-555-{draw.randrange(1000, 9999)}"
    security = f"{draw.randrange(100, 665)}-{draw.randrange(10, 99)}-{draw.randrange(1000, 9999)}"
    return draw.choice(
        (
            f"{name} asked me to call back on {number} before noon.",
            f"You can write to {name.lower().replace(' ', '.')}{draw.randrange(1000)}@example.com about it.",
            f"Her social security number is {security}.",
            f"The server at 10.{draw.randrange(256)}.{draw.randrange(256)}.{draw.randrange(256)} was used by {name}.",
        )
    )


def mail(size: int, seed: int) -> str:
    """Return ``size`` bytes in which about every fourth sentence holds personal data."""
    draw, parts, length = random.Random(seed), [], 0
    while length < size:
        part = personal(draw) if draw.random() < 0.25 else draw.choice(SENTENCES)
        parts.append(part)
        length += len(part) + 1
    return " ".join(parts)[:size]


def addresses(count: int) -> list[str]:
    """Return ``count`` e-mail addresses, all different."""
    return [f"customer{i}@example.com" for i in range(count)]
