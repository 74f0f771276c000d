"""The types of what the inspector's page is sent and sends, in TypeScript.

They follow from the models in `topicloom_app.ui.answers` and `topicloom_app.changes`, so that a
field of a receipt is declared once, in Python.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import TypeAdapter

from topicloom_app.changes import Change
from topicloom_app.ui.answers import ANSWERS, PageEvent

HEAD = "// Written by bin/generate. Change ui/answers.py or changes.py in topicloom_app.\n"
_SCALARS = {
    "string": "string",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "null": "null",
}

Schema = Mapping[str, Any]


def write_types() -> str:
    """The file, made of the JSON schemas of all answers and of what the page asks for."""
    sent = {kind.__name__: kind for kind in ANSWERS} | {"PageEvent": PageEvent}
    answers = _list_schemas(sent, "serialization")
    for schema in answers.values():  # what is sent has all fields, those at their defaults too
        if "properties" in schema:
            schema["required"] = list(schema["properties"])
    schemas = answers | _list_schemas({"Change": Change}, "validation")
    return HEAD + "".join(_declare(name, schemas[name]) for name in sorted(schemas))


def _list_schemas(
    kinds: Mapping[str, Any], mode: Literal["serialization", "validation"]
) -> dict[str, dict[str, Any]]:
    """The JSON schemas of some types, and of all that they are made of, by name."""
    adapters = [(name, mode, TypeAdapter[Any](kind)) for name, kind in kinds.items()]
    roots, shared = TypeAdapter.json_schemas(adapters)
    found = {name: schema for (name, _), schema in roots.items() if "$ref" not in schema}
    return {str(n).lstrip("_"): s for n, s in {**found, **shared.get("$defs", {})}.items()}


def _declare(name: str, schema: Schema) -> str:
    """A type of its own, by the name that it has in Python."""
    text = schema.get("description", "").partition("\n")[0]
    comment = f"/** {text} */\n" if text else ""
    if "properties" not in schema:
        return f"{comment}export type {name} = {show_type(schema)};\n"
    return f"{comment}export interface {name} {_show_fields(schema)}\n"


def _show_fields(schema: Schema) -> str:
    required = set(schema.get("required", ()))
    fields = [
        f"  {key}{'' if key in required else '?'}: {show_type(part)};"
        for key, part in schema["properties"].items()
    ]
    if schema.get("additionalProperties") is True:
        fields.append("  [other: string]: unknown;")
    return "\n".join(["{", *fields, "}"])


def show_type(schema: Schema) -> str:
    """A JSON schema as a type of TypeScript.

    Raises:
        ValueError: If it says something that has no type here yet.
    """
    match schema:
        case {"$ref": str(ref)}:
            return ref.rpartition("/")[2].lstrip("_")
        case {"const": value}:
            return json.dumps(value)
        case {"enum": [*values]}:
            return " | ".join(map(json.dumps, values))
        case {"anyOf": [*parts]} | {"oneOf": [*parts]}:
            return " | ".join(dict.fromkeys(map(show_type, parts)))
        case {"type": "array", "prefixItems": [*parts]}:
            return f"[{', '.join(map(show_type, parts))}]"
        case {"type": "array"}:
            part = show_type(schema.get("items", {}))
            return f"({part})[]" if "|" in part else f"{part}[]"
        case {"type": "object", "properties": _}:
            return _show_fields(schema)
        case {"type": "object"}:
            value = schema.get("additionalProperties", {})
            return f"Record<string, {show_type(value) if isinstance(value, dict) else 'unknown'}>"
        case {"type": str(kind)} if kind in _SCALARS:
            return _SCALARS[kind]
        case _ if not schema.keys() - {"title", "default", "description"}:
            return "unknown"
    raise ValueError(f"no type of TypeScript for {schema!r}: add it to show_type")
