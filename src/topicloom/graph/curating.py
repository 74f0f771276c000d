"""The curation of a domain: its shelf of lore, its curator and its node."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock
from langchain_core.runnables import Runnable
from langchain_core.vectorstores import VectorStore
from pydantic import ValidationError

from topicloom.context.domain import Domain
from topicloom.domain.selector import SELECTOR, EmbeddedSelector
from topicloom.errors import ConfigurationError
from topicloom.index.embedder import Embedder
from topicloom.nodes.curate import curate
from topicloom.nodes.curator import Curator
from topicloom.nodes.deps import Deps
from topicloom.perception.sources.lore import Shelf
from topicloom.perception.sources.shelves import DocumentShelf, StoreShelf
from topicloom.state.curation import CurationPolicy
from topicloom.storage.file_rows import vectors_in
from topicloom.storage.names import safe_name
from topicloom.storage.vectors import VectorLog


def curation_node(domain: Domain, deps: Deps) -> Runnable[Any, Any]:
    """The node that looks for what else is worth knowing.

    Args:
        domain: Says where to look, and for how long.
        deps: Of the session graph.

    Raises:
        ConfigurationError: If the domain's numbers make no sense, or two documents of its lore have
            the same id.
    """
    shelf = _shelf(domain, deps.settings.folder, deps.embedder)
    curator = Curator(deps.roles.get(SELECTOR) or EmbeddedSelector(), _policy(domain), shelf)
    return curate(
        workspaces=deps.workspaces,
        window=deps.window,
        curator=curator,
        lore=shelf,
        events=domain.events,
    )


def _policy(domain: Domain) -> CurationPolicy:
    try:
        return CurationPolicy(
            deadline=domain.deadline, candidates=domain.candidates, picks=domain.picks
        )
    except ValidationError as error:
        wrong = "; ".join(f"{e['loc'][0]}={e['input']!r}: {e['msg']}" for e in error.errors())
        raise ConfigurationError(f"domain: {wrong}") from error


def _shelf(domain: Domain, folder: Path | None, embedder: Embedder) -> Shelf | None:
    if isinstance(domain.lore, VectorStore):
        return StoreShelf(domain.lore)
    vectors = _kept_in(folder, embedder) if folder is not None else None
    return DocumentShelf(domain.lore, embedder, vectors) if domain.lore else None


def _kept_in(folder: Path, embedder: Embedder) -> VectorLog:
    """Vectors of lore in a folder, beside the sessions."""

    @contextmanager
    def writing() -> Iterator[None]:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / ".lore"):
            yield

    return vectors_in(folder / f"lore-{safe_name(embedder.fingerprint)}.bin", writing)
