"""Sessions of every kind as one version writes them, and reading what was written.

    PYTHONPATH=tests/support python tests/support/written_sessions.py ARCHIVE.tar.xz

writes one of each kind, some in a store too, with all checkpoints and with what is read from them.
`tests/storage/fixtures/README.md` says which commits wrote the archives there. These are never
written again: they show that later versions open them.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import tarfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from contextvars import Context
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from agents import ScriptedModel, open_agent, remember
from domains import ScriptedPlanner, edit_plan, say, the_document
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langgraph.store.base import BaseStore
from people import People
from reviewed import Merger, Reviewer
from sessions import chatter, open_graph, past, record, tell, thread

from topicloom import Domain, Memory, build_session_graph, purge_messages, review_session
from topicloom.domain.planner import PLANNER
from topicloom.graph.checkpoints import (
    CHECKPOINTS,
    LocalCheckpointer,
    local_checkpointer,
    open_local_store,
)
from topicloom.memory.stored import Graph, get_session
from topicloom.review.merger import MERGER
from topicloom.review.reviewer import REVIEWER
from topicloom.roles.base import Answer
from topicloom.roles.choice import embedded_roles
from topicloom.roles.registry import Roles
from topicloom.roles.splitter import SplitRequest
from topicloom.search.hashing import HashingEmbedder
from topicloom.settings import Settings
from topicloom.state.channels import TurnOptions
from topicloom.state.session import Session
from topicloom.state.splitting import Assignment
from topicloom.storage import FileStorage, Storage, StoreStorage
from topicloom.storage.references import read_references
from topicloom.storage.sessions import SessionStore
from topicloom.testing import (
    Clock,
    NameRouter,
    ScriptedResponder,
    TaggedSplitter,
    fake_roles,
    read_tag,
)

CONFIG = thread()
EXPECTED = "expected.json"
"""The file with what the version that wrote a session read from each of its checkpoints."""
PLACES = ("files", "store")
IN_STORES = ("archived", "purged", "concurrent")
"""The kinds that are written in a store as well."""


@dataclass
class Place:
    """A folder with a session, its checkpoints and a store beside it."""

    folder: Path
    kind: str
    saver: LocalCheckpointer
    store: BaseStore
    clock: Clock = field(default_factory=Clock)

    @property
    def storage(self) -> Storage:
        """Opened anew, as another process opens it."""
        if self.kind == "store":
            return StoreStorage(self.store)
        return FileStorage(self.folder, fsync=False)

    def open(self, roles: Roles | None = None, **options: Any) -> Graph:
        """The session graph over it."""
        return open_graph(
            self.folder,
            roles or fake_roles(),
            checkpointer=self.saver,
            store=self.store,
            storage=self.storage,
            clock=self.clock,
            **options,
        )

    def open_agent(self) -> Graph:
        """An agent with the middleware over it."""
        memory = remember(
            self.folder,
            settings={"window": 1_200, "split": {"trigger": 0.5}},
            storage=self.storage,
            clock=self.clock,
        )
        agent = open_agent(ScriptedModel(), memory, checkpointer=self.saver, store=self.store)
        return cast("Graph", agent)

    def open_session(self) -> SessionStore:
        """The session's store, opened anew."""
        return SessionStore(self.storage.open("s"))

    def keep_ends_of_turns(self) -> None:
        """Remove the checkpoints within turns."""
        history = self.open().get_state_history(CONFIG)
        ends = [s.config["configurable"]["checkpoint_id"] for s in history if not s.next]
        marks = ", ".join("?" * len(ends))
        with self.saver.cursor() as cursor:
            for table in ("checkpoints", "writes"):
                cursor.execute(f"delete from {table} where checkpoint_id not in ({marks})", ends)

    def checkpoints(self) -> dict[str, Session]:
        """The sessions that the checkpoints hold, by the ids of these, the oldest first."""
        found = {}
        for saved in self.saver.list({"configurable": {"thread_id": "s", "checkpoint_ns": ""}}):
            values = saved.checkpoint["channel_values"]
            known = (values.get("topicloom") or values).get("session")
            if known:
                found[saved.checkpoint["id"]] = Session.model_validate(known)
        return dict(sorted(found.items()))


@contextmanager
def open_place(folder: Path, kind: str) -> Iterator[Place]:
    """Open a folder for a session in files or in a store."""
    folder.mkdir(parents=True, exist_ok=True)
    with open_local_store(folder) as store, closing(local_checkpointer(folder)) as saver:
        yield Place(folder, kind, saver, store)


