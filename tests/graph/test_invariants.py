"""What must always hold, over random conversations in windows so small that they split often."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from examples import FEW, TAGS, fresh, scaled, weather
from hypothesis import given, strategies as st
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from sessions import (
    chatter,
    check_kept,
    chunks_of,
    kept,
    open_graph,
    past,
    prompt_of,
    record,
    thread,
)

from topicloom import (
    BRIEF,
    READER,
    RESPONDER,
    ROUTER,
    SPLITTER,
    Answer,
    FileStorage,
    LocalRole,
    Note,
    ReplyError,
    Responder,
    Roles,
    Session,
    StoredMessage,
    Topic,
    TurnOptions,
    embedded_roles,
    get_session,
)
from topicloom.hosting import Graph, get_text
from topicloom.prompts.loader import load_prompt
from topicloom.search.hashing import HashingEmbedder
from topicloom.testing import (
    FailingRole,
    NameRouter,
    ScriptedReply,
    ScriptedResponder,
    SteadyReader,
    TaggedSplitter,
    fake_roles,
    make_tool_call,
    make_topic_search,
)

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Act:
    """One turn of a random conversation."""

    kind: str
    tag: str
    characters: int


acts = st.lists(
    st.builds(
        Act,
        st.sampled_from(
            ["say"] * 6 + ["tool", "search", "both", "record", "reply", "fail", "forgot", "image"]
        ),
        st.sampled_from(TAGS),
        st.sampled_from([20, 60, 60, 150, 400, 4_000]),
    ),
    min_size=14,
    max_size=24,
)


class Play:
    """Acts a conversation out and remembers what was said."""

    def __init__(self, folder: Path, roles: Roles, **options: Any) -> None:
        self.folder = folder
        self.responder = ScriptedResponder()
        self.graph = open_graph(
            folder,
            roles.replace(RESPONDER, self.responder),
            tools=[weather],
            reply_attempts=1,
            **options,
        )
        self.config = thread()
        self.expected: list[str] = []
        self.streamed: list[str] = []

    def act(self, number: int, act: Act) -> None:
        text = chatter(act.tag, number, characters=act.characters)
        reply = f"{act.tag}第{number}次，好的。"
        self.expected.append(text)
        if act.kind == "record":
            self.run([HumanMessage(text)], answer=False)
            return
        if act.kind == "fail":
            self.responder.script = [RuntimeError("out of order")]
            with pytest.raises(ReplyError):
                self.run([HumanMessage(text)])
            return
        content: Any = text
        if act.kind == "image":
            content = [{"type": "text", "text": text}, {"type": "image", "url": f"i{number}"}]
        elif act.kind == "forgot":
            content = self.expected[-1] = f"{text}你忘了吗？"
        may_search = bool(get_session(self.graph, self.config).topics)
        script, said = self.script(act, reply, may_search=may_search)
        self.responder.script = script
        self.expected += said
        self.run([HumanMessage(content)])

    @staticmethod
    def script(act: Act, reply: str, *, may_search: bool) -> tuple[list[ScriptedReply], list[str]]:
        """What the main model says, and what of it is conversation."""
        call = make_tool_call("weather", {"city": act.tag})
        result = weather(act.tag)
        if act.kind == "tool":
            return [call, reply], ["", result, reply]
        if act.kind == "search" and may_search:
            return [make_topic_search(act.tag, text="等等"), reply], [reply]
        if act.kind == "both" and may_search:
            return [make_topic_search(act.tag), call, reply], ["", result, reply]
        return [reply], [reply]

    def run(self, messages: list[HumanMessage], *, answer: bool = True) -> None:
        stream: Iterator[Any] = self.graph.stream(
            {"messages": messages},
            self.config,
            context=TurnOptions(answer=answer),
            stream_mode="messages",
        )
        self.streamed.append("".join(get_text(m) for m, _ in stream if m.type != "tool"))

    def check(self) -> None:
        session = get_session(self.graph, self.config)
        transcript = check_kept(kept(self.folder, session), session)
        assert [r.text for r in transcript] == self.expected


class Moody(LocalRole[Any, Any]):
    """A role that fails now and then."""

    def __init__(self, role: Any, seed: int) -> None:
        self.role = role
        self.random = random.Random(seed)

    def call(self, request: Any) -> Answer[Any]:
        if self.random.random() < 0.4:
            raise ConnectionError("gone")
        answer: Answer[Any] = self.role.call(request)
        return answer


def moody_roles(seed: int) -> Roles:
    roles = fake_roles(reader=SteadyReader(), router=NameRouter({"茶": 0.9}))
    return (
        roles.replace(READER, Moody(roles[READER], seed))
        .replace(SPLITTER, Moody(TaggedSplitter(covers=lambda b: b.first % 3 != 0), seed))
        .replace(ROUTER, Moody(roles[ROUTER], seed))
        .replace(BRIEF, Moody(roles[BRIEF], seed))
    )


class TestConservation:
    """Every message is in one place, whole and verbatim; rounds never part."""

    @FEW
    @given(acts, st.sampled_from([1_800, 2_400]), st.sampled_from(["ledger", "spec"]))
    def test_with_roles_that_work(
        self, tmp_path: Path, script: list[Act], window: int, layout: str
    ) -> None:
        roles = fake_roles(router=NameRouter({"茶": 0.9, "雨": 0.5}))
        play = Play(fresh(tmp_path), roles, window=window, layout=layout)
        for number, act in enumerate(script):
            play.act(number, act)
        play.check()

    @FEW
    @given(acts, st.integers(0, 99))
    def test_with_roles_that_fail_now_and_then(
        self, tmp_path: Path, script: list[Act], seed: int
    ) -> None:
        play = Play(fresh(tmp_path), moody_roles(seed))
        for number, act in enumerate(script):
            play.act(number, act)
            play.check()

    @FEW
    @given(acts)
    def test_with_the_embedded_roles(self, tmp_path: Path, script: list[Act]) -> None:
        activation = {"floor": 1, "usual": 2, "ceiling": 2}
        roles = embedded_roles(HashingEmbedder(256))
        play = Play(fresh(tmp_path), roles, activation=activation)
        for number, act in enumerate(script):
            play.act(number, act)
        play.check()

    @FEW
    @given(acts)
    def test_in_topics_that_overflow(self, tmp_path: Path, script: list[Act]) -> None:
        play = Play(fresh(tmp_path), fake_roles(), topic_window=1_000, topic_share=0.3)
        for number, act in enumerate(script):
            play.act(number, act)
        play.check()


class TestNoLeak:
    @FEW
    @given(acts)
    def test_what_is_said_inside_stays_inside(self, tmp_path: Path, script: list[Act]) -> None:
        reader = SteadyReader(summary="只给模型看的摘要")
        play = Play(fresh(tmp_path), fake_roles(reader=reader, router=NameRouter({"茶": 0.9})))
        for number, act in enumerate(script):
            play.act(number, act)
        session = get_session(play.graph, play.config)
        outside = [r.model_dump_json() for r in kept(play.folder, session).messages(session)]
        outside += [
            m.model_dump_json() for m in play.graph.get_state(play.config).values["messages"]
        ]
        outside += play.streamed
        inside = ["<memory>", reader.summary, "activate_topic", load_prompt("responder", "zh")[:40]]
        for words in inside:
            assert not any(words in text for text in outside)
        replies = [t for t in play.streamed if t]
        assert set(replies) <= set(play.expected)


class TestBoundedCheckpoint:
    def test_a_checkpoint_does_not_grow_with_the_history(self, tmp_path: Path) -> None:
        saver = Weighing()
        graph = open_graph(
            tmp_path, checkpointer=saver, activation={"floor": 2, "usual": 4, "ceiling": 4}
        )
        weights: dict[int, float] = {}
        turns = max(120, scaled(240))
        for turn in range(1, turns + 1):
            said = chatter(f"题{turn // 8}", turn)
            graph.invoke({"messages": [HumanMessage(said)]}, thread())
            if turn in (40, 60, turns - 20, turns):
                weights[turn] = saver.take()
        early, late = weights[60] / 20, weights[turns] / 20
        assert get_session(graph, thread()).topics >= turns // 10 + 1
        assert late <= 1.1 * early
        assert saver.heaviest < 40_000

    def test_a_fork_of_a_long_history_is_as_small(self, tmp_path: Path) -> None:
        saver = Weighing()
        graph = open_graph(tmp_path, checkpointer=saver)
        for n in range(6):
            record(graph, thread(), *past(f"题{n}", rounds=6))
        saver.take()
        graph.invoke({"messages": [HumanMessage("Hello")]}, graph.get_state(thread()).config)
        assert saver.heaviest < 20_000


class Weighing(InMemorySaver):
    """Weighs what it is given to keep."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0
        self.heaviest = 0

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        size = len(self.serde.dumps_typed(checkpoint)[1])
        self.bytes += size
        self.heaviest = max(self.heaviest, size)
        return super().put(config, checkpoint, metadata, new_versions)

    def put_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        self.bytes += sum(len(self.serde.dumps_typed(value)[1]) for _, value in writes)
        super().put_writes(config, writes, task_id, task_path)

    def take(self) -> int:
        """Bytes since the last time."""
        taken, self.bytes = self.bytes, 0
        return taken


