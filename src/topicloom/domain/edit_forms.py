"""Messages that ask for a change of the document and for nothing else, in forms that leave no
doubt: "set the sword count to 3", "mark task t1 as done", "把铁剑的数量改成3".

The whole message has to be of the form, every word of it has to be used, and exactly one thing may
be meant. Whatever is not sure is left to the main model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from topicloom.domain.document import Document, find_label_field
from topicloom.domain.edits import Edit, apply_edits
from topicloom.domain.targets import EditTarget, ObjectResolver, describe_kind, find_words, fold

_LEAD = re.compile(
    r"^(?:(?:please|ok|okay|now|also|hey|请|麻烦|麻烦你|帮我|请帮我|帮忙|好的|那就)[,，\s]*)*"
    r"(?:(?:can|could|would|will) you (?:please )?|能不能|可不可以|可以帮我)?",
    re.I,
)
_TRAIL = re.compile(
    r"(?:[,，\s]*(?:please|thanks|thank you|for me|now|吧|谢谢|好吗|一下))*[\s.!?。！？]*$", re.I
)
_QUESTION = re.compile(r"[?？]|吗\W*$")
_ASKING = re.compile(r"(?:please |请)?(?:can|could|would|will) you |能不能|可不可以|可以帮我", re.I)
_TO = r"(?:to|as|=|equal to)"
_ZH_TO = (
    r"(?:改成|改为|设为|设成|设置为|设置成|调成|调为|调到|更新为|换成|变成|标记为|标为|标成|记为)"
)
_FORMS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(form, re.I))
    for name, form in (
        ("SET", rf"(?:set|change|update|adjust) (?P<what>.+?) {_TO} (?P<value>.+)"),
        ("SET", r"(?P<what>[\w/-]+\.[\w-]+)\s*=\s*(?P<value>.+)"),
        ("SET", r"(?:mark|flag) (?P<what>.+?) (?:as )?(?P<value>\S+(?: progress| started)?)"),
        ("SET", r"(?:tick|check) off (?P<what>.+?)(?P<value>)"),
        ("UP", r"(?:increase|raise|increment) (?P<what>.+?) by (?P<value>\S+)"),
        ("DOWN", r"(?:decrease|reduce|lower|decrement) (?P<what>.+?) by (?P<value>\S+)"),
        ("UP", r"add (?P<value>\S+) to (?P<what>.+)"),
        ("DOWN", r"(?:subtract|take) (?P<value>\S+) from (?P<what>.+)"),
        ("RENAME", r"rename (?P<what>.+?) (?:to|as|into) (?P<value>.+)"),
        ("REMOVE", r"delete (?P<what>.+)(?P<value>)"),
        ("REMOVE", r"(?:delete|remove) (?P<what>.+?) from (?P<value>.+)"),
        ("PUSH", r"(?:add|append) (?P<value>.+?) to (?P<what>.+)"),
        ("SET", rf"[把将](?P<what>.+?)(?:的值)?{_ZH_TO}(?P<value>.+)"),
        ("SET", rf"(?P<what>.+?)(?:的值)?{_ZH_TO}(?P<value>.+)"),
        ("UP", r"[把将]?(?P<what>.+?)(?:增加|加上|提高|加)了?(?P<value>[^到入进]+)"),
        ("DOWN", r"[把将]?(?P<what>.+?)(?:减少|减去|降低|减)了?(?P<value>[^到]+)"),
        ("RENAME", r"[把将](?P<what>.+?)(?:改名为|重命名为|改名叫)(?P<value>.+)"),
        ("REMOVE", r"(?:删除|删掉)(?P<what>.+)(?P<value>)"),
        ("REMOVE", r"[把将](?P<what>.+?)(?P<value>)(?:删除|删掉)"),
        ("REMOVE", r"[把将](?P<what>.+?)从(?P<value>.+?)[里中]?(?:面)?(?:删除|删掉|移除|去掉)"),
        ("PUSH", r"[把将](?P<value>.+?)(?:加到|添加到|加入|加进)(?P<what>.+?)[里中]?(?:面)?"),
    )
)
_MEASURES = "个把瓶件张块元点次人天本只条颗枚份"
_NUMBER = re.compile(r"[+-]?\d{1,15}(?:\.\d{1,9})?")
_NUMBER_WORDS = (
    "zero 零, one 一, two 二 两, three 三, four 四, five 五, "
    "six 六, seven 七, eight 八, nine 九, ten 十"
)
_SAID_NUMBERS: Mapping[str, int] = {
    word: n for n, words in enumerate(_NUMBER_WORDS.split(", ")) for word in words.split()
}
_TRUE = frozenset("true yes on done complete completed finished 是 对 完成 已完成 开".split())
_FALSE = frozenset("false no off open undone 否 不是 未完成 关".split())
_STATUS_FIELDS = ("status", "state", "状态", "done", "completed", "完成")
_QUOTED = re.compile(r"[\"“「『'‘](.+)[\"”」』'’]")
_CLAUSE = re.compile(
    r"[,，;；。!?！？\n]|\b(?:and|then|but|because|so|if|when)\b|然后|并且|而且|因为|如果|但是"
)
_MOST_WORDS, _MOST_CJK = 4, 12
"""Length of a text that is taken for a value without quotes."""


@dataclass(frozen=True, slots=True)
class EditFormParser:
    """Reads edits out of messages, for one document."""

    objects: ObjectResolver
    document: Document
    statuses: Sequence[frozenset[str]]
    """Words that mean the same status, a group each."""

    def parse_edit(self, message: str) -> Edit | None:
        """The edit that a message asks for, if it asks for that and nothing else."""
        text = strip_politeness(message)
        if _QUESTION.search(message) and not _ASKING.match(message.strip()):
            return None
        matches = ((name, form.fullmatch(text)) for name, form in _FORMS)
        found = [
            self._make_edit(name, match["what"].strip(), match["value"].strip())
            for name, match in matches
            if match is not None
        ]
        edits = {repr(e): e for e in found if e is not None}
        # What cannot be applied was meant otherwise.
        sure = [e for e in edits.values() if not apply_edits(self.document, [e]).errors]
        return sure[0] if len(sure) == 1 else None

    def _make_edit(self, name: str, what: str, value: str) -> Edit | None:
        target = self.objects.resolve(what)
        if target is None:
            return None
        match name:
            case "SET":
                return self._make_set(target, value)
            case "UP" | "DOWN":
                by = parse_number(value)
                if target.field is None or by is None or by < 0:
                    return None
                return ("INC", target.path, by if name == "UP" else -by)
            case "RENAME":
                field, text = find_label_field(target.node.value), parse_text(value)
                named = target.field is None and field is not None and text is not None
                return ("SET", f"{target.node.anchor}.{field}", text) if named else None
            case "REMOVE":
                return self._make_remove(target, value)
        return self._make_push(target, value)

    def _make_set(self, target: EditTarget, said: str) -> Edit | None:
        field = target.field or _find_status_field(target.node.value)
        if field is None or (target.field is None and not target.node.anchor):
            return None
        likes = target.list_siblings()
        old = next((like[field] for like in likes if like.get(field) is not None), None)
        value = self._parse_value(said, old, [like.get(field) for like in likes], field)
        path = f"{target.node.anchor}.{field}" if target.node.anchor else field
        return None if value is None else ("SET", path, value)

    def _parse_value(
        self, said: str, old: object, others: Sequence[object], field: str
    ) -> Any | None:
        """A text as a value of the kind that is there; None if it is not one for sure."""
        kind = describe_kind(old)
        if kind == "true or false":
            word = fold(said) or "done"
            return True if word in _TRUE else False if word in _FALSE else None
        if kind == "a number":
            return parse_number(said)
        if kind != "a text":
            return None
        if field in _STATUS_FIELDS:
            status = said or "done"
            for values in (others, self.objects.list_values(field)):
                texts = [v for v in values if isinstance(v, str)]
                if known := find_words(status, texts, self.statuses):
                    return known[0]
            # One that no other thing has, only if it is a word for a status.
            return status.lower() if any(status.lower() in g for g in self.statuses) else None
        return parse_text(said)

    def _make_remove(self, target: EditTarget, place: str) -> Edit | None:
        """Taking a thing away: whole things only, and where a list is named, out of that."""
        if target.field is not None or not target.node.has_own_anchor:
            return None
        if place:
            around = self.objects.resolve(place)
            listed = _find_list(around) if around is not None else None
            if listed is None or listed is not target.node.parent:
                return None
        return ("REMOVE", target.node.anchor)

    def _make_push(self, target: EditTarget, said: str) -> Edit | None:
        """Adding to a list of texts; the fields of a new object cannot be known here."""
        listed, text = _find_list(target), parse_text(said)
        texts = listed is not None and listed and all(isinstance(v, str) for v in listed)
        return ("PUSH", target.path, text) if texts and text is not None else None


def strip_politeness(message: str) -> str:
    """A message in one line, without the words of politeness around it."""
    text = " ".join(message.split())
    text = _TRAIL.sub("", text)
    return _LEAD.sub("", text).strip()


def parse_number(said: str) -> int | float | None:
    """A number alone, in figures or as a small word."""
    word = said.lower().strip()
    word = word[:-1].strip() if word[-1:] in _MEASURES else word
    if word in _SAID_NUMBERS:
        return _SAID_NUMBERS[word]
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


def _find_list(target: EditTarget) -> list[Any] | None:
    """The list that a target is or has."""
    value = target.node.value if target.field is None else target.node.value.get(target.field)
    if isinstance(value, dict):
        lists = [v for v in value.values() if isinstance(v, list)]
        return lists[0] if len(lists) == 1 else None
    return value if isinstance(value, list) else None
