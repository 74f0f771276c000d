"""Roles that need no model: search, extraction, quoting. They are what the fallbacks are, too."""

from __future__ import annotations

from topicloom.index.embedder import Embedder
from topicloom.roles.embedded.brief import EmbeddedBriefWriter
from topicloom.roles.embedded.merger import EmbeddedMerger
from topicloom.roles.embedded.planner import EmbeddedPlanner
from topicloom.roles.embedded.reader import EmbeddedReader
from topicloom.roles.embedded.reflector import EmbeddedReflector
from topicloom.roles.embedded.responder import EmbeddedResponder
from topicloom.roles.embedded.reviewer import EmbeddedReviewer
from topicloom.roles.embedded.router import EmbeddedRouter
from topicloom.roles.embedded.selector import EmbeddedSelector
from topicloom.roles.embedded.splitter import EmbeddedSplitter
from topicloom.roles.team import Fallback, Roles

__all__ = ["embedded_roles"]


def embedded_roles(embedder: Embedder) -> Roles:
    """All roles, embedded; they stand in for themselves."""
    fallback = Fallback(
        reader=EmbeddedReader(),
        splitter=EmbeddedSplitter(embedder),
        router=EmbeddedRouter(),
        brief=EmbeddedBriefWriter(embedder),
        reflector=EmbeddedReflector(),
        reviewer=EmbeddedReviewer(embedder),
        planner=EmbeddedPlanner(),
    )
    return Roles(
        responder=EmbeddedResponder(embedder),
        reader=fallback.reader,
        splitter=fallback.splitter,
        router=fallback.router,
        brief=fallback.brief,
        reflector=fallback.reflector,
        reviewer=fallback.reviewer,
        merger=EmbeddedMerger(),
        fallback=fallback,
        planner=fallback.planner,
        selector=EmbeddedSelector(),
    )
