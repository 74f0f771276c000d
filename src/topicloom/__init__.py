"""One chat session that never ends: topic windows behind a single conversation, on LangGraph."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from topicloom.domain.domain import Domain
    from topicloom.errors import TopicLoomError
    from topicloom.graph.session import build_session_graph
    from topicloom.settings import Settings
    from topicloom.state.channels import TurnOptions

__all__ = ["Domain", "Settings", "TopicLoomError", "TurnOptions", "build_session_graph"]
__version__ = "0.1.0"

_HOMES = {
    "Domain": "topicloom.domain.domain",
    "Settings": "topicloom.settings",
    "TopicLoomError": "topicloom.errors",
    "TurnOptions": "topicloom.state.channels",
    "build_session_graph": "topicloom.graph.session",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: numpy and the models load only then."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
