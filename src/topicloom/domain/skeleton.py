"""The skeleton: the document, its active events and the goal as exact text.

It enters the prompt whole once; later turns add only those of its elements that changed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from langchain_core.runnables import Runnable
from markupsafe import Markup

from topicloom.context.notes import format_layer
from topicloom.domain import Domain
from topicloom.domain.document import (
    Document,
    find_derived_anchors,
    get_anchor,
    list_active_events,
    list_events,
)
from topicloom.domain.plan import TurnPlan
from topicloom.domain.state import DomainState, current_plan
from topicloom.domain.yaml_text import format_yaml
from topicloom.errors import ConfigurationError
from topicloom.nodes.deps import Deps
from topicloom.nodes.step import Node, Update, dumped, open_turn
from topicloom.state.fence import fence
from topicloom.state.layers import Layer
from topicloom.state.recall import select_notes
from topicloom.state.receipt import Call
from topicloom.state.safe_text import describe_error
from topicloom.state.session import Session, Turn
from topicloom.storage.sessions import SessionStore

DEFAULT = "default"
_SUFFIX = ".jinja"
_OURS = f"topicloom/{DEFAULT}{_SUFFIX}"
"""The template that ships, for templates that extend it."""
_PURPOSE = re.compile(r"\s*\{#[-+]?(.*?)[-+]?#\}", re.DOTALL)
_FAULTS = (
    jinja2.TemplateError,
    ArithmeticError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
    AttributeError,
)
"""Errors of templates, which are code of the application."""


class SkeletonRenderer:
    """Renders skeletons by Jinja2 templates.

    A template sees `document`; `status`, which is the document without its events; `events`, the
    active ones; `goal`, `focus` and `plan`. Values are escaped, and `yaml` writes data with its
    anchors. Nothing in a document can get out of the element that it stands in.
    """

    def __init__(self, domain: Domain) -> None:
        """Raises:
        ConfigurationError: If the folder is not there, or a template cannot be compiled.
        """
        self._events = domain.events
        loader = _make_loader(domain.templates)
        self._environment = ImmutableSandboxedEnvironment(
            loader=loader,
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._environment.filters["yaml"] = _to_yaml
        self.templates: dict[str, str] = {}
        """The purpose of each template, by its name: the comment that it begins with, or ""."""
        for name in self._environment.list_templates(extensions=[_SUFFIX[1:]]):
            try:
                self._environment.get_template(name)
                source, *_ = loader.get_source(self._environment, name)
            except UnicodeDecodeError as error:
                raise ConfigurationError(
                    f"domain.templates: {name} is not written in UTF-8: {error.reason}"
                ) from error
            except jinja2.TemplateSyntaxError as error:
                raise ConfigurationError(
                    f"domain.templates: {error.name}, line {error.lineno}: {error.message}"
                ) from error
            if name != _OURS:
                comment = _PURPOSE.match(source)
                purpose = " ".join(comment[1].split()) if comment else ""
                self.templates[name.removesuffix(_SUFFIX)] = purpose

    def render(self, document: Document, plan: TurnPlan) -> tuple[str, str]:
        """The skeleton of a document, its elements without the frame; the fault of its template.

        The text is empty for an empty document without a goal. A template of the application that
        fails is replaced by the one that ships.
        """
        if not document and not plan.goal:
            return "", ""
        events = list_events(document, self._events)
        values = {
            "document": document,
            "status": {k: v for k, v in document.items() if k != self._events},
            "events": list_active_events(document, self._events),
            "goal": plan.goal,
            "focus": next((e for e in events if get_anchor(e) == plan.focus), None),
            "plan": plan.model_dump(mode="json"),
            "anchors": find_derived_anchors(document),
        }
        name = plan.template if plan.template in self.templates else DEFAULT
        try:
            return self._fill(f"{name}{_SUFFIX}", values), ""
        except _FAULTS as error:
            fault = f"template {name!r} failed, {DEFAULT!r} was used: {describe_error(error)}"
            return self._fill(_OURS, values), fault

    def _fill(self, name: str, values: Mapping[str, Any]) -> str:
        return self._environment.get_template(name).render(values).strip()


def _make_loader(folder: str | Path | None) -> jinja2.BaseLoader:
    ours = (files("topicloom") / "templates" / f"{DEFAULT}{_SUFFIX}").read_text("utf-8")
    shipped = jinja2.DictLoader({f"{DEFAULT}{_SUFFIX}": ours, _OURS: ours})
    if folder is None:
        return shipped
    if not Path(folder).is_dir():
        raise ConfigurationError(f"domain.templates: there is no folder {str(folder)!r}")
    return jinja2.ChoiceLoader([jinja2.FileSystemLoader(folder), shipped])


@jinja2.pass_context
def _to_yaml(context: Context, value: object) -> Markup:
    """The filter `yaml`: what it writes needs no further escaping."""
    return Markup(fence(format_yaml(value, context.get("anchors", {}))))


@dataclass(frozen=True, slots=True)
class SkeletonService:
    """Renders the skeleton of a turn, and compares it with the skeletons in the prompt."""

    renderer: SkeletonRenderer
    deps: Deps

    def render(self, state: Mapping[str, Any]) -> tuple[str, str]:
        """The skeleton of the turn's document, and the fault of its template."""
        plan = current_plan(state) or TurnPlan()
        return self.renderer.render(state.get("document") or {}, plan)

    def build_layer(
        self, text: str, store: SessionStore, session: Session, turn: Turn
    ) -> Layer | None:
        """The layer that the prompt needs to show a skeleton; None if it does already."""
        layout = self.deps.settings.layout
        notes = select_notes(store.notes(session), turn.user, layout)
        return build_skeleton_layer(text, [(n.after, layer) for n in notes for layer in n.layers])

    def count_tokens(
        self, state: Mapping[str, Any], store: SessionStore, session: Session, turn: Turn
    ) -> tuple[int, int]:
        """Tokens that the skeleton adds to the prompt of this turn, and that it has whole."""
        (text, _), count = self.render(state), self.deps.window.counter.text
        layer = self.build_layer(text, store, session, turn)
        whole = Layer(kind="deterministic", text=text)
        return count(format_layer(layer)) if layer else 0, count(format_layer(whole)) if text else 0


