"""Sessions to test: graphs over a folder, and what must hold of everything kept in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.base import BaseStore

from topicloom import (
    FileStorage,
    Receipt,
    ReplyRequest,
    Roles,
    Session,
    SessionStore,
    Settings,
    StoredMessage,
    TopicWindow,
    TurnOptions,
    build_session_graph,
    get_session,
)
from topicloom.hosting import Graph, get_text
from topicloom.state.rounds import group_rounds
from topicloom.testing import Clock, SteadyReader, fake_roles


def windows_of(reader: SteadyReader) -> list[TopicWindow]:
    """The topics that a reader was given so far, in whatever calls."""
    return [window for request in reader.requests for window in request.windows]


def open_graph(
    folder: Path,
    roles: Roles | None = None,
    *,
    tools: Sequence[BaseTool | Callable[..., object]] = (),
    checkpointer: BaseCheckpointSaver[Any] | None = None,
    clock: Clock | None = None,
    instructions: str = "",
    storage: Any = None,
    store: BaseStore | None = None,
    **settings: Any,
) -> Graph:
    """A compiled session graph over a folder, with a small window."""
    options: dict[str, Any] = {"window": 2_000, "recall_tokens": 500, "fsync": False}
    # Tests speak in single words: whether these need anything is not judged.
    options |= {"recall_least": 0, **settings}
    return build_session_graph(
        settings=Settings.model_validate({"folder": folder, **options}),
        roles=roles or fake_roles(),
        tools=tools,
        instructions=instructions,
        clock=clock or Clock(),
        storage=storage,
    ).compile(checkpointer=checkpointer or InMemorySaver(), store=store)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A folder and its checkpoints as they were once, to begin other tests with."""

    files: Mapping[Path, bytes]
    saved: InMemorySaver

    @classmethod
    def of(cls, folder: Path, saver: InMemorySaver) -> Prepared:
        """What a folder and a checkpointer hold now."""
        files = [path for path in folder.rglob("*") if path.is_file()]
        read = {path.relative_to(folder): path.read_bytes() for path in files}
        return cls(read, copy_saver(saver))

    def copy_to(self, folder: Path) -> InMemorySaver:
        """Write the files into a folder; returns another checkpointer with the checkpoints."""
        for path, content in self.files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)
        return copy_saver(self.saved)


def copy_saver(saver: InMemorySaver) -> InMemorySaver:
    """Another checkpointer with the same checkpoints."""
    copy = InMemorySaver()
    held = ("storage", "writes", "blobs")
    vars(copy).update(deepcopy({name: vars(saver)[name] for name in held}))
    return copy


_prepared: dict[str, Prepared] = {}


def open_after(
    said: Sequence[BaseMessage],
    folder: Path,
    roles: Roles | None = None,
    *,
    tools: Sequence[BaseTool | Callable[..., object]] = (),
    **settings: Any,
) -> Graph:
    """`open_graph` in whose thread `s` messages were kept, without an answer and unsplit.

    What was kept once with the same settings is copied.
    """
    key = repr((said, settings))
    if key not in _prepared:
        saver = InMemorySaver()
        with TemporaryDirectory() as made:
            graph = open_graph(Path(made), checkpointer=saver, **settings)
            record(graph, thread(), *said)
            assert get_session(graph, thread()).tail == 1
            _prepared[key] = Prepared.of(Path(made), saver)
    saver = _prepared[key].copy_to(folder)
    return open_graph(folder, roles, tools=tools, checkpointer=saver, **settings)


def thread(name: str = "s") -> RunnableConfig:
    """The configuration that names a thread."""
    return {"configurable": {"thread_id": name}}


def tell(
    graph: Graph, config: RunnableConfig, *texts: str, keep: int | None = None
) -> list[AnyMessage]:
    """Say things one after another; returns the `messages` channel after the last.

    With `keep`, all but so many messages move into topics first.
    """
    state: dict[str, Any] = {}
    for text in texts:
        said = {"messages": [HumanMessage(text)]}
        state = graph.invoke(said, config, context=TurnOptions(keep_messages=keep))
    messages: list[AnyMessage] = state["messages"]
    return messages


