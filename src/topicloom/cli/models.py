"""Which model answers, and the roles of a graph that is not a chat."""

from __future__ import annotations

from topicloom.cli.workplace import Workplace
from topicloom.graph.deps import make_deps, models_of
from topicloom.roles.models import name_of
from topicloom.roles.registry import Roles
from topicloom.settings import Settings


def replies_with(settings: Settings) -> str | None:
    """The model that writes replies; None for the embedded default."""
    model = models_of(settings, None, None, None).of("responder")
    return model if model is None or isinstance(model, str) else name_of(model)


def model_line(settings: Settings) -> str:
    """Says what replies, and how that is changed."""
    model = replies_with(settings)
    if model is not None:
        return f"model {model}"
    return (
        "no model is set: replies only quote what was said. For a real one set"
        " TOPICLOOM_MODEL=openai:gpt-5-mini and OPENAI_API_KEY"
    )


def roles_for(place: Workplace) -> Roles:
    """The roles that a graph with the place's settings makes itself.

    Raises:
        ConfigurationError: A model cannot be opened.
    """
    models = models_of(place.settings, None, None, None)
    return make_deps(place.settings, models, storage=place.storage).roles
