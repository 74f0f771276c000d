"""A topic as documents of a vector store: a document for each round, and one for its summary.

Their ids follow from refs in the transcript, so they are still known once its words are purged.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from uuid import NAMESPACE_URL, uuid5

from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore

from topicloom.effects import Step, either
from topicloom.errors import StorageError
from topicloom.roles.base import Answer, Usage
from topicloom.roles.calls import Stepwise
from topicloom.roles.router import Route
from topicloom.state.rounds import Round, group_rounds
from topicloom.state.session import Session
from topicloom.state.stored_message import REMOVED
from topicloom.state.topics import Topic
from topicloom.storage.purging import read_all_ranges
from topicloom.storage.sessions import SessionStore

_OURS = uuid5(NAMESPACE_URL, "topicloom")
_SUMMARY = "summary"
"""Stands for a ref in the id of the summary's document."""
_LONGEST = 4_000
"""Characters of a document. Embedding models take little more; the storage has all."""


@dataclass(frozen=True, slots=True)
class TopicDocuments:
    """The documents that a vector store should hold of a topic."""

    topic: str
    documents: Sequence[Document]
    ids: Sequence[str]
    """Ids of all documents that it may ever have had, in any branch of the session."""


def build_topic_documents(
    store: SessionStore, session: Session, topics: Iterable[Topic]
) -> Iterator[TopicDocuments | StorageError]:
    """The documents that a vector store should hold of topics: none of one that is not archived.

    Where a message cannot be read, the error stands for the topic.
    """
    ever = _collect_refs(store)
    for topic in topics:
        try:
            documents = _build_documents(store, session, topic)
        except StorageError as error:
            yield error
        else:
            yield TopicDocuments(topic.id, documents, _list_ids(session.id, topic.id, ever))


def _collect_refs(store: SessionStore) -> Mapping[str, set[str]]:
    """By topic, the refs of all messages that it ever had, on any branch."""
    ever: dict[str, set[str]] = {}
    for row, held in read_all_ranges(store.log):
        if not row.get("also"):
            ever.setdefault(row["topic"], set()).update(held)
    return ever


def _list_ids(session: str, topic: str, ever: Mapping[str, set[str]]) -> list[str]:
    return [_make_id(session, topic, ref) for ref in (_SUMMARY, *sorted(ever.get(topic, ())))]


def _build_documents(store: SessionStore, session: Session, topic: Topic) -> list[Document]:
    if topic.status != "archived" or not topic.count:
        return []
    refs = store.transcript_refs(session)
    rounds = group_rounds(store.topic_messages(session, topic))
    parts = [(_SUMMARY, rounds, f"{topic.name}\n{topic.summary or topic.brief}")]
    parts += [(refs[b.last - 1], [b], _format_round(b)) for b in rounds]
    return [
        Document(
            id=_make_id(session.id, topic.id, key),
            page_content=text[:_LONGEST].strip(),
            metadata=_build_metadata(session.id, topic, held, refs[held[-1].last - 1]),
        )
        for key, held, text in parts
        if text.strip()
    ]


def _build_metadata(
    session: str, topic: Topic, rounds: Sequence[Round], ref: str
) -> dict[str, str]:
    """The origin of a document, as plain text: not every store takes more."""
    times = sorted(r.time for b in rounds for r in b.messages)
    return {
        "session": session,
        "topic": topic.id,
        "messages": f"{rounds[0].ids[0]}-{rounds[-1].ids[-1]}",
        "first_at": times[0],
        "last_at": times[-1],
        "ref": ref,
    }


def _format_round(round_: Round) -> str:
    return "\n".join(r.line for r in round_.messages if r.text.strip() and r.text != REMOVED)


def _make_id(session: str, topic: str, ref: str) -> str:
    # As JSON, which is ASCII: a name may hold what UTF-8 cannot.
    return str(uuid5(_OURS, json.dumps([session, topic, ref])))


def diff_documents(
    wanted: TopicDocuments, present: Collection[Document]
) -> tuple[list[str], list[Document]]:
    """The ids to remove from a store and the documents to add; what has changed is in both."""
    texts = {d.id: d.page_content for d in wanted.documents}
    own = set(wanted.ids)
    held = {d.id: d.page_content for d in present if d.id is not None and d.id in own}
    stale = [i for i, text in held.items() if texts.get(i) != text]
    return stale, [d for d in wanted.documents if held.get(d.id or "") != d.page_content]


@dataclass(frozen=True, slots=True)
class ArchiveIndexer(Stepwise[TopicDocuments, Route]):
    """Makes a store hold a topic's documents; the route names the topic if anything was changed."""

    store: VectorStore
    deadline: float | None

    @property
    def model(self) -> str:
        return type(self.store).__name__

    def step(self, request: TopicDocuments) -> Step[Answer[Route]]:
        """Add what is missing and remove what should not be there."""
        store = self.store
        try:
            present = yield from either(
                lambda: store.get_by_ids(request.ids), lambda: store.aget_by_ids(request.ids)
            )
        except NotImplementedError:
            # The store does not tell what it holds: assume all of it, outdated.
            present = [Document(id=i, page_content="") for i in request.ids]
        stale, fresh = diff_documents(request, present)
        if stale:
            yield from either(lambda: store.delete(stale), lambda: store.adelete(stale))
        if fresh:
            yield from either(
                lambda: store.add_documents(fresh), lambda: store.aadd_documents(fresh)
            )
        changes = (f"{len(stale)} removed",) * bool(stale) + (f"{len(fresh)} added",) * bool(fresh)
        relevance = {request.topic: 1.0} if changes else {}
        return Answer(Route(relevance), Usage(self.model, 0, 0), changes)


def forget_topics(
    index: VectorStore, store: SessionStore, session: str, topics: Iterable[str]
) -> None:
    """Remove the documents of some topics, by their ids, from a vector store, as after a purge.

    The next review adds what is left of them. What the vector store raises is passed on.
    """
    indexer, ever = ArchiveIndexer(index, None), _collect_refs(store)
    for topic in topics:
        indexer.call(TopicDocuments(topic, (), _list_ids(session, topic, ever)))
