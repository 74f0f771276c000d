"""How large a topic may be: what its reader's prompt shows whole, by the reader's own measure."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pytest
from examples import few
from hypothesis import given, strategies as st
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import HumanMessage
from sessions import chatter, check_kept, kept, last_receipt, open_graph, past, record, tell, thread

from topicloom import (
    MERGER,
    Answer,
    Assignment,
    Reading,
    ReadRequest,
    ReviewPolicy,
    Session,
    SessionStore,
    SplitRequest,
    get_session,
    review_session,
)
from topicloom.context.prefix import PrefixMeter
from topicloom.context.token_count import EstimatingCounter
from topicloom.context.transcript import describe_content
from topicloom.context.windows import WindowStarts
from topicloom.effects import Step
from topicloom.hosting import Graph, TopicTable, get_text
from topicloom.prompts.wording import get_wording
from topicloom.roles.chat import Chat
from topicloom.roles.reader import ChatReader, build_reader_prompt
from topicloom.state.rounds import group_rounds
from topicloom.testing import Clock, FixedRole, ScriptedResponder, TaggedSplitter, fake_roles

CONFIG = thread()
FAINT = "<topic_result><relevance_score>0.1</relevance_score></topic_result>"
MARKS = [mark for n in ("en", "zh") for mark in (get_wording(n).left_out, get_wording(n).missing)]
CUT = re.compile("|".join(re.sub(r"\\{.*?\\}", ".*", re.escape(mark)) for mark in MARKS))


class WideCounter(EstimatingCounter):
    """A tokenizer that needs half as many tokens again as the main model's."""

    def text(self, text: str) -> int:
        return -(-super().text(text) * 3 // 2)


class WatchedReader(ChatReader):
    """A chat model's reader that finds little; its prompts are kept, with what they were for."""

    def __init__(self, window: int = 2_600) -> None:
        model = FakeListChatModel(responses=[FAINT])
        super().__init__(Chat(model, WideCounter("o200k"), PrefixMeter(), window))
        self.read: list[tuple[ReadRequest, str]] = []

    def step(self, request: ReadRequest) -> Step[Answer[tuple[Reading, ...]]]:
        begin = partial(WindowStarts(), (request.session, request.windows[0].topic.id))
        prompt = build_reader_prompt(request, self.prompt_window, begin)
        assert sum(map(self.prompt_window.counter.message, prompt)) <= self.prompt_window.limit
        now = get_wording(request.language).now
        texts = [get_text(m) for m in prompt[1:]]
        begins = next(n for n, text in enumerate(texts) if now in text)
        self.read.append((request, "\n".join(texts[:begins])))
        return super().step(request)

    def check_whole(self) -> None:
        """No topic was cut but those of one round that is too large."""
        window = self.prompt_window
        for request, shown in self.read:
            messages = [message for topic in request.windows for message in topic.messages]
            rounds = group_rounds(messages)
            if len(rounds) == 1 and window.measure(rounds[0]) > window.topic_room():
                assert CUT.search(shown)
                continue
            assert not CUT.search(shown)
            assert all(f"[{m.id}]" in shown for m in messages)
            assert all(describe_content(m, request.language) in shown for m in messages)
        self.read.clear()


@dataclass
class Sharing(TaggedSplitter):
    """Goes by the tag, and divides by turns; rain belongs to tea as well."""

    one: bool = False

    def call(self, request: SplitRequest) -> Answer[tuple[Assignment, ...]]:
        given = super().call(request).value
        if request.dividing is not None and not self.one:
            return Answer(
                tuple(replace(a, topic=None, name=f"{a.name}{i % 2}") for i, a in enumerate(given))
            )
        tea = tuple(t.id for t in request.topics if "茶" in t.name)
        return Answer(tuple(replace(a, also=tea) if a.name == "雨" else a for a in given))


def opened(folder: Path, graph: Graph) -> tuple[Session, SessionStore, TopicTable]:
    session = get_session(graph, CONFIG)
    store = kept(folder, session)
    check_kept(store, session)
    return session, store, store.topic_table(session)


@pytest.mark.slow
@few()
@given(
    said=st.lists(
        st.tuples(st.sampled_from("茶雨山!"), st.sampled_from([4, 20, 60, 150, 260, 3_000])),
        min_size=20,
        max_size=30,
    ),
    one=st.booleans(),
)
def test_no_open_topic_is_cut_for_its_reader(
    tmp_path_factory: pytest.TempPathFactory, said: list[tuple[str, int]], one: bool
) -> None:
    """Whatever splits, divisions, references and mergers ("!") made of it."""
    folder, reader, clock = tmp_path_factory.mktemp("room"), WatchedReader(), Clock()
    roles = fake_roles(reader=reader, splitter=Sharing(one=one)).replace(MERGER, FixedRole(1.0))
    policy = ReviewPolicy(dormant_days=10**6)
    graph = open_graph(folder, roles, clock=clock, review=policy)
    for number, (tag, characters) in enumerate(said):
        if tag == "!":
            review_session(graph, CONFIG)
        else:
            tell(graph, CONFIG, chatter(tag, number, characters=characters))
        reader.check_whole()
    opened(folder, graph)


@pytest.mark.slow
def test_a_topic_just_under_the_limit_is_read_whole(tmp_path: Path) -> None:
    reader = WatchedReader(8_000)
    graph = open_graph(tmp_path, fake_roles(reader=reader), window=8_000)
    record(graph, CONFIG, HumanMessage("forms: My passport number is X4711Q, for the forms."))
    sizes = []
    for number in range(60):
        record(graph, CONFIG, HumanMessage(f"forms: item {number} " + "fee stamp queue " * 12))
        tell(graph, CONFIG, "forms: What is my passport number?", keep=0)
        _, _, table = opened(tmp_path, graph)
        sizes.append(max(t.tokens for t in table.open()))
        assert any("X4711Q" in shown for _, shown in reader.read)
        reader.check_whole()
        if len(table) > 1:
            break
    room = reader.prompt_window.topic_room()
    assert max(sizes) > 0.9 * room
    assert len(table) > 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("secret", "question", "filler"),
    [
        ("My passport number is X4711Q.", "What is my passport number?", "The queue is long. "),
        ("我的护照号码是 X4711Q。", "我的护照号码是多少？", "排队的人很多，天气也很热。"),
    ],
)
def test_the_cut_part_of_a_huge_message_is_found_and_quoted(
    tmp_path: Path, secret: str, question: str, filler: str
) -> None:
    reader, responder = WatchedReader(4_000), ScriptedResponder()
    graph = open_graph(tmp_path, fake_roles(responder, reader=reader), window=4_000)
    huge = f"forms: {filler * 600}{secret}{filler * 600}"
    record(graph, CONFIG, *past("雨", "山"), HumanMessage(huge), *past("海", "forms"))
    tell(graph, CONFIG, question, keep=0)
    assert any(CUT.search(shown) for _, shown in reader.read), "its reader sees a part"
    assert not any("X4711Q" in shown for _, shown in reader.read)
    assert "X4711Q" in "\n".join(responder.prompts[-1])
    again = f"{question} And of the queue?"
    tell(graph, CONFIG, again)
    assert "\n".join(responder.prompts[-1]).count("X4711Q") == 1, "not quoted twice"


