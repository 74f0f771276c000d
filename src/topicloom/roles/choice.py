"""Choosing who plays which role: chat models where they are given, embedded roles elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from langchain_core.language_models import BaseChatModel

from topicloom.context.prefix import PrefixMeter
from topicloom.index.embedder import Embedder
from topicloom.prompts.loader import Prompts
from topicloom.roles.base import RoleName, RoleSpec
from topicloom.roles.chat import Chat
from topicloom.roles.models import get_window_size
from topicloom.roles.registry import ROLES, Roles, check_names, spec_of

ModelSpec = str | BaseChatModel


@dataclass(frozen=True, slots=True)
class RoleModels:
    """Chat models by role."""

    strong: ModelSpec | None = None
    """Replies and splits; None to leave them to the embedded roles."""
    cheap: ModelSpec | None = None
    """Reads, routes, writes briefs and reviews; None for the strong one."""
    by_role: Mapping[RoleName, ModelSpec] = field(default_factory=dict)
    """A model of its own for a role; `rewriter` and `arbiter` work only if given one."""

    def of(self, role: RoleName) -> ModelSpec | None:
        """The model of a role; None for the embedded one."""
        if role in self.by_role:
            return self.by_role[role]
        spec = spec_of(role)
        if spec.played == "if named":
            return None
        return self.strong if spec.model == "strong" or self.cheap is None else self.cheap

    @property
    def any(self) -> bool:
        """True if there is any."""
        return bool(self.strong or self.cheap or self.by_role)

    def check(self) -> None:
        """Refuse roles that do not exist.

        Raises:
            ConfigurationError: Naming them and those that there are.
        """
        check_names(self.by_role)


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """Windows, deadline and prompts of roles that chat models play."""

    meter: PrefixMeter
    """Compares prompts."""
    window: int
    """Tokens of a window that no profile tells."""
    reader_window: int
    """Tokens of the cheap model's windows."""
    deadline: float
    """Seconds that an inner call may take."""
    prompts: Prompts = field(default_factory=Prompts)
    """The application's prompts."""


def embedded_roles(embedder: Embedder) -> Roles:
    """All roles that need no model; they stand in for themselves."""
    specs = [spec for spec in map(spec_of, ROLES) if spec.embedded is not None]
    players = {spec.name: spec.embedded(embedder) for spec in specs if spec.embedded is not None}
    return Roles(players, {spec.name: players[spec.name] for spec in specs if not spec.without})


def choose_roles(
    models: RoleModels,
    embedded: Roles,
    open_model: Callable[[ModelSpec], BaseChatModel],
    options: ChatOptions,
    *,
    domain: bool = False,
) -> Roles:
    """The roles, each played by its model or embedded.

    Args:
        models: Who is to play what.
        embedded: Play what nobody else does, and stand in.
        open_model: Opens a model.
        options: What chat models work with.
        domain: Whether the application has a domain, in which somebody has to plan.
    """
    roles = embedded
    for name in ROLES:
        model, spec = models.of(name), spec_of(name)
        if model is not None and (domain or spec.played != "with a domain"):
            roles = roles.replace(spec, _player(spec, model, open_model, options))
    return roles


def _player(
    spec: RoleSpec[Any],
    model: ModelSpec,
    open_model: Callable[[ModelSpec], BaseChatModel],
    options: ChatOptions,
) -> Any:
    for prefix, make in spec.named.items():
        if isinstance(model, str) and model.startswith(prefix):
            return make(model.removeprefix(prefix), options.deadline)
    opened = open_model(model)
    strong = spec.model == "strong"
    window = get_window_size(opened, options.window) if strong else options.reader_window
    return spec.chat(
        Chat.of(
            opened,
            options.meter,
            window=window,
            deadline=options.deadline,
            prompts=options.prompts,
        )
    )
