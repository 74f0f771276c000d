"""The review graph: it reads a session, judges its topics, and changes it by one turn."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import datetime
from typing import Any, Unpack, cast

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import RetryPolicy, Send

from topicloom.effects import Step, both, either
from topicloom.errors import InputError, MissingThreadError
from topicloom.graph.deps import make_deps
from topicloom.graph.parts import GraphParts, MemoryOptions
from topicloom.memory.stored import find_deps, make_review_thread
from topicloom.nodes.deps import Deps
from topicloom.nodes.runs import name_thread
from topicloom.review.apply import apply, index_archived, judge
from topicloom.review.archive_index import ArchiveIndexer
from topicloom.review.channels import (
    AssessTask,
    ReviewInput,
    ReviewReport,
    ReviewState,
    build_report,
)
from topicloom.review.decisions import TopicStats
from topicloom.review.match import match_topics
from topicloom.review.repair import repair
from topicloom.review.session_client import ReviewDeps, SessionApp, SessionClient
from topicloom.review.survey import assess, survey

ReviewGraph = StateGraph[ReviewState, None, ReviewInput, ReviewState]


class ReviewOptions(MemoryOptions, total=False):
    """What a review is made of: `MemoryOptions`, and this. Each part is the session graph's if not
    given, but an `archive_index` has to be given if the session graph has one.
    """

    hold: Callable[[str], AbstractContextManager[Any]]
    """Holds a session while it is changed, such as `storage.lock`; nothing if not given, for
    applications that see to it that a session has one turn at a time."""


def build_review_graph(graph: SessionApp, **options: Unpack[ReviewOptions]) -> ReviewGraph:
    """A review of a session as an uncompiled graph.

    It reads and judges without holding the session, which may take its turns meanwhile. First it
    puts right what is filed wrong, and at its end it makes its changes, each by a turn of the
    session graph without a message; changes that do not fit any more are left out. Compiled with a
    checkpointer, under a thread of its own, a review that was killed goes on where it stopped.

    Args:
        graph: The compiled session graph.
        options: See `ReviewOptions`.

    Raises:
        ConfigurationError: If a model cannot be opened or a setting cannot be used.
    """
    deps = ReviewDeps(
        SessionClient(graph, options.get("hold", nullcontext)), _make_shared(graph, options)
    )
    index = options.get("archive_index")
    seconds = deps.shared.settings.role_seconds
    return _wire(deps, ArchiveIndexer(index, seconds) if index is not None else None)


def _make_shared(graph: SessionApp, options: ReviewOptions) -> Deps:
    """What the graph was built with, but for what the options say."""
    parts = GraphParts(**_without_hold(options))
    try:
        own = find_deps(graph)
    except InputError:  # of a graph around a session's, nothing is known
        own = make_deps(GraphParts(settings=parts.settings))
    settings = parts.settings or own.settings
    if not (parts.settings or parts.model or parts.cheap_model or parts.role_models):
        # The graph's own roles are kept, with the models that play them.
        unnamed: dict[str, object] = {"model": None, "cheap_model": None, "role_models": {}}
        settings = settings.model_copy(update=unnamed)
    made = make_deps(
        replace(
            parts,
            settings=settings,
            storage=parts.storage or own.workspaces.storage or "store",
            clock=parts.clock or own.clock,
            counter=parts.counter or own.window.counter,
            embedder=parts.embedder or own.embedder,
        ),
        others=own.roles,
    )
    if parts.storage or parts.embedder:
        return made
    return replace(made, workspaces=own.workspaces)


def _without_hold(options: ReviewOptions) -> MemoryOptions:
    given = dict(options)
    given.pop("hold", None)
    return cast("MemoryOptions", given)


def _wire(deps: ReviewDeps, indexer: ArchiveIndexer | None) -> ReviewGraph:
    graph: ReviewGraph = StateGraph(ReviewState, input_schema=ReviewInput)
    graph.set_node_defaults(
        retry_policy=RetryPolicy(max_attempts=2, initial_interval=0.1, retry_on=OSError)
    )
    steps: dict[str, Runnable[Any, Any]] = {
        "repair": repair(deps),
        "survey": survey(deps),
        "match": match_topics(deps),
        "judge": judge(deps),
        "apply": apply(deps),
    }
    if indexer is not None:
        steps["hand_over"] = index_archived(deps, indexer)
    for name, step in steps.items():
        graph.add_node(name, step)
    graph.add_node("assess", assess(deps), input_schema=AssessTask)
    last = "hand_over" if indexer is not None else END
    graph.add_edge(START, "repair")
    graph.add_edge("repair", "survey")
    graph.add_conditional_edges("survey", _route_due, ["assess", "match"])
    graph.add_edge("assess", "match")
    graph.add_edge("match", "judge")
    graph.add_conditional_edges(
        "judge", _route_after_judge, {"apply": "apply", "last": last, END: END}
    )
    graph.add_edge("apply", last)
    if indexer is not None:
        graph.add_edge("hand_over", END)
    return graph


def _route_due(state: ReviewState) -> list[Send] | str:
    uses = {stats.topic: stats.uses for stats in map(TopicStats.model_validate, state["looks"])}
    session = state["session"]
    tasks = [AssessTask(session=session, topic=t, uses=uses[t]) for t in state["due"]]
    return [Send("assess", task) for task in tasks] or "match"


def _route_after_judge(state: ReviewState) -> str:
    if state["dry_run"]:
        return END
    return "apply" if state["changes"] else "last"


def _review_session(
    graph: SessionApp,
    config: RunnableConfig,
    *,
    dry_run: bool = False,
    now: datetime | None = None,
    checkpointer: BaseCheckpointSaver[Any] | None = None,
    **options: Unpack[ReviewOptions],
) -> Step[ReviewReport]:
    """Review a session: put right what is filed wrong, sum topics up, archive what is over, merge.

    Args:
        graph: The compiled session graph.
        config: Names the session's thread.
        dry_run: True to change nothing.
        now: The time to go by, with its zone; that of the clock if not given.
        checkpointer: Keeps a review that is killed, for the next call to finish, but for dry runs;
            the session's own will do.
        options: See `ReviewOptions`.

    Raises:
        ConfigurationError: If a model cannot be opened or a setting cannot be used.
        SessionBusyError: If the session is held by another when it is to be changed.
    """
    thread = _get_thread(config)
    checkpointer = None if dry_run else checkpointer
    app = build_review_graph(graph, **options).compile(checkpointer=checkpointer)
    given: ReviewInput | None
    given = {"thread": thread, "dry_run": dry_run, "now": now.isoformat() if now else ""}
    name = make_review_thread(thread)
    own = name_thread(name)
    if checkpointer is not None:
        snapshot = yield from either(lambda: app.get_state(own), lambda: app.aget_state(own))
        if snapshot.next and not snapshot.values.get("dry_run"):
            given = None
    state = yield from either(lambda: app.invoke(given, own), lambda: app.ainvoke(given, own))
    if checkpointer is not None:
        delete, adelete = checkpointer.delete_thread, checkpointer.adelete_thread
        yield from either(lambda: delete(name), lambda: adelete(name))
    return build_report(state)


review_session, areview_session = both(_review_session)


def _get_thread(config: RunnableConfig) -> str:
    thread = config.get("configurable", {}).get("thread_id")
    if thread in (None, ""):
        raise MissingThreadError(
            'a review needs a session: give config={"configurable": {"thread_id": "..."}}'
        )
    return str(thread)
