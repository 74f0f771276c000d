"""A LangChain `VectorStore` as the last fallback of the index window.

It answers as a router does, so that its failures are caught and reported like those of all roles.
It only names topics: their messages are read and quoted from the session's own storage.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore

from topicloom.effects import Step, either
from topicloom.roles.base import Answer, Usage
from topicloom.roles.calls import Stepwise
from topicloom.roles.router import Route

_HITS = 8
"""Documents that a search asks for."""
_WORTH = (0.7, 0.5, 0.3)
"""Relevance of the topics that are found, by their place. Scores are not looked at: they mean
something else in every store, and the reader says how relevant a topic is."""


@dataclass(frozen=True, slots=True)
class ArchiveQuery:
    """A search through archived topics."""

    session: str
    text: str
    refs: Mapping[str, Collection[str]]
    """Refs of the messages of each topic that may be found, by its id."""


class SessionFilter(dict[str, str]):
    """The filter for a session's documents: a mapping, or a function over documents or metadata."""

    def __init__(self, session: str) -> None:
        super().__init__(session=session)

    def __call__(self, found: Document | Mapping[str, object]) -> bool:
        """True if a document, or its metadata, is of the session."""
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
        store, own = self.store, SessionFilter(request.session)
        found = yield from either(
            lambda: store.similarity_search(request.text, _HITS, filter=own),
            lambda: store.asimilarity_search(request.text, _HITS, filter=own),
        )
        relevance = dict(zip(extract_topics(request, found), _WORTH, strict=False))
        return Answer(Route(relevance), Usage(self.model, 0, 0))


def extract_topics(request: ArchiveQuery, found: Iterable[Document]) -> list[str]:
    """The topics of some documents, best first, each once.

    A store may give what was not asked for: documents of other sessions, of topics that are not
    archived any more, or of another branch of this session. These are dropped.
    """
    own = SessionFilter(request.session)
    found_in = [(d.metadata.get("topic"), d.metadata.get("ref")) for d in found if own(d)]
    topics = [t for t, ref in found_in if isinstance(t, str) and ref in request.refs.get(t, ())]
    return list(dict.fromkeys(topics))
