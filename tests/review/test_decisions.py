"""What a review decides, and which changes still fit."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, strategies as st
from tables import each_row

from topicloom import Assessment, ReviewPolicy, Topic, TopicChange
from topicloom.hosting import TopicTable
from topicloom.review.decisions import (
    ReviewFindings,
    TopicPair,
    TopicStats,
    count_idle_days,
    decide_changes,
    is_due,
    pair_topics,
    select_likeliest,
    select_merges,
)
from topicloom.state.changes import (
    apply_archiving,
    apply_texts,
    describe_change,
    explain_refusal,
    fingerprint_topic,
)
from topicloom.state.lifecycle import apply_event, mark_divided

NOW = datetime(2026, 3, 20, 12, tzinfo=UTC)
POLICY = ReviewPolicy()


def ago(days: float) -> str:
    return (NOW - timedelta(days=days)).isoformat()


def topic(number: int = 1, **more: Any) -> Topic:
    given = {"name": f"Tea {number}", "content": f"h{number}", "count": 4, "tokens": 100}
    return Topic.model_validate({"id": f"t{number}", **given, "last_at": ago(9), **more})


def roster_of(*topics: Topic) -> TopicTable:
    return TopicTable({t.id: t for t in topics})


def said(importance: float = 0.5, **more: Any) -> Assessment:
    return Assessment(name="Tea", brief="b", summary="s", importance=importance, **more)


def decided(
    one: Topic, look: TopicStats, now: datetime = NOW, near: float = 1.0, **assessed: Assessment
) -> list[TopicChange]:
    found = ReviewFindings(looks=(look,), assessed=assessed, near={one.id: near})
    return decide_changes(roster_of(one), found, now, POLICY)


def look_at(days: float = 9, *, awake: bool = False, number: int = 1) -> TopicStats:
    return TopicStats(topic=f"t{number}", awake=awake, spoken=(ago(days),))


class TestDue:
    def test_what_was_touched_or_never_looked_at(self) -> None:
        assert is_due(topic())
        assert not is_due(topic(reviewed="h1", summary="s"))
        assert is_due(topic(reviewed="h0", summary="s"))
        assert is_due(topic(reviewed="h1", summary="")), "its summary was purged"
        assert not is_due(topic(status="archived"))
        assert not is_due(topic(count=0))


class TestArchive:
    @each_row(
        ("look", "assessment", "near", "why"),
        [
            (look_at(), said(0.1), 1.0, "of little importance (0.10)"),
            (look_at(), said(0.9, once=True), 1.0, "asked once and over"),
            (look_at(), said(0.5), 0.0, "unrelated to what is being talked about"),
            (look_at(), said(0.5), 0.5, ""),
            (look_at(), said(0.7), 0.0, ""),
            (look_at(6.9), said(0.1), 0.0, ""),
            (look_at(awake=True), said(0.1), 0.0, ""),
            (TopicStats(topic="t1"), said(0.1), 0.0, ""),
            (TopicStats(topic="t1", spoken=("long ago",)), said(0.1), 0.0, ""),
        ],
    )
    def test_each_rule_of_archiving_gives_its_reason(
        self, look: TopicStats, assessment: Assessment, near: float, why: str
    ) -> None:
        (change,) = decided(topic(), look, near=near, t1=assessment)
        assert bool(change.archive) == bool(why)
        assert change.reason == (f"not spoken of for 9 days, {why}" if why else "")

    def test_by_what_was_said_before(self) -> None:
        known = topic(reviewed="h1", summary="s", importance=0.1)
        (change,) = decided(known, look_at())
        assert (change.archive, change.summary, change.reviewed) == ("2026-03", "s", False)
        assert decided(topic(importance=None), look_at()) == []

    def test_the_month_of_its_newest_message(self) -> None:
        for last, month in (("2025-12-31T23:59:00+01:00", "2025-12"), ("then", "2026-03")):
            (change,) = decided(topic(last_at=last), look_at(), t1=said(0.1))
            assert change.archive == month

    def test_the_newest_of_its_times_counts(self) -> None:
        look = TopicStats(topic="t1", spoken=(ago(30), ago(2), "2026-03-19"))
        assert count_idle_days(look, NOW) == pytest.approx(1.5)
        assert count_idle_days(look, NOW - timedelta(days=900)) == 0


class TestPairs:
    def test_the_larger_one_stays(self) -> None:
        small, large = topic(1), topic(2, tokens=300)
        assert pair_topics(small, large, 0.9, 1_000) == TopicPair(
            kept="t2", other="t1", likeness=0.9
        )
        assert pair_topics(topic(12), topic(9), 0.9, 1_000) == TopicPair(
            kept="t9", other="t12", likeness=0.9
        )

    def test_not_if_they_would_be_divided_again(self) -> None:
        assert pair_topics(topic(1), topic(2, tokens=401), 0.9, 1_000) is None
        assert pair_topics(topic(1, parent="t7"), topic(2, parent="t7"), 0.9, 9_000) is None
        assert pair_topics(topic(1, parent="t7"), topic(2, parent="t8"), 0.9, 9_000)

    def test_each_topic_in_one_at_most(self) -> None:
        pairs = [
            TopicPair(kept=a, other=b, likeness=n, same=a != "t3")
            for a, b, n in (
                ("t1", "t2", 0.7),
                ("t2", "t4", 0.9),
                ("t3", "t5", 0.8),
                ("t6", "t7", 0.1),
            )
        ]
        ranked = select_likeliest(pairs, POLICY)
        assert [p.likeness for p in ranked] == [0.9, 0.8, 0.7, 0.1]
        assert [p.kept for p in select_merges(ranked, POLICY)] == ["t2", "t6"]
        assert len(select_merges(ranked, POLICY.model_copy(update={"merges": 1}))) == 1
        assert select_likeliest(pairs, POLICY.model_copy(update={"merges": 0})) == []

    def test_a_merge_takes_the_place_of_other_changes(self) -> None:
        one, other = topic(1), topic(2)
        pair = TopicPair(kept="t1", other="t2", likeness=0.91, same=True, together=said(0.8))
        looks = (look_at(), look_at(number=2))
        found = ReviewFindings(looks=looks, assessed={"t2": said(0.1)}, pairs=(pair,))
        (change,) = decide_changes(roster_of(one, other), found, NOW, POLICY)
        assert (change.topic, change.absorbs, change.importance) == ("t1", "t2", 0.8)
        assert describe_change(change, roster_of(one, other)) == (
            "merged t2 “Tea 2” into t1 “Tea 1”: they are about the same thing (likeness 0.91)"
        )
        alone = pair.model_copy(update={"together": None})
        (change,) = decide_changes(
            roster_of(one, other), found.model_copy(update={"pairs": (alone,)}), NOW, POLICY
        )
        assert not change.reviewed, "so that it is due again"

    def test_what_is_merged_is_put_away_at_once_if_both_are_over(self) -> None:
        one, other = topic(1, last_at=ago(50)), topic(2, last_at=ago(10))
        table = roster_of(one, other)
        over = TopicPair(kept="t1", other="t2", likeness=0.91, same=True, together=said(0.1))

        def merged(pair: TopicPair = over, **second: Any) -> TopicChange:
            second = {"topic": "t2", "spoken": (ago(10),), **second}
            looks = (TopicStats(topic="t1", spoken=(ago(50),)), TopicStats(**second))
            (change,) = decide_changes(
                table, ReviewFindings(looks=looks, pairs=(pair,)), NOW, POLICY
            )
            assert change.absorbs == "t2"
            return change

        change = merged()
        assert change.archive == other.last_at[:7], "the month of the newer one"
        assert describe_change(change, table) == (
            "merged t2 “Tea 2” into t1 “Tea 1” and archived it: they are about the same thing "
            "(likeness 0.91); not spoken of for 10 days, of little importance (0.10)"
        )
        assert explain_refusal(change, table, {}) == ""
        assert explain_refusal(change, table, {"t2"}) == "t2 is active"
        assert not merged(awake=True).archive
        assert not merged(spoken=(ago(3),)).archive
        assert not merged(over.model_copy(update={"together": said(0.9)})).archive
        assert not merged(over.model_copy(update={"together": None})).archive


class TestFitting:
    CHANGE = TopicChange(
        topic="t1",
        seen=fingerprint_topic(topic()),
        name="Green tea",
        brief="b",
        summary="s",
        importance=0.4,
    )

    def test_one_that_fits(self) -> None:
        one = topic()
        assert explain_refusal(self.CHANGE, roster_of(one), {}) == ""
        after = apply_texts(one, self.CHANGE, roster_of(one))
        assert (after.name, after.summary, after.reviewed) == ("Green tea", "s", "h1")
        assert explain_refusal(self.CHANGE, roster_of(after), {}) == "t1 has changed since"

    @each_row(
        "update",
        [
            {"content": "h2"},
            {"name": "Coffee"},
            {"brief": "other"},
            {"summary": "other"},
            {"status": "archived"},
        ],
    )
    def test_one_that_does_not(self, update: dict[str, str]) -> None:
        later = topic().model_copy(update=update)
        assert explain_refusal(self.CHANGE, roster_of(later), {}) == "t1 has changed since"

    def test_a_change_that_does_not_fit_is_refused_in_words(self) -> None:
        assert explain_refusal(self.CHANGE, roster_of(), {}) == "there is no t1"
        archived = topic(status="archived")
        seen = self.CHANGE.model_copy(update={"seen": fingerprint_topic(archived)})
        assert explain_refusal(seen, roster_of(archived), {}) == "t1 is archived"
        away = self.CHANGE.model_copy(update={"archive": "2026-03"})
        assert explain_refusal(away, roster_of(topic()), {"t1": ()}) == "t1 is active"
        itself = self.CHANGE.model_copy(update={"absorbs": "t1", "absorbed_seen": "x"})
        assert explain_refusal(itself, roster_of(topic()), {}) != ""
        both = self.CHANGE.model_copy(
            update={"absorbs": "t1", "absorbed_seen": fingerprint_topic(topic())}
        )
        assert explain_refusal(both, roster_of(topic()), {}) == "t1 cannot be merged into itself"

    def test_no_two_topics_get_one_name(self) -> None:
        beside = topic(2, name="Green tea")
        assert apply_texts(topic(), self.CHANGE, roster_of(topic(), beside)).name == "Tea 1"
        merging = self.CHANGE.model_copy(update={"absorbs": "t2"})
        assert apply_texts(topic(), merging, roster_of(topic(), beside)).name == "Green tea"


times = st.one_of(
    st.sampled_from(["", "then", "2026-03-01", "9999-12-31T23:59:59+00:00"]),
    st.floats(-400, 400).map(ago),
)
importances = st.floats(0, 1)
topics: st.SearchStrategy[dict[str, Any]] = st.builds(
    dict,
    status=st.sampled_from(["open", "open", "open", "archived", "divided"]),
    last_at=times,
    importance=st.none() | importances,
    once=st.booleans(),
    summary=st.sampled_from(["", "s"]),
    reviewed=st.sampled_from([None, "h0"]),
    awake=st.booleans(),
    assessed=st.none() | importances,
    near=st.floats(-1, 1),
)


@pytest.mark.slow
@given(
    st.lists(topics, max_size=8),
    st.integers(0, 7),
    st.integers(0, 7),
    st.none() | importances,
    st.floats(-900, 900),
)
def test_whatever_is_found(
    rows: list[dict[str, Any]], one: int, other: int, together: float | None, later: float
) -> None:
    now = NOW + timedelta(days=later)
    made = [
        topic(n, **{k: v for k, v in row.items() if k not in ("awake", "assessed", "near")})
        for n, row in enumerate(rows, 1)
    ]
    table = roster_of(*made)
    active = {t.id for t, row in zip(made, rows, strict=True) if row["awake"]}
    active &= {t.id for t in table.open()}
    looks = tuple(
        TopicStats(topic=t.id, awake=t.id in active, spoken=(t.last_at,)) for t in table.open()
    )
    both = sorted({i for i in (one, other) if i < len(looks)})
    pairs: tuple[TopicPair, ...] = ()
    if len(both) == 2:
        kept, gone = (looks[i].topic for i in both)
        of_both = said(together) if together is not None else None
        pairs = (TopicPair(kept=kept, other=gone, likeness=0.9, same=True, together=of_both),)
    found = ReviewFindings(
        looks=looks,
        assessed={
            t.id: said(row["assessed"])
            for t, row in zip(made, rows, strict=True)
            if row["assessed"] is not None and t.status == "open"
        },
        pairs=pairs,
        near={t.id: row["near"] for t, row in zip(made, rows, strict=True)},
    )
    changes = decide_changes(table, found, now, POLICY)
    touched = [i for c in changes for i in (c.topic, c.absorbs) if i is not None]
    assert len(touched) == len(set(touched)), "no topic is changed in two ways"
    for change in changes:
        assert explain_refusal(change, table, active) == ""
        before = table[change.topic]
        after = apply_archiving(apply_texts(before, change, table), change, active)
        if change.archive:
            put = {change.topic, change.absorbs}
            assert not put & active
            assert all(count_idle_days(x, now) > 7 for x in looks if x.topic in put)
            assert change.absorbs is None or together is not None
            assert after.status == "archived"
            assert change.importance is not None
        moved = roster_of(*[after if t.id == after.id else t for t in made])
        if after != before:
            assert explain_refusal(change, moved, active), "a change is made once"


def test_marks_tell_every_step_of_a_life_apart() -> None:
    one = topic()
    steps = [
        one,
        apply_event(one, "archive", ()),
        mark_divided(one, {"t1"}),
        apply_event(one, "merge", ()),
    ]
    assert len({fingerprint_topic(step) for step in steps}) == 4
    assert fingerprint_topic(one) == fingerprint_topic(topic(last_at=ago(1))), (
        "only what may change counts"
    )


def test_a_pair_of_which_one_time_is_unknown_is_not_archived() -> None:
    dated, undated = topic(1, last_at=ago(90)), topic(2, last_at="")
    found = ReviewFindings(
        looks=tuple(TopicStats(topic=t.id, spoken=(t.last_at,)) for t in (dated, undated)),
        assessed={t.id: said(0.0) for t in (dated, undated)},
        pairs=(TopicPair(kept="t1", other="t2", likeness=0.9, same=True, together=said(0.0)),),
        near={"t1": 0.0, "t2": 0.0},
    )
    (change,) = decide_changes(roster_of(dated, undated), found, NOW, POLICY)
    assert (change.absorbs, change.archive) == ("t2", "")
