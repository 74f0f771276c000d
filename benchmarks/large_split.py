"""Measures one split of many rounds among many topics.

    python benchmarks/large_split.py DATA.jsonl --topics 500 --rounds 200

DATA is a recording of at least a thousand rounds or several shorter ones. Its beginning is imported
as so many chats, each of which becomes a topic; the rounds behind it are said, and then moved into
topics by one turn. Times are CPU seconds of this process; no model is asked. A session encodes what
was said while the user reads, so what the encoder takes is counted apart. Target for the rest: two
seconds.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from numpy.typing import NDArray

from topicloom import (
    Embedder,
    ImportedChat,
    Memory,
    Settings,
    TurnOptions,
    build_session_graph,
    default_embedder,
    local_checkpointer,
)
from topicloom_app import RecordedRound, cut_rounds, load_conversations

THREAD: RunnableConfig = {"configurable": {"thread_id": "large"}}


def to_messages(rounds: Sequence[RecordedRound], prefix: str) -> list[BaseMessage]:
    """The messages of some rounds, with ids that no other rounds have."""
    return [
        (AIMessage if message is round_.reply else HumanMessage)(
            message.text, id=f"{prefix}-{number}-{place}"
        )
        for number, round_ in enumerate(rounds)
        for place, message in enumerate((*round_.said, *filter(None, [round_.reply])))
    ]


class TimedEmbedder:
    """An encoder that counts the CPU seconds it takes."""

    def __init__(self, encoder: Embedder) -> None:
        self._encoder = encoder
        self.fingerprint, self.dimension = encoder.fingerprint, encoder.dimension
        self.seconds = 0.0

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The encoder's vectors."""
        began = time.process_time()
        made = self._encoder.embed(texts)
        self.seconds += time.process_time() - began
        return made


def record(
    app: Any, encoder: TimedEmbedder, messages: list[BaseMessage], options: TurnOptions
) -> str:
    """CPU seconds of a turn that records messages."""
    began, before = time.process_time(), encoder.seconds
    app.invoke({"messages": messages}, THREAD, context=options, durability="exit")
    encoded = encoder.seconds - before
    return f"{time.process_time() - began - encoded:.2f} s, and {encoded:.2f} s of the encoder"


def main() -> None:
    """Import, say, split, and print what each took."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, nargs="+", help="recordings")
    parser.add_argument("--topics", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=200, help="that one split moves")
    parser.add_argument("--long", type=int, default=3, help="rounds of an imported chat")
    given = parser.parse_args()
    talks = (talk for path in given.data for talk in load_conversations(path))
    needed = given.topics * given.long + given.rounds
    rounds = list(islice((r for talk in talks for r in cut_rounds(talk)), needed))
    if len(rounds) < needed:
        parser.error(f"the recordings have {len(rounds)} rounds: {needed} are needed")
    with tempfile.TemporaryDirectory() as name:
        settings = Settings(folder=Path(name), window=2_000_000, fsync=False)
        encoder = TimedEmbedder(default_embedder())
        graph = build_session_graph(settings=settings, embedder=encoder)
        app = graph.compile(checkpointer=local_checkpointer(Path(name)))
        chats, told = list[ImportedChat](), list[BaseMessage]()
        for number in range(given.topics):
            begin = number * given.long
            own = to_messages(rounds[begin : begin + given.long], f"chat{number}")
            ids = tuple(str(message.id) for message in own)
            chats.append(ImportedChat(id=f"c{number}", title=f"Chat {number}", messages=ids))
            told += own
        options = TurnOptions(answer=False, keep_messages=0, chats=tuple(chats))
        print(f"importing {len(told):,} messages: {record(app, encoder, told, options)}")
        only, move = TurnOptions(answer=False), TurnOptions(answer=False, keep_messages=0)
        later = to_messages(rounds[-given.rounds :], "later")
        print(f"taking {len(later)} messages in: {record(app, encoder, later, only)}")
        topics, last = len(Memory.of(app, THREAD).topics()), HumanMessage("And now?", id="last")
        print(f"{topics} topics; a turn: {record(app, encoder, [last], only)}")
        last = HumanMessage("And then?", id="then")
        print(f"moving {given.rounds} rounds into topics: {record(app, encoder, [last], move)}")


if __name__ == "__main__":
    main()
