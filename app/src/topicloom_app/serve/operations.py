"""Operations of an interface over HTTP: read from requests, and described by OpenAPI.

An operation is a function. Its parameters say what a request gives, its return type what is
answered, and its docstring is what clients read about it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from inspect import Parameter, cleandoc, signature
from typing import Any, Literal, get_type_hints

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, create_model

from topicloom_app.serve.web import InvalidRequestError

Method = Literal["GET", "POST", "DELETE"]
_REF = "#/components/schemas/{model}"
_JSON = "application/json"


@dataclass(frozen=True)
class Operation:
    """A function that clients call by a method and a path."""

    method: Method
    path: str
    """As OpenAPI has it: `/threads/{thread}/topics`."""
    run: Callable[..., Awaitable[object]]
    """Its first parameter is given by the server. The parameter `body` is the request's JSON; the
    others are in the path, or else in the query."""

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.run.__name__

    @cached_property
    def parameters(self) -> Mapping[str, Parameter]:
        """What a request gives, with the types of it."""
        hints = get_type_hints(self.run, include_extras=True)
        _, *given = signature(self.run).parameters.values()
        return {p.name: p.replace(annotation=hints[p.name]) for p in given}

    @cached_property
    def answer(self) -> TypeAdapter[Any]:
        """The type of what is answered."""
        return TypeAdapter(get_type_hints(self.run, include_extras=True)["return"])

    @cached_property
    def _request(self) -> type[BaseModel]:
        fields: dict[str, Any] = {
            name: (p.annotation, ... if p.default is p.empty else p.default)
            for name, p in self.parameters.items()
        }
        return create_model(self.name, __config__=ConfigDict(extra="forbid"), **fields)

    def read(self, values: Mapping[str, object]) -> dict[str, Any]:
        """What the function is called with; raises `InvalidRequestError` if it cannot be."""
        try:
            return dict(self._request.model_validate(values))
        except ValidationError as error:
            raise InvalidRequestError(error) from error


def describe_operations(
    operations: Sequence[Operation], prefix: str, frame: Mapping[str, Any]
) -> dict[str, Any]:
    """The OpenAPI 3.1 document of operations below a path.

    Args:
        operations: What it describes.
        prefix: The path.
        frame: What the document says besides. Its `components` have the schema `Error`, and the
            parameters that operations do not declare themselves: each of their headers, and what
            their paths name.
    """
    components = frame["components"]
    answers, sent = TypeAdapter.json_schemas(
        [(operation.name, "serialization", operation.answer) for operation in operations],
        ref_template=_REF,
    )
    given, taken = TypeAdapter.json_schemas(
        [
            ((operation.name, name), "validation", TypeAdapter(p.annotation))
            for operation in operations
            for name, p in operation.parameters.items()
        ],
        ref_template=_REF,
    )
    schemas = sent.get("$defs", {})
    for schema in schemas.values():  # what is sent has all fields, those at their defaults too
        if "properties" in schema:
            schema["required"] = list(schema["properties"])
    paths = dict[str, dict[str, Any]]()
    for operation in operations:
        path = paths.setdefault(prefix + operation.path, {})
        path[operation.method.lower()] = _describe(
            operation,
            answers[operation.name, "serialization"],
            {name: given[(operation.name, name), "validation"] for name in operation.parameters},
            components["parameters"],
        )
    known = {**components["schemas"], **taken.get("$defs", {}), **schemas}
    parts = {**components, "schemas": dict(sorted(known.items()))}
    return {"openapi": "3.1.0", **frame, "paths": paths, "components": parts}


def _describe(
    operation: Operation,
    answer: Mapping[str, Any],
    given: Mapping[str, Mapping[str, Any]],
    shared: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    summary, _, more = cleandoc(operation.run.__doc__ or "").partition("\n")
    described: dict[str, Any] = {"operationId": operation.name, "summary": summary.rstrip(".")}
    if more.strip():
        described["description"] = " ".join(more.split())
    described["parameters"] = [
        {"$ref": f"#/components/parameters/{name}"}
        for name, parameter in shared.items()
        if parameter["in"] == "header" or f"{{{name}}}" in operation.path
    ] + [
        _describe_parameter(operation, name, schema)
        for name, schema in given.items()
        if name != "body"
    ]
    if "body" in given:
        described["requestBody"] = {
            "required": True,
            "content": {_JSON: {"schema": given["body"]}},
        }
    error = {"schema": {"$ref": _REF.format(model="Error")}}
    described["responses"] = {
        "200": {"description": "What was asked for.", "content": {_JSON: {"schema": answer}}},
        "default": {"description": "What is wrong.", "content": {_JSON: error}},
    }
    return described


def _describe_parameter(
    operation: Operation, name: str, schema: Mapping[str, Any]
) -> dict[str, Any]:
    default = operation.parameters[name].default
    in_path = f"{{{name}}}" in operation.path
    shown = {key: value for key, value in schema.items() if key != "description"}
    if default not in (Parameter.empty, None):
        shown["default"] = default
    described = {
        "name": name,
        "in": "path" if in_path else "query",
        "required": default is Parameter.empty,
        "description": schema.get("description", ""),
        "schema": shown,
    }
    return {key: value for key, value in described.items() if value != ""}
