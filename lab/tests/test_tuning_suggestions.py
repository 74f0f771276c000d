"""LogFigures, suggestions, and what recall takes of prompts."""

from __future__ import annotations

import pytest
from turn_logs import Day, log_of

from topicloom import ActivationPolicy, Receipt
from topicloom_lab.tuning.figures import figures_of, large_share, note_share, recall_limit
from topicloom_lab.tuning.suggesting import Advice, advise, alternatives, needed, replay
from topicloom_lab.tuning.turnlog import observe

POLICY = ActivationPolicy()
LAX = ActivationPolicy(base=0.05, step=0.0, sleep_share=0.1)
TOPICS = tuple(f"t{n}" for n in range(1, 13))


def turning(rounds: int, *, murmur: float = 0.2, asked: bool = False) -> list[Day]:
    """Twelve topics that take turns, three rounds each; the others score a little."""
    begun = Day(dict.fromkeys(TOPICS, 0.6), split=TOPICS)
    days = [begun]
    for turn in range(rounds):
        main = TOPICS[(turn // 3) % len(TOPICS)]
        relevance = {**dict.fromkeys(TOPICS, murmur), main: 0.9 if not asked else 0.62}
        days.append(Day(relevance, asked_for=(main,) if asked else ()))
    return days


def advised(receipts: list[Receipt], policy: ActivationPolicy) -> Advice:
    return advise(observe(receipts, policy), policy)


class TestFigures:
    def test_what_was_active_and_read(self) -> None:
        receipts = log_of(turning(60), LAX)
        found = figures_of(receipts, LAX)
        assert (found.turns, found.read) == (61, 61)
        assert found.crowd.reads == sum(len(r.scores) for r in receipts)
        assert found.crowd.most == 12
        assert found.crowd.full == 0
        assert found.quotes.originals == pytest.approx(2 * found.quotes.topics)
        assert found.amnesia.cues == found.amnesia.dormant == 0

    def test_under_the_threshold_yet_active(self) -> None:
        policy = POLICY.model_copy(update={"floor": 2})
        days = [Day({"t1": 0.9, "t2": 0.6}, split=("t1", "t2")), *[Day({"t1": 0.9, "t2": 0.1})] * 4]
        crowd = figures_of(log_of([*days, Day({"t1": 0.9, "t2": 0.9})], policy), policy).crowd
        assert (crowd.under, crowd.stretch, crowd.longest) == (4, 4.0, 4)

    def test_ceiling_and_flapping(self) -> None:
        policy = ActivationPolicy(floor=0, usual=2, ceiling=2, window=1)
        begun = Day({"t1": 0.9, "t2": 0.9}, split=("t1", "t2"))
        away, back = Day({"t1": 0.9, "t2": 0.0}), Day({"t1": 0.9, "t2": 0.9})
        crowd = figures_of(log_of([begun, away, back, away], policy), policy).crowd
        assert crowd.full == 2
        assert (crowd.activated, crowd.flaps) == (1, 1)

    def test_what_a_search_found(self) -> None:
        strict = POLICY.model_copy(update={"base": 0.7, "floor": 1})
        amnesia = figures_of(log_of(turning(30, asked=True), strict), strict).amnesia
        assert amnesia.cues == amnesia.dormant > 5
        assert (amnesia.asked, amnesia.empty) == (0, 0)

    def test_before_the_first_split(self) -> None:
        found = figures_of(log_of([Day({})]), POLICY)
        assert (found.turns, found.read, found.crowd.most) == (1, 0, 0)


class TestSuggestions:
    @pytest.mark.slow
    def test_what_nobody_quotes_need_not_be_read(self) -> None:
        advice = advised(log_of(turning(160), LAX), LAX)
        assert advice.suggestion is not None
        assert advice.suggestion.aim == "cost"
        assert advice.suggestion.changes
        assert advice.suggestion.replay.reads < 0.8 * advice.in_force.reads
        assert advice.suggestion.replay.missed == 0

    @pytest.mark.slow
    def test_they_do_what_was_foretold(self) -> None:
        days = turning(160)
        advice = advised(log_of(days, LAX), LAX)
        assert advice.suggestion is not None
        foretold = advice.suggestion.replay
        real = log_of(days, foretold.policy)
        assert sum(len(r.scores) for r in real) == pytest.approx(foretold.reads, rel=0.02)

    @pytest.mark.slow
    def test_amnesia_goes_before_cost(self) -> None:
        strict = ActivationPolicy(base=0.65, floor=1)
        advice = advised(log_of(turning(160, asked=True), strict), strict)
        assert advice.suggestion is not None
        assert advice.suggestion.aim == "recall"
        assert advice.suggestion.changes["base"] < 0.65
        assert advice.suggestion.replay.missed < advice.in_force.missed

    def test_good_settings_are_left_alone(self) -> None:
        tight = ActivationPolicy(base=0.6, step=0.0, sleep_share=1.0, floor=0, window=1)
        advice = advised(log_of(turning(160), tight), tight)
        assert advice.suggestion is not None
        assert advice.suggestion.changes == {}

    def test_too_little_says_how_much_is_missing(self) -> None:
        short = observe(log_of(turning(20), LAX), LAX)
        advice = advise(short, LAX)
        assert advice.suggestion is None
        assert f"about {needed(short)} more turns" in advice.reason
        enough = observe(log_of(turning(150), LAX), LAX)
        assert needed(short) > needed(enough) == 0
        assert needed([]) == 30

    def test_a_log_of_other_settings_is_found_out(self) -> None:
        advice = advised(log_of(turning(160), LAX), ActivationPolicy(base=0.65, floor=0))
        assert advice.suggestion is None
        assert "made with other settings" in advice.reason

    def test_alternatives_are_policies(self) -> None:
        for setting, value, policy in alternatives(ActivationPolicy(floor=0), (-2, -1, 1, 2)):
            assert ActivationPolicy.model_validate(policy.model_dump()) == policy
            assert getattr(policy, setting) == value

    def test_the_settings_in_force_come_out_as_they_went_in(self) -> None:
        seen = observe(log_of(turning(60), LAX), LAX)
        assert advise(seen, LAX).in_force == replay(seen, LAX)


class TestPrompts:
    @staticmethod
    def prompts(*notes: int, split: frozenset[int] = frozenset()) -> list[Receipt]:
        plain = log_of([Day({"t1": 0.9}, split=("t1",))])[0]
        return [
            plain.model_copy(
                update={
                    "turn": n,
                    "sections": {"system": 400, "notes": tokens, "tail": 1_600},
                    "split": ("t1",) if n in split else (),
                }
            )
            for n, tokens in enumerate(notes)
        ]

    def test_the_share_of_recall(self) -> None:
        assert note_share({"notes": 500, "tail": 1_500}) == 0.25
        assert note_share({}) == 0.0
        assert large_share(self.prompts(0, 2_000)) == 0.5

    def test_a_limit_that_leaves_room(self) -> None:
        often = self.prompts(*[1_200, 2_400] * 30, split=frozenset(range(0, 60, 2)))
        limit = recall_limit(often)
        assert limit is not None
        # Two turns of the limit are under two fifths of the prompt: 2 x 0.08 x 8,000 of 3,280.
        assert limit.share <= 0.0834
        assert limit.large == 0
        assert limit.kept == pytest.approx(limit.share * 8_000 / 1_200, rel=0.01)

    def test_no_limit_where_recall_is_small_or_the_log_short(self) -> None:
        assert recall_limit(self.prompts(*[600] * 60)) is None
        assert recall_limit(self.prompts(*[3_000] * 10)) is None
        assert recall_limit([]) is None
