"""What must always hold, over random conversations in windows so small that they split often."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
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

from roles import (
    NamedRouter,
    Raising,
    Said,
    ScriptedResponder,
    SteadyReader,
    TaggedSplitter,
    calling,
    fake_roles,
    searching,
)
from topicloom.context.options import TurnOptions
from topicloom.errors import ReplyError
from topicloom.evaluation.replay import Graph, session_of
from topicloom.perception.hashing import HashingEmbedder
from topicloom.prompts.loader import prompt
from topicloom.roles.base import Answer, Local, Responder
from topicloom.roles.embedded import embedded_roles
from topicloom.roles.team import Roles
from topicloom.state.recall import Note
from topicloom.state.records import Record, text_of
from topicloom.state.session import Session
from topicloom.state.topics import Topic
from topicloom.storage.files import FileStorage

FEW = settings(
    max_examples=6,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
TAGS = ["茶", "雨", "山", "海"]
_numbers = itertools.count()


def fresh(folder: Path) -> Path:
    """A folder of its own for each example."""
    return folder / str(next(_numbers))


def weather(city: str) -> str:
    """The weather in a city."""
    return f"{city}，晴。"


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
            replace(roles, responder=self.responder),
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
        may_search = bool(session_of(self.graph, self.config).topics)
        script, said = self.script(act, reply, may_search=may_search)
        self.responder.script = script
        self.expected += said
        self.run([HumanMessage(content)])

    @staticmethod
    def script(act: Act, reply: str, *, may_search: bool) -> tuple[list[Said], list[str]]:
        """What the main model says, and what of it is conversation."""
        call = calling("weather", {"city": act.tag})
        result = weather(act.tag)
        if act.kind == "tool":
            return [call, reply], ["", result, reply]
        if act.kind == "search" and may_search:
            return [searching(act.tag, text="等等"), reply], [reply]
        if act.kind == "both" and may_search:
            return [searching(act.tag), call, reply], ["", result, reply]
        return [reply], [reply]

    def run(self, messages: list[HumanMessage], *, answer: bool = True) -> None:
        stream: Iterator[Any] = self.graph.stream(
            {"messages": messages},
            self.config,
            context=TurnOptions(answer=answer),
            stream_mode="messages",
        )
        self.streamed.append("".join(text_of(m) for m, _ in stream if m.type != "tool"))

    def check(self) -> None:
        session = session_of(self.graph, self.config)
        transcript = check_kept(kept(self.folder, session), session)
        assert [r.text for r in transcript] == self.expected


class Moody(Local[Any, Any]):
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
    roles = fake_roles(reader=SteadyReader(), router=NamedRouter({"茶": 0.9}))
    return replace(
        roles,
        reader=Moody(roles.reader, seed),
        splitter=Moody(TaggedSplitter(covers=lambda b: b.first % 3 != 0), seed),
        router=Moody(roles.router, seed),
        brief=Moody(roles.brief, seed),
    )


class TestConservation:
    """Every message is in one place, whole and verbatim; blocks never part."""

    @FEW
    @given(acts, st.sampled_from([1_800, 2_400]), st.sampled_from(["ledger", "spec"]))
    def test_with_roles_that_work(
        self, tmp_path: Path, script: list[Act], window: int, layout: str
    ) -> None:
        roles = fake_roles(router=NamedRouter({"茶": 0.9, "雨": 0.5}))
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
        play = Play(fresh(tmp_path), fake_roles(reader=reader, router=NamedRouter({"茶": 0.9})))
        for number, act in enumerate(script):
            play.act(number, act)
        session = session_of(play.graph, play.config)
        outside = [r.model_dump_json() for r in kept(play.folder, session).records(session)]
        outside += [
            m.model_dump_json() for m in play.graph.get_state(play.config).values["messages"]
        ]
        outside += play.streamed
        inside = ["<memory>", reader.summary, "activate_topic", prompt("responder", "zh")[:40]]
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
        for turn in range(1, 241):
            said = chatter(f"题{turn // 8}", turn)
            graph.invoke({"messages": [HumanMessage(said)]}, thread())
            if turn in (40, 60, 220, 240):
                weights[turn] = saver.take()
        early, late = weights[60] / 20, weights[240] / 20
        assert session_of(graph, thread()).topics >= 25
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
    transcript: list[Record]
    topics: dict[str, tuple[Topic, list[Record]]]
    notes: list[Note]
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
        {t.id: (t, store.topic_records(t)) for t in store.roster(session)},
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
        assert {n for s in history for n in s.next} >= {"split", "assemble", "generate", "settle"}
        for state in history:
            if "__start__" in state.next:
                continue
            graph.invoke(None, state.config, context=options)
            session = session_of(graph, thread())
            texts = [r.text for r in check_kept(kept(tmp_path, session), session)]
            assert texts[16:] in ([], ["Hello", "All right, noted."])


class Crash(Exception):
    """Stands for the end of a process."""


class FailingLog:
    """A log whose n-th append fails, before or after it is written."""

    def __init__(self, storage: FailingStorage, log: Any) -> None:
        self._storage, self._log = storage, log

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def append(self, chain: str, head: str | None, bodies: Sequence[Any]) -> str | None:
        storage = self._storage
        storage.appends += 1
        due = storage.appends == storage.fail_at
        if due and not storage.afterwards:
            raise storage.error
        new: str | None = self._log.append(chain, head, bodies)
        if due:
            raise storage.error
        return new


class FailingStorage:
    """A storage whose n-th append fails."""

    def __init__(
        self, folder: Path, fail_at: int = 0, *, afterwards: bool = False, error: Exception
    ) -> None:
        self._storage = FileStorage(folder, fsync=False)
        self.appends = 0
        self.fail_at = fail_at
        self.afterwards = afterwards
        self.error = error

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    def open(self, session: str) -> Any:
        return FailingLog(self, self._storage.open(session))


SMALL_TOPICS = {"topic_window": 1_000, "topic_share": 0.15}
"""Topics so small that they are divided into parts."""


def story(
    folder: Path, storage: FailingStorage, durability: Any, **options: Any
) -> tuple[list[str], list[Any]]:
    """Twelve turns with splits, tools and a search, over a storage that may fail once."""
    script: list[Said] = ["一", "二", calling("weather", {"city": "北京"}), "三", *"四五六七八九"]
    script += [searching("茶"), "十"]
    responder = ScriptedResponder(*script)
    saver = InMemorySaver()

    def opened() -> Graph:
        """The graph as a new process would open it."""
        roles = fake_roles(Patient(responder), router=NamedRouter({"茶": 0.9}))
        return open_graph(
            folder,
            roles,
            storage=storage,
            checkpointer=saver,
            tools=[weather],
            window=1_900,
            **options,
        )

    graph = opened()
    for n in range(12):
        said = {"messages": [HumanMessage(chatter(TAGS[n % 3], n, characters=140), id=f"i{n}")]}
        try:
            graph.invoke(said, thread(), durability=durability)
        except Crash:
            graph = opened()
            pending = [task.name for task in graph.get_state(thread()).tasks]
            # A crash before the first checkpoint leaves nothing to go on with: say it again.
            again = None if pending and "__start__" not in pending else said
            graph.invoke(again, thread(), durability=durability)
    session = session_of(graph, thread())
    store = kept(folder, session)
    transcript = check_kept(store, session)
    topics = [
        (t.name, t.count, [r.id for r in store.topic_records(t)]) for t in store.roster(session)
    ]
    assert [r.turn for r in store.receipts(session)] == list(range(1, 13))
    return [r.text for r in transcript], topics


class Patient:
    """A responder that says the same again when it is asked the same again."""

    model = "patient"

    def __init__(self, responder: ScriptedResponder) -> None:
        self._responder = responder
        self._said: dict[str, list[Any]] = {}

    def stream(self, request: Any) -> Iterator[Any]:
        key = prompt_of(request)
        if key not in self._said:
            self._said[key] = list(self._responder.stream(request))
        yield from self._said[key]

    async def astream(self, request: Any) -> Any:
        for chunk in self.stream(request):
            yield chunk


class TestIdempotent:
    def test_the_story_splits_and_searches(self, tmp_path: Path) -> None:
        storage = FailingStorage(tmp_path, error=Crash())
        texts, topics = story(tmp_path, storage, "sync")
        assert len(texts) == 26
        assert len(topics) == 3
        assert "十" in texts
        assert storage.appends > 50

    @settings(FEW, max_examples=14)
    @given(st.integers(1, 55), st.booleans(), st.sampled_from(["sync", "async", "exit"]))
    def test_after_a_crash_anywhere_nothing_is_lost_or_twice(
        self, tmp_path: Path, fail_at: int, afterwards: bool, durability: str
    ) -> None:
        whole = story(f := fresh(tmp_path), FailingStorage(f, error=Crash()), durability)
        storage = FailingStorage(
            f := fresh(tmp_path), fail_at, afterwards=afterwards, error=Crash()
        )
        assert story(f, storage, durability) == whole

    @settings(FEW, max_examples=10)
    @given(st.integers(15, 90), st.booleans())
    def test_after_a_crash_in_a_division_nothing_is_lost_or_twice(
        self, tmp_path: Path, fail_at: int, afterwards: bool
    ) -> None:
        storage = FailingStorage(f := fresh(tmp_path), error=Crash())
        whole = story(f, storage, "sync", **SMALL_TOPICS)
        assert storage.appends > 90
        assert [t for t in whole[1] if t[1] == 0], "some topic was divided"
        storage = FailingStorage(
            f := fresh(tmp_path), fail_at, afterwards=afterwards, error=Crash()
        )
        assert story(f, storage, "sync", **SMALL_TOPICS) == whole

    @settings(FEW, max_examples=8)
    @given(st.integers(1, 55))
    def test_a_node_that_is_run_twice_adds_nothing_twice(
        self, tmp_path: Path, fail_at: int
    ) -> None:
        """The node is run again at once, by its retry policy, after all was written."""
        whole = story(f := fresh(tmp_path), FailingStorage(f, error=OSError()), "sync")
        error = OSError("disk full for a moment")
        storage = FailingStorage(f := fresh(tmp_path), fail_at, afterwards=True, error=error)
        assert story(f, storage, "sync") == whole


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
            session = session_of(graph, thread(name))
            texts = [r.text for r in kept(root, session).records(session)]
            assert texts == [f"secret {number}"]


class TestDegrade:
    @FEW
    @given(acts)
    def test_without_any_role_that_works(self, tmp_path: Path, script: list[Act]) -> None:
        broken = Raising()
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
