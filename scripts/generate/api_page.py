"""The pages of the API, a page for each area, made from the docstrings."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from itertools import pairwise
from pathlib import Path
from textwrap import dedent
from typing import Any, NamedTuple

from pydantic import BaseModel
from scripts.generate.files import (
    drop_sources,
    join_lines,
    list_fields,
    read_docstring,
    replace_part,
)
from typing_extensions import is_typeddict

import topicloom
import topicloom_app
from topicloom import RoleSpec, Settings, testing

_SECTION = re.compile(r"^(Args|Returns|Yields|Raises):\n((?:[ ]{4}.*\n?|\n)*)", re.MULTILINE)
_ENTRY = re.compile(r"^[ ]{4}(\*{0,2}\w+): ((?:.|\n[ ]{8}|\n(?=\n))*)", re.MULTILINE)
_WIDTH = 100
_SETTINGS = {Settings, *(field.annotation for field in Settings.model_fields.values())}
"""Models whose fields have a page of their own."""
AREAS: Mapping[str, Sequence[str]] = {
    "graph": ("A session", "An application's own data", "Policies"),
    "memory": ("Memory",),
    "storage": ("What is stored", "Storages", "A storage of your own", "Encryption"),
    "reviews": ("Reviews", "Reflection"),
    "roles": ("Roles", "Encoders", "Measuring"),
    "errors": ("Errors",),
    "application": ("Recorded conversations", "An endpoint", "Other programs"),
    "testing": ("Testing",),
}
"""The pages, each with the groups of names on it."""


def fill_contents(page: str) -> str:
    """The first page: where each name is."""
    rows = [
        f"| [{group.title}](api/{area}.md{_anchor(group, groups)}) | {names} |"
        for area, groups in _list_areas()
        for group in groups
        for names in [", ".join(f"`{name}`" for line in group.lines for name in line)]
    ]
    return replace_part(page, "names", "\n".join(["| about | names |", "|---|---|", *rows]))


def fill_page(area: str, page: str) -> str:
    """The page of an area: beneath what is written by hand, all of its names."""
    groups = dict(_list_areas())[area]
    text = "".join(_group(group) for group in groups)
    if len(groups) == 1:  # the page's own title says it
        text = re.sub("^###", "##", text.partition("\n\n")[2], flags=re.MULTILINE)
    return replace_part(page, "names", text)


class _Group(NamedTuple):
    title: str
    about: str
    lines: list[list[str]]
    """Names, those of a role in one line."""
    package: Any


def _group(group: _Group) -> str:
    text = f"## {group.title}\n\n{group.about}\n\n"
    if group.title == "Errors":
        return text + _tree_of_errors()
    for names in group.lines:
        values = {name: getattr(group.package, name) for name in names}
        spec = next((v for v in values.values() if isinstance(v, RoleSpec)), None)
        text += _role(spec, values) if spec else _entries(values)
    return text


def _list_areas() -> Iterator[tuple[str, list[_Group]]]:
    """The pages, each with its groups; a `KeyError` names a title that no group has."""
    found = {g.title: g for package in (topicloom, topicloom_app) for g in _list_groups(package)}
    about = _text(inspect.getdoc(testing))
    found["Testing"] = _Group("Testing", about, [[name] for name in testing.__all__], testing)
    for area, titles in AREAS.items():
        yield area, [found.pop(title) for title in titles]
    if found:
        raise ValueError(f"no page of the API has {', '.join(found)}: name it in AREAS")


def _list_groups(package: Any) -> Iterator[_Group]:
    """The groups of a package's docstring: title, description, and its lines of names."""
    for title, body in re.findall(r"^(\S.*)\n((?:    .*\n?)+)", package.__doc__, re.MULTILINE):
        lines = [line.split() for line in body.splitlines()]
        named = [line for line in lines if set(line) <= set(package.__all__)]
        about = " ".join(w for line in lines if line not in named for w in line)
        yield _Group(title, about, named, package)


def _anchor(group: _Group, groups: Sequence[_Group]) -> str:
    """Where a group begins on its page; the only one begins with the page."""
    slug = re.sub(r"[^\w-]", "", group.title.lower().replace(" ", "-"))
    return f"#{slug}" if len(groups) > 1 else ""


def _tree_of_errors() -> str:
    tree = inspect.getdoc(inspect.getmodule(topicloom.TopicLoomError)) or ""
    return tree.partition("\n\n")[2] + "\n\n"


def _role(spec: RoleSpec[Any], values: Mapping[str, Any]) -> str:
    """A role: what it is for, then its Protocol, request and answer."""
    rest = {name: value for name, value in values.items() if value is not spec}
    return f"### `{spec.name.upper()}`\n\nThe role that {spec.purpose}.\n\n{_entries(rest, '####')}"


def _entries(values: Mapping[str, Any], level: str = "###") -> str:
    return "".join(_entry(name, value, level) for name, value in values.items())


def _entry(name: str, value: Any, level: str) -> str:
    """A heading, the signature, the docstring, and of a class its fields and methods."""
    text = f"{level} `{name}`\n\n"
    if inspect.isclass(value) and value.__module__.startswith("topicloom"):
        return text + _class(name, value)
    if callable(value) and inspect.isfunction(inspect.unwrap(value)):
        return text + _fenced(_signature(name, value)) + _docstring(value)
    return text + _fenced(f"{name} = {_alias(value)}") + _documented_at(name, value)