def chatter(tag: str, number: int, *, characters: int = 60) -> str:
    """A message of a topic, in Chinese, which needs no encoder: fast, and no two alike."""
    words = f"第{number}次说到{tag}的事情，"
    return f"{tag}：" + (words * (1 + characters // len(words)))[:characters]


def kept(folder: Path, session: Session) -> SessionStore:
    """The session's storage, opened anew, as another process would."""
    return SessionStore(FileStorage(folder, fsync=False).open(session.id))


def transcript_of(folder: Path, graph: Graph, config: RunnableConfig) -> list[StoredMessage]:
    """Every message of the conversation at a thread's or a checkpoint's state."""
    session = get_session(graph, config)
    return kept(folder, session).messages(session)


def last_receipt(folder: Path, graph: Graph, config: RunnableConfig) -> Receipt:
    """The receipt of the newest turn."""
    session = get_session(graph, config)
    return kept(folder, session).receipts(session, 1)[0]


def check_kept(store: SessionStore, session: Session) -> list[StoredMessage]:
    """Check what must always hold of a session's storage; returns the transcript.

    Every message is in the transcript once and, before the tail, in exactly one topic, equal in
    every field; rounds are whole, and in conversation order inside a topic. What was superseded is
    in none, or as it was changed.
    """
    transcript = store.originals(session)
    shown = {r.seq: r for r in store.messages(session)}
    assert [r.seq for r in transcript] == list(range(1, session.count + 1))
    assert 1 <= session.view <= session.tail <= max(session.count, 1) + 1
    homes: Counter[str] = Counter()
    where: dict[str, str] = {}
    for topic in store.topic_table(session):
        messages = store.topic_messages(session, topic)
        assert len(messages) == topic.count
        assert [r.seq for r in messages] == sorted(r.seq for r in messages)
        for record in messages:
            homes[record.id] += 1
            where[record.id] = topic.id
            assert record == shown[record.seq]
    assert homes == Counter(r.id for n, r in shown.items() if n < session.tail)
    for round_ in group_rounds(transcript[: session.tail - 1]):
        assert len({where[i] for i in round_.ids if i in where}) <= 1
    tail = transcript[session.tail - 1 :]
    assert not tail or session.tail == 1 or tail[0].role == "user"
    return transcript


def record(graph: Graph, config: RunnableConfig, *messages: BaseMessage) -> None:
    """Have messages kept without an answer, all in one turn."""
    graph.invoke({"messages": list(messages)}, config, context=TurnOptions(answer=False))


def past(*tags: str, rounds: int = 4, characters: int = 120) -> list[BaseMessage]:
    """A conversation of some rounds about each topic, one topic after another.

    Of another length, they are other messages: a known id with other words would be an edit.
    """
    return [
        message
        for tag in tags
        for n in range(1, rounds + 1)
        for message in (
            HumanMessage(chatter(tag, n, characters=characters), id=f"{tag}-{n}-{characters}"),
            AIMessage(f"{tag}的第{n}次，知道了。", id=f"{tag}-{n}-{characters}-reply"),
        )
    ]


def prompt_of(request: ReplyRequest) -> str:
    """The whole text that the main model was sent."""
    return "\n".join(get_text(m) for m in request.messages)


def events_of(graph: Graph, config: RunnableConfig, text: str) -> list[dict[str, Any]]:
    """What a turn sends to the `custom` stream."""
    said = {"messages": [HumanMessage(text)]}
    return [dict(e) for e in graph.stream(said, config, stream_mode="custom")]


def spoken(graph: Graph, config: RunnableConfig, text: str) -> str:
    """What the user sees of a turn in the `messages` stream, token by token."""
    said = {"messages": [HumanMessage(text)]}
    return "".join(get_text(m) for m in chunks_of(graph, said, config))


def chunks_of(graph: Graph, said: Any, config: RunnableConfig) -> list[BaseMessage]:
    """The messages and chunks of the `messages` stream."""
    stream: Iterator[Any] = graph.stream(said, config, stream_mode="messages")
    return [message for message, _ in stream]
