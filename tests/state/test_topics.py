"""The roster: the last row of a topic wins, and nothing else moves."""

from __future__ import annotations

from hypothesis import given, strategies as st

from topicloom.state.topics import Topic, TopicStatus, TopicTable, select_shown

STATUSES: list[TopicStatus] = ["open", "archived", "divided", "merged"]


def row(number: int, name: str = "x", status: TopicStatus = "open") -> dict[str, object]:
    return Topic(id=f"t{number}", name=name, status=status).model_dump(mode="json")


def test_the_last_row_of_a_topic_wins() -> None:
    table = TopicTable.fold([row(1, "old"), row(2), row(1, "new")])
    assert [(t.id, t.name) for t in table] == [("t1", "new"), ("t2", "x")]
    assert len(table) == 2
    assert "t1" in table
    assert "t3" not in table
    assert table["t1"].name == "new"


def test_status_decides_who_may_be_found() -> None:
    table = TopicTable.fold([row(n, status=s) for n, s in enumerate(STATUSES, start=1)])
    assert [t.id for t in table.open()] == ["t1"]
    assert [t.id for t in table.archived()] == ["t2"]


def test_an_older_roster_does_not_change() -> None:
    base = TopicTable.fold([row(1, "old")])
    TopicTable.fold([row(1, "new"), row(2)], base)
    assert [(t.id, t.name) for t in base] == [("t1", "old")]


def test_a_topic_survives_its_row() -> None:
    topic = Topic(
        id="t7",
        name="Garden",
        brief="tomatoes",
        content="0123456789abcdef",
        count=3,
        tokens=90,
        first_at="2026-03-02",
        last_at="2026-03-04",
        status="divided",
        parent="t2",
    )
    assert TopicTable.fold([topic.model_dump(mode="json")])["t7"] == topic


def test_an_emptied_topic_keeps_what_it_is_about() -> None:
    topic = Topic(id="t7", name="Garden", brief="tomatoes", content="0" * 16, count=3, tokens=90)
    assert topic.emptied() == Topic(id="t7", name="Garden", brief="tomatoes")


rows = st.lists(
    st.builds(row, st.integers(1, 4), st.sampled_from("abc"), st.sampled_from(STATUSES))
)


@given(rows, rows)
def test_folding_in_two_goes_is_folding_at_once(
    first: list[dict[str, object]], second: list[dict[str, object]]
) -> None:
    at_once = TopicTable.fold([*first, *second])
    in_two = TopicTable.fold(second, TopicTable.fold(first))
    assert list(in_two) == list(at_once)


def spoken(number: int, day: int) -> Topic:
    return Topic(id=f"t{number}", name="x", last_at=f"2026-03-{day:02}T09:00:00+01:00")


def test_who_cannot_be_shown_all_topics_sees_the_newest_and_the_nearest() -> None:
    topics = [spoken(n, n) for n in range(1, 9)]
    near = {"t1": 0.2, "t2": 0.9, "t3": -0.1, "t8": 0.9}
    assert [t.id for t in select_shown(topics, near, 4)] == ["t8", "t7", "t2", "t1"]
    assert [t.id for t in select_shown(topics, near, 4, {"t4"})] == ["t4", "t8", "t2", "t1"]
    assert [t.id for t in select_shown(topics, near, 1, {"t4", "t5"})] == ["t5", "t4"]
    assert [t.id for t in select_shown(topics, {}, 1)] == ["t8"]


@given(
    st.lists(st.integers(1, 28), max_size=12),
    st.dictionaries(st.integers(1, 14).map("t{}".format), st.floats(-1, 1)),
    st.integers(1, 14),
    st.frozensets(st.integers(1, 14).map("t{}".format), max_size=5),
)
def test_as_many_as_may_be_are_shown(
    days: list[int], priors: dict[str, float], limit: int, always: frozenset[str]
) -> None:
    topics = [spoken(n, day) for n, day in enumerate(days, 1)]
    shown = [t.id for t in select_shown(topics, priors, limit, always)]
    wanted = always & {t.id for t in topics}
    assert len(set(shown)) == len(shown)
    assert wanted <= set(shown)
    assert len(shown) == max(min(limit, len(topics)), len(wanted))
    left = [priors.get(t.id, 0.0) for t in topics if t.id not in shown]
    nearest = shown[max(limit // 2, len(wanted)) :]
    assert all(priors.get(i, 0.0) >= worth for i in nearest for worth in left)