def read_all(store: SessionStore, session: Session) -> dict[str, Any]:
    """All that is stored of a session at a checkpoint, as JSON data."""

    def rows(models: Any) -> list[Any]:
        return [model.model_dump(mode="json") for model in models]

    table = store.topic_table(session)
    return {
        "session": session.model_dump(mode="json"),
        "transcript": rows(store.originals(session)),
        "shown": [message.text for message in store.messages(session)],
        "topics": rows(table),
        "messages": {t.id: [m.id for m in store.topic_messages(t)] for t in table},
        "references": {t.id: rows(read_references(store, t)) for t in table},
        "notes": rows(store.notes(session)),
        "receipts": rows(store.receipts(session)),
        "days": {day: sorted(topics) for day, topics in store.days(session).items()},
        "edits": len(store.edits(session)),
        "journal": rows(store.journal(session)),
        "changes": rows(store.changes(session).values()),
    }


class PartsSplitter(TaggedSplitter):
    """Goes by the tag; divides a topic by the parity of numbers; rain belongs to tea as well."""

    def call(self, request: SplitRequest) -> Answer[tuple[Assignment, ...]]:
        tea = tuple(t.id for t in request.topics if t.name.startswith("茶"))
        if request.dividing is None:
            answer = super().call(request)
            shared = (replace(a, also=tea) if a.name == "雨" else a for a in answer.value)
            return replace(answer, value=tuple(shared))
        names = {b.first: f"{read_tag(b.text)}之{'奇偶'[b.first % 4 // 2]}" for b in request.rounds}
        return Answer(
            tuple(
                Assignment(message=i, topic=None, name=names[b.first])
                for b in request.rounds
                for i in b.ids
            )
        )


def write_archived(place: Place) -> None:
    """Topics that are archived, merged and restored, among them some with messages of tools."""
    roles = fake_roles(router=NameRouter({"茶": 0.9}))
    roles = roles.replace(REVIEWER, Reviewer(importance={"茶": 0.1, "山": 0.1}))
    roles = roles.replace(MERGER, Merger(same=frozenset({"雨", "海"})))
    awake = {"floor": 0, "usual": 2, "ceiling": 2}
    graph = place.open(roles, activation=awake)
    record(graph, CONFIG, *past("茶", "雨", rounds=3))
    tell(graph, CONFIG, "雨：还有吗？", keep=0)
    place.clock.now += timedelta(days=8)
    record(graph, CONFIG, *past("山", "海", rounds=3))
    tell(graph, CONFIG, "海：还有吗？", keep=0)
    place.clock.now += timedelta(days=8)
    memory = Memory.of(graph, CONFIG)
    review_session(graph, CONFIG)
    for name in ("茶", "山"):
        (topic,) = (t for t in memory.topics() if t.name == name)
        if topic.state != "archived":
            memory.archive(topic.id)
    (topic,) = (t for t in memory.topics() if t.name == "山")
    memory.restore(topic.id)
    tell(graph, CONFIG, "Did you forget about 茶?", "海：and more?")
    (topic,) = (t for t in memory.topics() if t.name == "雨")
    memory.archive(topic.id)
    review_session(graph, CONFIG)  # moves the file of what is archived
    tell(graph, CONFIG, "海：and the last?")


def write_purged(place: Place) -> None:
    """Messages that were purged: from a topic, from an archived topic and from the tail."""
    graph = place.open()
    record(graph, CONFIG, *past("茶", "雨", rounds=3))
    tell(graph, CONFIG, "雨：还有吗？", keep=0)
    memory = Memory.of(graph, CONFIG)
    memory.archive(memory.topics()[0].id)
    tell(graph, CONFIG, chatter("雨", 8), chatter("山", 9))
    session = get_session(graph, CONFIG)
    plan = place.open_session().plan_purge(session, [3, 9, session.count - 1])
    purge_messages(graph, CONFIG, place.storage, plan)
    tell(graph, CONFIG, chatter("雨", 10), chatter("海", 11), keep=2)
    memory.forget("m11")
    tell(graph, CONFIG, chatter("雨", 12))


def write_edited(place: Place) -> None:
    """Messages that the application removed or changed in `messages`, in topics and in the tail."""
    graph = place.open(visible_messages=8)
    for n in range(1, 6):
        said = HumanMessage(chatter("茶山"[n % 2], n), id=f"u{n}")
        graph.invoke({"messages": [said]}, CONFIG, context=TurnOptions(keep_messages=4))
    anew = HumanMessage(chatter("茶", 40), id="u4")
    graph.invoke({"messages": [RemoveMessage("u3"), anew]}, CONFIG)
    reply = next(
        m for m in graph.get_state(CONFIG).values["messages"][::-1] if isinstance(m, AIMessage)
    )
    changed = reply.model_copy(update={"content": "I was wrong there."})
    graph.update_state(CONFIG, {"messages": [changed]})
    graph.invoke({"messages": [HumanMessage(chatter("山", 6), id="u6")]}, CONFIG)
    graph.invoke({"messages": [HumanMessage(chatter("山", 6), id="u7")]}, CONFIG)
    last = graph.get_state(CONFIG).values["messages"][-1]
    graph.update_state(CONFIG, {"messages": [RemoveMessage(last.id)]})


