"""Words are found in whatever way they are written, in every script, by any encoder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from sessions import thread

from topicloom import Memory, Settings, TurnOptions, build_session_graph, default_embedder
from topicloom.search.embedder import Embedder, Vectors

SAID = [
    "We met in the cafe\u0301 by the river.",
    "The Ｃｌｏｕｄ bill came to ３２ euros.",
    "ฉันแพ้ถั่วลิสง",
    "मेरी किताब मेज़ पर है।",
    "هذا كِتابٌ قديم.",
    "She flew to İstanbul on Monday.",
    "The ofﬁce closes early.",
    "Ask about the in\u00adsur\u00adance.",
    "আমার বিড়ালের নাম মিনি।",
    "השם שלה שָׂרָה.",
    "我对花生过敏。",
    "ﾋﾟｱﾉを習っています。",
]
ASKED = [
    ("café", 0),
    ("CAFE", 0),
    ("cloud", 1),
    ("ｃｌｏｕｄ ３２", 1),
    ("ถั่วลิสง", 2),
    ("แพ้ถั่ว", 2),
    ("किताब", 3),
    ("मेरी किताब", 3),
    ("كِتاب", 4),
    ("كتاب", 4),
    ("istanbul", 5),
    ("İSTANBUL", 5),
    ("office", 6),
    ("insurance", 7),
    ("বিড়ালের", 8),
    ("שרה", 9),
    ("花生", 10),
    ("ピアノ", 11),
]


class OneVector:
    """An encoder that knows none of these languages: all texts are alike to it."""

    dimension, fingerprint = 4, "one-vector"

    def embed(self, texts: Sequence[str]) -> Vectors:
        return np.full((len(texts), 4), 0.5, dtype=np.float32)


@pytest.fixture(scope="module", params=[default_embedder(), OneVector()], ids=["bundled", "none"])
def memory(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Memory:
    return remembered(tmp_path_factory.mktemp("said"), request.param)


def remembered(folder: Path, encoder: Embedder) -> Memory:
    settings = Settings(folder=folder, fsync=False)
    built = build_session_graph(settings=settings, embedder=encoder)
    graph = built.compile(checkpointer=InMemorySaver())
    said = [HumanMessage(text) for text in SAID]
    graph.invoke({"messages": said}, thread(), context=TurnOptions(answer=False))
    return Memory.of(graph, thread())


@pytest.mark.parametrize(("text", "place"), ASKED)
def test_what_was_said_is_found_first_and_quoted_as_it_was_written(
    memory: Memory, text: str, place: int
) -> None:
    found = [hit.message.text for hit in memory.search(text)]
    assert found[:1] == [SAID[place]]
