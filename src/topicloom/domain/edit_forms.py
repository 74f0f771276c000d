"""Messages that ask for another value of one field and for nothing else, in forms that leave no
doubt: "set the sword count to 3", "mark task t1 as done", "把铁剑的数量改成3".

The whole message has to be of the form, every word of it has to be used, and exactly one object may
be meant. Whatever is not sure is left to the main model, as are messages that add or remove.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from topicloom.domain.document import Document
from topicloom.domain.edits import Edit, apply_edits
from topicloom.domain.targets import EditTarget, ObjectNames, describe_kind, find_words, fold
from topicloom.prompts.loader import load_patterns

_NAMED, _ROWS = load_patterns("cues/edits")
_LEAD, _TRAIL, _QUESTION, _ASKING, _CLAUSE, _TRUE, _FALSE = (
    re.compile(_NAMED[name], re.I)
    for name in ("lead", "trail", "question", "asking", "clause", "true", "false")
)
_FORMS = [(name, re.compile(form, re.I)) for name, form in _ROWS]
_MEASURES = "个把瓶件张块元点次人天本只条颗枚份"
_NUMBER = re.compile(r"[+-]?\d{1,15}(?:\.\d{1,9})?")
_STATUS_FIELDS = ("status", "state", "状态", "done", "completed", "完成")
_QUOTED = re.compile(r"[\"“「『'‘](.+)[\"”」』'’]")
_MOST_WORDS, _MOST_CJK = 4, 12
"""Length of a text that is taken for a value without quotes."""


@dataclass(frozen=True, slots=True)
class EditFormParser:
    """Reads edits out of messages, for one document."""

    objects: ObjectNames
    document: Document
    statuses: Sequence[frozenset[str]]
    """Words that mean the same status, a group each."""

    def parse_edit(self, message: str) -> Edit | None:
        """The edit that a message asks for, if it asks for that and nothing else."""
        if _QUESTION.search(message) and not _ASKING.match(message.strip()):
            return None
        text, found = strip_politeness(message), dict[str, Edit]()
        for name, form in _FORMS:
            if match := form.fullmatch(text):
                edit = self._make_edit(name, match["what"].strip(), match["value"].strip())
                # What cannot be applied was meant otherwise.
                if edit is not None and not apply_edits(self.document, [edit]).errors:
                    found[repr(edit)] = edit
        return next(iter(found.values())) if len(found) == 1 else None

    def _make_edit(self, name: str, what: str, value: str) -> Edit | None:
        target = self.objects.resolve(what)
        if target is None:
            return None
        if name == "SET":
            return self._make_set(target, value)
        by = parse_number(value)
        if target.field is None or by is None or by < 0:
            return None
        return ("INC", target.path, by if name == "UP" else -by)

    def _make_set(self, target: EditTarget, said: str) -> Edit | None:
        field = target.field or _find_status_field(target.node.value)
        if field is None or (target.field is None and not target.node.anchor):
            return None
        values = [v for like in target.list_siblings() if (v := like.get(field)) is not None]
        value = self._parse_value(said, values, field)
        path = f"{target.node.anchor}.{field}" if target.node.anchor else field
        return None if value is None else ("SET", path, value)

    def _parse_value(self, said: str, values: Sequence[object], field: str) -> Any | None:
        """A text as a value of the kind that is there; None if it is not one for sure."""
        kind = describe_kind(values[0] if values else None)
        if kind == "true or false":
            word = fold(said) or "done"
            return True if _TRUE.fullmatch(word) else False if _FALSE.fullmatch(word) else None
        if kind == "a number":
            return parse_number(said)
        if kind != "a text" or field not in _STATUS_FIELDS:
            return parse_text(said) if kind == "a text" else None
        status = said or "done"
        for others in (values, self.objects.list_values(field)):
            texts = [v for v in others if isinstance(v, str)]
            if known := find_words(status, texts, self.statuses):
                return known[0]
        # One that no other object has, only if it is a word for a status.
        return status.lower() if any(status.lower() in g for g in self.statuses) else None


def strip_politeness(message: str) -> str:
    """A message in one line, without the words of politeness around it."""
    text = " ".join(message.split())
    text = _TRAIL.sub("", text)
    return _LEAD.sub("", text).strip()


def parse_number(said: str) -> int | float | None:
    """A number alone, in figures."""
    word = said.strip().rstrip(_MEASURES).strip()
    if not (word.isascii() and _NUMBER.fullmatch(word)):
        return None
    return float(word) if "." in word else int(word)


def parse_text(said: str) -> str | None:
    """A text alone: in quotes, or a few words that are surely one thing."""
    quoted = _QUOTED.fullmatch(said)
    if quoted is not None:
        return quoted[1]
    long = len(said.split()) > _MOST_WORDS or (len(said) > _MOST_CJK and not said.isascii())
    return None if not said or long or _CLAUSE.search(said.lower()) else said


def _find_status_field(value: Mapping[str, Any]) -> str | None:
    return next((f for f in _STATUS_FIELDS if isinstance(value.get(f), str | bool)), None)
