"""The planner: it says what a turn is about and what to look for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from langchain_core.messages import BaseMessage

from topicloom.context.transcript import excerpt
from topicloom.context.windows import PromptWindow, recent_text
from topicloom.domain.document import (
    Document,
    DocumentEvent,
    find_derived_anchors,
    get_anchor,
    get_label,
    index_nodes,
    to_json_native,
)
from topicloom.domain.edits import parse_edits
from topicloom.domain.plan import DomainWeights, SearchIntent, TimeFocus, TurnKind, TurnPlan
from topicloom.domain.yaml_text import format_yaml
from topicloom.effects import Step
from topicloom.errors import InputError
from topicloom.prompts.loader import load_cues
from topicloom.prompts.wording import get_wording
from topicloom.roles.base import Answer, LocalRole, Role, RoleSpec
from topicloom.roles.chat import ChatRole
from topicloom.roles.markup import find_child_text, find_elements, find_json_values, first_of
from topicloom.roles.values import note_repairs, parse_score
from topicloom.search.words import NameFinder, words_of
from topicloom.state.fence import fence, fence_line
from topicloom.state.language import Language
from topicloom.state.safe_text import cut, replace_surrogates
from topicloom.state.stored_message import StoredMessage
from topicloom.topics.naming import find_keywords

_FIELDS = ("kind", "focus", "goal", "template", "keywords", "when", "weights", "edits", "reply")
_BETWEEN = re.compile(r"[;；,，、\n|]+")
_NOTHING = frozenset({"", "none", "null", "nothing", "-", "无", "没有", "（无）", "(none)"})
_MOST_PARSED = 12
_LONGEST_KEYWORD = 80
_LONGEST = 500
"""Characters of a goal or a reply."""
_MOST_KEYWORDS = 8
_NAMES = re.compile(r"(?<![.!?。！？] )(?<!^)\b[A-Z][\w'’-]+(?: (?:of |the )?[A-Z][\w'’-]+)*")
_QUOTED = re.compile(r"[\"“「『《]([^\"”」』》]{2,40})[\"”」』》]")
_WEIGHTS: Mapping[TimeFocus, DomainWeights] = {
    "past": DomainWeights(narrative=0.8, lore=0.3, event=0.6),
    "now": DomainWeights(narrative=0.4, lore=0.6, event=0.5),
    "future": DomainWeights(narrative=0.4, lore=0.4, event=0.8),
}
_EXPLAINING = 0.9
"""Weight of the background where the user asks what something is."""


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """A message to plan for."""

    session: str
    query: str
    """The message, as it was said."""
    tail: Sequence[StoredMessage]
    """The messages before it, oldest first."""
    document: Document
    events: Sequence[DocumentEvent]
    """The active events of the document; the focus has to be one of them."""
    templates: Mapping[str, str]
    """The purpose of each template, by its name."""
    previous: TurnPlan | None
    language: Language


class Planner(Role[PlanRequest, TurnPlan], Protocol):
    """Says what kind of turn it is, what it is about and what to look for."""


class ChatPlanner(ChatRole[PlanRequest, TurnPlan]):
    """Plans a turn; for a change of the document it gives the edits and the reply itself."""

    role = "planner"

    def step(self, request: PlanRequest) -> Step[Answer[TurnPlan]]:
        """Plan the turn; a focus or template that does not exist is dropped."""
        prompt = build_planner_prompt(request, self._chat.prompt_window)
        asked = yield from self.ask(request, "planner", prompt, parse_plan, "<turn_plan>")
        plan, repairs = sanitize_plan(asked.value, request)
        return Answer(plan, remarks=asked.remarks + repairs)


def sanitize_plan(plan: TurnPlan, request: PlanRequest) -> tuple[TurnPlan, tuple[str, ...]]:
    """The plan with a focus and a template that exist and edits that can be stored; the repairs."""
    events = {get_anchor(event) for event in request.events}
    lost = [plan.focus] if plan.focus is not None and plan.focus not in events else []
    unknown = [plan.template] if plan.template not in request.templates else []
    edit = plan.kind == "state_edit"
    sanitized = plan.model_copy(
        update={
            "focus": None if lost else plan.focus,
            "template": "default" if unknown else plan.template,
            "search": plan.search.model_copy(update={"enabled": plan.search.enabled and not edit}),
            "edits": _keep_storable(plan) if edit else (),
            "reply": plan.reply if edit else "",
        }
    )
    return sanitized, (
        *note_repairs(lost, "focus is no active event", "are no active events"),
        *note_repairs(unknown, "template does not exist", "templates do not exist"),
    )


def _keep_storable(plan: TurnPlan) -> tuple[tuple[object, ...], ...]:
    """The edits, if JSON can hold them all; else none: they belong together."""
    try:
        return tuple(tuple(edit) for edit in to_json_native(plan.edits, "edits"))
    except InputError:
        return ()


def build_planner_prompt(request: PlanRequest, window: PromptWindow) -> list[BaseMessage]:
    """The prompt by which a turn is planned: what changes least stands first."""
    count, language, document = window.counter.text, request.language, request.document
    words = get_wording(language)
    room = window.room("planner", language, request.query)
    data = fence(format_yaml(document, find_derived_anchors(document)))
    shown = excerpt(data, room // 2, count, "data", language)
    if shown == data:  # the events stand in it: they are only named
        lines = [f"- {get_anchor(e)}: {fence_line(get_label(e))}" for e in request.events]
        events = fence("\n".join(lines)) or words.nothing
    else:
        events = fence(format_yaml(list(request.events), {})) if request.events else words.nothing
    known = [
        words.templates,
        *(f"- {name}: {purpose}".rstrip(": ") for name, purpose in request.templates.items()),
        words.data,
        shown,
        words.events,
        excerpt(events, room // 8, count, "events", language),
    ]
    recent = recent_text(request.tail, window, language, room // 4) or words.nothing
    message = f"{words.message}\n{fence(request.query)}"
    return window.messages("planner", language, "\n".join(known), recent, message)


def parse_plan(text: str) -> TurnPlan:
    """A planner's answer. Nothing is checked against the document here.

    Raises:
        UnusableAnswerError: If it says nothing of what was asked for.
    """
    return first_of(text, "plan", _plan_of_answer)


def _plan_of_answer(text: str) -> TurnPlan | None:
    tags: dict[str, Any] = {n: find_child_text(text, n, *_FIELDS, "turn_plan") for n in _FIELDS}
    tags["weights"] = next((dict(e.attributes) for e in find_elements(text, "weights")), {})
    objects = (v for v in find_json_values(text) if isinstance(v, dict) and "kind" in v)
    fields = [tags, *({k: v[k] for k in _FIELDS if k in v} for v in objects)]
    return next((_make_plan(found) for found in fields if any(found.values())), None)


def _make_plan(fields: Mapping[str, Any]) -> TurnPlan:
    kind = _parse_kind(_parse_text(fields.get("kind")))
    edit = kind == "state_edit"
    edits = [tuple(e) for e in parse_edits(fields.get("edits")) if isinstance(e, list | tuple)]
    return TurnPlan(
        kind=kind,
        focus=_one_line(fields.get("focus")) or None,
        goal=_one_line(fields.get("goal"))[:_LONGEST],
        template=_one_line(fields.get("template")) or "default",
        search=SearchIntent(
            enabled=not edit,
            keywords=_parse_keywords(fields.get("keywords")),
            when=_parse_when(_parse_text(fields.get("when"))),
            weights=_parse_weights(fields.get("weights")),
        ),
        edits=tuple(edits) if edit else (),
        reply=cut(_parse_text(fields.get("reply")), _LONGEST) if edit else "",
    )


def _parse_kind(said: str) -> TurnKind:
    """A state edit only if that is said clearly: the rest of the turn depends on it."""
    lowered = said.lower()
    return "state_edit" if "edit" in lowered and "narrative" not in lowered else "narrative"


def _parse_when(said: str) -> TimeFocus:
    if "past" in said.lower():
        return "past"
    return "future" if "future" in said.lower() else "now"


def _parse_keywords(said: object) -> tuple[str, ...]:
    parts = said if isinstance(said, list) else _BETWEEN.split(_parse_text(said))
    words = (_one_line(part).strip("\"'“”‘’[]")[:_LONGEST_KEYWORD].strip() for part in parts)
    return tuple(dict.fromkeys(w for w in words if w))[:_MOST_PARSED]


def _parse_weights(said: object) -> DomainWeights:
    given = said if isinstance(said, dict) else {}
    scores = {name: parse_score(str(given.get(name, ""))) for name in DomainWeights.model_fields}
    return DomainWeights(**{name: score for name, score in scores.items() if score is not None})


def _one_line(said: object) -> str:
    """A text in one line; "" where a model says that there is nothing."""
    text = " ".join(_parse_text(said).split())
    return "" if text.lower() in _NOTHING else text


def _parse_text(said: object) -> str:
    """Text that can be stored: JSON may hold halves of characters."""
    return replace_surrogates(said) if isinstance(said, str) else ""


class EmbeddedPlanner(LocalRole[PlanRequest, TurnPlan]):
    """Plans by rules. It takes no turn for a state edit: the main model makes edits then."""

    def call(self, request: PlanRequest) -> Answer[TurnPlan]:
        focus: DocumentEvent = find_focus(request) or {}
        when, template = detect_time(request.query), focus.get("template")
        return Answer(
            TurnPlan(
                focus=get_anchor(focus),
                goal=get_label(focus),
                template=str(template) if template in request.templates else "default",
                search=SearchIntent(
                    keywords=_choose_keywords(request.query, request.document),
                    when=when,
                    weights=_choose_weights(request.query, when),
                ),
            )
        )


def find_focus(request: PlanRequest) -> DocumentEvent | None:
    """The active event that shares the rarest words with a message; else that of the turn before,
    if it still goes on; else the only one there is."""
    said = set(words_of(request.query))
    words = [
        set(words_of(" ".join(v for v in event.values() if isinstance(v, str))))
        for event in request.events
    ]
    scores = [sum(1 / sum(w in other for other in words) for w in own & said) for own in words]
    best = max(scores, default=0.0)
    if best > 0 and scores.count(best) == 1:
        return request.events[scores.index(best)]
    before = request.previous.focus if request.previous else None
    only = request.events[0] if len(request.events) == 1 else None
    return next((e for e in request.events if get_anchor(e) == before), only)


def detect_time(text: str) -> TimeFocus:
    """The time that more of a message's words speak of."""
    past, future = (load_cues(time).count_in(text) for time in ("past", "future"))
    return "past" if past > future else "future" if future > past else "now"


def _choose_keywords(text: str, document: Document) -> tuple[str, ...]:
    """Names first: of things in the document, quoted, in capitals; then the rarer words."""
    labels = [get_label(n.value) or n.anchor for n in index_nodes(document).values()]
    said = NameFinder(labels).within(text)
    named = sorted((labels[row] for row in said), key=len, reverse=True)
    named += _QUOTED.findall(text)
    named += _NAMES.findall(text)
    words = find_keywords([text], _MOST_KEYWORDS)
    rest = [w for w in words if not any(w in n.lower() for n in named)]
    return tuple(dict.fromkeys(n for n in [*named, *rest] if n))[:_MOST_KEYWORDS]


def _choose_weights(text: str, when: TimeFocus) -> DomainWeights:
    explain = when == "now" and load_cues("explain").found_in(text)
    return _WEIGHTS[when].model_copy(update={"lore": _EXPLAINING} if explain else {})


PLANNER: RoleSpec[Planner] = RoleSpec(
    name="planner",
    purpose="says what kind of turn it is, what it is about and what to look for",
    answer_tokens=2_000,
    answers=TurnPlan,
    played="with a domain",
    chat=ChatPlanner,
    embedded=lambda embedder: EmbeddedPlanner(),
)
