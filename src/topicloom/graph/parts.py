"""What a session graph is made of, as an application gives it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypedDict

from langchain_core.embeddings import Embeddings
from langchain_core.tools import BaseTool
from langchain_core.vectorstores import VectorStore

from topicloom.context.token_count import TokenCounter
from topicloom.domain import Domain
from topicloom.errors import ConfigurationError
from topicloom.roles.base import RoleName
from topicloom.roles.choice import ModelSpec
from topicloom.roles.registry import Roles
from topicloom.search.embedder import Embedder
from topicloom.settings import Settings
from topicloom.storage.base import Storage
from topicloom.texts import FilledText


class MemoryOptions(TypedDict, total=False):
    """What the memory of a session is made of. Each part has a default."""

    model: ModelSpec | None
    """The strong model, which replies and splits: a LangChain chat model, or a string such as
    `openai:gpt-5`. Without one the embedded roles quote what was said."""
    cheap_model: ModelSpec | None
    """Reads topics, routes and writes briefs; the strong one if not given."""
    role_models: Mapping[RoleName, ModelSpec] | None
    """A model of its own for a role."""
    settings: Settings | None
    """What can be tuned; read from `TOPICLOOM_*` if not given. Models that are given here go before
    those of the settings."""
    roles: Roles | None
    """Ready-made roles instead of models."""
    storage: Storage | Literal["store"] | None
    """Where topics live: files in `settings.folder` if not given; `"store"` for the store that the
    graph is compiled with."""
    clock: Callable[[], datetime] | None
    """Tells the time, with its zone; the system's if not given."""
    counter: TokenCounter | None
    """Counts tokens; one for the model of the settings if not given."""
    embedder: Embeddings | Embedder | str | None
    """What messages are searched with: any LangChain `Embeddings`, or what the setting takes, which
    it goes before."""
    archive_index: VectorStore | None
    """Where reviews hand over archived topics to; searched last, if no topic that the router chose
    is active then."""


class SessionOptions(MemoryOptions, total=False):
    """What a session graph is made of: `MemoryOptions`, and this. Each part has a default."""

    tools: Sequence[BaseTool | Callable[..., object]]
    """The application's own tools, run in a normal tool loop."""
    instructions: str
    """The application's own system prompt."""
    domain: Domain | None
    """The application's own data: facts that have to be exact, kept as a document beside the
    conversation."""
    state_schema: type[Any] | None
    """Further channels of the application's own, as a `TypedDict`: input sets them, and tools do by
    a `Command`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphParts:
    """What a graph is made of: the values of `SessionOptions`.

    Raises `ConfigurationError` if one is of another kind than it has to be.
    """

    model: ModelSpec | None = None
    cheap_model: ModelSpec | None = None
    role_models: Mapping[RoleName, ModelSpec] | None = None
    settings: Settings | None = None
    roles: Roles | None = None
    storage: Storage | Literal["store"] | None = None
    clock: Callable[[], datetime] | None = None
    counter: TokenCounter | None = None
    embedder: Embeddings | Embedder | str | None = None
    archive_index: VectorStore | None = None
    tools: Sequence[BaseTool | Callable[..., object]] = ()
    instructions: str = ""
    domain: Domain | None = None
    state_schema: type[Any] | None = None

    def __post_init__(self) -> None:
        for name, (kinds, way) in _KINDS.items():
            value = getattr(self, name)
            if value is not None and value != "store" and not isinstance(value, kinds):
                raise ConfigurationError(
                    "{name}={value!r:.60} cannot be used: give {way}",
                    name=name,
                    value=value,
                    way=FilledText(way),
                )


_KINDS: Mapping[str, tuple[type, str]] = {
    "settings": (Settings, "Settings(window=16_000), or whatever is to be set"),
    "roles": (Roles, 'what `embedded_roles` makes; models go to role_models={"reader": "..."}'),
    "tools": (Sequence, "a list of tools"),
    "domain": (Domain, "Domain(...), whose document comes with the input"),
    "storage": (Storage, 'a Storage such as FileStorage("sessions"), or "store"'),
}
"""Of what kind arguments are, and the way out."""
