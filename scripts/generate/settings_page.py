"""Settings and roles, on their page and in the example of an environment."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import fill
from types import UnionType
from typing import Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from scripts.generate.files import list_fields, replace_part

from topicloom import Settings
from topicloom.lab import ROLES, spec_of

_NAMES = re.compile(r"(?<=# A model of its own for a role:\n)(?:# .*\n)+")


def fill_page(page: str) -> str:
    """The page with the roles and settings of the code as it is now."""
    return replace_part(replace_part(page, "roles", _list_roles()), "settings", _list_settings())


def fill_example(example: str) -> str:
    """The example of an environment with the names of the roles as they are now.

    Raises:
        ValueError: The example has no place for them.
    """
    names = fill(", ".join(ROLES) + ".", 110, initial_indent="# ", subsequent_indent="# ")
    example, found = _NAMES.subn(f"{names}\n", example)
    if not found:
        raise ValueError(f"the example needs lines of {_NAMES.pattern!r}")
    return example


def _list_roles() -> str:
    """A line for each role."""
    lines = ["| role | what it does | which model | if it fails |", "|---|---|---|---|"]
    for spec in map(spec_of, ROLES):
        model = {
            "always": f"the {spec.model} one",
            "if named": "only one named for it",
            "with a cheap model": "the cheap one, where it is set",
            "with a domain": f"the {spec.model} one, with a domain",
        }[spec.played]
        fails = spec.without or "its embedded form stands in"
        lines.append(f"| `{spec.name}` | {spec.purpose} | {model} | {fails} |")
    return "\n".join(lines) + "\n"


def _list_settings() -> str:
    """A table of the plain settings, then one of each group."""
    meanings = _find_meanings(Settings)
    plain = [n for n, f in Settings.model_fields.items() if _group(f) is None]
    parts = [_table(Settings, plain, "TOPICLOOM_")]
    for name, field in Settings.model_fields.items():
        group = _group(field)
        if group is not None:
            about = meanings[name]
            table = _table(group, list(group.model_fields), f"TOPICLOOM_{name.upper()}__")
            parts.append(f"## `{name}`\n\n{about}\n\n{table}")
    return "\n".join(parts)


def _table(model: type[BaseModel], names: list[str], prefix: str) -> str:
    meanings = _find_meanings(model)
    lines = ["| variable | value | default | meaning |", "|---|---|---|---|"]
    for name in names:
        field = model.model_fields[name]
        cells = (f"`{prefix}{name.upper()}`", _kind(field), _default(field), meanings[name])
        lines.append("| " + " | ".join(cell for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def _group(field: FieldInfo) -> type[BaseModel] | None:
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def _find_meanings(model: type[BaseModel]) -> dict[str, str]:
    return {name: meaning for name, _, meaning in list_fields(model)}


def _kind(field: FieldInfo) -> str:
    words = " or ".join(_words(field.annotation))
    bounds = ", ".join(_bounds(field))
    return f"{words}, {bounds}" if bounds else words


def _words(kind: object) -> Iterator[str]:
    arguments = [a for a in get_args(kind) if a is not type(None)]
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        for argument in arguments:
            yield from _words(argument)
    elif origin is Literal:
        yield from (f"`{argument}`" for argument in arguments)
    elif origin is tuple:
        yield "JSON list"
    elif origin is dict:
        yield "JSON object"
    else:
        names = {str: "text", int: "whole number", float: "number", bool: "`true` or `false`"}
        yield names.get(kind, "path" if kind is Path else str(kind))  # type: ignore[call-overload]


def _bounds(field: FieldInfo) -> Iterator[str]:
    for bound in field.metadata:
        match bound:
            case Ge(ge=value):
                yield f"≥ {value}"
            case Gt(gt=value):
                yield f"> {value}"
            case Le(le=value):
                yield f"≤ {value}"
            case Lt(lt=value):
                yield f"< {value}"


def _default(field: FieldInfo) -> str:
    value = field.get_default(call_default_factory=True)
    if value is None or value in ((), {}):
        return "not set"
    return f"`{str(value).lower()}`" if isinstance(value, bool) else f"`{value}`"
