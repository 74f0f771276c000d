"""A topic as documents of a vector store: a document for each round, and one for its summary.

Their ids follow from the refs of its chain, so they are still known once its words are purged.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from uuid import NAMESPACE_URL, uuid5

from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore

from topicloom.effects import Step, either
from topicloom.roles.base import Answer, Usage
from topicloom.roles.calls import Stepwise
from topicloom.roles.router import Route
from topicloom.state.rounds import Round, group_rounds
from topicloom.state.stored_message import REMOVED
from topicloom.state.topics import Topic
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


def build_topic_documents(store: SessionStore, session: str, topic: Topic) -> TopicDocuments:
    """The documents that a vector store should hold of a topic: none unless it is archived.

    Raises:
        StorageError: A message cannot be read.
    """
    archived = topic.status == "archived" and topic.head is not None
    documents = _build_documents(store, session, topic) if archived else []
    return TopicDocuments(topic.id, documents, list_document_ids(store, session, topic))


def list_document_ids(store: SessionStore, session: str, topic: Topic) -> list[str]:
    return [_make_id(session, topic, r) for r in (_SUMMARY, *store.log.entries(topic.chain))]


def _build_documents(store: SessionStore, session: str, topic: Topic) -> list[Document]:
    messages = store.topic_messages(topic)
    refs = dict(zip((r.id for r in messages), store.log.refs(topic.chain, topic.head), strict=True))
    rounds = group_rounds(messages)
    parts = [(_SUMMARY, rounds, f"{topic.name}\n{topic.summary or topic.brief}")]
    parts += [(refs[b.ids[-1]], [b], _format_round(b)) for b in rounds]
    return [
        Document(
            id=_make_id(session, topic, key),
            page_content=text[:_LONGEST].strip(),
            metadata=_build_metadata(session, topic, held, refs[held[-1].ids[-1]]),
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


def _make_id(session: str, topic: Topic, ref: str) -> str:
    # As JSON, which is ASCII: a name may hold what UTF-8 cannot.
    return str(uuid5(_OURS, json.dumps([session, topic.chain, ref])))


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
    indexer = ArchiveIndexer(index, None)
    for topic in topics:
        ids = list_document_ids(store, session, Topic(id=topic, name=""))
        indexer.call(TopicDocuments(topic, (), ids))
