"""Edits of the document as models write them, and the texts that answer them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from topicloom.domain.edits import AppliedEdit
from topicloom.roles.markup import find_json_values
from topicloom.state.language import Language

_OPERATIONS = frozenset({"SET", "INC", "PUSH", "REMOVE"})
_ALIASES = {"ADD": "PUSH", "APPEND": "PUSH", "DELETE": "REMOVE", "INCREMENT": "INC"}
_DEEPEST = 4
_WRAPPERS = ("edits", "operations", "ops")


def parse_edits(said: object, wrapped: int = 0) -> list[object]:
    """The edits of a tool's arguments or of an answer, read leniently; checked elsewhere.

    Takes `{"edits": [[...]]}`, a list of edits, one edit alone, edits as objects (`{"op": "SET",
    "path": ..., "value": ...}`), and JSON of any of these, `wrapped` levels deep in other things.
    """
    if wrapped > _DEEPEST:
        return []
    if isinstance(said, str):
        values = (value for value in find_json_values(said) if isinstance(value, dict | list))
        return next((edits for value in values if (edits := parse_edits(value, wrapped + 1))), [])
    if isinstance(said, dict):
        inner = next((said[name] for name in _WRAPPERS if name in said), None)
        if inner is not None:
            return parse_edits(inner, wrapped + 1)
        return [_parse_edit(said)] if _is_edit(said) else []
    if isinstance(said, list | tuple):
        return [_parse_edit(said)] if _is_edit(said) else [_parse_edit(entry) for entry in said]
    return []


def _is_edit(value: object) -> bool:
    if isinstance(value, dict):
        return bool({"op", "operation"} & value.keys())
    first = value[0] if isinstance(value, list | tuple) and value else None
    return isinstance(first, str) and _named(first) in _OPERATIONS


def _parse_edit(value: Any) -> object:
    if isinstance(value, str):
        with suppress(ValueError, RecursionError):
            value = json.loads(value)
    if isinstance(value, dict) and _is_edit(value):
        path = value.get("path", value.get("anchor", value.get("target")))
        rest = [value["value"]] if "value" in value else []
        value = [value.get("op", value.get("operation")), path, *rest]
    if isinstance(value, list | tuple) and value and isinstance(value[0], str):
        return [_named(value[0]), *value[1:]]
    return value


def _named(operation: str) -> str:
    upper = operation.strip().upper()
    return _ALIASES.get(upper, upper)


_MADE = {
    "en": (
        "Done: {changes}.",
        "; ",
        "{label}: {field} is now {value}",
        "{field} is now {value}",
        "{value} was added to {label}",
        "{label} was removed",
        "{label} has no {field} any more",
    ),
    "zh": (
        "好了，{changes}。",
        "；",
        "{label}：{field} 现在是 {value}",
        "{field} 现在是 {value}",
        "已将{value}加入{label}",
        "已删除{label}",
        "{label}不再有 {field}",
    ),
}
_REFUSED = {
    "en": "I could not make that change, so everything is as it was before. "
    "Could you say it once more, with the exact name of what should change?",
    "zh": "这个改动没有成功，一切都保持原样。能否再说一次，并写明要改的是哪一项？",
}
_RESULT = {
    "en": (
        "The edits were made: {changes}.",
        "Nothing was changed, because not all of the edits "
        "can be made:\n{errors}\nMend them and call edit_state once more.",
    ),
    "zh": (
        "修改已生效：{changes}。",
        "什么都没有改动，因为其中有的修改不成立：\n{errors}\n请改正后再调用一次 edit_state。",
    ),
}


def format_confirmation(changes: Sequence[AppliedEdit], language: Language) -> str:
    return _MADE[language][0].format(changes=_format_changes(changes, language))


def format_refusal(language: Language) -> str:
    return _REFUSED[language]


def format_tool_result(
    changes: Sequence[AppliedEdit], errors: Sequence[str], language: Language
) -> str:
    """The result of `edit_state` for the model."""
    made, refused = _RESULT[language]
    if errors:
        return refused.format(errors="\n".join(f"- {error}" for error in errors))
    return made.format(changes=_format_changes(changes, language))


def _format_changes(changes: Sequence[AppliedEdit], language: Language) -> str:
    return _MADE[language][1].join(_format_change(change, language) for change in changes)


def _format_change(change: AppliedEdit, language: Language) -> str:
    _, _, field, own, pushed, removed, gone = _MADE[language]
    form = field if change.label else own
    if change.operation == "PUSH":
        form = pushed
    elif change.operation == "REMOVE":
        form = gone if change.field else removed
    label = change.label or ("the document" if language == "en" else "文档")
    value = change.value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return form.format(label=label, field=change.field, value=text)
