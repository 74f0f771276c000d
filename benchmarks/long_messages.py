"""What a turn costs in CPU whose message is a million characters of one unit, again and again.

`python benchmarks/long_messages.py`: for every unit that tests try growth with.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from sieve import UNITS

from topicloom import Settings, TopicLoomWarning, build_session_graph, local_checkpointer
from topicloom.testing import Clock

LENGTH = 1_000_000
"""Characters of the message."""
TOPICS = ("tea", "boat", "oven", "dog")
THREAD: RunnableConfig = {"configurable": {"thread_id": "long"}}


class Session:
    """A session in a folder, with time measured in CPU of this process."""

    def __init__(self, folder: Path) -> None:
        settings = Settings(folder=folder, window=2_000, fsync=False)
        builder = build_session_graph(settings=settings, clock=Clock())
        self._graph = builder.compile(checkpointer=local_checkpointer(folder))

    def say(self, text: str) -> float:
        """Seconds of CPU of a turn."""
        began = time.process_time()
        self._graph.invoke({"messages": [HumanMessage(text)]}, THREAD)
        return time.process_time() - began


def main() -> None:
    """Print the seconds of each unit, of its turn and of the one behind it."""
    warnings.simplefilter("ignore", TopicLoomWarning)
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        base = Session(home / "base")
        for number in range(12):
            topic = TOPICS[number % len(TOPICS)]
            base.say(f"{topic}: number {number} " + " ".join(f"w{number}x{n}" for n in range(60)))
        spent = dict[str, tuple[float, float]]()
        for number, unit in enumerate(UNITS):
            folder = home / f"unit-{number}"
            shutil.copytree(home / "base", folder)
            session = Session(folder)
            session.say("dog: and now?")  # whatever is loaded once
            turn = session.say("tea: " + unit * (LENGTH // len(unit)) + "a")
            behind = session.say("boat: and now?")
            spent[repr(unit)] = round(turn, 2), round(behind, 2)
            shutil.rmtree(folder)
            sys.stderr.write(f"{unit!r}: {turn:.2f} {behind:.2f}\n")
    most = sorted(spent.items(), key=lambda item: -max(item[1]))
    figures = {"units": len(spent), "most": max(map(max, spent.values())), "slowest": most[:10]}
    sys.stdout.write(json.dumps(figures, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