def _class(name: str, kind: type) -> str:
    fields = _fields(kind)
    text = _docstring(kind)
    begun = next((vars(c)["__init__"] for c in _parts(kind) if "__init__" in vars(c)), None)
    if not fields and begun is not None and not getattr(kind, "_is_protocol", False):
        text = _fenced(_signature(name, kind)) + text + _sections(begun)
    if issubclass(kind, BaseModel) and kind in _SETTINGS:
        text += "Its fields stand in [Settings](../settings.md).\n\n"
    elif fields:
        text += "| field | type | meaning |\n|---|---|---|\n"
        text += "".join(f"| `{f}` | {_cell(t)} | {m} |\n" for f, t, m in fields) + "\n"
    methods = list(_methods(kind))
    if methods:
        text += "".join(f"- `{signature}`: {about}\n" for signature, about in methods) + "\n"
    return text


def _fields(kind: type) -> list[tuple[str, str, str]]:
    """Name, type and meaning of each field of a data class, model or typed dictionary."""
    if not (is_dataclass(kind) or is_typeddict(kind) or issubclass(kind, BaseModel)):
        return []
    return list_fields(kind)


def _parts(kind: type) -> list[type]:
    """A class, and the classes that it is made of and that have no place on this page."""
    ours = [c for c in kind.__mro__[1:] if c.__module__.startswith("topicloom.")]
    return [kind, *(c for c in ours if c.__name__ not in topicloom.__all__)]


def _methods(kind: type) -> Iterator[tuple[str, str]]:
    """Signature and first sentence of the methods and properties of a class, its parts' first."""
    for name, value in [pair for part in reversed(_parts(kind)) for pair in vars(part).items()]:
        inner = ("_", "model_", "settings_")  # the last two are of pydantic
        public = not name.startswith(inner) or name in ("__call__", "__getitem__")
        if isinstance(value, property) and public:
            yield name, _first(value.__doc__)
        elif isinstance(value, staticmethod | classmethod) and public:
            yield _signature(name, value.__func__, line=True), _first(value.__doc__)
        elif inspect.isfunction(value) and public and value.__doc__:
            yield _signature(name, value, line=True), _first(value.__doc__)


def _signature(name: str, value: Any, *, line: bool = False) -> str:
    """A signature as one would write it; in short, `line`, without types."""
    signature = inspect.signature(value)
    parameters = [p for p in signature.parameters.values() if p.name not in ("self", "cls")]
    if line:
        bare = [p.replace(annotation=p.empty) for p in parameters]
        return f"{name}{inspect.Signature(bare)}"
    written, starred = [], False
    for parameter in parameters:
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            written.append("*")
        starred = starred or parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        written.append(_parameter(parameter))
    returned = signature.return_annotation
    end = "" if returned in ("None", signature.empty) else f" -> {returned}"
    whole = f"{name}({', '.join(written)}){end}"
    if len(whole) <= _WIDTH:
        return whole
    return f"{name}(\n" + "".join(f"    {one},\n" for one in written) + f"){end}"


def _parameter(parameter: inspect.Parameter) -> str:
    text = str(parameter.replace(annotation=parameter.empty, default=parameter.empty))
    if parameter.annotation is not parameter.empty:
        text += f": {parameter.annotation}"
    return text if parameter.default is parameter.empty else f"{text} = {parameter.default!r}"


def _docstring(value: Any) -> str:
    """The text of a docstring, then its sections as lists."""
    text = inspect.getdoc(value) or ""
    return f"{_text(_SECTION.split(text)[0].strip())}\n\n" + _sections(value)


def _sections(value: Any) -> str:
    parts = []
    for title, body in _SECTION.findall(inspect.getdoc(value) or ""):
        entries = _ENTRY.findall(body)
        if title in ("Args", "Raises") and entries:
            lines = [f"- `{name}`: {join_lines(about)}" for name, about in entries]
            parts.append(f"{'Arguments' if title == 'Args' else title}:\n\n" + "\n".join(lines))
        else:
            parts.append(f"{title}: {join_lines(body)}")
    return "".join(f"{part}\n\n" for part in parts)


def _text(text: str | None) -> str:
    """Paragraphs in one line each; indented ones are code."""
    paragraphs = re.split(r"\n{2,}", drop_sources(text or ""))
    return "\n\n".join(
        _fenced(dedent(p)).rstrip() if p.startswith("    ") else join_lines(p) for p in paragraphs
    ).replace("\n```\n\n```py\n", "\n\n")


def _alias(value: Any) -> str:
    if isinstance(value, tuple):
        return "(\n" + "".join(f"    {one.__name__},\n" for one in value) + ")"
    text = value.__name__ if isinstance(value, type) else str(value)
    return re.sub(r"\b(?:\w+\.)+(?=\w)", "", text)


def _find_homes() -> dict[str, str]:
    """The modules that public names are loaded from."""
    stub = ast.parse(Path(str(topicloom.__file__)).with_suffix(".pyi").read_text("utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    return {a.name: f"topicloom.{node.module}" for node in imports for a in node.names}


def _documented_at(name: str, value: Any) -> str:
    """The docstring under an alias, where it has one."""
    home = _find_homes().get(name, testing.__name__)
    body = ast.parse(inspect.getsource(sys.modules[home])).body
    for statement, following in pairwise(body):
        match statement:
            case ast.Assign(targets=[ast.Name(id=found)]) if found == name:
                return f"{read_docstring(following)}\n\n".lstrip("\n")
    return ""


def _first(text: str | None) -> str:
    return join_lines((text or "").partition("\n\n")[0])


def _cell(kind: str) -> str:
    shown = re.sub(r"^SkipJsonSchema\[(.*)\]$", r"\1", kind)
    return f"`{shown}`".replace("|", "\\|")


def _fenced(code: str) -> str:
    return f"```py\n{code}\n```\n\n"
