"""Follows one message through each node of a turn: how many files does a reader have to open?

    python benchmarks/stays.py

A session with two topics is asked something that its model looks up in another topic, and is split
in the next turn. Every call is seen by a profiler. A *stay* is an entry into a function of another
file of the package; a function that calls the same one again and again makes one stay.

The first two columns count what the code of the turn calls (`nodes/`, `graph/`): what is read of a
node to follow it. The last two count all that is below that too, down to the disk and the encoder.
What every node goes through (`step.py`, `workspace.py`, `runs.py`) has a row of its own.

Targets: at most 12 files and 30 stays a node.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from rich.console import Console
from rich.table import Table

import topicloom
from topicloom import Settings, TurnOptions, build_session_graph
from topicloom.testing import Clock, ScriptedResponder, fake_roles, make_topic_search

PACKAGE = f"{Path(topicloom.__file__).parent}/"
TURN = ("nodes/", "graph/")
FRAME = ("nodes/step.py", "nodes/workspace.py", "nodes/runs.py", "graph/session.py")
"""Files that every node goes through."""
GIVEN = "testing.py"
"""The clock and the roles here, which an application gives."""


class Function(NamedTuple):
    """A function of the package."""

    file: str
    name: str


Stay = tuple[Function, Function]
"""The function that calls, and the one in another file that is called."""


def list_callers(frame: FrameType | None) -> Iterator[tuple[Function, FrameType]]:
    """The functions of the package on a stack, the innermost first."""
    while frame is not None:
        path = frame.f_code.co_filename
        if path.startswith(PACKAGE):
            yield Function(path.removeprefix(PACKAGE), frame.f_code.co_qualname), frame
        frame = frame.f_back


class Walk:
    """The stays of a turn, by node."""

    def __init__(self) -> None:
        self.stays: dict[str, set[Stay]] = {}

    def see(self, frame: FrameType, event: str, _: object) -> None:
        """Take in what a profiler sees."""
        if event != "call" or not frame.f_code.co_filename.startswith(PACKAGE):
            return
        (function, _), *around = list_callers(frame)
        if not around or function.file in (around[0][0].file, GIVEN):
            return
        caller, node = around[0][0], ""
        for one, above in around:
            if one.file == FRAME[0] and one.name.endswith(".invoke"):
                node = above.f_locals["self"].name
        if node:
            name = "every node" if caller.file in FRAME else node
            self.stays.setdefault(name, set()).add((caller, function))


def take_turns(folder: Path, walk: Walk) -> None:
    """A turn that searches and one that splits, watched, and those before them."""
    responder = ScriptedResponder(otherwise="All right, noted.")
    graph = build_session_graph(
        roles=fake_roles(responder), clock=Clock(), settings=Settings(folder=folder)
    ).compile(checkpointer=InMemorySaver())
    config: RunnableConfig = {"configurable": {"thread_id": "stays"}}

    def say(text: str, keep: int | None = None) -> None:
        said: Any = {"messages": [("user", text)]}
        graph.invoke(said, config, context=TurnOptions(keep_messages=keep))

    for number in range(6):
        for room in ("kitchen", "garden"):
            say(f"[{room}] About the {room}, part {number}: we take oak for part {number}.")
    say("[kitchen] Let us sort it.", keep=2)
    say("[kitchen] And the taps?")
    say("[garden] The fence is oak.")
    responder.script.append(make_topic_search("garden oak"))
    sys.setprofile(walk.see)
    try:
        say("[kitchen] Which oak did we take for part 3 of the kitchen?")
        say("[kitchen] And the worktop?", keep=2)
    finally:
        sys.setprofile(None)


def count(stays: set[Stay]) -> tuple[str, str]:
    """The number of files that are entered, and of stays."""
    return str(len({called.file for _, called in stays})), str(len(stays))


def main() -> None:
    walk = Walk()
    with tempfile.TemporaryDirectory() as folder:
        take_turns(Path(folder), walk)
    if not walk.stays:
        sys.exit(f"no node was seen: does {FRAME[0]} still run them?")
    table = Table("node", "files", "stays", "all files", "all stays")
    for name, stays in sorted(walk.stays.items(), key=lambda pair: pair[0] != "every node"):
        near = {stay for stay in stays if stay[0].file.startswith(TURN)}
        table.add_row(name, *count(near), *count(stays))
    Console().print(table)


if __name__ == "__main__":
    main()
