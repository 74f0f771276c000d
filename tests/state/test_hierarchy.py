"""The hierarchy of topics: paths, names, heirs; deep ones, and rows that go in circles."""

from __future__ import annotations

from tables import each_row

from topicloom.state.hierarchy import (
    add_full_names,
    build_full_name,
    describe_topic,
    drop_empty,
    find_continuation,
    find_path,
    find_successors,
    strip_number,
)
from topicloom.state.topics import Topic, TopicStatus, TopicTable

DEEP = 5_000


def topic(
    number: int,
    parent: int | None = None,
    status: TopicStatus = "open",
    *,
    name: str = "",
    into: int | None = None,
    last: int = 0,
) -> Topic:
    return Topic(
        id=f"t{number}",
        name=name or f"n{number}",
        status=status,
        parent=f"t{parent}" if parent else None,
        merged_into=f"t{into}" if into else None,
        newest=last,
        count=0 if status in ("divided", "merged") else 2,
    )


def known(*topics: Topic) -> dict[str, Topic]:
    return {t.id: t for t in topics}


HOUSE = known(
    topic(1, status="divided", name="House", last=0),
    topic(2, 1, "divided", name="Kitchen"),
    topic(3, 1, name="Garden", last=2),
    topic(4, 2, name="Tiles", last=9),
    topic(5, 2, name="Builder", last=4),
    topic(6, name="Kyoto"),
)


def test_paths_and_full_names() -> None:
    assert [t.id for t in find_path(HOUSE["t4"], HOUSE)] == ["t1", "t2", "t4"]
    assert build_full_name(HOUSE["t4"], HOUSE) == "House / Kitchen / Tiles"
    assert build_full_name(HOUSE["t6"], HOUSE) == "Kyoto"
    assert [t.name for t in add_full_names([HOUSE["t3"], HOUSE["t6"]], HOUSE)] == [
        "House / Garden",
        "Kyoto",
    ]


def test_a_numbered_part_stands_for_what_it_is_a_part_of() -> None:
    topics = known(
        topic(1, status="divided", name="Rain"),
        topic(2, 1, "divided", name="Rain (2)"),
        topic(3, 2, name="Rain (4)"),
        topic(4, 1, name="Snow"),
    )
    assert build_full_name(topics["t3"], topics) == "Rain (4)"
    assert build_full_name(topics["t4"], topics) == "Rain / Snow"


@each_row(
    ("name", "base"), [("Rain (12)", "Rain"), ("Rain", "Rain"), ("Rain (b)", "Rain (b)"), ("", "")]
)
def test_a_name_without_its_number(name: str, base: str) -> None:
    assert strip_number(name) == base


def test_who_has_what_a_topic_had() -> None:
    assert [t.id for t in find_successors("t1", HOUSE)] == ["t3", "t4", "t5"]
    assert [t.id for t in find_successors("t6", HOUSE)] == ["t6"]
    assert find_successors("t99", HOUSE) == find_successors(None, HOUSE) == []
    newest = find_continuation("t1", HOUSE)
    assert newest is not None
    assert newest.id == "t4"


def test_heirs_are_found_through_mergers() -> None:
    topics = known(
        topic(1, status="divided"),
        topic(2, 1, "merged", into=4),
        topic(3, 1, "archived"),
        topic(4),
    )
    assert [t.id for t in find_successors("t1", topics)] == ["t4"]
    assert find_continuation("t3", topics) is None


def test_a_deep_hierarchy() -> None:
    rows = [topic(n, n - 1 or None, "divided") for n in range(1, DEEP)]
    topics = known(*rows, topic(DEEP, DEEP - 1))
    assert len(find_path(topics[f"t{DEEP}"], topics)) == DEEP
    assert [t.id for t in find_successors("t1", topics)] == [f"t{DEEP}"]
    assert build_full_name(topics[f"t{DEEP}"], topics) == f"n1 / … / n{DEEP - 1} / n{DEEP}"


def test_rows_that_go_in_circles_do_not_hang() -> None:
    topics = known(
        topic(1, 2, "divided"),
        topic(2, 1, "divided"),
        topic(3, 3),
        topic(4, None, "merged", into=4),
    )
    assert [t.id for t in find_path(topics["t1"], topics)] == ["t2", "t1"]
    assert [t.id for t in find_path(topics["t3"], topics)] == ["t3"]
    assert find_successors("t1", topics) == find_successors("t4", topics) == []
    assert [t.id for t in find_successors("t3", topics)] == ["t3"]


def test_a_parent_that_is_not_there() -> None:
    topics = known(topic(2, 1))
    assert build_full_name(topics["t2"], topics) == "n2"


def test_an_index_holds_topics_with_messages_under_their_full_names() -> None:
    held = drop_empty(TopicTable(HOUSE))
    briefed = {t.id: t.model_copy(update={"brief": "b", "summary": "s"}) for t in held}
    assert {i: describe_topic(t, HOUSE) for i, t in briefed.items()} == {
        "t3": "House / Garden. b",
        "t4": "House / Kitchen / Tiles. b",
        "t5": "House / Kitchen / Builder. b",
        "t6": "Kyoto. b",
    }
    put_away = briefed["t3"].model_copy(update={"status": "archived"})
    assert describe_topic(put_away, HOUSE) == "House / Garden. s"
    in_the_making = put_away.model_copy(update={"brief": "", "summary": ""})
    assert describe_topic(in_the_making, HOUSE) == ""
