"""What the inspector's page is shown of sessions."""

from __future__ import annotations

import gc
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import takewhile
from statistics import fmean
from threading import Thread

from langchain_core.runnables import RunnableConfig
from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from topicloom import (
    ActivationPolicy,
    InputError,
    Memory,
    Receipt,
    ReflectionStore,
    Session,
    SessionStore,
    StoredMessage,
    TopicLoomError,
)
from topicloom.hosting import (
    CompiledSessionGraph,
    FilledText,
    fold,
    get_text,
    name_thread,
    parse_message_number,
    sees,
)
from topicloom_app.prices import price_call
from topicloom_app.recordings.conversations import make_case
from topicloom_app.ui.answers import (
    IndexState,
    PromptMessage,
    ProvisionalTopic,
    Replays,
    ShownPerson,
    ShownReceipt,
    ShownSession,
    ShownSpan,
    ShownTail,
    ShownTopic,
    ShownTurn,
    TopicThen,
    TurnMark,
    show_ground,
    show_message,
)
from topicloom_app.ui.grounds import Ground, find_grounds
from topicloom_app.ui.receipts import find_receipt, list_shown
from topicloom_app.ui.replayed import replay_activation
from topicloom_app.ui.turns import list_moments

WritePage = Callable[[str, Sequence[StoredMessage], bool], str]
"""Writes a session's name and messages as a page, with other letters in them or not."""
_PAGE, _FOUND, _MARKS = 200, 100, 500
"""Messages of a page, those that a search finds, and turns on the time line, at most."""
MANY = 5_000
"""Messages of a long session."""
_REPLAYED = 1_000
"""Newest turns that other thresholds are tried on."""
_REPLIES = 12
"""Messages behind a question among which its answer is looked for: calls of tools come before."""
_MOMENT = 0.5
"""Seconds in which the index of most sessions is made."""


