"""The planner: it says what a turn is about and what to look for (spec 004)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, Protocol

from langchain_core.messages import BaseMessage

from topicloom.context.transcript import excerpt
from topicloom.context.windows import PromptWindow, recent_text
from topicloom.domain.document import find_derived_anchors, get_anchor, get_label
from topicloom.domain.edit_forms import EditFormParser
from topicloom.domain.edit_text import parse_edits
from topicloom.domain.events import DocumentEvent
from topicloom.domain.things import ObjectResolver
from topicloom.domain.yaml_text import format_yaml
from topicloom.effects import Step
from topicloom.index.phrases import extract_keywords
from topicloom.index.words import words_of
from topicloom.prompts.loader import load_cues, load_word_groups
from topicloom.prompts.wording import get_wording
from topicloom.roles.base import Answer, LocalRole, Role, RoleSpec
from topicloom.roles.dialogue import ChatRole
from topicloom.roles.markup import (
    find_child_text,
    find_elements,
    find_json_values,
    first_of,
    unescape,
)
from topicloom.roles.values import note_repairs, parse_score
from topicloom.state.cues import Cues
from topicloom.state.plan import DomainWeights, SearchIntent, TurnKind, TurnPlan
from topicloom.state.session import Language
from topicloom.state.stored_message import StoredMessage

TimeFocus = Literal["now", "past", "future"]

_FIELDS = ("kind", "focus", "goal", "template", "keywords", "when", "weights", "edits", "reply")
_EDIT = re.compile(r"state[_ ]?edit|numerical|数值|改数据|修改", re.I)
_TELL = re.compile(r"narrative|叙事", re.I)
_BETWEEN = re.compile(r"[;；,，、\n|]+")
_NOTHING = frozenset({"", "none", "null", "nothing", "-", "无", "没有", "（无）", "(none)"})
_MOST_PARSED = 12
_LONGEST_KEYWORD = 80
_LONGEST = 500
"""Characters of a goal or a reply."""
_MOST_KEYWORDS = 8
_LONGEST_EDIT = 200
"""Characters of a message that may only be an edit."""
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
    """The message, with references resolved."""
    tail: Sequence[StoredMessage]
    """The messages before it, oldest first."""
    document: dict[str, Any]
    """The application's document."""
    events: Sequence[Mapping[str, Any]]
    """The events of the document that are active; the focus has to be one of them."""
    templates: Sequence[str]
    """Names of the templates there are."""
    previous: TurnPlan | None
    """The plan of the turn before."""
    language: Language


class Planner(Role[PlanRequest, TurnPlan], Protocol):
    """Says what kind of turn it is, what it is about and what to look for."""


class ChatPlanner(ChatRole[PlanRequest, TurnPlan]):
    """Plans a turn; for a change of the document it gives the edits and the reply itself."""

    role = "planner"

    def step(self, request: PlanRequest) -> Step[Answer[TurnPlan]]:
        """Plan the turn; a focus or template that does not exist is dropped."""
        prompt = build_planner_prompt(request, self._chat.prompt_window)
        asked = yield from self.ask(request, "planner", prompt, parse_plan, "turn_plan")
        plan, remarks = _repair(asked.value, request)
        return Answer(plan, asked.usage, asked.remarks + remarks)


def _repair(plan: TurnPlan, request: PlanRequest) -> tuple[TurnPlan, tuple[str, ...]]:
    events = {get_anchor(event) for event in request.events}
    lost = [plan.focus] if plan.focus is not None and plan.focus not in events else []
    unknown = [plan.template] if plan.template not in request.templates else []
    kept = plan.model_copy(
        update={
            "focus": None if lost else plan.focus,
            "template": "default" if unknown else plan.template,
        }
    )
    return kept, (
        *note_repairs(lost, "focus is no active event", "are no active events"),
        *note_repairs(unknown, "template does not exist", "templates do not exist"),
    )


