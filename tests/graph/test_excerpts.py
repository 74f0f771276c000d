"""A long message that does not fit what is left of the budget is quoted in part, and had whole."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from sessions import last_receipt, open_graph, prompt_of, record, tell, thread

from topicloom.testing import ScriptedResponder, SteadyReader, fake_roles, make_topic_search

CONFIG = thread()
MARK = re.compile(r"\[\.\.\. .* characters of m3 .*\]|\[……此处省略 m3 .*\]")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("filler", "secret", "question", "characters"),
    [
        ("The queue of stamps is long. ", "My passport is X4711Q.", "What is my passport?", 1_800),
        ("排队盖章的人很多。", "我的护照号码是 X4711Q。", "我的护照号码是多少？", 600),
    ],
)
def test_in_part_and_then_whole(
    tmp_path: Path, filler: str, secret: str, question: str, characters: int
) -> None:
    half = filler * (characters // len(filler) // 2)
    first, long = f"forms: {question} {half[: len(half) // 2]}", f"forms: {half}{secret}{half}"
    responder = ScriptedResponder()
    graph = open_graph(tmp_path, fake_roles(responder, reader=SteadyReader()), window=4_000)
    record(graph, CONFIG, HumanMessage(first), AIMessage("ok"), HumanMessage(long), AIMessage("ok"))
    tell(graph, CONFIG, question, keep=0)
    shown, (note,) = prompt_of(responder.requests[-1]), last_receipt(tmp_path, graph, CONFIG).quoted
    assert first in shown
    assert secret in shown
    assert long not in shown
    assert note.partial == ("m3",)
    parts = [long[slice(*stretch)] for stretch in note.excerpts["m3"]]
    assert all(part in shown for part in parts)
    mark = MARK.findall(prompt_of(responder.requests[-1]))[-1]
    responder.script = [make_topic_search(mark)]
    tell(graph, CONFIG, question)
    assert long in prompt_of(responder.requests[-1])
    assert last_receipt(tmp_path, graph, CONFIG).quoted[0].partial == ()
