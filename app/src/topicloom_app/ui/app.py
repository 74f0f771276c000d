"""The inspector as an ASGI application: its page, and what the page asks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import (
    FileResponse,
    JSONResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from topicloom import InputError, ReflectionOptions, TurnOptions, open_session, reflect_once
from topicloom.hosting import CompiledSessionGraph, find_storage, name_thread
from topicloom_app.changes import Change, Forget
from topicloom_app.recordings.exports import read_exports
from topicloom_app.recordings.imports import record_messages, select_new
from topicloom_app.recordings.spool import ImportSpool
from topicloom_app.serve.web import answer_errors, describe_error, read_json, write_event
from topicloom_app.session_names import make_session_name
from topicloom_app.ui.answers import FoundExport, ShownForgotten, show_message
from topicloom_app.ui.guard import Guard
from topicloom_app.ui.session_pages import SessionPages, WritePage, send
from topicloom_app.ui.turns import Event, describe_part
from topicloom_app.ui.wire import Editing, NewMessage

_EXPORT_BYTES = 100_000_000
"""Of an export."""
_BYTES = 1_000_000
"""Of a request."""


def make_inspector(
    graph: CompiledSessionGraph,
    names: Callable[[], Sequence[str]],
    first: str,
    *,
    key: str,
    hosts: Collection[str],
    write_page: WritePage,
    model: str = "",
    editing: bool = False,
) -> Guard:
    """An ASGI application that shows the sessions of a graph, and changes them while editing.

    Args:
        graph: A session graph, compiled with a checkpointer for threads and event loops alike.
        names: The sessions that can be opened.
        first: The session that the page opens with; it need not exist yet.
        key: What the page is opened with.
        hosts: Names of the machine that are answered; any if there are none.
        write_page: Writes a session's name and messages as a page to take along, with other letters
            in them or not.
        model: The name of the model that replies; "" if none is set.
        editing: True to take changes from the beginning.
    """
    page = _Inspector(graph, names, first, model, write_page, editing=editing)
    app = Starlette(
        routes=_list_routes(page),
        exception_handlers={
            **answer_errors(lambda _, status, message: {"error": message}),
            ValidationError: _explain,
        },
    )
    return Guard(app, key, hosts)


def _list_routes(page: _Inspector) -> list[BaseRoute]:
    static = str(files("topicloom_app") / "ui" / "static")
    of_session = (
        ("GET", "", page.show_session),
        ("GET", "/topics", page.list_topics),
        ("GET", "/days", page.count_days),
        ("GET", "/tail", page.sort_tail),
        ("GET", "/topics/{topic}", page.list_messages_of_topic),
        ("GET", "/messages", page.list_messages),
        ("GET", "/messages/{message}", page.show_message),
        ("GET", "/search", page.search),
        ("GET", "/index", page.make_index),
        ("GET", "/receipts/{message}", page.show_receipt),
        ("GET", "/grounds/{message}", page.show_grounds),
        ("GET", "/absences/{turn}/{message}", page.explain_absence),
        ("GET", "/cases/{turn}/{message}", page.make_case),
        ("GET", "/prompt", page.show_prompt),
        ("GET", "/moments", page.list_moments),
        ("GET", "/marks", page.list_marks),
        ("GET", "/changes", page.list_changes),
        ("GET", "/facts", page.list_facts),
        ("GET", "/person", page.show_person),
        ("GET", "/replay", page.replay_turns),
        ("GET", "/page", page.write_session),
        ("POST", "/imports", page.take_export),
        ("POST", "/changes", page.make_change),
        ("POST", "/preview", page.preview),
        ("POST", "/forget", page.forget),
        ("POST", "/turns", page.take_turn),
        ("POST", "/stop", page.stop_turn),
        ("POST", "/forks", page.begin_fork),
        ("POST", "/reflections", page.reflect),
    )
    return [
        Route("/", lambda _: FileResponse(f"{static}/index.html")),
        Mount("/static", StaticFiles(directory=static)),
        Route("/api/editing", page.set_editing, methods=["POST"]),
        Route("/api/session", page.show_session),
        *(
            Route(f"/api/session/{{session}}{path}", endpoint, methods=[method])
            for method, path, endpoint in of_session
        ),
    ]


class _Inspector(SessionPages):
    """Answers what changes sessions too, one change at a time."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._writing = asyncio.Lock()
        self._turns: dict[str, asyncio.Task[None]] = {}

    async def take_export(self, request: Request) -> Response:
        """Import what another chat exported into a session of its own, and stream the progress.

        With `dry_run` in the query nothing is written, and the answer says what would be.
        """
        if not self._editing:
            raise HTTPException(403, "the page is read-only: turn on editing first")
        name = make_session_name(request.path_params["session"])
        body = await read_json(request, _EXPORT_BYTES, "application/octet-stream")
        spool = await asyncio.to_thread(_read_export, body)
        if "dry_run" in request.query_params:
            return send(await asyncio.to_thread(self._preview_import, name, spool))
        return self._stream_work(name, self._import(name, spool))

    def _preview_import(self, name: str, spool: ImportSpool) -> FoundExport:
        with spool:
            session, store = open_session(self._graph, name_thread(name))
            new = sum(1 for _ in select_new(spool.pieces(), store, session))
            return FoundExport.model_validate(spool.summary.describe(new))

    async def _import(self, name: str, spool: ImportSpool) -> AsyncIterator[Event]:
        thread, found = name_thread(name), spool.summary
        with spool:
            session, store = await asyncio.to_thread(open_session, self._graph, thread)
            fresh = select_new(spool.pieces(), store, session)
            done, counts = 0, record_messages(self._graph, fresh, thread)
            while count := await asyncio.to_thread(next, counts, 0):
                done += count
                yield {"type": "imported", "session": name, "done": done, "all": found.messages}

    async def set_editing(self, request: Request) -> Response:
        """Take changes from now on, or no longer."""
        self._editing = Editing.model_validate_json(await read_json(request, _BYTES)).on
        return send(Editing(on=self._editing))

    async def make_change(self, request: Request) -> Response:
        """Make a change to topics."""
        change = Change.model_validate_json(await self._read_change(request))
        async with self._writing:
            memory, _ = await asyncio.to_thread(self._open, request)
            await change.root.make(memory)
        return send(None)

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
        if not dry_run:  # what is in memory of it goes: the index is made anew
            self._indexing.pop(request.path_params["session"], None)
        return send(
            ShownForgotten(
                messages=tuple(show_message(m) for m in gone.messages),
                topics=gone.topics,
                facts=gone.facts,
                left=gone.left,
            )
        )

    async def begin_fork(self, request: Request) -> Response:
        """Begin a branch at a point in time; it is the newest of the session from then on."""
        await self._read_change(request)
        config = self._find_config(request)
        async with self._writing:
            await self._graph.aupdate_state(config, {"messages": []})
        return send(None)

    async def reflect(self, request: Request) -> Response:
        """Look for facts about the user now."""
        await self._read_change(request)
        _, name = self._open(request)
        graph, deps = self._graph, self._graph.builder.deps
        if graph.store is None or not isinstance(graph.checkpointer, BaseCheckpointSaver):
            raise HTTPException(409, "facts need a store, and this server has none")
        options = ReflectionOptions(
            checkpointer=graph.checkpointer,
            storage=find_storage(graph),
            store=graph.store,
            roles=deps.roles,
            policy=deps.settings.reflection,
        )
        async with self._writing:
            await asyncio.to_thread(reflect_once, name, force=True, **options)
        return send(None)

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
        except Exception as error:  # noqa: BLE001 - the page shows it, and the log
            events.put_nowait({"type": "error", "error": describe_error(error).message})

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
                if event["type"] == "receipt":  # the page asks for it once it is stored
                    yield {"type": "receipt", "user": event["receipt"]["user"]}
                else:
                    yield event

    async def stop_turn(self, request: Request) -> Response:
        """Stop the turn that goes on; its message is kept, and waits for its reply."""
        await self._read_change(request)
        if turn := self._turns.get(request.path_params["session"]):
            turn.cancel()
        return send(None)

    async def _read_change(self, request: Request) -> bytes:
        if not self._editing:
            raise HTTPException(403, "the page is read-only: turn on editing first")
        return await read_json(request, _BYTES)


def _read_export(body: bytes) -> ImportSpool:
    """What an export holds, in the order of time; raises `InputError` if that is nothing."""
    spool = ImportSpool()
    with TemporaryDirectory(prefix="topicloom-") as folder:
        file = Path(folder) / "export"
        file.write_bytes(body)
        for conversation in read_exports([file]):
            spool.add(conversation)
    found = spool.summary
    if found.messages:
        return spool
    spool.close()
    example = next(iter(found.unread.examples.values()), "there is no message with a text")
    raise InputError("nothing can be imported: {reason}", reason=example.removeprefix(f"{file}, "))


async def _stream(events: asyncio.Queue[Event]) -> AsyncIterator[str]:
    """Server-sent events until the turn ends."""
    while True:
        event = await events.get()
        yield write_event(event)
        if event["type"] == "end":
            return


async def _explain(request: Request, error: Exception) -> Response:
    problem = cast("ValidationError", error).errors()[0]
    parts = filter(None, [".".join(map(str, problem["loc"])), problem["msg"]])
    return JSONResponse({"error": ": ".join(parts)}, 400)
