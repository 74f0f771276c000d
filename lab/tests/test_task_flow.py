"""Task flow: false splits and false merges, told apart, of rules over hand-written cases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import mean

import pytest
from tables import each_row

from topicloom import AdsorberPolicy, Round, StoredMessage, default_embedder
from topicloom.lab import Adsorber, open_adsorber, unit_rows
from topicloom.state.language import measure_cjk_share
from topicloom_lab.cli.arbiter import (
    ALWAYS,
    Case,
    Kind,
    Opens,
    count_mistakes,
    likeness,
    measure_auc,
    opens_with,
    question_of,
    ranking,
    task_flow_cases,
)
from topicloom_lab.cli.output import read_rows
from topicloom_lab.opened import Row

CASES = task_flow_cases()
HARD = [case for case in CASES if case.kind == "hard"]
EASY = [case for case in CASES if case.kind == "easy"]


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
    def test_both_outcomes_in_both_languages_hard_and_easy(self) -> None:
        kinds = Counter((c.kind, c.language, c.continues) for c in CASES)
        assert set(kinds.values()) == {16}
        assert len(kinds) == 8

    def test_each_hard_case_has_an_easy_one_of_the_same_conversation(self) -> None:
        assert len(HARD) == len(EASY) == 64
        for hard, easy in zip(HARD, EASY, strict=True):
            assert easy.id == f"{hard.id}-easy"
            assert (easy.language, easy.rounds) == (hard.language, hard.rounds)
            assert easy.continues == hard.continues

    def test_all_can_be_asked_about(self) -> None:
        assert all(question_of(case, ALWAYS) for case in CASES)

    def test_an_easy_message_has_the_likeness_that_misleads_in_the_hard_one(self) -> None:
        """In the mean: nearer where it goes on, farther where it is news."""
        for continues in (True, False):
            hard, easy = (
                _mean_likeness([c for c in cases if c.continues == continues])
                for cases in (HARD, EASY)
            )
            assert (easy > hard + 0.1) if continues else (easy < hard - 0.1)

    def test_ids_and_messages_are_each_there_once(self) -> None:
        assert len({c.id for c in CASES}) == len({c.message.text for c in CASES}) == len(CASES)

    @each_row("case", CASES)
    def test_a_case_is_a_conversation_of_its_language(self, case: Case) -> None:
        messages = [r for b in case.rounds for r in b.messages]
        assert 4 <= len(messages) <= 8
        assert [r.role for r in messages] == ["user", "assistant"] * len(case.rounds)
        assert case.message.role == "user"
        assert case.why
        text = " ".join(r.text for r in [*messages, case.message])
        assert (measure_cjk_share(text) > 1 / 3) == (case.language == "zh")


class TestMistakes:
    def test_the_two_outcomes_are_told_apart(self) -> None:
        assert count_mistakes(lambda rounds, message: False, CASES) == (0, 64)
        assert count_mistakes(lambda rounds, message: True, CASES) == (64, 0)

    def test_a_rule_that_knows_makes_none(self) -> None:
        expected = {c.message.text: not c.continues for c in CASES}
        knowing = count_mistakes(lambda rounds, message: expected[message.text], CASES)
        assert knowing == (0, 0)


RULES: dict[str, Opens] = {
    "spec, grey adsorbed": spec(0.40),
    "spec, grey split": spec(0.75),
    "trained": funnel(open_adsorber(AdsorberPolicy(), default_embedder())),
}


@pytest.mark.slow
@each_row("name", RULES)
@each_row("kind", ["hard", "easy"])
@each_row("language", ["en", "zh"])
def test_mistakes_of_each_rule_are_printed(name: str, language: str, kind: Kind) -> None:
    """No bar to reach: shows what a rule does (`pytest -rP`)."""
    cases = [case for case in CASES if (case.language, case.kind) == (language, kind)]
    split, merged = count_mistakes(RULES[name], cases)
    print(f"{name}, {language}, {kind}: {split} of 16 split, {merged} of 16 merged")  # noqa: T201


class TestRanking:
    """AUC of telling what goes on."""

    def test_equal_scores_are_a_half_and_one_that_knows_has_all(self) -> None:
        assert measure_auc(CASES, [0.3] * len(CASES), EASY) == 0.5
        assert measure_auc(CASES, [float(case.continues) for case in CASES], HARD) == 1.0

    def test_neither_likeness_nor_its_opposite_tells_what_goes_on(self) -> None:
        by = _read_ranking([])
        for name in ("cosine", "inverted cosine"):
            assert 0.35 < by[name]["both"] < 0.65
        assert by["cosine"]["hard"] < 0.2
        assert by["cosine"]["easy"] > 0.9
        for kind in ("hard", "easy", "both"):
            assert by["cosine"][kind] + by["inverted cosine"][kind] == pytest.approx(1, abs=0.002)

    @pytest.mark.parametrize("language", ["en", "zh"])
    def test_nor_in_one_language(self, language: str) -> None:
        chosen = [case for case in CASES if case.language == language]
        scores = [_likeness(case) for case in CASES]
        assert 0.35 < measure_auc(CASES, scores, chosen) < 0.65

    def test_nor_does_the_message_alone(self) -> None:
        """By its vector; what the judge is fitted to is of other conversations."""
        from sklearn.linear_model import LogisticRegression
        from sklearn.model_selection import GroupKFold, cross_val_predict

        vectors = default_embedder().embed([case.message.text for case in CASES])
        truth = [case.continues for case in CASES]
        conversations = [case.id.removesuffix("-easy") for case in CASES]
        judged = cross_val_predict(
            LogisticRegression(C=10.0),
            vectors,
            truth,
            groups=conversations,
            cv=GroupKFold(8),
            method="decision_function",
        )
        area = measure_auc(CASES, list(judged), CASES)
        print(f"AUC of the message alone: {area:.3f}")  # noqa: T201
        assert 0.35 < area < 0.65

    def test_an_arbiter_stands_beside_them(self) -> None:
        by = _read_ranking([{"continues": float(case.continues)} for case in CASES])
        assert by["arbiter"] == {"hard": 1.0, "easy": 1.0, "both": 1.0}
        assert set(by) == {"arbiter", "boundary model", "cosine", "inverted cosine"}

    def test_what_was_not_judged_is_left_to_the_boundary_model(self) -> None:
        by = _read_ranking([{"continues": None} for _ in CASES])
        assert by["arbiter"] == by["boundary model"]


def _read_ranking(rows: Sequence[Row]) -> dict[str, dict[str, float]]:
    kinds = ("hard", "easy", "both")
    return {row["by"]: {k: row[k] for k in kinds} for row in read_rows(ranking(CASES, rows))}


def _likeness(case: Case) -> float:
    question = question_of(case, ALWAYS)
    assert question is not None
    return likeness(question)


def _mean_likeness(cases: Sequence[Case]) -> float:
    return mean(map(_likeness, cases))


class TestRulings:
    """The splits that follow from what an arbiter says."""

    @pytest.mark.slow
    def test_one_that_knows_makes_no_mistake_where_it_is_always_asked(self) -> None:
        asked = [question_of(case, ALWAYS) for case in CASES]
        assert [q and q.request for q in asked] == [case.message.text for case in CASES]
        rulings = {case.message.text: float(case.continues) for case in CASES}
        assert count_mistakes(opens_with(ALWAYS, rulings), CASES) == (0, 0)

    @pytest.mark.slow
    def test_it_decides_nothing_where_it_is_not_asked(self) -> None:
        policy = AdsorberPolicy()
        wrong = {case.message.text: float(not case.continues) for case in CASES}
        untouched = [case for case in CASES if question_of(case, policy) is None]
        assert 0 < len(untouched) < len(CASES)
        without = count_mistakes(opens_with(policy, {}), untouched)
        assert count_mistakes(opens_with(policy, wrong), untouched) == without
