"""The inspector as an ASGI application: its page, and the API that the page asks."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any, cast

from cachetools import LRUCache
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from pydantic import ValidationError
from pydantic_core import to_json
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from topicloom.errors import TopicLoomError
from topicloom.graph.memory import Memory
from topicloom.graph.memory_values import MemoryTopic
from topicloom.graph.session import CompiledSessionGraph
from topicloom.graph.stored import Graph
from topicloom.recordings.conversations import make_case
from topicloom.recordings.exports import guess_format, read_export, sort_by_time
from topicloom.recordings.replay import record_messages
from topicloom.serve.app import describe_error, read_json, write_event
from topicloom.state.activation import ActivationPolicy
from topicloom.state.channels import TurnOptions
from topicloom.state.recall import parse_message_number
from topicloom.state.receipt import Receipt
from topicloom.state.replaying import replay_activation
from topicloom.state.stored_message import StoredMessage, get_text
from topicloom.storage.names import make_session_name
from topicloom.ui.guard import Guard
from topicloom.ui.turns import Event, describe_part, list_moments
from topicloom.ui.wire import (
    Change,
    Editing,
    Forget,
    NewMessage,
    SessionView,
    ShownMessage,
    TopicView,
    TurnMark,
    show_message,
)

_PAGE, _FOUND, _MARKS = 200, 100, 500
"""Messages of a page, those that a search finds, and turns on the time line, at most."""
_REPLAYED = 1_000
"""Newest turns that other thresholds are tried on."""
_EXPORT_BYTES = 100_000_000
"""Of an export."""
_MOMENTS = 4
"""Sessions, or points in time of one, of which it is remembered where messages are."""
_BYTES = 1_000_000
"""Of a request."""


def make_inspector(
    graph: Graph,
    names: Callable[[], Sequence[str]],
    home: str,
    *,
    key: str,
    hosts: Collection[str],
    write_page: Callable[[str, Sequence[StoredMessage], bool], str],
    model: str = "",
    editing: bool = False,
) -> Guard:
    """An ASGI application that shows the sessions of a graph, and changes them while editing.

    Args:
        graph: A session graph, compiled with a checkpointer for threads and event loops alike.
        names: The sessions that can be opened.
        home: The one to begin with, which need not be there yet.
        key: What the page is opened with.
        hosts: Names of the machine that are answered; any if there are none.
        write_page: Writes a session's name and messages as a page to take along, with other letters
            in them or not.
        model: A line on the model that replies.
        editing: True to take changes from the beginning.
    """
    page = _Inspector(graph, names, home, model, write_page, editing=editing)
    static = str(files("topicloom") / "ui" / "static")
    app = Starlette(
        routes=[
            Route("/", lambda _: FileResponse(f"{static}/index.html")),
            Mount("/static", StaticFiles(directory=static)),
            Route("/api/editing", page.set_editing, methods=["POST"]),
            Route("/api/session", page.show_session),
            *(
                Route(f"/api/session/{{session}}{path}", endpoint, methods=[method])
                for method, path, endpoint in (
                    ("GET", "", page.show_session),
                    ("GET", "/topics", page.list_topics),
                    ("GET", "/topics/{topic}", page.list_messages_of_topic),
                    ("GET", "/messages", page.list_messages),
                    ("GET", "/messages/{message}", page.show_message),
                    ("GET", "/search", page.search),
                    ("GET", "/receipts/{message}", page.show_receipt),
                    ("GET", "/absences/{turn:int}/{message}", page.explain_absence),
                    ("GET", "/cases/{turn:int}/{message}", page.make_case),
                    ("GET", "/prompt", page.show_prompt),
                    ("GET", "/moments", page.list_moments),
                    ("GET", "/marks", page.list_marks),
                    ("GET", "/changes", page.list_changes),
                    ("GET", "/facts", page.list_facts),
                    ("GET", "/replay", page.replay_turns),
                    ("GET", "/page", page.write_session),
                    ("POST", "/imports", page.take_export),
                    ("POST", "/changes", page.make_change),
                    ("POST", "/preview", page.preview),
                    ("POST", "/forget", page.forget),
                    ("POST", "/turns", page.take_turn),
                    ("POST", "/stop", page.stop_turn),
                    ("POST", "/forks", page.begin_fork),
                )
            ),
        ],
        exception_handlers={
            HTTPException: _refuse,
            ValidationError: _explain,
            TopicLoomError: _report,
            Exception: _report,
        },
    )
    return Guard(app, key, hosts)


@dataclass(frozen=True, slots=True)
class _Places:
    """Where the messages of a session are, and when they were said."""

    topics: Mapping[int, str]
    days: Mapping[int, str]


class _Inspector:
    def __init__(
        self,
        graph: Graph,
        names: Callable[[], Sequence[str]],
        home: str,
        model: str,
        write_page: Callable[[str, Sequence[StoredMessage], bool], str],
        *,
        editing: bool,
    ) -> None:
        self._graph, self._names, self._home, self._model = graph, names, home, model
        self._editing, self._write_page = editing, write_page
        self._places: LRUCache[tuple[str | int | None, ...], _Places] = LRUCache(_MOMENTS)
        self._writing = asyncio.Lock()
        self._turns: dict[str, asyncio.Task[None]] = {}

    def show_session(self, request: Request) -> Response:
        """A session, the first one if none is named."""
        memory, name = self._open(request)
        session = memory.session()
        return _send(
            SessionView(
                name=name,
                count=session.count,
                tail=session.tail,
                turn=session.turn,
                model=self._model,
                editing=self._editing,
                sessions=tuple(sorted({self._home, *self._names()})),
            )
        )

    def list_topics(self, request: Request) -> Response:
        """All topics, with their days."""
        memory, name = self._open(request)
        active, places = memory.session().active, self._find_places(memory, name)
        days: dict[str, Counter[str]] = {}
        for number, topic in places.topics.items():
            days.setdefault(topic, Counter())[places.days[number]] += 1
        return _send(
            [
                TopicView(
                    **topic.model_dump(),
                    relevance=fmean(active[topic.id]) if active.get(topic.id) else None,
                    days=days.get(topic.id, {}),
                )
                for topic in memory.topics()
            ]
        )

    def list_messages(self, request: Request) -> Response:
        """A page of the conversation: the newest, or those before or around a message."""
        memory, name = self._open(request)
        limit, before = _read_limit(request), request.query_params.get("before")
        if around := request.query_params.get("around"):
            behind = memory.quote(around).seq + limit // 2
            before = f"m{behind}" if behind <= memory.session().count else None
        topics = self._find_places(memory, name).topics
        said = memory.history(before, limit)
        return _send([show_message(m, topics.get(m.seq, "")) for m in said])

    def list_messages_of_topic(self, request: Request) -> Response:
        """A page of a topic's messages, in order."""
        memory, _ = self._open(request)
        topic, after = memory.topic(request.path_params["topic"]), request.query_params.get("after")
        last = parse_message_number(after) if after else 0
        said = [m for m in topic.messages() if m.seq > last][: _read_limit(request)]
        return _send([show_message(m, topic.id) for m in said])

    def show_message(self, request: Request) -> Response:
        """A message, all of it."""
        memory, name = self._open(request)
        found = memory.quote(request.path_params["message"])
        topic = self._find_places(memory, name).topics.get(found.seq, "")
        return _send(show_message(found, topic, most=len(found.text)))

    def search(self, request: Request) -> Response:
        """What fits a text best: first what has it word for word."""
        memory, _ = self._open(request)
        text = request.query_params.get("text", "")[:1_000]
        since, until = (request.query_params.get(name) for name in ("since", "until"))
        found = memory.search(text, since, until, _FOUND) if text.strip() else []
        found.sort(key=lambda hit: text.casefold() not in hit.message.text.casefold())
        return _send([show_message(h.message, h.topic, relevance=h.relevance) for h in found])

    def show_receipt(self, request: Request) -> Response:
        """The receipt of the turn that answered a message, or null."""
        memory, _ = self._open(request)
        wanted = request.path_params["message"]
        for newest in (50, 1_000, None):
            for receipt in reversed(memory.receipts(newest)):
                if receipt.user == wanted and receipt.scores | receipt.sections:
                    return _send(receipt)
        return _send(None)

    def explain_absence(self, request: Request) -> Response:
        """Why a turn did not quote a message."""
        memory, _ = self._open(request)
        asked = request.path_params
        return _send(memory.why_not(asked["turn"], asked["message"]))

    def make_case(self, request: Request) -> Response:
        """A file that `topicloom eval memory` asks the question of a turn from."""
        memory, name = self._open(request)
        asked = request.path_params
        number = memory.session().turn - asked["turn"] + 1
        receipts = [r for r in memory.receipts(max(1, number)) if r.turn == asked["turn"]]
        if not receipts:
            raise HTTPException(404, "there is no such turn")
        question = memory.quote(receipts[-1].user)
        before = memory.history(before=question.id, limit=question.seq)
        case = make_case(name, before, question.text, memory.quote(asked["message"]).id)
        return _attach(f"{case.model_dump_json()}\n", "case.jsonl")

    def list_marks(self, request: Request) -> Response:
        """What the newest turns quoted, woke and split."""
        memory, name = self._open(request)
        days = self._find_places(memory, name).days
        return _send([_mark(receipt, days) for receipt in memory.receipts(_MARKS)])

    def list_changes(self, request: Request) -> Response:
        """What people and reviews changed, the newest first."""
        memory, _ = self._open(request)
        return _send(memory.changes()[::-1][:_PAGE])

    def list_facts(self, request: Request) -> Response:
        """What is kept of the user."""
        memory, _ = self._open(request)
        return _send(memory.facts())

    def replay_turns(self, request: Request) -> Response:
        """What other thresholds of activation would have done in the newest turns."""
        memory, _ = self._open(request)
        assert isinstance(self._graph, CompiledSessionGraph)
        in_force = self._graph.builder.deps.settings.activation
        asked = {name: v for name, v in request.query_params.items() if name != "at"}
        policy = ActivationPolicy.model_validate({**in_force.model_dump(), **asked})
        receipts = memory.receipts(_REPLAYED)
        tried = {"in_force": in_force, "policy": policy}
        return _send({name: (p, replay_activation(receipts, p)) for name, p in tried.items()})

    def write_session(self, request: Request) -> Response:
        """A page by itself of what was said, to take along."""
        memory, name = self._open(request)
        said = memory.history(limit=memory.session().count)
        hide = request.query_params.get("hide") == "1"
        return _attach(self._write_page(name, said, hide), "session.html")

    async def take_export(self, request: Request) -> Response:
        """Take in what another chat exported, as a session of its own, and stream how it goes."""
        if not self._editing:
            raise HTTPException(403, "nothing is changed here until editing is on")
        name = make_session_name(request.path_params["session"])
        body = await read_json(request, _EXPORT_BYTES, "application/octet-stream")
        messages = await asyncio.to_thread(_read_messages, body)
        return self._stream_work(name, self._import(name, messages))

    async def _import(self, name: str, messages: Sequence[BaseMessage]) -> AsyncIterator[Event]:
        thread = name_thread(name)
        memory = Memory.of(self._graph, thread)
        said = await memory.ahistory(limit=(await memory.asession()).count)
        known = {message.source for message in said}
        fresh = [message for message in messages if message.id not in known]
        done, counts = 0, record_messages(self._graph, fresh, thread)
        while count := await asyncio.to_thread(next, counts, 0):
            done += count
            yield {"type": "imported", "session": name, "done": done, "all": len(fresh)}

    async def set_editing(self, request: Request) -> Response:
        """Take changes from now on, or no longer."""
        self._editing = Editing.model_validate_json(await read_json(request, _BYTES)).on
        return _send(Editing(on=self._editing))

    async def make_change(self, request: Request) -> Response:
        """Make a change to topics."""
        change = Change.model_validate_json(await self._read_change(request))
        async with self._writing:
            await asyncio.to_thread(lambda: change.root.make(self._open(request)[0]))
        return _send(None)

    async def preview(self, request: Request) -> Response:
        """What forgetting would remove."""
        return await self._forget(request, await read_json(request, _BYTES), dry_run=True)

    async def forget(self, request: Request) -> Response:
        """Remove messages for good."""
        return await self._forget(request, await self._read_change(request), dry_run=False)

    async def _forget(self, request: Request, body: bytes, *, dry_run: bool) -> Response:
        what = Forget.model_validate_json(body).what
        async with self._writing:
            gone = await asyncio.to_thread(
                lambda: self._open(request)[0].forget(*what, dry_run=dry_run)
            )
        views: list[ShownMessage] = [show_message(m, "") for m in gone.messages]
        told = {"topics": gone.topics, "facts": gone.facts, "left": gone.left}
        return _send({"messages": views, **told})

    def list_moments(self, request: Request) -> Response:
        """The points in time that the session can be shown at."""
        _, name = self._open(request)
        return _send(list_moments(self._graph, name_thread(name)))

    def show_prompt(self, request: Request) -> Response:
        """The prompt of the newest turn that answered, message by message."""
        memory, _ = self._open(request)
        return _send([{"role": m.type, "text": get_text(m)} for m in memory.prompt()])

    async def begin_fork(self, request: Request) -> Response:
        """Begin a branch at a point in time; it is the newest of the session from then on."""
        await self._read_change(request)
        config = self._find_config(request)
        async with self._writing:
            await self._graph.aupdate_state(config, {"messages": []})
        return _send(None)

    async def take_turn(self, request: Request) -> Response:
        """Take a message in, and stream what comes of it. A page that is closed ends no turn."""
        said = NewMessage.model_validate_json(await self._read_change(request))
        _, name = await asyncio.to_thread(self._open, request)
        return self._stream_work(name, self._answer(self._find_config(request), said))

    def _stream_work(self, name: str, work: AsyncIterator[Event]) -> Response:
        """Do some work on a session, whoever listens, and stream what comes of it."""
        events = asyncio.Queue[Event]()
        task = asyncio.create_task(self._do(work, events))
        self._turns[name] = task
        task.add_done_callback(lambda ended: self._end(name, ended, events))
        return StreamingResponse(_stream(events), media_type="text/event-stream")

    async def _do(self, work: AsyncIterator[Event], events: asyncio.Queue[Event]) -> None:
        try:
            async with self._writing:
                async for event in work:
                    events.put_nowait(event)
        except Exception as error:  # noqa: BLE001 - whatever fails, the page is told
            events.put_nowait({"type": "error", "error": describe_error(error)[1]})

    def _end(self, name: str, task: asyncio.Task[None], events: asyncio.Queue[Event]) -> None:
        if self._turns.get(name) is task:
            del self._turns[name]
        events.put_nowait({"type": "end", "stopped": task.cancelled()})

    async def _answer(self, config: RunnableConfig, said: NewMessage) -> AsyncIterator[Event]:
        parts = self._graph.astream(
            {"messages": [HumanMessage(said.text)]} if said.text else None,
            config,
            context=TurnOptions(answer=said.answer),
            stream_mode=["messages", "custom", "updates"],
            durability="exit",
        )
        async for kind, data in cast("AsyncIterator[tuple[str, Any]]", parts):
            for event in describe_part(self._graph, kind, data):
                yield event

    async def stop_turn(self, request: Request) -> Response:
        """Stop the turn that goes on; its message is kept, and waits for its reply."""
        await self._read_change(request)
        if turn := self._turns.get(request.path_params["session"]):
            turn.cancel()
        return _send(None)

    async def _read_change(self, request: Request) -> bytes:
        if not self._editing:
            raise HTTPException(403, "nothing is changed here until editing is on")
        return await read_json(request, _BYTES)

    def _open(self, request: Request) -> tuple[Memory, str]:
        """The session that is asked for, at the point in time that is."""
        config = self._find_config(request)
        return Memory.of(self._graph, config), config["configurable"]["thread_id"]

    def _find_config(self, request: Request) -> RunnableConfig:
        name, at = request.path_params.get("session", self._home), request.query_params.get("at")
        if name != self._home and name not in self._names():
            raise HTTPException(404, "there is no such session")
        thread = name_thread(name)
        if at:
            thread["configurable"] |= {"checkpoint_id": at, "checkpoint_ns": ""}
        return thread

    def _find_places(self, memory: Memory, name: str) -> _Places:
        """Where messages are: of the last time, if nothing moved since."""
        session = memory.session()
        mark = name, session.roster, session.superseded, session.count
        known = self._places.get(mark)
        if known is None:
            topics, days = dict[int, str](), dict[int, str]()
            for topic in (t for t in memory.topics() if t.count):
                _enter(topic, topics, days)
            late = session.count - session.tail + 1
            days |= {m.seq: m.day for m in memory.history(limit=late)} if late else {}
            known = self._places[mark] = _Places(topics, days)
        return known