class SessionPages:
    """Answers what is asked of the sessions of a graph; nothing of it changes anything."""

    def __init__(
        self,
        graph: CompiledSessionGraph,
        names: Callable[[], Sequence[str]],
        first: str,
        model: str,
        write_page: WritePage,
        *,
        editing: bool,
    ) -> None:
        """Sessions of some names; the page opens with `first` (see `make_inspector`)."""
        self._graph, self._names, self._first, self._model = graph, names, first, model
        self._editing, self._write_page = editing, write_page
        self._indexing: dict[str, Thread] = {}

    def show_session(self, request: Request) -> Response:
        """A session, the first one if none is named."""
        memory, name = self._open(request)
        session = memory.session()
        return send(
            ShownSession(
                name=name,
                count=session.count,
                tail=session.tail,
                turn=session.turn,
                owner=_find_owner(memory, session),
                model=self._model,
                editing=self._editing,
                sessions=tuple(sorted({self._first, *self._names()})),
            )
        )

    def list_topics(self, request: Request) -> Response:
        """All topics; those that are active with how relevant they were lately, 0 to 1."""
        memory, _ = self._open(request)
        active = {name: fmean(scores) for name, scores in memory.session().active.items() if scores}
        topics = memory.topics()
        return send([ShownTopic(**t.model_dump(), relevance=active.get(t.id)) for t in topics])

    def sort_tail(self, request: Request) -> Response:
        """The topics that the unsplit messages would open now, and how full the window is."""
        memory, _ = self._open(request)
        topics = tuple(
            ProvisionalTopic(name=name, first=held[0].id, count=len(held))
            for name, held in memory.provisional().items()
        )
        split = self._graph.builder.deps.settings.split.trigger
        full = next((receipt.filled for receipt in memory.receipts(1)), 0.0)
        return send(ShownTail(topics=topics, full=full, splits_at=split))

    def count_days(self, request: Request) -> Response:
        """How much was said on which day, by topic."""
        store, session = self._read(self._open(request)[0])
        said, days = store.message_days(session), dict[str, Counter[str]]()
        for topic, number in store.list_filed(session):
            days.setdefault(topic, Counter())[said[number - 1]] += 1
        return send(days)

    def list_messages_of_topic(self, request: Request) -> Response:
        """A page of a topic's messages, in order."""
        memory, _ = self._open(request)
        topic, after = memory.topic(request.path_params["topic"]), request.query_params.get("after")
        last = memory.quote(after).seq if after else 0
        said = [m for m in topic.messages() if m.seq > last][: _read_limit(request)]
        return send([show_message(m, topic.id) for m in said])

    def list_messages(self, request: Request) -> Response:
        """A page of the conversation: the newest, or those before or around a message."""
        memory, _ = self._open(request)
        limit, before = _read_limit(request), request.query_params.get("before")
        if around := request.query_params.get("around"):
            behind = memory.quote(around).seq + limit // 2
            before = f"m{behind}" if behind <= memory.session().count else None
        said = memory.history(before, limit)
        find_topic = self._find_topics(memory)
        return send([show_message(m, find_topic(m.seq) or "") for m in said])

    def show_message(self, request: Request) -> Response:
        """A message, all of it."""
        memory, _ = self._open(request)
        found = memory.quote(request.path_params["message"])
        topic = self._find_topics(memory)(found.seq) or ""
        return send(show_message(found, topic, most=len(found.text)))

    def make_index(self, request: Request) -> Response:
        """How many messages a search does without as yet; the index is made from now on."""
        memory, name = self._open(request)
        if self._has_index(memory, name):
            return send(IndexState(left=0))
        session = memory.session()
        opened = self._graph.builder.workspaces.open(session.id, self._graph.store)
        return send(IndexState(left=opened.full_index.left or session.count))

    def search(self, request: Request) -> Response:
        """The messages that fit a text: those with it word for word first, questions last.

        Where none fits, those that are closest in meaning, of no relevance. While the index of a
        long session is being made, only those with it are found, and without topics.
        """
        memory, name = self._open(request)
        text = request.query_params.get("text", "")[:1_000].strip()
        since, until = (request.query_params.get(name) for name in ("since", "until"))
        if text and not (since or until or self._has_index(memory, name)):
            return send([show_message(m) for m in _find_words(memory, fold(text))])
        found = memory.search(text, since, until, _FOUND) if text else []
        return send(
            [show_message(h.message, h.topic, relevance=h.fits * h.relevance) for h in found]
        )

    def show_receipt(self, request: Request) -> Response:
        """The receipt of the turn that answered a message, or null."""
        memory, _ = self._open(request)
        receipt = find_receipt(memory, request.path_params["message"])
        if receipt is None:
            return send(None)
        return send(self._explain(memory, receipt))

    def show_grounds(self, request: Request) -> Response:
        """A message, what was replied to it, and the sentences that the reply rests on."""
        memory, _ = self._open(request)
        asked, count = memory.quote(request.path_params["message"]), memory.session().count
        last = asked.seq + _REPLIES
        later = memory.history(f"m{last + 1}" if last < count else None, _REPLIES)
        after = takewhile(lambda m: m.role != "user", (m for m in later if m.seq > asked.seq))
        reply = next((m for m in [*after][::-1] if m.role == "assistant"), None)
        receipt, found = find_receipt(memory, asked.id), list[Ground]()
        if receipt and reply:
            written = next((c.model for c in receipt.calls[::-1] if c.role == "responder"), "")
            found = find_grounds(
                asked.text,
                reply.text,
                list_shown(memory, receipt, asked),
                self._graph.builder.deps.embedder,
                only_quotes=written == "embedded",
            )
        find_topic = self._find_topics(memory)
        return send(
            ShownTurn(
                asked=show_message(asked, find_topic(asked.seq) or ""),
                reply=reply and show_message(reply, find_topic(reply.seq) or ""),
                grounds=tuple(show_ground(g, find_topic(g.message.seq) or "") for g in found),
            )
        )

    def _explain(self, memory: Memory, receipt: Receipt) -> ShownReceipt:
        """A receipt with what each of its calls cost, and its topics as they were then."""
        deps = self._graph.builder.deps
        costs = tuple(price_call(call, deps.settings.prices) for call in receipt.calls)
        store, session = self._read(memory)
        then = store.topic_table(session.model_copy(update={"roster": receipt.roster})).topics
        named = {*receipt.scores, *receipt.activated, *receipt.deactivated, *receipt.split}
        named |= {*receipt.about, *(note.topic for note in receipt.quoted)}
        topics = {
            i: TopicThen(name=t.name, count=t.count, fill=round(t.tokens / deps.rooms.topic, 4))
            for i, t in then.items()
            if i in named
        }
        return ShownReceipt(**receipt.model_dump(), costs=costs, topics=topics)

    def explain_absence(self, request: Request) -> Response:
        """Why a turn did not quote a message."""
        memory, _ = self._open(request)
        asked = request.path_params
        return send(memory.why_not(_read_count(asked["turn"], "turn"), asked["message"]))

    def make_case(self, request: Request) -> Response:
        """A file that `topicloom eval memory` asks the question of a turn from."""
        memory, name = self._open(request)
        asked = request.path_params
        turn = _read_count(asked["turn"], "turn")
        number = memory.session().turn - turn + 1
        receipts = [r for r in memory.receipts(max(1, number)) if r.turn == turn]
        if not receipts:
            raise HTTPException(404, "there is no such turn")
        question = memory.quote(receipts[-1].user)
        before = memory.history(before=question.id, limit=None)
        case = make_case(name, before, question.text, memory.quote(asked["message"]).id)
        return _attach(f"{case.model_dump_json()}\n", "case.jsonl")

    def list_marks(self, request: Request) -> Response:
        """What the newest turns quoted, woke and split."""
        memory, _ = self._open(request)
        store, session = self._read(memory)
        days = dict(enumerate(store.message_days(session), start=1))
        return send([_mark(receipt, days) for receipt in memory.receipts(_MARKS)])

    def list_moments(self, request: Request) -> Response:
        """The points in time that the session can be shown at."""
        _, name = self._open(request)
        return send(list_moments(self._graph, name_thread(name)))

    def show_prompt(self, request: Request) -> Response:
        """The prompt of the newest turn that answered, message by message."""
        memory, _ = self._open(request)
        return send([PromptMessage(role=m.type, text=get_text(m)) for m in memory.prompt()])

    def list_changes(self, request: Request) -> Response:
        """What people and reviews changed, the newest first."""
        memory, _ = self._open(request)
        return send(memory.changes()[::-1][:_PAGE])

    def list_facts(self, request: Request) -> Response:
        """What is kept of the user."""
        memory, _ = self._open(request)
        return send(memory.facts())

    def show_person(self, request: Request) -> Response:
        """The user whose session it is: the user's threads that it may see, and facts by spans."""
        memory, _ = self._open(request)
        session = memory.session()
        kept, user = self._graph.store, session.user_id
        threads = ReflectionStore(kept).threads(user) if kept is not None and user else {}
        seen = {name: p.scope for name, p in threads.items() if sees(session.scope, p.scope)}
        spans = tuple(
            ShownSpan.model_validate({"key": span.key, **span.value})
            for span in memory.fact_spans()
        )
        return send(ShownPerson(user=user, scope=session.scope, threads=seen, spans=spans))

    def replay_turns(self, request: Request) -> Response:
        """What other thresholds of activation would have done in the newest turns."""
        memory, _ = self._open(request)
        in_force = self._graph.builder.deps.settings.activation
        asked = {name: v for name, v in request.query_params.items() if name != "at"}
        policy = ActivationPolicy.model_validate({**in_force.model_dump(), **asked})
        receipts = memory.receipts(_REPLAYED)
        return send(
            Replays(
                in_force=(in_force, replay_activation(receipts, in_force)),
                policy=(policy, replay_activation(receipts, policy)),
            )
        )

    def write_session(self, request: Request) -> Response:
        """A page by itself of what was said, to take along."""
        memory, name = self._open(request)
        said = memory.history(limit=None)
        hide = request.query_params.get("hide") == "1"
        return _attach(self._write_page(name, said, hide), "session.html")

    def _has_index(self, memory: Memory, name: str) -> bool:
        """True if the index of a session was made, or is within a moment from now."""
        if name not in self._indexing:
            making = Thread(target=_make_index, args=(memory,), daemon=True)
            making.start()  # first: another request may wait for it at once
            self._indexing[name] = making
        self._indexing[name].join(_MOMENT)
        return not self._indexing[name].is_alive()

    def _open(self, request: Request) -> tuple[Memory, str]:
        """The session that is asked for, at the point in time that is."""
        config = self._find_config(request)
        return Memory.of(self._graph, config), config["configurable"]["thread_id"]

    def _read(self, memory: Memory) -> tuple[SessionStore, Session]:
        """The store of a session that is open."""
        session = memory.session()
        return self._graph.builder.workspaces.open(session.id, self._graph.store).store, session

    def _find_topics(self, memory: Memory) -> Callable[[int], str | None]:
        """Tells the topic of a message by its number."""
        store, session = self._read(memory)
        return store.ranges(session).topic_of

    def _find_config(self, request: Request) -> RunnableConfig:
        name, at = request.path_params.get("session", self._first), request.query_params.get("at")
        if name != self._first and name not in self._names():
            raise HTTPException(404, "there is no such session")
        thread = name_thread(name)
        if at:
            thread["configurable"] |= {"checkpoint_id": at, "checkpoint_ns": ""}
            if self._graph.get_state(thread).created_at is None:  # LangGraph would begin anew
                raise HTTPException(
                    404,
                    FilledText("there is no moment {at!r} of session {name!r}", at=at, name=name),
                )
        return thread


