"""The long forms: `python tests/faults kills --seed 7 --minutes 20 --log kills.jsonl`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from faults.campaign import Campaign, Case
from faults.crowds import CROWDS, crowd_cases
from faults.damage import damage_cases
from faults.disks import OPERATIONS as DISK_OPERATIONS, can_mount, disk_cases
from faults.http import canary_cases, http_cases
from faults.kills import kill_cases
from faults.servers import SERVERS, server_cases

os.environ["TOPICLOOM_EMBEDDER"] = "hashing"


def _kills(given: argparse.Namespace) -> AbstractContextManager[list[Case]]:
    kinds = ("files", "postgres") if given.on == "both" else (given.on,)
    return kill_cases(kinds, frozenset(given.only))


def _damage(given: argparse.Namespace) -> AbstractContextManager[list[Case]]:
    return damage_cases(given.places)


def _http(given: argparse.Namespace) -> AbstractContextManager[list[Case]]:
    return http_cases(given.turns, frozenset(given.only))


def _disk(given: argparse.Namespace) -> AbstractContextManager[list[Case]]:
    tmpfs = can_mount()
    if not tmpfs:
        sys.stderr.write("SMALL FILE SYSTEMS ARE NOT TESTED: this process may not mount one\n")
    return disk_cases(frozenset(given.only or DISK_OPERATIONS), tmpfs)


def _servers(given: argparse.Namespace) -> AbstractContextManager[list[Case]]:
    return server_cases(frozenset(given.only))


def _canary(given: argparse.Namespace) -> AbstractContextManager[list[Case]]:
    return canary_cases(given.turns)


def _crowd(given: argparse.Namespace) -> AbstractContextManager[list[Case]]:
    kinds = ("files", "postgres") if given.on == "both" else ("files",)
    return crowd_cases(kinds, given.sessions, given.at_once, frozenset(given.only))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python tests/faults",
        description="Tries sessions with faults on purpose, checks what is left with a reader of"
        " its own, and prints figures as JSON. The exit code is 1 if anything did not hold.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    kills = _command(
        commands,
        "kills",
        _kills,
        "kill an operation before each write and each SQL statement, then do it again",
    )
    kills.add_argument("--on", choices=["files", "postgres", "both"], default="both")
    kills.add_argument("--only", nargs="+", default=(), metavar="NAME", help="operations to kill")
    damage = _command(
        commands, "damage", _damage, "damage each file of a session, and go on with the session"
    )
    damage.add_argument("--places", type=int, default=100, help="flips and cuts of each file")
    http = _command(
        commands, "http", _http, "have every role's model fail in every way, over HTTP on loopback"
    )
    http.add_argument("--only", nargs="+", default=(), metavar="ROLE", help="roles, or inner")
    http.add_argument("--turns", type=int, default=500, help="turns with each fault")
    disk = _command(commands, "disk", _disk, "fail under each write, and on a small file system")
    disk.add_argument("--only", nargs="+", choices=DISK_OPERATIONS, help="operations to try")
    servers = _command(
        commands, "servers", _servers, "kill servers during turns, and fill their disks"
    )
    servers.add_argument("--only", nargs="+", default=SERVERS, choices=SERVERS)
    canary = _command(
        commands, "canary", _canary, "look for secrets everywhere, before a purge and after it"
    )
    canary.add_argument("--turns", type=int, default=20, help="turns with each fault")
    crowd = _command(
        commands, "crowd", _crowd, "talk from many threads, tasks and processes, and cancel turns"
    )
    crowd.add_argument("--only", nargs="+", default=CROWDS, choices=CROWDS)
    crowd.add_argument("--on", choices=["files", "both"], default="both")
    crowd.add_argument("--sessions", type=int, default=50)
    crowd.add_argument("--at-once", type=int, default=200, help="threads, and tasks")
    return parser


def _command(commands: Any, name: str, cases: Any, text: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)
    parser.set_defaults(cases=cases)
    parser.add_argument("--seed", type=int, default=0, help="draws the order and the sample")
    parser.add_argument("--sample", type=int, metavar="N", help="N cases of a kind, not all")
    parser.add_argument("--minutes", type=float, help="begin no case after so long")
    parser.add_argument(
        "--log", type=Path, help="keep outcomes here, and go on from those that are there"
    )
    return parser


def main() -> None:
    """Run a campaign, and print its figures."""
    given = _parser().parse_args()
    campaign = Campaign(given.seed, given.minutes, given.log)
    with given.cases(given) as cases:
        campaign.run(campaign.sample(cases, given.sample))
    sys.stdout.write(json.dumps(campaign.figures(), indent=1) + "\n")
    sys.exit(campaign.failed > 0)


if __name__ == "__main__":
    main()
