"""An application's own cross-encoder, by LangChain's class, as the arbiter."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from langchain_core.cross_encoders import BaseCrossEncoder

from topicloom import (
    ARBITER,
    BoundaryQuestion,
    Settings,
    UnknownModelError,
    UnusableAnswerError,
    build_session_graph,
)
from topicloom.hosting import find_deps
from topicloom.roles.arbiter import ForeignArbiter

SNAKE = BoundaryQuestion("write a snake game", "make the snake faster", "done", 0.5, "en")
TAXES = BoundaryQuestion("write a snake game", "when are taxes due?", "done", 0.5, "en")


class Overlap(BaseCrossEncoder):
    """The share of the first text's words that the second one has, as a probability or a logit."""

    def __init__(self, *, logits: bool) -> None:
        self.model_name = "overlap"
        self.logits = logits
        self.pairs: list[tuple[str, str]] = []

    def score(self, text_pairs: list[tuple[str, str]]) -> list[float]:
        self.pairs += text_pairs
        return [self._score(*pair) for pair in text_pairs]

    def _score(self, one: str, other: str) -> float:
        words = set(one.lower().split())
        share = len(words & set(other.lower().split())) / max(1, len(words))
        return 8 * share - 3 if self.logits else share


@pytest.mark.parametrize("logits", [False, True])
def test_a_score_becomes_a_probability_whatever_its_scale(logits: bool) -> None:
    arbiter = ForeignArbiter(Overlap(logits=logits), deadline=7.0)
    same, other = arbiter.call(SNAKE).value, arbiter.call(TAXES).value
    assert 0 <= other < 0.1 < same <= 1
    assert same == pytest.approx(1 / (1 + math.exp(1)) if logits else 0.25)
    assert (arbiter.model, arbiter.deadline) == ("overlap", 7.0)


def test_the_request_is_scored_against_what_went_before_and_long_texts_are_cut() -> None:
    encoder = Overlap(logits=False)
    ForeignArbiter(encoder).call(BoundaryQuestion("word " * 20_000, "go on", "", 0.5, "en"))
    asked, before = encoder.pairs[-1]
    assert asked == "go on"
    assert len(before) < 4_000


def test_a_score_that_is_no_number_is_no_answer() -> None:
    class Broken(Overlap):
        def _score(self, one: str, other: str) -> float:
            return math.nan

    with pytest.raises(UnusableAnswerError, match="gave nan"):
        ForeignArbiter(Broken(logits=False)).call(SNAKE)


def test_an_application_gives_it_as_the_model_of_the_role(tmp_path: Path) -> None:
    encoder = Overlap(logits=False)
    settings = Settings(folder=tmp_path)
    graph = build_session_graph(settings=settings, role_models={"arbiter": encoder}).compile()
    arbiter = find_deps(graph).roles[ARBITER]
    assert isinstance(arbiter, ForeignArbiter)
    assert arbiter.call(SNAKE).value == pytest.approx(0.25)


def test_no_other_role_takes_one(tmp_path: Path) -> None:
    with pytest.raises(UnknownModelError, match="names no model"):
        build_session_graph(
            settings=Settings(folder=tmp_path), role_models={"reader": Overlap(logits=False)}
        )