def write_forked(place: Place) -> None:
    """Branches from old checkpoints: by a run, by a change of the state, by a change of memory."""
    graph = place.open()
    record(graph, CONFIG, *past("茶", "雨", rounds=2))
    tell(graph, CONFIG, "雨：还有吗？", keep=0)
    early = graph.get_state(CONFIG).config
    record(graph, CONFIG, *past("山", rounds=2))
    tell(graph, CONFIG, "山：还有吗？", keep=0)
    trunk = graph.get_state(CONFIG).config
    graph.invoke({"messages": [HumanMessage("茶：another branch")]}, early)
    tell(graph, CONFIG, "茶：and more of it", keep=2)
    left = graph.update_state(
        early, {"messages": [HumanMessage("雨：a third")]}, as_node="finalize"
    )
    graph.invoke({"messages": [HumanMessage("雨：and its own")]}, left)
    Memory.of(graph, trunk).rename("t1", "茶事")
    tell(graph, CONFIG, "山：on the newest")


def write_concurrent(place: Place) -> None:
    """Two writers from one checkpoint, one behind the other; the last turn is known to none."""
    other = place.open()

    class Meanwhile(ScriptedResponder):
        done: Callable[[], object] = staticmethod(lambda: None)

        def stream(self, request: Any) -> Any:
            done, self.done = self.done, lambda: None
            Context().run(done)
            yield from super().stream(request)

    meanwhile = Meanwhile()
    graph = place.open(fake_roles(meanwhile))
    for n in range(1, 4):
        tell(graph, CONFIG, chatter("茶雨"[n % 2], n), keep=4)
    meanwhile.done = lambda: tell(other, CONFIG, chatter("山", 4))
    tell(graph, CONFIG, chatter("茶", 5))

    def edit() -> None:
        shown = other.get_state(CONFIG).values["messages"]
        tell_edit = [RemoveMessage(str(shown[-2].id)), HumanMessage(chatter("山", 6))]
        other.invoke({"messages": tell_edit}, CONFIG)

    meanwhile.done = edit
    tell(graph, CONFIG, chatter("雨", 7))
    # By its storage alone, beside the graph: no checkpoint knows of it.
    memory = Memory(place.storage, "s", clock=place.clock, embedder=HashingEmbedder(64))
    memory.rename(memory.topics()[0].id, "茶事")
    tell(graph, CONFIG, chatter("雨", 8))
    memory.rename(memory.topics()[0].id, "茶与茶")


def write_begun_anew(place: Place) -> None:
    """A thread that lost its checkpoints and began again, beside what is stored of it."""
    tell(place.open(), CONFIG, chatter("茶", 1), chatter("雨", 2), chatter("茶", 3), keep=2)
    place.saver.delete_thread("s")
    graph = place.open()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tell(graph, CONFIG, chatter("山", 4), chatter("山", 5), keep=0)


def write_facts(place: Place) -> None:
    """Facts of a person, of two threads, of which one was corrected and one was forgotten."""
    people = People(
        place.folder,
        store=place.store,
        checkpointer=place.saver,
        storage=place.storage,
        clock=place.clock,
        settings={"split": {"trigger": 0.3}},
    )
    people.learn("t", "I live in Porto.", "home")
    people.learn("s", "I am allergic to peanuts.", "peanuts")
    people.learn("s", "I live in Lisbon now.", "home")
    people.learn("s", "My cat is called Iris.", "cat")
    people.say("s", chatter("茶", 1), keep_messages=2)
    memory = people.memory("s", "ann")
    key = next(k for k, f in memory.facts().items() if "Iris" in f.text)
    memory.correct_fact(key, "My cat is called Irma.")
    key = next(k for k, f in memory.facts().items() if "peanuts" in f.text)
    memory.forget_fact(key)
    people.say("s", chatter("茶", 2), keep_messages=2)