def build_planner_prompt(request: PlanRequest, window: PromptWindow) -> list[BaseMessage]:
    """The prompt by which a turn is planned: what changes least stands first.

    The document is cut where it takes more than half of the prompt.
    """
    count, language, document = window.counter.text, request.language, request.document
    words = get_wording(language)
    room = window.room("planner", language, request.query)
    data = format_yaml(document, find_derived_anchors(document))
    events = format_yaml(list(request.events), {}) if request.events else words.nothing
    known = [
        words.templates,
        ", ".join(request.templates),
        words.data,
        excerpt(data, room // 2, count, "data", language),
        words.events,
        excerpt(events, room // 8, count, "events", language),
    ]
    recent = recent_text(request.tail, window, language, room // 4) or words.nothing
    message = f"{words.message}\n{request.query}"
    return window.messages("planner", language, "\n".join(known), recent, message)


def parse_plan(text: str) -> TurnPlan:
    """A planner's answer. Nothing is checked against the document here.

    Raises:
        UnusableAnswerError: If it says nothing of what was asked for.
    """
    return first_of(text, "plan", _plan_of_answer)


def _plan_of_answer(text: str) -> TurnPlan | None:
    fields = (_plan_fields_of_tags(text), *_plan_fields_of_json(text))
    return next((_make_plan(found) for found in fields if any(found.values())), None)


def _plan_fields_of_tags(text: str) -> dict[str, Any]:
    fields: dict[str, Any] = {
        name: find_child_text(text, name, *_FIELDS, "turn_plan")
        for name in _FIELDS
        if name != "weights"
    }
    fields["weights"] = next((dict(e.attributes) for e in find_elements(text, "weights")), {})
    return fields


def _plan_fields_of_json(text: str) -> list[dict[str, Any]]:
    found = [v for v in find_json_values(text) if isinstance(v, dict)]
    return [{k: v[k] for k in _FIELDS if k in v} for v in found if "kind" in v]


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
        reply=_parse_text(fields.get("reply"))[:_LONGEST] if edit else "",
    )


def _parse_kind(said: str) -> TurnKind:
    """A state edit only if that is said clearly: the rest of the turn depends on it."""
    return "state_edit" if _EDIT.search(said) and not _TELL.search(said) else "narrative"


def _parse_when(said: str) -> TimeFocus:
    lowered = said.lower()
    if "past" in lowered or "过去" in said:
        return "past"
    return "future" if "future" in lowered or "将来" in said else "now"


def _parse_keywords(said: object) -> tuple[str, ...]:
    parts = said if isinstance(said, list) else _BETWEEN.split(_parse_text(said))
    words = (_one_line(part).strip("\"'“”‘’[]")[:_LONGEST_KEYWORD].strip() for part in parts)
    return tuple(dict.fromkeys(w for w in words if w))[:_MOST_PARSED]


def _parse_weights(said: object) -> DomainWeights:
    given = said if isinstance(said, dict) else {}
    scores = {
        name: score
        for name in DomainWeights.model_fields
        if (score := parse_score(str(given.get(name, "")))) is not None
    }
    return DomainWeights(**scores)


def _one_line(said: object) -> str:
    """A text in one line; "" where a model says that there is nothing."""
    text = " ".join(_parse_text(said).split())
    return "" if text.lower() in _NOTHING else text


def _parse_text(said: object) -> str:
    """Text that can be stored: JSON may hold halves of characters."""
    text = unescape(said) if isinstance(said, str) else ""
    return text.encode("utf-8", "replace").decode()


class EmbeddedPlanner(LocalRole[PlanRequest, TurnPlan]):
    """Plans by rules. A turn is a state edit only if the edit itself is certain."""

    def call(self, request: PlanRequest) -> Answer[TurnPlan]:
        """Plan one turn."""
        things = ObjectResolver(request.document, load_word_groups("fields"))
        if len(request.query) <= _LONGEST_EDIT:
            forms = EditFormParser(things, request.document, load_word_groups("statuses"))
            edit = forms.parse_edit(request.query)
            if edit is not None:
                search = SearchIntent(enabled=False)
                return Answer(TurnPlan(kind="state_edit", search=search, edits=(edit,)))
        focus = find_focus(request)
        when = detect_time(request.query)
        return Answer(
            TurnPlan(
                focus=get_anchor(focus) if focus else None,
                goal=get_label(focus) if focus else "",
                template=_choose_template(focus, request.templates),
                search=SearchIntent(
                    keywords=_choose_keywords(request.query, things),
                    when=when,
                    weights=_choose_weights(request.query, when),
                ),
            )
        )


def find_focus(request: PlanRequest) -> DocumentEvent | None:
    """The active event that a message is about.

    The one that shares the rarest words with it; else the one of the turn before, if it still goes
    on; else the only one there is.
    """
    said = set(words_of(request.query))
    words = [set(words_of(_text_of(event))) for event in request.events]
    worth = [sum(1 / sum(w in other for other in words) for w in own & said) for own in words]
    best = max(worth, default=0.0)
    if best > 0 and worth.count(best) == 1:
        return request.events[worth.index(best)]
    before = request.previous.focus if request.previous else None
    kept = next((e for e in request.events if get_anchor(e) == before), None)
    if kept is not None:
        return kept
    return request.events[0] if len(request.events) == 1 else None


def detect_time(text: str) -> TimeFocus:
    """The time that more of a message's words speak of."""
    past, future = _load_time_cues("past").count_in(text), _load_time_cues("future").count_in(text)
    if past > future:
        return "past"
    return "future" if future > past else "now"


def _text_of(event: DocumentEvent) -> str:
    """The words of an event."""
    return " ".join(str(v) for v in event.values() if isinstance(v, str))


def _choose_template(focus: DocumentEvent | None, templates: Sequence[str]) -> str:
    """The template that the event in focus asks for, if there is one of that name."""
    wanted: Any = focus.get("template") if focus else None
    return wanted if isinstance(wanted, str) and wanted in templates else "default"


def _choose_keywords(text: str, things: ObjectResolver) -> tuple[str, ...]:
    """Names first: of things in the document, quoted, in capitals; then the rarer words."""
    named = [get_label(place.value) or place.anchor for place in things.find_mentioned(text)]
    named += _QUOTED.findall(text)
    named += _NAMES.findall(text)
    rest = [
        w
        for w in extract_keywords([text], _MOST_KEYWORDS)
        if not any(w in n.lower() for n in named)
    ]
    return tuple(dict.fromkeys(n for n in [*named, *rest] if n))[:_MOST_KEYWORDS]


def _choose_weights(text: str, when: TimeFocus) -> DomainWeights:
    weights = _WEIGHTS[when]
    if when == "now" and _load_explain_cues().found_in(text):
        return weights.model_copy(update={"lore": _EXPLAINING})
    return weights


@cache
def _load_time_cues(time: Literal["past", "future"]) -> Cues:
    return (
        load_cues("past_en", "past_zh") if time == "past" else load_cues("future_en", "future_zh")
    )


@cache
def _load_explain_cues() -> Cues:
    return load_cues("explain")


PLANNER: RoleSpec[Planner] = RoleSpec(
    name="planner",
    purpose="says what kind of turn it is, what it is about and what to look for",
    answers=TurnPlan,
    played="with a domain",
    chat=ChatPlanner,
    embedded=lambda embedder: EmbeddedPlanner(),
)
