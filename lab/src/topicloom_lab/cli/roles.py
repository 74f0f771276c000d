"""`topicloom eval roles`: how many real prompts of each role a model answers so that they parse.

A conversation is replayed with the embedded roles, in a session that has a domain, is reflected
upon and reviewed, and its questions are asked. What the roles are asked is kept, and put to the
chat-model form of each afterwards.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.constants import START
from langgraph.store.memory import InMemoryStore
from rich.table import Table

from topicloom import (
    RESPONDER,
    Answer,
    Domain,
    FileStorage,
    LocalRole,
    ReplyRequest,
    Role,
    RoleName,
    Settings,
    UnusableAnswerError,
    build_session_graph,
    default_embedder,
    embedded_roles,
    reflect_once,
    review_session,
)
from topicloom.lab import ROLES, Chat, PrefixMeter, spec_of
from topicloom.testing import ScriptedResponder, make_topic_search
from topicloom_app.cli.console import print_dim
from topicloom_app.recordings.conversations import Conversation
from topicloom_app.recordings.replay import RecordedResponder, cut_rounds, feed_round
from topicloom_lab.asking import Questioner
from topicloom_lab.cli.output import counting, make_table, open_figures, show_mean
from topicloom_lab.comparison.config import load_named
from topicloom_lab.opened import ModelOptions, OpenedModel, Row, Rows
from topicloom_lab.recorded_time import RecordedClock
from topicloom_lab.talk import document_of, lore_of_themes

T = TypeVar("T")

_PATIENCE = 60.0
"""Seconds that a turn waits for a curation: on any machine it comes in its own turn."""
_AT_A_TIME = 4
"""Prompts of a role, before those of the next."""
ASKED = tuple(role for role in ROLES if role not in ("responder", "arbiter"))
"""All but the one whose replies nobody parses, and the one that `eval arbiter` asks."""


def run_roles(
    files: Sequence[str],
    model: ModelOptions,
    settings: Settings,
    prompts: int,
    questions: int,
    conversations: int,
    out: Path | None,
    *,
    as_json: bool,
) -> None:
    """Collect prompts, put them to the model, and print what became of them by role.

    The arguments are the options of the command.

    Raises:
        ConfigurationError: If no such model can be opened, or the results are something else's.
        NotAConversationError: If a file holds something else.
        StorageUnavailableError: If a result cannot be written.
    """
    console = open_figures(as_json=as_json)
    windows = settings.model_dump(include={"window", "topic_window"})
    # Which request has a number follows from how many questions were asked before it.
    run = {"model": model.name, "questions": questions} | windows
    rows = Rows(out, run, {"questions": 20})
    opened, asked = model.open(), list[Row]()
    # What the roles are asked, by the conversation and which of its requests it is.
    requests: dict[RoleName, list[tuple[str, Any]]] = {role: [] for role in ASKED}
    recordings = list(load_named(files, conversations))
    with counting(console, "conversations", len(recordings)) as progress:
        for done, recording in enumerate(recordings, start=1):
            with tempfile.TemporaryDirectory() as folder:
                given = Path(folder), settings, questions
                for role, found in collect_requests(recording, *given).items():
                    named = ((f"{recording.id} {role} {n}", r) for n, r in enumerate(found))
                    requests[role] += named
            progress(done)
    chosen = {role: spread(requests[role], prompts) for role in ASKED}
    # Some of each role at a time: a run may take hours, and says something of all roles soon.
    for begin in range(0, prompts, _AT_A_TIME):
        for role, kept in chosen.items():
            cases = dict(kept[begin : begin + _AT_A_TIME])
            makers = [partial(ask_role, role, r, opened, settings) for r in cases.values()]
            asked += rows.complete(list(cases), makers, console, role)
        sizes = "/".join(f"{window:,}" for window in windows.values())
        console.print(table(asked, f"{model.name}, windows {sizes}"))
    if out is not None:
        print_dim(console, f"Prompts, answers and failures: {out}")


def table(rows: Sequence[Row], title: str) -> Table:
    """What became of the prompts, by role."""
    lines = []
    for role in dict.fromkeys(row["role"] for row in rows):
        group = [row for row in rows if row["role"] == role]
        first = [row["calls"][0] for row in group if row["calls"]]
        counts = (
            len(group),
            sum(row["parsed"] for row in group),
            sum(len(row["calls"]) > 1 for row in group),
            sum(bool(row["failure"]) for row in group),
            sum(bool(row["remarks"]) for row in group),
            sum(call["finish"] == "length" for call in first),
        )
        means = (show_mean(first, key) for key in ("read", "cached", "written", "seconds"))
        lines.append((role, *map(str, counts), *means))
    heads = ("prompts", "parsed at once", "asked again", "failed", "remarks", "cut off")
    return make_table(
        title,
        ("role", *heads, "tokens read", "cached", "written", "seconds"),
        lines,
        "Tokens and seconds are means of the first request of each prompt.",
    )


@dataclass(slots=True)
class _Noted(LocalRole[Any, Any]):
    """A role whose requests are kept."""

    plays: Role[Any, Any] | None
    requests: list[Any] = field(default_factory=list)

    @property
    def by_index(self) -> bool:
        """True if the role that plays works from the index."""
        return bool(getattr(self.plays, "by_index", False))

    def call(self, request: Any) -> Answer[Any]:
        """The answer of the role that plays; raises `UnusableAnswerError` if none does."""
        self.requests.append(request)
        if self.plays is None:
            raise UnusableAnswerError("only a chat model plays this role")
        return self.plays.call(request)


class _Searching(ScriptedResponder):
    """A main model that looks for a topic before it answers, as it does with `activate_topic`."""

    def stream(self, request: ReplyRequest) -> Iterator[AIMessageChunk]:
        """Search first, then say a word."""
        again = bool(self.requests)
        said = list(super().stream(request))
        yield from said if again or not request.tools else make_topic_search(request.query)


def collect_requests(
    conversation: Conversation, folder: Path, settings: Settings, questions: int
) -> dict[RoleName, list[Any]]:
    """Everything that the roles are asked while a conversation is fed, and then asked about.

    It is reflected upon whenever that is due, and reviewed at the end.

    Args:
        conversation: The recording; its clock is the graph's.
        folder: The storage of the session.
        settings: The windows.
        questions: Questions of the recording that are asked, evenly spread, each with a search.
    """
    oracle, saver, storage = _Searching(), InMemorySaver(), FileStorage(folder, fsync=False)
    recorded = RecordedResponder(oracle)
    roles = embedded_roles(default_embedder()).replace(RESPONDER, recorded)
    notes = {name: _Noted(roles.get(spec_of(name))) for name in ASKED}
    for name, noted in notes.items():
        roles = roles.replace(spec_of(name), noted)
    clock = RecordedClock.of(conversation.messages)
    given: Any = {"settings": settings, "roles": roles, "storage": storage, "clock": clock}
    domain = Domain(lore=lore_of_themes(1), deadline=_PATIENCE)
    graph = build_session_graph(**given, domain=domain).compile(checkpointer=saver)
    config: RunnableConfig = {"configurable": {"thread_id": conversation.id}}
    graph.update_state(config, {"document": document_of(20, 3)}, as_node=START)
    reflect = partial(reflect_once, conversation.id, checkpointer=saver, store=InMemoryStore())
    for round_ in cut_rounds(conversation):
        clock.now = clock.after(round_.said)
        feed_round(graph, recorded, round_, config)
        reflect(storage=storage, roles=roles, clock=clock)
    questioner = Questioner(graph, config, storage, oracle)
    for question in spread(conversation.questions, questions):
        questioner.ask(question.question)
    review_session(graph, config, dry_run=True)
    return {role: noted.requests for role, noted in notes.items()}


def spread(items: Sequence[T], count: int) -> list[T]:
    """At most so many of some items, evenly spread, in order."""
    if len(items) <= count:
        return list(items)
    return [items[(2 * n + 1) * len(items) // (2 * count)] for n in range(count)]


def ask_role(role: RoleName, request: Any, opened: OpenedModel, settings: Settings) -> Row:
    """Put a request to a model, by the role's own prompt and parser; what happened, as a row.

    `parsed` is true for an answer that was taken as it came: nothing failed or was asked again.
    """
    spec = spec_of(role)
    window = settings.window if spec.model == "strong" else settings.topic_window

    def ask(model: BaseChatModel) -> Answer[Any]:
        # A player of its own: what a reader remembers of former prompts does not matter here.
        player: Role[Any, Any] = spec.chat(Chat.of(model, PrefixMeter(), window=window))
        return player.call(request)

    answer, row = opened.attempt(ask)
    return {
        "role": role,
        "parsed": len(row["calls"]) == 1 and not row["failure"],
        "remarks": answer.remarks if answer else (),
        "value": repr(answer.value) if answer else "",
        **row,
    }
