"""Whatever people, turns and reviews do to topics, every message is in one place, word for word."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from examples import FEW, fresh
from hypothesis import given, strategies as st
from reviewed import CONFIG, World
from sessions import chatter, check_kept, kept, past, record, tell

from topicloom import FileStorage, InputError, Memory, TopicChange
from topicloom.state.changes import REVIEW


@dataclass(frozen=True)
class Act:
    """Something that is done to a session."""

    kind: str
    one: int
    other: int


KINDS = ["rename", "move", "merge", "split", "pin", "unpin", "archive", "restore", "undo", "undo"]
acts = st.lists(
    st.builds(
        Act,
        st.sampled_from([*KINDS, "say", "record", "review"]),
        st.integers(1, 6),
        st.integers(1, 30),
    ),
    min_size=6,
    max_size=14,
)


def do(world: World, memory: Memory, act: Act, number: int) -> None:
    """Do one thing; what cannot be done raises InputError."""
    topic, other = f"t{act.one}", f"t{1 + act.other % 6}"
    match act.kind:
        case "rename":
            memory.rename(topic, f"name {number}")
        case "move":
            memory.move(f"m{act.other}-m{act.other + 2}", topic)
        case "merge":
            memory.merge(topic, other)
        case "split":
            memory.split(topic, memory.topic(topic).messages()[0].id, f"part {number}")
        case "pin" | "unpin":
            memory.pin(topic, pinned=act.kind == "pin")
        case "archive":
            memory.archive(topic)
        case "restore":
            memory.restore(topic)
        case "undo":
            memory.undo()
        case "say":
            tell(world.graph, CONFIG, chatter("海", number), keep=0)
        case "record":
            record(world.graph, CONFIG, *past("山", rounds=1, characters=100 + number))
        case _:
            world.clock.now += timedelta(days=9)
            world.review()


@pytest.mark.slow
@FEW
@given(acts, st.booleans())
def test_any_changes_and_undoing_them(tmp_path: Path, script: list[Act], alone: bool) -> None:
    world = World(fresh(tmp_path))
    world.begin("茶", "雨")
    storage = FileStorage(world.folder, fsync=False)
    memory = Memory(storage, "s") if alone else Memory.of(world.graph, CONFIG)
    named: dict[str, str] = {}
    for number, act in enumerate(script):
        session = memory.session()
        before = [m.text for m in kept(world.folder, session).originals(session)]
        with suppress(InputError, IndexError):
            do(world, memory, act, number)
        session = memory.session()
        said = check_kept(kept(world.folder, session), session)
        assert [m.text for m in said][: len(before)] == before
        if act.kind in ("say", "record", "review"):
            now = {t.id: t.name for t in memory.topics()}
            assert {t: now.get(t) for t in named} == named
        named = {t.id: t.name for t in memory.topics() if "named" in t.by_hand}


class TestReviewsLeaveWhatPeopleDid:
    @pytest.fixture
    def world(self, tmp_path: Path) -> World:
        world = World(tmp_path)
        world.begin()
        return world

    @pytest.mark.slow
    def test_a_review_leaves_a_name_that_a_person_gave(self, world: World) -> None:
        tea = world.id_of("茶")
        Memory.of(world.graph, CONFIG).rename(tea, "Tea house")
        report = world.review()
        assert tea in report.reviewed
        row = world.topic_table[tea]
        assert (row.name, row.summary) == ("Tea house", "Tea house, 6 summed up")

    @pytest.mark.slow
    @pytest.mark.parametrize("change", ["pin", "restore"])
    def test_a_review_archives_nothing_that_a_person_kept(self, world: World, change: str) -> None:
        tea, memory = world.id_of("茶"), Memory.of(world.graph, CONFIG)
        if change == "pin":
            memory.pin(tea)
        else:
            world.review()
            memory.restore(tea)
        world.sleep("茶")
        world.clock.now += timedelta(days=40)
        assert tea not in world.review().archived
        assert world.topic_table[tea].status == "open"

    @pytest.mark.slow
    def test_a_review_leaves_messages_where_a_person_put_them(self, world: World) -> None:
        world.merger.everything = True
        memory = Memory.of(world.graph, CONFIG)
        parts = {
            memory.split(t.id, t.messages()[0].id, f"{t.name}之一").id for t in memory.topics()
        }
        report = world.review()
        assert not {one for pair in report.merged for one in pair} & parts
        assert {t.id for t in world.topic_table.open()} >= parts

    @pytest.mark.slow
    def test_a_review_that_began_before(self, world: World) -> None:
        tea = world.id_of("茶")
        seen = world.review(dry_run=True).changes
        Memory.of(world.graph, CONFIG).pin(tea)
        assert all(isinstance(c, TopicChange) and c.author == REVIEW for c in seen)
        report = world.review()
        assert tea not in report.archived

    @pytest.mark.slow
    def test_a_review_comes_behind_what_was_changed_beside_the_graph(self, world: World) -> None:
        tea = world.id_of("茶")
        Memory(FileStorage(world.folder, fsync=False), "s", author="ann").rename(tea, "Tea house")
        assert not world.review().refused
        assert world.topic_table[tea].name == "Tea house"

    @pytest.mark.slow
    def test_its_own_changes_can_be_undone(self, world: World) -> None:
        tea, memory = world.id_of("茶"), Memory.of(world.graph, CONFIG)
        assert tea in world.review().archived
        entry = next(e for e in memory.changes() if e.event.startswith("archived"))
        assert entry.author == REVIEW
        memory.undo(entry.id)
        assert memory.topic(tea).state == "dormant"
        world.checked()
