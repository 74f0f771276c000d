"""The choice of a model for each role: chat models where given, embedded roles elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable

from topicloom.context.prefix import PrefixMeter
from topicloom.prompts.loader import Prompts
from topicloom.roles.base import RoleName, RoleSpec
from topicloom.roles.chat import Chat
from topicloom.roles.models import get_window_size
from topicloom.roles.registry import ROLES, Roles, spec_of
from topicloom.roles.spending import Spending
from topicloom.search.embedder import Embedder

ModelSpec = str | Runnable[Any, Any]
EMBEDDED = "embedded"
"""In the place of a model: the role that needs none."""


@dataclass(frozen=True, slots=True)
class RoleModels:
    """Chat models by role."""

    strong: ModelSpec | None = None
    """Replies and splits; None to leave them to the embedded roles."""
    cheap: ModelSpec | None = None
    """Reads, routes, writes briefs and reviews; None for the strong one."""
    by_role: Mapping[RoleName, ModelSpec] = field(default_factory=dict)
    """A model of its own for a role; `arbiter` works only if given one."""

    def of(self, role: RoleName) -> ModelSpec | None:
        if role in self.by_role:
            own = self.by_role[role]
            return None if own == EMBEDDED else own
        spec = spec_of(role)
        if spec.played == "if named" or (spec.played == "with a cheap model" and not self.cheap):
            return None
        return self.strong if spec.model == "strong" or self.cheap is None else self.cheap


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """Windows, deadline and prompts of roles that chat models play."""

    meter: PrefixMeter
    window: int
    """Tokens of the strong model's window if its profile does not say."""
    reader_window: int
    """Tokens of the cheap model's windows at most."""
    deadline: float
    """Seconds that an inner call may take."""
    prompts: Prompts = field(default_factory=Prompts)
    reply_tokens: int | None = None
    """Tokens of a reply at most; None for what the model's client has set."""
    spending: Spending | None = None


def embedded_roles(embedder: Embedder) -> Roles:
    """All roles that need no model; they stand in for themselves."""
    specs = list(map(spec_of, ROLES))
    embedded = {spec.name: spec.embedded(embedder) for spec in specs if spec.embedded is not None}
    stand_ins = {s.name: embedded[s.name] for s in specs if s.name in embedded and not s.without}
    return Roles(embedded, stand_ins)


def choose_roles(
    models: RoleModels,
    embedded: Roles,
    open_model: Callable[[RoleName, ModelSpec], BaseChatModel],
    options: ChatOptions,
    *,
    domain: bool = False,
) -> Roles:
    """The roles, each played by its model or embedded; `domain` if the application has one."""
    roles = embedded
    for name in ROLES:
        model, spec = models.of(name), spec_of(name)
        if model is not None and (domain or spec.played != "with a domain"):
            roles = roles.replace(spec, _make_role(spec, model, open_model, options))
    return replace(roles, spending=options.spending)


def _make_role(
    spec: RoleSpec[Any],
    model: ModelSpec,
    open_model: Callable[[RoleName, ModelSpec], BaseChatModel],
    options: ChatOptions,
) -> Any:
    for prefix, make in spec.named.items():
        if isinstance(model, str) and model.startswith(prefix):
            return make(model.removeprefix(prefix), options.deadline)
    opened = open_model(spec.name, model)
    window = min(options.reader_window, get_window_size(opened, options.reader_window))
    if spec.model == "strong":
        window = get_window_size(opened, options.window)
    chat = Chat.of(
        opened,
        options.meter,
        window=window,
        deadline=options.deadline,
        prompts=options.prompts,
        answer=options.reply_tokens if spec.name == "responder" else spec.answer_tokens,
        spending=options.spending,
    )
    return spec.chat(chat)
