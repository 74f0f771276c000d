"""Follows one message through each node of a turn: how many files does a reader have to open?

    python benchmarks/stays.py

A session with two topics is split, and then asked something that its model looks up in another
topic. Every call is seen by a profiler. A *stay* is an entry into a function of another file of the
package. The first two columns count what the code of the turn calls, that is what is read of a node
to follow it: a function that it calls again and again is one stay. The last two count everything
below that too, down to the disk and the encoder. What every node goes through before and after its
own work, `nodes/step.py`, stands in the first row alone.

Targets: at most 12 files and 30 stays a node.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from rich.console import Console
from rich.table import Table

import topicloom
from topicloom import Settings, TurnOptions, build_session_graph
from topicloom.testing import Clock, ScriptedResponder, fake_roles, make_topic_search

PACKAGE = Path(topicloom.__file__).parent
TURN = ("nodes/", "graph/")
"""Folders with the code of a turn."""
FRAME = "nodes/step.py"
Function = tuple[str, str]
"""The file of a function in the package, and its name there."""


def locate(frame: FrameType) -> Function | None:
    """The function of a frame; None if it is not in the package."""
    path = Path(frame.f_code.co_filename)
    if not path.is_relative_to(PACKAGE):
        return None
    return path.relative_to(PACKAGE).as_posix(), frame.f_code.co_qualname


class Walk:
    """The calls of a turn from one file of the package into another, by the node they belong to."""

    def __init__(self) -> None:
        self.stays: dict[str, set[tuple[Function, Function]]] = {}

    def see(self, frame: FrameType, event: str, argument: object) -> None:
        """Take in what a profiler sees."""
        function = locate(frame) if event == "call" else None
        if function is None:
            return
        caller, name = None, "every node"
        around = frame.f_back
        while around is not None:
            found = locate(around)
            caller = caller or found
            if found and found[0].startswith("nodes/") and found[0] not in (FRAME, "nodes/deps.py"):
                name = self._name(around) or name
            if found == (FRAME, "_Node.invoke"):
                break
            around = around.f_back
        if around is None or caller is None or function[0] == caller[0]:
            return
        if name == "every node" and function[0].startswith("nodes/") and caller[0] == FRAME:
            return
        self.stays.setdefault(name, set()).add((caller, function))

    def _name(self, frame: FrameType) -> str:
        around = frame.f_back
        while around is not None and locate(around) != (FRAME, "_Node.invoke"):
            around = around.f_back
        return str(around.f_locals["self"].name) if around else ""


def take_turns(folder: Path, walk: Walk) -> None:
    """A turn that searches, and a split before it, with what they call."""
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
    watch(walk, lambda: say("[kitchen] Which oak did we take for part 3 of the kitchen?"))
    watch(walk, lambda: say("[kitchen] And the worktop?", keep=2))


def watch(walk: Walk, work: Callable[[], None]) -> None:
    """Do something under the eyes of a profiler, in this thread."""
    sys.setprofile(walk.see)
    try:
        work()
    finally:
        sys.setprofile(None)


def main() -> None:
    walk = Walk()
    with tempfile.TemporaryDirectory() as folder:
        take_turns(Path(folder), walk)
    table = Table("node", "files", "stays", "files, all", "stays, all")
    for name, stays in sorted(walk.stays.items(), key=lambda pair: pair[0] != "every node"):
        near = {(a, b) for a, b in stays if a[0].startswith(TURN)}
        counts = [len({b[0] for _, b in near}), len(near), len({b[0] for _, b in stays}), len(stays)]
        table.add_row(name, *map(str, counts))
    Console().print(table)


if __name__ == "__main__":
    main()
