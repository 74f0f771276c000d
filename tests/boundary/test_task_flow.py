"""Task flow: false splits and false merges, told apart, of rules over hand-written cases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from task_flow import Case, Opens, Tally, tally, task_flow_cases

from topicloom.boundary.adsorber import Adsorber
from topicloom.boundary.policy import AdsorberPolicy
from topicloom.graph.deps import open_adsorber
from topicloom.index.embedder import unit_rows
from topicloom.index.encoders import default_embedder
from topicloom.state.rounds import Round
from topicloom.state.script import measure_cjk_share
from topicloom.state.stored_message import StoredMessage

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


def measured(opens: Opens) -> dict[str, Tally]:
    """The tally by language."""
    return {
        language: tally(opens, [c for c in CASES if c.language == language])
        for language in ("en", "zh")
    }


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


class TestTally:
    def test_the_two_mistakes_are_told_apart(self) -> None:
        never = tally(lambda rounds, message: False, CASES)
        assert (len(never.false_splits), len(never.false_merges)) == (0, 32)
        always = tally(lambda rounds, message: True, CASES)
        assert (len(always.false_splits), len(always.false_merges)) == (32, 0)
        assert str(always) == "32 of 32 that go on are split, 0 of 32 new ones are merged"

    def test_a_rule_that_knows_makes_none(self) -> None:
        expected = {c.message.text: not c.continues for c in CASES}
        knowing = tally(lambda rounds, message: expected[message.text], CASES)
        assert knowing.false_splits == knowing.false_merges == ()


RULES: dict[str, Opens] = {
    "spec, grey adsorbed": spec(0.40),
    "spec, grey split": spec(0.75),
    "trained": funnel(open_adsorber(AdsorberPolicy(), default_embedder())),
}


@pytest.mark.parametrize("name", RULES)
def test_figures(name: str) -> None:
    """No bar to reach: shows what a rule does (`pytest -rP`)."""
    for language, found in measured(RULES[name]).items():
        print(f"{name}, {language}: {found}")  # noqa: T201
        assert (found.going_on, found.new) == (16, 16)