def _find_owner(memory: Memory, session: Session) -> str:
    """The user whose session it is: as it is stored, else the first name that speaks for it."""
    before = f"m{_REPLIES}" if session.count >= _REPLIES else None
    names = (m.speaker for m in memory.history(before, _REPLIES) if m.role == "user" and m.speaker)
    return session.user_id or next(names, "")


def _make_index(memory: Memory) -> None:
    with suppress(TopicLoomError):  # whoever searches is told
        memory.search("a", limit=1)
    if memory.session().count > MANY:
        gc.freeze()  # or each full collection looks through the index, for a fifth of a second


def _find_words(memory: Memory, wanted: str) -> list[StoredMessage]:
    """The newest messages that have a folded text word for word."""
    found, before = list[StoredMessage](), None
    while len(found) < _FOUND and (said := memory.history(before, MANY)):
        found += [m for m in reversed(said) if wanted in fold(m.text)]
        before = said[0].id
    return found[:_FOUND]


def _mark(receipt: Receipt, days: Mapping[int, str]) -> TurnMark:
    """What a turn did, for a line over the days: the message that it answered, ids of topics,
    and how many messages of each topic were quoted."""
    return TurnMark(
        message=receipt.user,
        day=days.get(parse_message_number(receipt.user), ""),
        quoted={note.topic: len(note.quotes) for note in receipt.quoted if note.quotes},
        activated=receipt.activated,
        split=receipt.split,
        searched=bool(receipt.searches),
    )


def _read_limit(request: Request) -> int:
    return min(_PAGE, _read_count(request.query_params.get("limit", "50"), "limit"))


def _read_count(given: str, name: str) -> int:
    """A number that a request names, of nine digits at most; raises `InputError` for all else."""
    if not re.fullmatch(r"0*[1-9]\d{0,8}", given):
        raise InputError(
            "{name}={count!r} cannot be used: give a whole number, {least} or more",
            name=name,
            count=given,
            least=1,
        )
    return int(given)


def send(value: object) -> Response:
    """A value as JSON."""
    return Response(to_json(value), media_type="application/json")


def _attach(text: str, file: str) -> Response:
    """A file to keep."""
    headers = {"Content-Disposition": f'attachment; filename="{file}"'}
    return Response(text, media_type="application/octet-stream", headers=headers)