def render_skeleton(skeletons: SkeletonService) -> Runnable[DomainState, Update]:
    """The node that gives the skeleton for the note of the turn."""

    def step(state: DomainState) -> Update:
        session, turn, workspace = open_turn(skeletons.deps.workspaces, state)
        text, fault = skeletons.render(state)
        layer = skeletons.build_layer(text, workspace.store, session, turn)
        layers = {"layers": dumped([layer])} if layer else {}
        calls = {"calls": dumped([Call(role="skeleton", failure=fault)])} if fault else {}
        return {**layers, **calls}

    return Node(step, "skeleton")


_ELEMENT = re.compile(r"^<([A-Za-z_][\w-]*)(?: [^<>\n]*)?>$.*?^</\1>$", re.MULTILINE | re.DOTALL)


def build_skeleton_layer(text: str, shown: Sequence[tuple[int, Layer]]) -> Layer | None:
    """The layer that the prompt needs to show a skeleton; None if it does already.

    `shown` are the layers in view, oldest first, each with the number of the message before it.
    """
    behind = [(after, layer) for after, layer in shown if layer.kind == "deterministic"]
    if not behind:
        return Layer(kind="deterministic", text=text) if text else None
    known: dict[str, str] = {}
    for _, layer in behind:
        known = (known if layer.since else {}) | split_elements(layer.text)
    now = split_elements(text)
    changed = [element for name, element in now.items() if known.get(name) != element]
    # An element that is not there any more is shown empty.
    empty = {n: f"<{n}>\n</{n}>" if n else "" for n in known if n not in now}
    gone = [element for name, element in empty.items() if known[name] != element]
    if not changed and not gone:
        return None
    if len(changed) == len(now):
        return Layer(kind="deterministic", text=text)
    since = f"m{behind[-1][0]}"
    return Layer(kind="deterministic", text="\n".join([*changed, *gone]), since=since)


def split_elements(text: str) -> dict[str, str]:
    """The elements of a skeleton by name, and what stands outside of them under "".

    An element begins and ends with a tag that has a line to itself. No text of a document looks
    like one, because `<` is escaped in all of them.
    """
    found: dict[str, str] = {}
    for element in _ELEMENT.finditer(text):
        before = f"{found[element[1]]}\n" if element[1] in found else ""
        found[element[1]] = before + element[0]
    rest = _ELEMENT.sub("", text).strip()
    return found | ({"": rest} if rest else {})