def _read_messages(body: bytes) -> list[BaseMessage]:
    """The messages of an export, those of the conversation first that came first."""
    with TemporaryDirectory(prefix="topicloom-") as folder:
        file = Path(folder) / "export"
        file.write_bytes(body)
        found = sort_by_time(read_export(file, guess_format(file)))
    return [message for conversation in found for message in conversation.messages]


def _enter(topic: MemoryTopic, topics: dict[int, str], days: dict[int, str]) -> None:
    for message in topic.messages():
        topics[message.seq], days[message.seq] = topic.id, message.day


def _mark(receipt: Receipt, days: Mapping[int, str]) -> TurnMark:
    return TurnMark(
        message=receipt.user,
        day=days.get(parse_message_number(receipt.user), ""),
        quoted=tuple(note.topic for note in receipt.quoted if note.quotes),
        woken=receipt.woken,
        split=receipt.split,
        searched=bool(receipt.searches),
    )


def name_thread(name: str) -> RunnableConfig:
    return {"configurable": {"thread_id": name}}


async def _stream(events: asyncio.Queue[Event]) -> AsyncIterator[str]:
    """Server-sent events until the turn ends."""
    while True:
        event = await events.get()
        yield write_event(event)
        if event["type"] == "end":
            return


def _read_limit(request: Request) -> int:
    given = request.query_params.get("limit", "50")
    return max(1, min(_PAGE, int(given))) if given.isdecimal() else 50


def _send(value: object) -> Response:
    return Response(to_json(value), media_type="application/json")


def _attach(text: str, file: str) -> Response:
    """A file to keep."""
    headers = {"Content-Disposition": f'attachment; filename="{file}"'}
    return Response(text, media_type="application/octet-stream", headers=headers)


async def _report(request: Request, error: Exception) -> Response:
    status, message = describe_error(error)
    return JSONResponse({"error": message}, status)


async def _refuse(request: Request, error: Exception) -> Response:
    failed = cast("HTTPException", error)
    return JSONResponse({"error": failed.detail}, failed.status_code)


async def _explain(request: Request, error: Exception) -> Response:
    problem = cast("ValidationError", error).errors()[0]
    return JSONResponse({"error": f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}"}, 400)
