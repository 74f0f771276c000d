"""Until the first split: the whole conversation, or segments of it where no model reads it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessageChunk
from sessions import last_receipt, open_graph, prompt_of, tell, thread

from topicloom import (
    BRIEF,
    RESPONDER,
    Answer,
    Brief,
    BriefRequest,
    LocalRole,
    ReplyRequest,
    Responder,
    Roles,
)
from topicloom.roles.responder import EmbeddedResponder
from topicloom.search.hashing import HashingEmbedder
from topicloom.testing import ScriptedResponder, fake_roles

CONFIG = thread()
ROUNDS = 16


class Listening(EmbeddedResponder):
    """Quotes, and keeps what it was shown."""

    def __init__(self) -> None:
        super().__init__(HashingEmbedder(64))
        self.requests: list[ReplyRequest] = []

    def stream(self, request: ReplyRequest) -> Iterator[AIMessageChunk]:
        self.requests.append(request)
        yield AIMessageChunk(content=f"好的，第{len(self.requests)}句")


def talk(
    folder: Path, players: Responder | Roles, *, rounds: int = ROUNDS, **settings: Any
) -> dict[str, int]:
    """A conversation; returns the sections of its last prompt."""
    roles = players if isinstance(players, Roles) else fake_roles().replace(RESPONDER, players)
    graph = open_graph(folder, roles, **settings)
    for number in range(1, rounds + 1):
        tell(graph, CONFIG, f"第{number}件事：花园里的{'土' * 40}")
    return last_receipt(folder, graph, CONFIG).sections


@pytest.mark.slow
def test_without_a_model_what_lies_between_is_shown_in_segments(tmp_path: Path) -> None:
    responder = Listening()
    sections = talk(tmp_path, responder, window=8_000)
    system, *said = responder.requests[-1].messages
    assert "此前对话各段的摘要" in str(system.content)
    assert "[m3–m18]" in str(system.content)
    texts = [str(m.content).removeprefix("-- 2026-03-02（星期一）--\n") for m in said]
    assert [t.partition("件")[0] for t in texts if t.startswith("第")] == [
        f"第{n}" for n in (1, 10, 11, 12, 13, 14, 15, 16)
    ]
    assert sections["summaries"] > 0


@pytest.mark.slow
def test_the_reply_may_still_quote_all_of_it(tmp_path: Path) -> None:
    responder = Listening()
    talk(tmp_path, responder, window=8_000)
    assert [r.seq for r in responder.requests[-1].sources] == list(range(2 * ROUNDS - 2, 0, -1))


@pytest.mark.slow
def test_a_model_is_shown_all_of_it(tmp_path: Path) -> None:
    responder = ScriptedResponder()
    sections = talk(tmp_path, responder, window=8_000)
    prompt = prompt_of(responder.requests[-1])
    assert all(f"第{n}件事" in prompt for n in range(1, ROUNDS + 1))
    assert "summaries" not in sections


class Summarizing(LocalRole[BriefRequest, Brief]):
    """Sums up each segment but one, and counts what it is asked."""

    model = "summarizing"

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []

    def call(self, request: BriefRequest) -> Answer[Brief]:
        self.asked.append(tuple(m.id for m in request.messages))
        if request.messages[0].id == "m3":
            raise TimeoutError("busy")
        return Answer(Brief("", f"summary of {request.messages[0].id}"))


@pytest.mark.slow
def test_a_model_is_shown_segments_that_a_model_sums_up_once_if_asked_to(tmp_path: Path) -> None:
    responder, writer = ScriptedResponder(), Summarizing()
    roles = fake_roles().replace(RESPONDER, responder).replace(BRIEF, writer)
    options = {"window": 16_000, "beginning": "segments", "newest_rounds": 3}
    sections = talk(tmp_path, roles, rounds=26, **options)
    assert writer.asked == [tuple(f"m{n}" for n in range(at, at + 16)) for at in (3, 19)]
    system, *said = responder.requests[-1].messages
    assert "[m19–m34] summary of m19" in str(system.content)
    assert "[m3–m18] user: " in str(system.content)  # an extract stands in
    assert len(said) == 2 + (52 - 34) - 1
    assert sections["summaries"] > 0


@pytest.mark.slow
def test_after_the_first_split_topics_take_their_place(tmp_path: Path) -> None:
    responder = Listening()
    sections = talk(tmp_path, responder, window=1_000, rounds=2 * ROUNDS)
    assert "此前对话各段的摘要" not in prompt_of(responder.requests[-1])
    assert "summaries" not in sections