def write_subtopics(place: Place) -> None:
    """Loose ends, a topic that was divided, and rounds that other topics refer to."""
    roles = fake_roles(splitter=PartsSplitter())
    graph = place.open(roles)
    for tag in "茶雨":
        record(graph, CONFIG, *past(tag, rounds=2))
        tell(graph, CONFIG, "Hello", keep=0)
    graph = place.open(roles, topic_window=1_700, window=2_200)
    record(graph, CONFIG, *past("茶", rounds=5, characters=121))
    tell(graph, CONFIG, chatter("茶", 90), keep=0)
    loose = place.open(embedded_roles(HashingEmbedder(256)), window=8_000)
    said = [
        f"The oak fronts of the kitchen cupboards, number {n}, and the stone." for n in range(4)
    ]
    said.insert(2, "What is the capital of Mongolia, by the way?")
    record(loose, CONFIG, *(m for t in said for m in (HumanMessage(t), AIMessage(f"Noted: {t}"))))
    tell(loose, CONFIG, "…", keep=0)


def write_changed(place: Place) -> None:
    """Changes of memory by a person, of each kind, with one that was undone."""
    graph = place.open()
    record(graph, CONFIG, *past("茶", "雨", "山", rounds=3))
    tell(graph, CONFIG, "山：还有吗？", keep=0)
    memory = Memory.of(graph, CONFIG)
    tea, rain, hill = (topic.id for topic in memory.topics()[:3])
    memory.rename(tea, "茶事")
    memory.pin(tea)
    memory.move(["m1"], rain)
    memory.split(hill, ["m15"], "山外")
    memory.merge(hill, rain)
    memory.archive(tea)
    memory.undo()
    tell(graph, CONFIG, chatter("雨", 9))


def write_document(place: Place) -> None:
    """A document of the application that turns edit."""
    planner = ScriptedPlanner([edit_plan(("SET", "health", 70)), edit_plan(("SET", "health", 60))])
    graph = build_session_graph(
        settings=Settings.model_validate(
            {"folder": place.folder, "window": 4_000, "recall_tokens": 500, "fsync": False}
        ),
        roles=fake_roles().replace(PLANNER, planner),
        clock=place.clock,
        storage=place.storage,
        domain=Domain(),
    ).compile(checkpointer=place.saver, store=place.store)
    say(graph, "I was hit.", the_document())
    tell(graph, CONFIG, "And again.", "Where is the temple?", keep=2)


def write_agent(place: Place) -> None:
    """The memory of an agent with the middleware."""
    agent = place.open_agent()
    for n in range(1, 8):
        said = HumanMessage(chatter("茶雨"[n // 2 % 2], n, characters=150), id=f"u{n}")
        agent.invoke({"messages": [said]}, CONFIG)


KINDS: dict[str, Callable[[Place], None]] = {
    name.removeprefix("write_"): write
    for name, write in list(globals().items())
    if name.startswith("write_")
}
"""What writes each kind of session."""


def write_one(kind: str, place: str, folder: Path) -> None:
    """Write a session of a kind and what is read from it; without what is computed again."""
    with open_place(folder, place) as opened:
        KINDS[kind](opened)
        if place == "store":
            opened.keep_ends_of_turns()
        store = opened.open_session()
        read = {name: read_all(store, s) for name, s in opened.checkpoints().items()}
        for item in opened.store.search(("topicloom",), limit=10_000):
            if item.namespace[-1].startswith("%vectors"):
                opened.store.delete(item.namespace, item.key)
    (folder / EXPECTED).write_text(json.dumps(read, ensure_ascii=False) + "\n", "utf-8")
    for path in folder.rglob("*"):
        if path.name.startswith("vectors-") or path.name in (".lock", ".held"):
            path.unlink()
    shrink(folder)


def shrink(folder: Path) -> None:
    """Make the databases of a folder small: without the writes that newer checkpoints contain."""
    for path in folder.glob("*.sqlite"):
        with closing(sqlite3.connect(path, isolation_level=None)) as database:
            if path.name == CHECKPOINTS:
                newest = "(select max(checkpoint_id) from checkpoints)"
                database.execute(f"delete from writes where checkpoint_id != {newest}")
            database.execute("pragma journal_mode=delete")
            database.execute("pragma page_size=1024")
            database.execute("vacuum")


def pack(folder: Path, archive: Path) -> None:
    """Put all that is in a folder into an archive."""

    def anonymous(info: tarfile.TarInfo) -> tarfile.TarInfo:
        info.uid = info.gid = 0
        info.mtime, info.uname, info.gname = 0, "", ""
        return info

    with tarfile.open(archive, "w:xz", preset=9) as packed:
        for path in sorted(folder.rglob("*")):
            packed.add(path, path.relative_to(folder), recursive=False, filter=anonymous)


if __name__ == "__main__":
    with TemporaryDirectory() as made:
        for name in KINDS:
            for place in PLACES if name in IN_STORES else PLACES[:1]:
                write_one(name, place, Path(made) / f"{name}-{place}")
        pack(Path(made), Path(sys.argv[1]))
