"""Run the mutants: ``python -m tests.mutation`` (see ``--help``); what ``make mutants`` does."""

import argparse
import json
import signal
import tomllib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.mutation.running import KILLED, SURVIVED, TIMED_OUT, Verdict, run_all
from tests.mutation.sampling import draw, order, shares
from tests.mutation.selecting import record
from tests.mutation.sites import Mutant, Site, functions_in, mutant_of, sites_of_room
from tests.mutation.survivors import read_entries, unmatched, verdicts_by_key

ROOT = Path(__file__).parents[2]
KEPT = ROOT / ".mutants"
LISTED = Path(__file__).with_name("survivors.toml")


def main() -> None:
    """Draw the sample, judge it, and print the tables."""
    options = read_options()
    for ending in (signal.SIGINT, signal.SIGTERM):  # also where a shell in the background ignores the first
        signal.signal(ending, signal.default_int_handler)
    table = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mutants"]
    table |= {name: value for name, value in vars(options).items() if name in table and value is not None}
    KEPT.mkdir(exist_ok=True)
    reach = record(ROOT, KEPT / "reach", table, trust=options.trust)
    mutants = sample(table)
    rows = read_rows(KEPT / "results.jsonl") if options.resume or options.again else {}
    if options.again:
        rows = {name: row for name, row in rows.items() if row["outcome"] != SURVIVED}
    if options.only:
        mutants = [
            mutant
            for mutant in mutants
            if mutant.name in options.only or mutant.site.function in options.only
        ]
    rows = {mutant.name: rows[mutant.name] for mutant in mutants if mutant.name in rows}
    write_rows(rows)
    left = [mutant for mutant in mutants if mutant.name not in rows]
    print(f"{len(mutants)} mutants with seed {table['seed']}, {len(left)} to run", flush=True)

    def tell(judged: Verdict) -> None:
        rows[judged.mutant.name] = judged.as_row()
        write_rows(rows)
        print(f"{len(rows)}/{len(mutants)} {described(rows[judged.mutant.name])}", flush=True)

    run_all(ROOT, left, reach, table, tell)
    print("\n" + report(rows.values(), table["rooms"]))


def read_options() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--sample", type=int, help="how many mutants, instead of the table's size")
    parser.add_argument("--seed", type=int, help="another seed than the table's")
    parser.add_argument("--processes", type=int, help="how many mutants at a time")
    parser.add_argument(
        "--resume", action="store_true", help="keep the results of the last run, run what it left"
    )
    parser.add_argument(
        "--again", action="store_true", help="keep what the last run killed, run its survivors again"
    )
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", help="only these mutants, or mutants of these functions"
    )
    parser.add_argument(
        "--trust",
        action="store_true",
        help="rooms have changed: record changed tests alone, trust the older records",
    )
    return parser.parse_args()


def sample(table: dict[str, Any]) -> list[Mutant]:
    """Return the mutants of the sample, rooms mixed, so that a part of a run tells of the whole."""
    sites = {room: sites_of_room(ROOT, room, table["operators"]) for room in table["rooms"]}
    lines = {room: len({(site.path, site.line) for site in found}) for room, found in sites.items()}
    divided = shares(lines, table["sample"], table["least_share"])

    def make(site: Site) -> Mutant | None:
        return mutant_of(ROOT, site)

    drawn = [mutant for room in sites for mutant in draw(sites[room], divided[room], table["seed"], make)]
    return sorted(drawn, key=lambda mutant: order(table["seed"], mutant.name))


def read_rows(path: Path) -> dict[str, dict[str, Any]]:
    """Return the results of the last run by the name of the mutant."""
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return {row["mutant"]: row for row in rows}


def write_rows(rows: dict[str, dict[str, Any]]) -> None:
    """Write the results, and the survivors for those who write tests."""
    (KEPT / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows.values()))
    survived = sorted(
        (row for row in rows.values() if row["outcome"] == SURVIVED), key=lambda row: row["place"]
    )
    (KEPT / "survivors.txt").write_text("\n".join(described(row) for row in survived))


def described(row: dict[str, Any]) -> str:
    """Return a row of the results as a person reads it: place, function, tests, and the diff of a survivor."""
    head = f"{row['outcome']}  {row['mutant']}  {row['place']}  {row['function']}  ({row['seconds']} s"
    if row["outcome"] != SURVIVED:
        return f"{head}, by {row['killer'] or 'the limit of time'})"
    minus = "".join(f"    - {line}\n" for line in row["before"].split("\n"))
    plus = "".join(f"    + {line}\n" for line in row["after"].split("\n"))
    return f"{head}, {row['tests']} of {row['reaching']} tests that reach it)\n{minus}{plus}"


def report(rows: Sequence[dict[str, Any]], rooms: Sequence[str]) -> str:
    """Return the survivors, those listed apart, the entries that match nothing, and the table by room."""
    entries = read_entries(LISTED)
    listed = verdicts_by_key(entries)
    told, counts = [], {room: Counter[str]() for room in rooms}
    for row in sorted(rows, key=lambda row: row["place"]):
        count = counts[row["room"]]
        count[row["outcome"]] += 1
        entry = listed.get((row["function"], row["before"], row["after"]))
        if row["outcome"] != SURVIVED:
            continue
        if entry:
            count[entry.verdict] += 1
        told.append(f"{described(row)}    {entry.verdict}: {entry.reason}\n" if entry else described(row))
    lines = functions_in(ROOT, rooms)
    told += [
        f"listed, but no such line: {entry.function}: {entry.before}" for entry in unmatched(entries, lines)
    ]
    return "\n".join((*told, "", *totals(counts)))


def totals(counts: dict[str, Counter[str]]) -> list[str]:
    """Return the lines of the table; a mutant that ran out of time counts as noticed, and is shown apart."""
    named = ("mutants", KILLED, TIMED_OUT, SURVIVED, "equivalent", "accepted")
    lines = [f"{'room':<18}" + "".join(f"{name:>11}" for name in named) + f"{'noticed':>11}"]
    for room, count in {**counts, "all": sum(counts.values(), Counter[str]())}.items():
        noticed = count[KILLED] + count[TIMED_OUT]
        total = noticed + count[SURVIVED]
        figures = (total, *(count[name] for name in named[1:]))
        lines.append(
            f"{room:<18}"
            + "".join(f"{figure:>11}" for figure in figures)
            + f"{noticed / max(total, 1):>11.1%}"
        )
    return lines


if __name__ == "__main__":
    main()
