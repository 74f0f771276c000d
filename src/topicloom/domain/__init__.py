"""An application's own facts and background beside the conversation: its document, edits of it, and
the curation of what else to know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.documents import Document as LoreDocument
from langchain_core.vectorstores import VectorStore

from topicloom.domain.recall_source import RecallSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """The domain of an application, given to `build_session_graph(domain=...)`.

    Its facts come with the input, as `document`, and stay in the state.
    """

    schema: Mapping[str, Any] | None = None
    """JSON schema that the document has to fit, after every edit too. None to take the document
    itself as the pattern: known fields only, and values of the kind that is there."""
    templates: str | Path | None = None
    """A folder with templates of the skeleton, `<name>.jinja`; None for the one that ships."""
    events: str = "events"
    """The document's field that lists its events: tasks, quests, orders."""
    lore: Sequence[LoreDocument] | VectorStore = ()
    """Background to look things up in: documents, or a vector store that holds them. Metadata may
    have a `title`, by which documents refer to one another, and `tags`."""
    sources: Sequence[RecallSource] = ()
    """Sources of the application's own, each a class with a `search`: tickets, notes, a wiki."""
    deadline: float = 1.5
    """Seconds that a turn waits for what is looked up; what is late may serve a later turn."""
    candidates: int = 50
    """Candidates that are looked up for a turn."""
    picks: int = 5
    """Candidates of these that the main model is shown at most."""