class TestAnotherReader:
    """Topics that outgrew what their reader has now: its window is smaller, or it is another."""

    @pytest.mark.slow
    def test_they_are_divided_at_the_next_split(self, tmp_path: Path) -> None:
        from langgraph.checkpoint.memory import InMemorySaver

        saver, few = InMemorySaver(), {"floor": 1, "usual": 1, "ceiling": 1}
        opened_with = partial(open_graph, tmp_path, checkpointer=saver, activation=few)
        graph = opened_with(fake_roles())
        record(graph, CONFIG, *past("茶", "雨", rounds=12))
        tell(graph, CONFIG, "山：你好", keep=0)
        tell(graph, CONFIG, "山：你好吗", keep=0)
        before, _, table = opened(tmp_path, graph)
        assert {t.status for t in table} == {"open"}
        reader = WatchedReader()
        graph = opened_with(fake_roles(reader=reader))
        events: list[str] = []
        for text, keep in (("山：还有吗", None), ("山：好的", 0)):
            tell(graph, CONFIG, text, keep=keep)
            events += last_receipt(tmp_path, graph, CONFIG).events
        session, _, table = opened(tmp_path, graph)
        assert [t.status for t in table][:2] == ["divided", "divided"]
        assert max(t.tokens for t in table.open()) <= reader.prompt_window.topic_room()
        assert set(session.active) == set(before.active), "nobody spoke of their parts"
        assert all(t.brief for t in table.open())
        assert sum(e.startswith("divided") for e in events) == 2
        reader.read.clear()
        for text in ("茶：第几次？", "雨：下雨吗？"):
            tell(graph, CONFIG, text, keep=0)
            assert not any(
                e.startswith("div") for e in last_receipt(tmp_path, graph, CONFIG).events
            )
        reader.check_whole()

    @pytest.mark.slow
    def test_a_round_that_is_too_large_is_left_as_it_is(self, tmp_path: Path) -> None:
        reader = WatchedReader()
        graph = open_graph(tmp_path, fake_roles(reader=reader))
        record(graph, CONFIG, HumanMessage(chatter("茶", 1, characters=4_000)))
        for text in ("Hello", "And?", "茶：so"):
            tell(graph, CONFIG, text, keep=0)
        _, _, table = opened(tmp_path, graph)
        assert table["t1"].tokens > reader.prompt_window.topic_room()
