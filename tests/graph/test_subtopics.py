"""Sub-topics: a topic that outgrows its reader's window is divided, and nothing is lost by it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from examples import FEW
from hypothesis import given, strategies as st
from langchain_core.messages import HumanMessage
from sessions import (
    chatter,
    check_kept,
    kept,
    last_receipt,
    open_after,
    open_graph,
    past,
    record,
    tell,
    thread,
    windows_of,
)

from topicloom import (
    SPLITTER,
    Answer,
    Assignment,
    FileStorage,
    LocalRole,
    Memory,
    ReadRequest,
    Session,
    SessionStore,
    SplitRequest,
    StoredMessage,
    Topic,
    TurnOptions,
    embedded_roles,
    get_session,
)
from topicloom.context.token_count import EstimatingCounter
from topicloom.context.windows import PromptWindow, WindowStarts
from topicloom.hosting import Graph, TopicTable
from topicloom.nodes.workspace import TranscriptSizes, Workspace
from topicloom.prompts.loader import Prompts
from topicloom.roles.reader import build_reader_prompt
from topicloom.search.hashing import HashingEmbedder
from topicloom.search.message_search import Query
from topicloom.state.hierarchy import find_successors, strip_number
from topicloom.state.lifecycle import mark_divided
from topicloom.state.rounds import group_rounds
from topicloom.testing import (
    FailingRole,
    NameRouter,
    SteadyReader,
    TaggedSplitter,
    fake_roles,
    read_tag,
)
from topicloom.topics.session_index import SessionIndex

CONFIG = thread()
COUNTER = EstimatingCounter("o200k")
READ_IN = PromptWindow.of(2_200, COUNTER, Prompts())
SMALL: dict[str, Any] = {"topic_window": 2_200, "window": 2_200}
LIMIT = READ_IN.topic_room()


@dataclass
class SubjectSplitter(TaggedSplitter):
    """Goes by the tag, and divides a topic by the parity of the number in a message."""

    divisions: list[SplitRequest] = field(default_factory=list)

    def call(self, request: SplitRequest) -> Answer[tuple[Assignment, ...]]:
        if request.dividing is None:
            return super().call(request)
        self.divisions.append(request)
        names = {b.first: f"{read_tag(b.text)}之{'奇偶'[b.first % 4 // 2]}" for b in request.rounds}
        known = {t.name: t.id for t in request.topics}
        return Answer(
            tuple(
                Assignment(message=i, topic=known.get(names[b.first]), name=names[b.first])
                for b in request.rounds
                for i in b.ids
            )
        )


class OneTopicSplitter(LocalRole[SplitRequest, tuple[Assignment, ...]]):
    """Puts everything into one topic, whatever it is asked."""

    def call(self, request: SplitRequest) -> Answer[tuple[Assignment, ...]]:
        known = request.topics[-1].id if request.topics else None
        ids = [i for b in request.rounds for i in b.ids]
        return Answer(tuple(Assignment(message=i, topic=known, name="万事") for i in ids))


def opened(folder: Path, graph: Graph) -> tuple[Session, SessionStore, TopicTable]:
    session = get_session(graph, CONFIG)
    store = kept(folder, session)
    check_kept(store, session)
    return session, store, store.topic_table(session)


def check_sizes(store: SessionStore, session: Session, table: TopicTable) -> None:
    """No open topic is too large, but for one of a single round."""
    for topic in table.open():
        users = [r for r in store.topic_messages(session, topic) if r.role == "user"]
        assert topic.tokens <= LIMIT or len(users) == 1
        if topic.parent is not None:
            assert table[topic.parent].status == "divided"


class TestDivision:
    @pytest.mark.slow
    def test_a_topic_that_is_too_large_is_divided_by_subject(self, tmp_path: Path) -> None:
        splitter = SubjectSplitter()
        graph = open_after(
            past("茶", "雨", rounds=5), tmp_path, fake_roles(splitter=splitter), **SMALL
        )
        tell(graph, CONFIG, "Hello", keep=0)
        session, store, table = opened(tmp_path, graph)
        tea, rain = table["t1"], table["t2"]
        assert (tea.name, tea.status, tea.count, tea.content) == ("茶", "divided", 0, "")
        children = [t for t in table if t.parent == "t1"]
        assert [t.name for t in children] == ["茶之奇", "茶之偶"]
        assert all(t.brief and t.first_at and t.tokens for t in children)
        assert set(session.active) == {t.id for t in table.open()}
        assert rain.status == "divided"
        check_sizes(store, session, table)
        request = splitter.divisions[0]
        assert (request.dividing and request.dividing.name) == "茶"
        assert (request.topics, request.previous) == ([], None)
        receipt = last_receipt(tmp_path, graph, CONFIG)
        assert any(e.startswith("divided t1 “茶” into t3") for e in receipt.events)
        assert set(receipt.split) == {t.id for t in table.open()}

    def test_parts_are_found_by_day_and_read(self, tmp_path: Path) -> None:
        reader = SteadyReader(quotes=1)
        roles = fake_roles(reader=reader, splitter=SubjectSplitter())
        graph = open_after(past("茶", rounds=6), tmp_path, roles, **SMALL)
        tell(graph, CONFIG, "Hello", keep=0)
        session, store, table = opened(tmp_path, graph)
        days = set().union(*store.days(session).values())
        assert {t.id for t in table.open()} <= days
        assert {w.topic.id for w in windows_of(reader)} == {t.id for t in table.open()}

    @pytest.mark.slow
    def test_a_splitter_that_does_not_help_gives_way_to_a_cut(self, tmp_path: Path) -> None:
        graph = open_graph(tmp_path, fake_roles(splitter=OneTopicSplitter()), **SMALL)
        record(graph, CONFIG, *past("茶", rounds=12))
        tell(graph, CONFIG, "Hello", keep=0)
        session, store, table = opened(tmp_path, graph)
        assert len(table.open()) >= 2
        assert {strip_number(t.name) for t in table} == {"万事"}
        assert len({t.name for t in table}) == len(table)
        check_sizes(store, session, table)
        seen = [r.seq for t in table.open() for r in store.topic_messages(session, t)]
        assert seen == sorted(seen), "each part is a part of the conversation"

    @pytest.mark.slow
    def test_without_a_splitter_that_works(self, tmp_path: Path) -> None:
        broken = FailingRole()
        roles = fake_roles().replace(SPLITTER, broken, stand_in=broken)
        graph = open_graph(tmp_path, roles, **SMALL)
        record(graph, CONFIG, *past("茶", rounds=12))
        tell(graph, CONFIG, "Hello", keep=0)
        session, store, table = opened(tmp_path, graph)
        assert len(table.open()) >= 2
        check_sizes(store, session, table)

    @pytest.mark.slow
    def test_the_embedded_roles(self, tmp_path: Path) -> None:
        graph = open_graph(tmp_path, embedded_roles(HashingEmbedder(256)), **SMALL)
        for n in range(6):
            record(graph, CONFIG, *past("茶", "雨", rounds=5, characters=90 + n))
        tell(graph, CONFIG, "Hello", keep=0)
        session, store, table = opened(tmp_path, graph)
        assert [t for t in table if t.status == "divided"]
        check_sizes(store, session, table)

    @pytest.mark.slow
    def test_a_message_that_is_too_large_stays_a_topic(self, tmp_path: Path) -> None:
        graph = open_graph(tmp_path, fake_roles(splitter=OneTopicSplitter()), **SMALL)
        huge = "茶：" + "很长的一段话，" * 400
        record(graph, CONFIG, *past("雨", rounds=2), HumanMessage(huge), *past("山", rounds=2))
        tell(graph, CONFIG, "Hello", keep=0)
        session, store, table = opened(tmp_path, graph)
        (large,) = [t for t in table.open() if t.tokens > LIMIT]
        assert [r.text for r in store.topic_messages(session, large)] == [huge]
        check_sizes(store, session, table)


class TestAfterwards:
    @pytest.mark.slow
    def test_a_message_that_goes_on_with_it_joins_a_part(self, tmp_path: Path) -> None:
        splitter = SubjectSplitter()
        graph = open_after(past("茶", rounds=5), tmp_path, fake_roles(splitter=splitter), **SMALL)
        tell(graph, CONFIG, chatter("茶", 90), keep=0)
        _, _, before = opened(tmp_path, graph)
        tell(graph, CONFIG, "Hello", keep=0)
        _, _, table = opened(tmp_path, graph)
        assert len(table) == len(before)
        shown = {t.id: t.name for t in splitter.requests[-1].topics}
        assert shown == {t.id: f"茶 / {t.name}".removeprefix("茶 / 茶 / ") for t in before.open()}
        grown = [t for t in table.open() if t.count > before[t.id].count]
        assert [t.parent for t in grown] == ["t1"]

    @pytest.mark.slow
    def test_it_is_found_through_its_parts(self, tmp_path: Path) -> None:
        router = NameRouter({"茶 / 茶之奇": 0.9})
        roles = fake_roles(splitter=SubjectSplitter(), router=router)
        graph = open_after(past("茶", rounds=6), tmp_path, roles, **SMALL)
        tell(graph, CONFIG, "Hello", keep=0)
        tell(graph, CONFIG, "你忘了吗？")
        _, _, table = opened(tmp_path, graph)
        shown = {t.id: t.name for t in router.requests[-1].topics}
        assert shown["t2"] == "茶 / 茶之奇"
        assert "t1" not in shown
        assert table["t2"].name == "茶之奇"
        (search,) = last_receipt(tmp_path, graph, CONFIG).searches
        assert search.found == ("t2",)

    @pytest.mark.slow
    def test_a_matter_of_years_is_divided_again_and_again(self, tmp_path: Path) -> None:
        graph = open_graph(tmp_path, fake_roles(splitter=OneTopicSplitter()), **SMALL)
        for n in range(12):
            record(graph, CONFIG, *past("茶", rounds=4, characters=100 + n))
            tell(graph, CONFIG, "Hello", keep=0)
        session, store, table = opened(tmp_path, graph)
        check_sizes(store, session, table)
        assert len([t for t in table if t.status == "divided"]) >= 3
        assert [t.id for t in find_successors("t1", table.topics)] == [t.id for t in table.open()]
        assert store.ranges(session).topic_of(session.tail - 1) in {t.id for t in table.open()}
        assert all(len(t.name) < 20 for t in table)

    @pytest.mark.slow
    def test_parts_take_the_place_of_an_active_topic(self, tmp_path: Path) -> None:
        # Too many active topics for new ones to wake; parts of an active one need not.
        activation = {"floor": 1, "usual": 1, "ceiling": 20}
        graph = open_graph(
            tmp_path, fake_roles(splitter=SubjectSplitter()), activation=activation, **SMALL
        )
        record(graph, CONFIG, *past("茶", rounds=2))
        tell(graph, CONFIG, "Hello", keep=0)
        assert list(get_session(graph, CONFIG).active) == ["t1"]
        record(graph, CONFIG, *past("茶", rounds=5, characters=121))
        graph.invoke(
            {"messages": [HumanMessage("嗯")]},
            CONFIG,
            context=TurnOptions(keep_messages=0, answer=False),
        )
        session, _, table = opened(tmp_path, graph)
        assert "t1" not in session.active
        parts = {t.id for t in find_successors("t1", table.topics)}
        assert len(parts) >= 2
        assert parts <= set(session.active)

    def test_what_a_person_merges_is_divided_at_the_next_split(self, tmp_path: Path) -> None:
        roles = fake_roles(splitter=SubjectSplitter())
        graph = open_after(past("茶", "雨", rounds=3), tmp_path, roles, **SMALL)
        tell(graph, CONFIG, "Hello", keep=0)
        _, _, before = opened(tmp_path, graph)
        tea, rain = before["t1"], before["t2"]
        assert (tea.status, rain.status) == ("open", "open")
        assert tea.tokens + rain.tokens > LIMIT
        Memory.of(graph, CONFIG).merge("t2", "t1")
        tell(graph, CONFIG, "Hello", keep=0)
        session, store, table = opened(tmp_path, graph)
        assert table["t1"].status == "divided"
        check_sizes(store, session, table)

    @pytest.mark.slow
    def test_a_fork_from_before_sees_the_topic_whole(self, tmp_path: Path) -> None:
        roles = fake_roles(splitter=SubjectSplitter(), router=NameRouter({"茶": 0.9}))
        graph = open_after(past("茶", rounds=2), tmp_path, roles, **SMALL)
        tell(graph, CONFIG, "Hello", keep=0)
        before = graph.get_state(CONFIG).config
        record(graph, CONFIG, *past("茶", rounds=5, characters=121))
        tell(graph, CONFIG, "Hello", keep=0)
        _, _, later = opened(tmp_path, graph)
        assert later["t1"].status == "divided"
        graph.invoke({"messages": [HumanMessage("And tea?")]}, before)
        session, store, table = opened(tmp_path, graph)
        assert [t.status for t in table] == ["open"]
        assert len(store.topic_messages(session, table["t1"])) == 4


class TestReferences:
    """A round has one home; readers of other topics it belongs to see it too."""

    @pytest.mark.slow
    def test_readers_of_other_topics_see_it(self, tmp_path: Path) -> None:
        reader = SteadyReader(quotes=9)
        graph = open_after(
            past("茶", rounds=2), tmp_path, fake_roles(reader=reader, splitter=Sharing())
        )
        tell(graph, CONFIG, "Hello", keep=0)
        record(graph, CONFIG, *past("雨", rounds=2))
        reader.requests.clear()
        tell(graph, CONFIG, "Hello", keep=0)
        session, store, table = opened(tmp_path, graph)
        tea, rain = table["t1"], next(t for t in table if t.name == "雨")
        seen = {w.topic.name: [x.text[0] for x in w.messages] for w in windows_of(reader)}
        assert seen["茶"] == ["茶"] * 4 + ["雨"] * 4
        assert seen["雨"] == ["雨"] * 4
        assert [r.text[0] for r in store.topic_messages(session, tea)] == ["茶"] * 4
        ranges = store.ranges(session)
        assert (bool(ranges.references(tea.id)), ranges.references(rain.id)) == (True, ())
        first = next(w.messages for w in windows_of(reader) if w.topic.name == "茶")
        tell(graph, CONFIG, chatter("茶", 9), chatter("雨", 10))
        tell(graph, CONFIG, "Hello", keep=0)
        again = [w.messages for w in windows_of(reader) if w.topic.name == "茶"][-1]
        assert list(again[: len(first)]) == list(first)
        assert len(again) > len(first)

    @pytest.mark.slow
    def test_quotes_of_messages_of_other_topics_are_followed(self, tmp_path: Path) -> None:
        reader = SteadyReader(scores={"茶": 0.9}, otherwise=0.0, quotes=9)
        graph = open_after(
            past("茶", rounds=1), tmp_path, fake_roles(reader=reader, splitter=Sharing())
        )
        tell(graph, CONFIG, "Hello", keep=0)
        record(graph, CONFIG, *past("雨", rounds=1))
        tell(graph, CONFIG, "Hello", keep=0)
        quoted = {t.name: t.quotes for t in last_receipt(tmp_path, graph, CONFIG).quoted}
        session, store, _ = opened(tmp_path, graph)
        texts = [store.message(session, int(i[1:])).text[0] for i in quoted["茶"]]
        assert "雨" in texts


@dataclass
class Sharing(TaggedSplitter):
    """Goes by the tag; rain belongs to tea as well."""

    def call(self, request: SplitRequest) -> Answer[tuple[Assignment, ...]]:
        answer = super().call(request)
        tea = tuple(t.id for t in request.topics if t.name.startswith("茶"))
        shared = [replace(a, also=tea) if a.name == "雨" else a for a in answer.value]
        return replace(answer, value=tuple(shared))


@dataclass
class MeasuringReader(SteadyReader):
    """Lays out the prompt that a chat model would get, and checks it."""

    openings: WindowStarts = field(default_factory=WindowStarts)

    def call(self, request: ReadRequest) -> Answer[Any]:
        begin = partial(self.openings, (request.session, request.windows[0].topic.id))
        messages = build_reader_prompt(request, READ_IN, begin)
        assert sum(map(COUNTER.message, messages)) <= READ_IN.limit
        return super().call(request)


@pytest.mark.slow
@FEW
@given(
    said=st.lists(
        st.tuples(st.sampled_from("茶雨山"), st.sampled_from([20, 60, 150, 400, 4_000])),
        min_size=20,
        max_size=30,
    ),
    splitter=st.sampled_from(["subject", "one", "sharing"]),
)
def test_no_reader_s_prompt_is_over_its_limit(
    tmp_path_factory: pytest.TempPathFactory, said: list[tuple[str, int]], splitter: str
) -> None:
    folder = tmp_path_factory.mktemp("limit")
    reader = MeasuringReader()
    splitters: dict[str, Any] = {"subject": SubjectSplitter(), "one": OneTopicSplitter()}
    roles = fake_roles(reader=reader, splitter=splitters.get(splitter, Sharing()))
    graph = open_graph(folder, roles, **SMALL)
    for number, (tag, characters) in enumerate(said):
        tell(graph, CONFIG, chatter(tag, number, characters=characters))
        session, store, table = opened(folder, graph)
        check_sizes(store, session, table)


def test_the_index_holds_what_the_parts_hold(tmp_path: Path) -> None:
    log = FileStorage(tmp_path, fsync=False).open("s")
    store = SessionStore(log)
    index = SessionIndex(HashingEmbedder(64), log, 500)
    workspace = Workspace(store, index, TranscriptSizes(store), index)
    rounds = group_rounds(
        StoredMessage(seq=n, role="user", text=f"word{n}", time="2026-03-02") for n in range(1, 5)
    )
    said = [r.messages[0] for r in rounds]
    session = store.append(Session(id="s"), said)
    session, whole = store.assign(session, Topic(id="t1", name="House"), said)
    before = session, TopicTable({"t1": whole})
    fresh = group_rounds(
        StoredMessage(seq=n, role="user", text=f"word{n - 4}", time="2026-03-02")
        for n in range(5, 9)
    )

    def tied(session: Session, table: TopicTable) -> set[str]:
        return set(
            workspace.indexed(session, table).affinities(fresh, [0.0] * 4, table.open()).topics
        )

    assert tied(*before) == {"t1"}
    table = {"t1": mark_divided(whole, ())}
    for topic_id, held in (("t2", said[:1]), ("t3", said[1:])):
        part = Topic(id=topic_id, name=f"Part {topic_id}", parent="t1")
        session, table[topic_id] = store.assign(session, part, held)
    after = session, TopicTable(table)
    assert tied(*after) == {"t2", "t3"}
    assert "t1" not in workspace.indexed(*after).search(Query("word3")).topics
    assert tied(*before) == {"t1"}, "back again"
