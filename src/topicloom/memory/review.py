"""Reviews: a session is read, its topics are judged, and what follows is done by one turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from langchain_core.runnables import RunnableConfig
from langchain_core.vectorstores import VectorStore

from topicloom.effects import Step, both, holding
from topicloom.errors import InputError, MissingThreadError, StorageError
from topicloom.memory.access import StorageAccess, open_access
from topicloom.memory.stored import Graph, find_deps, is_part
from topicloom.nodes.deps import Deps
from topicloom.nodes.regrouping import find_regroupings_of_review
from topicloom.nodes.runs import name_thread
from topicloom.review.archive_index import ArchiveIndexer, build_topic_documents
from topicloom.review.decisions import ReviewFindings, decide_changes
from topicloom.review.match import match_topics
from topicloom.review.report import ReviewReport
from topicloom.review.session_client import SessionClient
from topicloom.review.survey import SurveyedSession, collect_stats
from topicloom.roles.calls import ask_role
from topicloom.roles.registry import Roles
from topicloom.roles.splitter import SPLITTER
from topicloom.state.changes import TopicChange, describe_change
from topicloom.state.session import Session, Turn
from topicloom.storage.sessions import SessionStore
from topicloom.storage.writers import catch_up

_PATIENCE = 3
"""Failures of a vector store in a row after which the rest waits for the next review."""


def _review_session(
    graph: Graph,
    config: RunnableConfig,
    *,
    dry_run: bool = False,
    now: datetime | None = None,
    roles: Roles | None = None,
    archive_index: VectorStore | None = None,
    hold: Callable[[str], AbstractContextManager[Any]] = nullcontext,
) -> Step[ReviewReport]:
    """Review a session: put right what is filed wrong, sum topics up, archive what is over, merge.

    It reads and judges without holding the session, which may take its turns meanwhile. At its end
    it makes its changes by a turn without a message; those that do not fit any more are left out.
    Killed before that, it has changed nothing but what was filed wrong, and the next call does all
    of it.

    Args:
        graph: The compiled session graph, or an agent with `TopicMiddleware`.
        config: Names the session's thread.
        dry_run: True to change nothing.
        now: The time to go by, with its zone; that of the graph's clock if not given.
        roles: Who judges; the graph's own roles if not given.
        archive_index: Where archived topics are handed over to: what the graph was built with.
        hold: Holds a session while it is changed, such as `storage.lock`; nothing if not given, for
            applications that give a session one turn at a time.

    Raises:
        InputError: The graph is neither.
        MissingThreadError: The configuration names no thread.
        SessionBusyError: The session is held by another when it is to be changed.
        LimitReachedError: A daily limit is nearly used up; review it another day.
    """
    thread = _get_thread(config)
    if is_part(graph):
        raise InputError("this is no session graph: name the one within it")
    deps = find_deps(graph)
    deps = deps if roles is None else replace(deps, roles=roles)
    config = name_thread(thread)
    access = open_access(graph, config)
    client: SessionClient | _AgentClient = SessionClient(graph, hold)
    if isinstance(access, StorageAccess):
        client = _AgentClient(graph, access, deps, hold)
    review = _Review(client, deps, config, dry_run)
    with deps.telemetry.watch("topicloom.review", thread) as work:
        report = yield from review.make(now, archive_index)
        work.calls.extend(report.calls)
        work.attributes["topicloom.review.changed"] = report.changed
        work.attributes["topicloom.review.refused"] = len(report.refused)
        work.attributes["topicloom.review.dry_run"] = report.dry_run
    return report


review_session, areview_session = both(_review_session)


@dataclass(frozen=True, slots=True)
class _AgentClient:
    """The session of an agent, which takes no turn for a review: it is changed beside the agent."""

    graph: Graph
    access: StorageAccess
    deps: Deps
    hold: Callable[[str], AbstractContextManager[Any]]

    def read(self, config: RunnableConfig) -> Step[tuple[Session, bool]]:
        session, *_ = yield from self.access.open()
        return session, False

    def apply_changes(self, config: RunnableConfig, changes: Sequence[TopicChange]) -> Step[Turn]:
        return holding(self.hold(self.access.thread), self.access.change(changes))

    def regroup(self, config: RunnableConfig) -> Step[Turn]:
        session, *_ = yield from self.access.open()
        workspace = self.deps.workspaces.open(session.id, self.graph.store)
        changes = find_regroupings_of_review(self.deps, workspace, session)
        return (yield from self.apply_changes(config, changes))


@dataclass(frozen=True, slots=True)
class _Review:
    """A review, with its steps that read a session anew, or change it."""

    client: SessionClient | _AgentClient
    deps: Deps
    thread: RunnableConfig
    dry_run: bool

    def make(self, now: datetime | None, archive_index: VectorStore | None) -> Step[ReviewReport]:
        """Do all of it."""
        regrouped = yield from self.regroup()
        survey = yield from self.survey()
        now = now or survey.session.place(self.deps.clock())
        assessed = yield from survey.assess()
        pairs, near = yield from match_topics(survey, assessed)
        findings = ReviewFindings(
            looks=tuple(survey.stats.values()), assessed=assessed, pairs=tuple(pairs), near=near
        )
        table = survey.table
        changes = decide_changes(table, findings, now, self.deps.settings.review)
        told = tuple(describe_change(change, table) for change in changes)
        survey.troubles.extend(survey.store.new_reports())
        changed, refused = tuple[str, ...](), dict[str, str]()
        if changes and not self.dry_run:
            changed, refused = yield from self.apply(changes)
        if archive_index is not None and not self.dry_run:
            yield from self.fill_archive_index(archive_index, survey)
        return ReviewReport(
            session=survey.session.id,
            now=now.isoformat(),
            dry_run=self.dry_run,
            regrouped=regrouped,
            changes=tuple(changes),
            told=told,
            changed=changed,
            refused=refused,
            troubles=tuple(survey.troubles),
            calls=tuple(survey.calls),
        )

    def regroup(self) -> Step[tuple[str, ...]]:
        """Put right what is filed wrong; returns that in words.

        It does nothing where a chat model splits: that knows more than the index. What it finds is
        worked out again by the turn that makes the changes; so a turn of the user, or a person's
        change, that came between is never undone by them.
        """
        if not self.deps.roles.by_index(SPLITTER):
            return ()
        session, waiting = yield from self.client.read(self.thread)
        if waiting:
            return ()
        workspace = self.deps.workspaces.open(session.id, self.client.graph.store)
        session = catch_up(workspace.store, session)
        changes = find_regroupings_of_review(self.deps, workspace, session)
        if self.dry_run or not changes:
            table = workspace.store.topic_table(session)
            return tuple(describe_change(change, table) for change in changes)
        turn = yield from self.client.regroup(self.thread)
        return turn.events if turn else ()

    def survey(self) -> Step[SurveyedSession]:
        """The session as it is now."""
        session, store = yield from self._read()
        session = catch_up(store, session)
        self.deps.spending.open(session, self.client.graph.store)
        return SurveyedSession(self.deps, session, store, collect_stats(store, session))

    def apply(self, changes: list[TopicChange]) -> Step[tuple[tuple[str, ...], dict[str, str]]]:
        """Make changes; returns the topics that were changed, and why others were not."""
        turn = yield from self.client.apply_changes(self.thread, changes)
        if turn is None:
            return (), {c.topic: "a turn of the session is not finished" for c in changes}
        return turn.changed, dict(turn.refused)

    def fill_archive_index(self, index: VectorStore, survey: SurveyedSession) -> Step[None]:
        """Bring a vector store up to date: all archived topics, as a crash may have left some."""
        session, store = yield from self._read()
        indexer = ArchiveIndexer(index, self.deps.settings.role_seconds)
        topics = [t for t in store.topic_table(session) if t.archived]
        failures = 0
        made = build_topic_documents(store, session, topics)
        for topic, documents in zip(topics, made, strict=True):
            if isinstance(documents, StorageError):
                survey.troubles.append(f"{topic.id} was not handed over: {documents}")
                continue
            done, call = yield from ask_role("router", indexer, documents, topic.id)
            if done is None:
                trouble = f"{topic.id} was not handed over to {call.model}: {call.failure}"
                survey.troubles.append(trouble)
            if done is None or done.relevance:
                survey.calls.append(call)
            failures = failures + 1 if done is None else 0
            if failures == _PATIENCE:
                break

    def _read(self) -> Step[tuple[Session, SessionStore]]:
        session, _ = yield from self.client.read(self.thread)
        workspace = self.deps.workspaces.open(session.id, self.client.graph.store)
        return session, workspace.store


def _get_thread(config: RunnableConfig) -> str:
    thread = config.get("configurable", {}).get("thread_id")
    if thread in (None, ""):
        raise MissingThreadError(
            'a review needs a session: give config={"configurable": {"thread_id": "..."}}'
        )
    return str(thread)