@dataclass(frozen=True)
class Moment:
    """Everything that a session holds at one checkpoint."""

    config: RunnableConfig
    session: Session
    transcript: list[StoredMessage]
    topics: dict[str, tuple[Topic, Sequence[StoredMessage]]]
    notes: Sequence[Note]
    days: dict[str, set[str]]


def moment(folder: Path, graph: Graph, config: RunnableConfig) -> Moment:
    state = graph.get_state(config)
    session = Session.model_validate(state.values["session"])
    return seen_again(folder, session, state.config)


def seen_again(folder: Path, session: Session, config: RunnableConfig) -> Moment:
    store = kept(folder, session)
    return Moment(
        config,
        session,
        check_kept(store, session),
        {t.id: (t, store.topic_messages(session, t)) for t in store.topic_table(session)},
        store.notes(session),
        store.days(session),
    )


class TestTimeTravel:
    @FEW
    @given(st.integers(2, 17), st.lists(st.sampled_from(TAGS), min_size=24, max_size=24))
    def test_both_branches_stay_exact(self, tmp_path: Path, place: int, tags: list[str]) -> None:
        folder = fresh(tmp_path)
        responder = ScriptedResponder()
        graph = open_graph(folder, fake_roles(responder, reader=SteadyReader(quotes=3)))
        moments: list[Moment] = []

        def go(config: RunnableConfig, branch: str, count: int) -> RunnableConfig:
            """Go on from a checkpoint; returns the newest of the branch."""
            for n in range(count):
                text = chatter(f"{tags[len(moments) % 24]}{branch}", len(moments) + n)
                graph.invoke({"messages": [HumanMessage(text)]}, config)
                moments.append(moment(folder, graph, thread()))
                config = moments[-1].config
            return config

        main = go(thread(), "甲", 18)
        fork = moments[place]
        begun = len(responder.requests)
        go(fork.config, "乙", 8)
        branch = moments[-1]
        shared = fork.session.count
        assert branch.transcript[:shared] == fork.transcript
        assert all("甲" not in r.text for r in branch.transcript[shared:])
        later = [r.text for r in moments[17].transcript[shared:] if r.role == "user"]
        for request in responder.requests[begun:]:
            assert not any(text in prompt_of(request) for text in later)

        begun = len(responder.requests)
        go(main, "甲", 6)
        assert moments[-1].transcript[: moments[17].session.count] == moments[17].transcript
        others = [r.text for r in branch.transcript[shared:] if r.role == "user"]
        for request in responder.requests[begun:]:
            assert not any(text in prompt_of(request) for text in others)
        for then in moments:
            assert seen_again(folder, then.session, then.config) == then

    def test_every_checkpoint_of_a_turn_can_be_forked(self, tmp_path: Path) -> None:
        graph = open_graph(tmp_path)
        record(graph, thread(), *past("茶", "雨"))
        options = TurnOptions(keep_messages=0)
        graph.invoke({"messages": [HumanMessage("Hello")]}, thread(), context=options)
        history = [s for s in graph.get_state_history(thread()) if s.next]
        assert {n for s in history for n in s.next} >= {
            "split",
            "assemble",
            "main_generate",
            "finalize",
        }
        for state in history:
            if "__start__" in state.next:
                continue
            graph.invoke(None, state.config, context=options)
            session = get_session(graph, thread())
            texts = [r.text for r in check_kept(kept(tmp_path, session), session)]
            assert texts[16:] in ([], ["Hello", "All right, noted."])


