"""What is said about edits: to the user in plain words, to the model as the result of a tool."""

from __future__ import annotations

import json
from collections.abc import Sequence

from topicloom.state.edits import Change
from topicloom.state.session import Language

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


def confirmation(changes: Sequence[Change], language: Language) -> str:
    """A short reply that says what was changed."""
    return _MADE[language][0].format(changes=_told(changes, language))


def refusal(language: Language) -> str:
    """A reply that says that nothing was changed."""
    return _REFUSED[language]


def tool_result(changes: Sequence[Change], errors: Sequence[str], language: Language) -> str:
    """What the model is told of its edits."""
    made, refused = _RESULT[language]
    if errors:
        return refused.format(errors="\n".join(f"- {error}" for error in errors))
    return made.format(changes=_told(changes, language))


def _told(changes: Sequence[Change], language: Language) -> str:
    return _MADE[language][1].join(_sentence(change, language) for change in changes)


def _sentence(change: Change, language: Language) -> str:
    _, _, field, own, pushed, removed, gone = _MADE[language]
    named = own if not change.label else field
    form = {"PUSH": pushed, "REMOVE": gone if change.field else removed}.get(
        change.operation, named
    )
    label = change.label or ("the document" if language == "en" else "文档")
    return form.format(label=label, field=change.field, value=_value(change.value))


def _value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
