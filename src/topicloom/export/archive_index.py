"""A LangChain `VectorStore` as the last fallback of the index window (spec 000, section 17).

It plays the router's part, so that its failures are caught where those of all roles are, and stand
in receipts and reports. What it says is a lead and nothing more: it names topics, whose messages
are read and quoted from the session's own storage.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore

from topicloom.effects import Step, either
from topicloom.export.documents import Shelf, differing, ids_of
from topicloom.roles.base import Answer, Usage
from topicloom.roles.calls import Stepwise
from topicloom.roles.router import Route
from topicloom.state.topics import Topic
from topicloom.storage.sessions import SessionStore

_HITS = 8
"""Documents that a search asks for."""
_WORTH = (0.7, 0.5, 0.3)
"""Relevance of the topics that are found, by their place: from clear to faint (spec 000, 4.2).
Scores are not looked at, for they mean something else in every store; whoever reads the topics
says how relevant they are."""


@dataclass(frozen=True, slots=True)
class ArchiveQuery:
    """A search through archived topics."""

    session: str
    """The thread."""
    text: str
    """What to look for."""
    refs: Mapping[str, Collection[str]]
    """Refs of the messages of each topic that may be found, by its id."""


class OfSession(dict[str, str]):
    """The filter for the documents of a session.

    Most stores take metadata as a mapping, some a function over documents or over metadata: this
    is all of these.
    """

    def __init__(self, session: str) -> None:
        super().__init__(session=session)

    def __call__(self, found: Document | Mapping[str, object]) -> bool:
        """Whether a document, or its metadata, is of the session."""
        metadata = found.metadata if isinstance(found, Document) else found
        return metadata.get("session") == self["session"]


@dataclass(frozen=True, slots=True)
class ArchiveSearch(Stepwise[ArchiveQuery, Route]):
    """Finds archived topics of a session: a `Role[ArchiveQuery, Route]`."""

    store: VectorStore
    deadline: float | None

    @property
    def model(self) -> str:
        """Name of the store's class, for receipts."""
        return type(self.store).__name__

    def step(self, request: ArchiveQuery) -> Step[Answer[Route]]:
        """Search."""
        store, own = self.store, OfSession(request.session)
        found = yield from either(
            lambda: store.similarity_search(request.text, _HITS, filter=own),
            lambda: store.asimilarity_search(request.text, _HITS, filter=own),
        )
        relevance = dict(zip(topics_in(request, found), _WORTH, strict=False))
        return Answer(Route(relevance), Usage(self.model, 0, 0))


def topics_in(request: ArchiveQuery, found: Iterable[Document]) -> list[str]:
    """The topics that documents lead to, best first, each once.

    A store may give what was not asked for: documents of other sessions, of topics that are not
    archived any more, or of another branch of this session. These lead nowhere.
    """
    own = OfSession(request.session)
    led = [d.metadata.get("topic") for d in found if own(d) and _stands(d, request)]
    return [topic for topic in dict.fromkeys(led) if isinstance(topic, str)]


def _stands(document: Document, request: ArchiveQuery) -> bool:
    topic, ref = (document.metadata.get(key) for key in ("topic", "ref"))
    return isinstance(topic, str) and ref in request.refs.get(topic, ())


@dataclass(frozen=True, slots=True)
class ArchiveKeeper(Stepwise[Shelf, Route]):
    """Has a store hold what it should of a topic: a `Role[Shelf, Route]`.

    Done again, it adds nothing twice. The route that it answers with names the topic if anything
    had to be changed.
    """

    store: VectorStore
    deadline: float | None

    @property
    def model(self) -> str:
        """Name of the store's class, for reports."""
        return type(self.store).__name__

    def step(self, request: Shelf) -> Step[Answer[Route]]:
        """Add what is missing and remove what should not be there."""
        store = self.store
        try:
            there = yield from either(
                lambda: store.get_by_ids(request.ids), lambda: store.aget_by_ids(request.ids)
            )
        except NotImplementedError:
            there = _anything(request)
        stale, fresh = differing(request, there)
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
    """Remove everything that was handed over of some topics, as after a purge.

    The next review hands over what is left of them. What the vector store raises is passed on.

    Args:
        index: The vector store.
        store: The session's storage.
        session: The thread.
        topics: Ids of the topics.
    """
    keeper = ArchiveKeeper(index, None)
    for topic in topics:
        keeper.call(Shelf(topic, (), ids_of(store, session, Topic(id=topic, name=""))))


def _anything(shelf: Shelf) -> list[Document]:
    """What a store that does not tell what it holds is taken to hold: all of it, outdated."""
    return [Document(id=i, page_content="") for i in shelf.ids]