NAMES = [
    "../../x",
    "a/b",
    "a%2Fb",
    "a%252Fb",
    "..",
    ".",
    "/etc/passwd",
    "C:\\Windows",
    "con",
    "a\x00b",
    "名字/另一个",
    "é",
    "e\u0301",
    "x" * 300,
    "x" * 301,
    " ",
    "~",
    ".lock",
    "session.json",
    "a" * 100 + "/../b",
]


class TestTenantsApart:
    def test_no_session_sees_another(self, tmp_path: Path) -> None:
        root = tmp_path / "root"
        responder = ScriptedResponder()
        graph = open_graph(root, fake_roles(responder))
        secrets = {name: f"暗号{number}号" for number, name in enumerate(NAMES)}
        for name, secret in secrets.items():
            record(graph, thread(name), HumanMessage(f"茶：{secret}"))
        for name, secret in secrets.items():
            options = TurnOptions(keep_messages=0)
            graph.invoke({"messages": [HumanMessage("你忘了吗？")]}, thread(name), context=options)
            shown = prompt_of(responder.requests[-1])
            assert secret in shown
            assert not any(s in shown for s in secrets.values() if s != secret and s not in secret)
        assert sorted(FileStorage(root).sessions()) == sorted(NAMES)
        folders = list(root.iterdir())
        assert len(folders) == len(NAMES)
        for file in tmp_path.rglob("*"):
            assert file.resolve().is_relative_to(root.resolve())
        for folder in folders:
            said = {
                text
                for file in folder.rglob("*.jsonl")
                for text in secrets.values()
                if f'{text}"' in file.read_text("utf-8")
            }
            assert len(said) == 1

    @FEW
    @given(st.lists(st.text(min_size=1, max_size=40), min_size=2, max_size=5, unique=True))
    def test_any_two_names_are_two_sessions(self, tmp_path: Path, names: list[str]) -> None:
        root = fresh(tmp_path)
        graph = open_graph(root)
        for number, name in enumerate(names):
            record(graph, thread(name), HumanMessage(f"secret {number}"))
        for number, name in enumerate(names):
            session = get_session(graph, thread(name))
            texts = [r.text for r in kept(root, session).messages(session)]
            assert texts == [f"secret {number}"]


class TestDegrade:
    @FEW
    @given(acts)
    def test_without_any_role_that_works(self, tmp_path: Path, script: list[Act]) -> None:
        broken = FailingRole()
        roles = fake_roles(
            reader=broken, splitter=broken, router=broken, brief=broken, rewriter=broken
        )
        play = Play(fresh(tmp_path), roles)
        for number, act in enumerate(script):
            play.act(number, act)
        play.check()


def test_a_stranger_to_the_conversation_reads_nothing(tmp_path: Path) -> None:
    """A fork is made by checkpoint, never by name: an unknown thread is an empty one."""
    responder: Responder = ScriptedResponder()
    graph = open_graph(tmp_path, fake_roles(responder))
    record(graph, thread("ann"), HumanMessage("My secret is 42."))
    chunks_of(graph, {"messages": [HumanMessage("What is it?")]}, thread("ben"))
    assert isinstance(responder, ScriptedResponder)
    assert "42" not in prompt_of(responder.requests[0])
