"""Texts with values in them that can still be said in another language."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Number
from typing import Self


class FilledText(str):
    """A template filled with values: an English text that knows what it was made from.

    ```python
    text = FilledText("there is no session {name!r}", name="work")
    text            # "there is no session 'work'"
    text.template   # "there is no session {name!r}", which a catalogue has in other languages
    text.values     # {"name": "work"}
    ```

    Without values the text is taken as it is, braces and all.
    """

    template: str
    """The text before its values were put in, as catalogues have it."""
    values: Mapping[str, object]
    """The value of each name in braces; nothing but texts and numbers."""

    def __new__(cls, template: str, /, **values: object) -> Self:
        """Fill a template by `str.format`."""
        if isinstance(template, cls) and not values:
            return template
        text = super().__new__(cls, template.format(**values) if values else template)
        text.template = str(template)
        text.values = {
            name: value if isinstance(value, str | Number) else _Shown(value)
            for name, value in values.items()
        }
        return text


class _Shown(str):
    """A text in the place of a value that is neither text nor number, which need not be kept."""

    _repr: str

    def __new__(cls, value: object) -> Self:
        text = super().__new__(cls, value)
        text._repr = repr(value)
        return text

    def __repr__(self) -> str:
        return self._repr


def join_texts(texts: Iterable[str]) -> str:
    """Texts in one, with semicolons between them; each can still be said in another language."""
    values = {f"text{number}": text for number, text in enumerate(texts)}
    return FilledText("; ".join(f"{{{name}}}" for name in values), **values)
