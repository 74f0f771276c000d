"""A planner's answer as a plan, read with good will."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from topicloom.errors import UnusableAnswerError
from topicloom.prompts.edits import edits_in
from topicloom.prompts.markup import answers_of, child, elements, json_values, plain
from topicloom.prompts.values import score_in
from topicloom.state.plan import DomainWeights, Plan, SearchIntent, TurnKind

_FIELDS = ("kind", "focus", "goal", "template", "keywords", "when", "weights", "edits", "reply")
_EDIT = re.compile(r"state[_ ]?edit|numerical|数值|改数据|修改", re.I)
_TELL = re.compile(r"narrative|叙事", re.I)
_BETWEEN = re.compile(r"[;；,，、\n|]+")
_NOTHING = frozenset({"", "none", "null", "nothing", "-", "无", "没有", "（无）", "(none)"})
_MOST_KEYWORDS = 12
_LONGEST_KEYWORD = 80
_LONGEST = 500
"""Characters of a goal or a reply."""


def parse_plan(text: str) -> Plan:
    """A planner's answer. Nothing is checked against the document here.

    Raises:
        UnusableAnswerError: If it says nothing of what was asked for.
    """
    for answer in answers_of(text):
        for fields in (_of_tags(answer), *_of_json(answer)):
            if any(fields.values()):
                return _plan(fields)
    raise UnusableAnswerError(f"no plan in an answer of {len(text)} characters")


def _of_tags(text: str) -> dict[str, Any]:
    fields: dict[str, Any] = {
        name: child(text, name, *_FIELDS, "turn_plan") for name in _FIELDS if name != "weights"
    }
    fields["weights"] = next((dict(e.attributes) for e in elements(text, "weights")), {})
    return fields


def _of_json(text: str) -> list[dict[str, Any]]:
    found = [v for v in json_values(text) if isinstance(v, dict)]
    return [{k: v[k] for k in _FIELDS if k in v} for v in found if "kind" in v]


def _plan(fields: Mapping[str, Any]) -> Plan:
    kind = _kind(_text(fields.get("kind")))
    edit = kind == "state_edit"
    edits = [tuple(e) for e in edits_in(fields.get("edits")) if isinstance(e, list | tuple)]
    return Plan(
        kind=kind,
        focus=_named(fields.get("focus")) or None,
        goal=_named(fields.get("goal"))[:_LONGEST],
        template=_named(fields.get("template")) or "default",
        search=SearchIntent(
            enabled=not edit,
            keywords=_keywords(fields.get("keywords")),
            when=_when(_text(fields.get("when"))),
            weights=_weights(fields.get("weights")),
        ),
        edits=tuple(edits) if edit else (),
        reply=_text(fields.get("reply"))[:_LONGEST] if edit else "",
    )


def _kind(said: str) -> TurnKind:
    """A state edit only if that is said clearly: the rest of the turn depends on it."""
    return "state_edit" if _EDIT.search(said) and not _TELL.search(said) else "narrative"


def _when(said: str) -> Literal["now", "past", "future"]:
    lowered = said.lower()
    if "past" in lowered or "过去" in said:
        return "past"
    return "future" if "future" in lowered or "将来" in said else "now"


def _keywords(said: object) -> tuple[str, ...]:
    parts = said if isinstance(said, list) else _BETWEEN.split(_text(said))
    words = (_named(part).strip("\"'“”‘’[]")[:_LONGEST_KEYWORD].strip() for part in parts)
    return tuple(dict.fromkeys(w for w in words if w))[:_MOST_KEYWORDS]


def _weights(said: object) -> DomainWeights:
    given = said if isinstance(said, dict) else {}
    scores = {
        name: score
        for name in ("narrative", "lore", "event")
        if (score := score_in(str(given.get(name, "")))) is not None
    }
    return DomainWeights(**scores)


def _named(said: object) -> str:
    """A text in one line; "" where a model says that there is nothing."""
    text = " ".join(_text(said).split())
    return "" if text.lower() in _NOTHING else text


def _text(said: object) -> str:
    """Text that can be stored: JSON may hold halves of characters."""
    text = plain(said) if isinstance(said, str) else ""
    return text.encode("utf-8", "replace").decode()
