"""Choosing who plays which role: chat models where they are given, embedded roles elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import get_args

from langchain_core.language_models import BaseChatModel

from topicloom.context.prefix import PrefixMeter
from topicloom.errors import ConfigurationError
from topicloom.roles.base import Arbiter, RoleName
from topicloom.roles.embedded.cross_encoder import CrossEncoderArbiter
from topicloom.roles.models import window_of
from topicloom.roles.team import Roles

Model = str | BaseChatModel

_STRONG: frozenset[RoleName] = frozenset({"responder", "splitter"})
"""Roles that want the strong model (spec 000, 14.5); the others do with the cheap one."""
_ONLY_IF_GIVEN: frozenset[RoleName] = frozenset({"rewriter", "arbiter"})
"""Roles that no model plays unless it is named for them."""
_RERANKER = "rerank:"
"""What the name of a cross-encoder begins with, which only the arbiter can be."""


@dataclass(frozen=True, slots=True)
class Models:
    """Chat models by role."""

    strong: Model | None = None
    """Replies and splits; None to leave them to the embedded roles."""
    cheap: Model | None = None
    """Reads, routes, writes briefs and reviews; None for the strong one."""
    by_role: Mapping[RoleName, Model] = field(default_factory=dict)
    """A model of its own for a role; `rewriter` and `arbiter` work only if given one."""

    def of(self, role: RoleName) -> Model | None:
        """The model of a role; None for the embedded one."""
        if role in self.by_role:
            return self.by_role[role]
        if role in _ONLY_IF_GIVEN:
            return None
        return self.strong if role in _STRONG or self.cheap is None else self.cheap

    @property
    def any(self) -> bool:
        """Whether there is any."""
        return bool(self.strong or self.cheap or self.by_role)

    def check(self) -> None:
        """Refuse roles that do not exist.

        Raises:
            ConfigurationError: Naming the role and those that there are.
        """
        known = get_args(RoleName)
        for role in self.by_role:
            if role not in known:
                raise ConfigurationError(f"no role {role!r}: there are {', '.join(known)}")


def choose_roles(
    models: Models,
    embedded: Roles,
    open_model: Callable[[Model], BaseChatModel],
    desk: Desk,
    *,
    domain: bool = False,
) -> Roles:
    """The roles, each played by its model or embedded.

    Args:
        models: Who is to play what.
        embedded: Play what nobody else does, and stand in.
        open_model: Opens a model.
        desk: What chat models work with.
        domain: Whether the application has a domain, in which somebody has to plan.
    """
    # The modules of chat models load a client library: only those who use one wait for it.
    from topicloom.roles import llm

    def chat(role: RoleName) -> llm.Chat | None:
        model = models.of(role)
        if model is None:
            return None
        opened = open_model(model)
        window = window_of(opened, desk.window) if role == "splitter" else desk.reader_window
        return llm.Chat.of(opened, desk.meter, window=window, deadline=desk.deadline)

    responder, splitter, reader = models.of("responder"), chat("splitter"), chat("reader")
    router, brief, reflector = chat("router"), chat("brief"), chat("reflector")
    reviewer, merger = chat("reviewer"), chat("merger")
    rewriter, reranker = chat("rewriter"), _reranker(models.of("arbiter"), desk)
    judge = None if reranker else chat("arbiter")
    planner = chat("planner") if domain else None
    selector = chat("selector") if domain else None
    return replace(
        embedded,
        responder=llm.LLMResponder(open_model(responder)) if responder else embedded.responder,
        splitter=llm.LLMSplitter(splitter) if splitter else embedded.splitter,
        reader=llm.LLMReader(reader) if reader else embedded.reader,
        router=llm.LLMRouter(router) if router else embedded.router,
        brief=llm.LLMBriefWriter(brief) if brief else embedded.brief,
        reflector=llm.LLMReflector(reflector) if reflector else embedded.reflector,
        reviewer=llm.LLMReviewer(reviewer) if reviewer else embedded.reviewer,
        merger=llm.LLMMerger(merger) if merger else embedded.merger,
        rewriter=llm.LLMRewriter(rewriter) if rewriter else embedded.rewriter,
        arbiter=llm.LLMArbiter(judge) if judge else reranker,
        planner=llm.LLMPlanner(planner) if planner else embedded.planner,
        selector=llm.LLMSelector(selector) if selector else embedded.selector,
    )


def _reranker(model: Model | None, desk: Desk) -> Arbiter | None:
    """The arbiter of a name such as `rerank:BAAI/bge-reranker-v2-m3`, or of a folder's."""
    if not (isinstance(model, str) and model.startswith(_RERANKER)):
        return None
    return CrossEncoderArbiter(model.removeprefix(_RERANKER), deadline=desk.deadline)


@dataclass(frozen=True, slots=True)
class Desk:
    """What chat models work with."""

    meter: PrefixMeter
    """Compares prompts."""
    window: int
    """Tokens of a window that no profile tells."""
    reader_window: int
    """Tokens of the cheap model's windows."""
    deadline: float
    """Seconds that an inner call may take."""
