"""Task flow: false splits and false merges, told apart, of rules over hand-written cases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from topicloom.boundary.adsorber import Adsorber
from topicloom.boundary.policy import AdsorberPolicy
from topicloom.graph.deps import open_adsorber
from topicloom.index.embedder import unit_rows
from topicloom.index.encoders import default_embedder
from topicloom.state.language import measure_cjk_share
from topicloom.state.rounds import Round
from topicloom.state.stored_message import StoredMessage
from topicloom_lab.cli.arbiter import (
    ALWAYS,
    Case,
    Opens,
    count_mistakes,
    opens_with,
    question_of,
    task_flow_cases,
)

CASES = task_flow_cases()


def funnel(adsorber: Adsorber) -> Opens:
    """An adsorber as a rule, its grey zone left to the screening."""
    return lambda rounds, message: adsorber.judge(rounds, message).opens


def spec(low: float) -> Opens:
    """The screening of spec 001 by its letter: a message's anchor against the topic's centroid.

    Args:
        low: Cosine from which a message is adsorbed: 0.40 if the grey zone is, 0.75 if not.
    """
    embedder = default_embedder()

    def opens(rounds: Sequence[Round], message: StoredMessage) -> bool:
        round_ = Round((message,), rounds[-1].reply)
        vectors = embedder.embed([b.anchor_text for b in (*rounds, round_)])
        centroid = unit_rows(vectors[:-1].sum(axis=0, keepdims=True))[0]
        return float(centroid @ vectors[-1]) < low

    return opens


class TestCases:
    def test_both_kinds_in_both_languages(self) -> None:
        kinds = Counter((c.language, c.continues) for c in CASES)
        assert set(kinds.values()) == {16}
        assert len(kinds) == 4

    def test_ids_and_messages_are_each_there_once(self) -> None:
        assert len({c.id for c in CASES}) == len({c.message.text for c in CASES}) == len(CASES)

    @pytest.mark.parametrize("case", CASES, ids=lambda c: c.id)
    def test_a_case_is_a_conversation_of_its_language(self, case: Case) -> None:
        messages = [r for b in case.rounds for r in b.messages]
        assert 4 <= len(messages) <= 8
        assert [r.role for r in messages] == ["user", "assistant"] * len(case.rounds)
        assert case.message.role == "user"
        assert case.why
        text = " ".join(r.text for r in [*messages, case.message])
        assert (measure_cjk_share(text) > 1 / 3) == (case.language == "zh")


class TestMistakes:
    def test_the_two_kinds_are_told_apart(self) -> None:
        assert count_mistakes(lambda rounds, message: False, CASES) == (0, 32)
        assert count_mistakes(lambda rounds, message: True, CASES) == (32, 0)

    def test_a_rule_that_knows_makes_none(self) -> None:
        expected = {c.message.text: not c.continues for c in CASES}
        knowing = count_mistakes(lambda rounds, message: expected[message.text], CASES)
        assert knowing == (0, 0)


RULES: dict[str, Opens] = {
    "spec, grey adsorbed": spec(0.40),
    "spec, grey split": spec(0.75),
    "trained": funnel(open_adsorber(AdsorberPolicy(), default_embedder())),
}


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_figures(name: str, language: str) -> None:
    """No bar to reach: shows what a rule does (`pytest -rP`)."""
    cases = [case for case in CASES if case.language == language]
    split, merged = count_mistakes(RULES[name], cases)
    print(f"{name}, {language}: {split} of 16 split, {merged} of 16 merged")  # noqa: T201


class TestRulings:
    """The splits that follow from what an arbiter says."""

    def test_one_that_knows_makes_no_mistake_where_it_is_always_asked(self) -> None:
        asked = [question_of(case, ALWAYS) for case in CASES]
        assert [q and q.request for q in asked] == [case.message.text for case in CASES]
        rulings = {case.message.text: float(case.continues) for case in CASES}
        assert count_mistakes(opens_with(ALWAYS, rulings), CASES) == (0, 0)

    def test_it_decides_nothing_where_it_is_not_asked(self) -> None:
        policy = AdsorberPolicy()
        wrong = {case.message.text: float(not case.continues) for case in CASES}
        untouched = [case for case in CASES if question_of(case, policy) is None]
        assert 0 < len(untouched) < len(CASES)
        without = count_mistakes(opens_with(policy, {}), untouched)
        assert count_mistakes(opens_with(policy, wrong), untouched) == without
