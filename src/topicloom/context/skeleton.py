"""The skeleton: the document, its active events and the goal as text (spec 004, section 5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import (
    BaseLoader,
    ChoiceLoader,
    DictLoader,
    FileSystemLoader,
    StrictUndefined,
    TemplateError,
    TemplateSyntaxError,
    pass_context,
)
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from markupsafe import Markup

from topicloom.context.domain import Domain
from topicloom.context.yaml_text import yaml_text
from topicloom.errors import ConfigurationError
from topicloom.state.document import Document, anchor_of, made_anchors
from topicloom.state.events import events_of, is_active
from topicloom.state.plan import Plan

DEFAULT = "default"
"""The template that is always there."""
_SUFFIX = ".jinja"
_OURS = f"topicloom/{DEFAULT}{_SUFFIX}"
"""The template that ships, for templates that extend it."""
_FAULTS = (TemplateError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError)
"""What a template may raise: it is code of the application's."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """A skeleton as text."""

    text: str
    """Its elements, one after another; without the frame."""
    fault: str = ""
    """Why the template that was asked for could not be used."""


class Skeletons:
    """Renders skeletons by Jinja2 templates.

    A template sees `document`; `status`, which is the document without its events; `events`, the
    active ones; `goal`, `focus` and `plan`. Values are escaped, and `yaml` writes data with its
    anchors. Nothing in a document can get out of the element that it stands in.
    """

    def __init__(self, domain: Domain) -> None:
        """Args:
        domain: Says where the application's own templates are.

        Raises:
            ConfigurationError: If the folder is not there, or a template cannot be compiled.
        """
        self._events = domain.events
        self._environment = ImmutableSandboxedEnvironment(
            loader=_loader(domain.templates),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._environment.filters["yaml"] = _yaml
        names = self._environment.list_templates(extensions=[_SUFFIX[1:]])
        self.names = tuple(n.removesuffix(_SUFFIX) for n in names if n != _OURS)
        """Names of the templates."""
        for name in names:
            self._compile(name)

    def render(self, document: Document, plan: Plan) -> Rendered:
        """The skeleton of a document; an empty text for an empty document without a goal.

        A template of the application that fails is replaced by the one that ships.
        """
        if not document and not plan.goal:
            return Rendered("")
        values = self._values(document, plan)
        name = plan.template if plan.template in self.names else DEFAULT
        try:
            return Rendered(self._filled(f"{name}{_SUFFIX}", values))
        except _FAULTS as error:
            fault = f"template {name!r} failed, {DEFAULT!r} was used: {error}"
            return Rendered(self._filled(_OURS, values), fault)

    def _filled(self, name: str, values: Mapping[str, Any]) -> str:
        return self._environment.get_template(name).render(values).strip()

    def _values(self, document: Document, plan: Plan) -> dict[str, Any]:
        events = events_of(document, self._events)
        return {
            "document": document,
            "status": {k: v for k, v in document.items() if k != self._events},
            "events": [e for e in events if is_active(e)],
            "goal": plan.goal,
            "focus": next((e for e in events if anchor_of(e) == plan.focus), None),
            "plan": plan.model_dump(mode="json"),
            "anchors": made_anchors(document),
        }

    def _compile(self, name: str) -> None:
        try:
            self._environment.get_template(name)
        except TemplateSyntaxError as error:
            raise ConfigurationError(
                f"domain.templates: {error.name}, line {error.lineno}: {error.message}"
            ) from error


def _loader(folder: str | Path | None) -> BaseLoader:
    ours = (files("topicloom") / "templates" / f"{DEFAULT}{_SUFFIX}").read_text("utf-8")
    shipped = DictLoader({f"{DEFAULT}{_SUFFIX}": ours, _OURS: ours})
    if folder is None:
        return shipped
    if not Path(folder).is_dir():
        raise ConfigurationError(f"domain.templates: there is no folder {str(folder)!r}")
    return ChoiceLoader([FileSystemLoader(folder), shipped])


@pass_context
def _yaml(context: Context, value: object) -> Markup:
    """The filter `yaml`: what it writes needs no further escaping."""
    return Markup(yaml_text(value, context.get("anchors", {})))
