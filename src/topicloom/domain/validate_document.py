"""Checking documents against the application's schema."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

import jsonschema
import referencing
from jsonschema.validators import validator_for
from referencing.exceptions import Unresolvable

from topicloom.domain.document import Document, get_anchor, parse_document
from topicloom.domain.edits import DocumentCheck
from topicloom.errors import ConfigurationError, InputError

_MOST_FAULTS = 3
"""Faults that are named at once."""
_LONGEST = 240
"""Characters of a fault."""


def make_checker(schema: Mapping[str, Any]) -> DocumentCheck:
    """A function that gives the faults of a document by a schema.

    Raises:
        ConfigurationError: If it is no JSON schema. The function itself raises one if the schema
            refers to something that is not in it: nothing is fetched.
    """
    rules = dict(schema)
    kind = validator_for(rules, default=jsonschema.Draft202012Validator)
    try:
        kind.check_schema(rules)
    except jsonschema.SchemaError as error:
        raise ConfigurationError(f"domain.schema is not a JSON schema: {error.message}") from error
    validator = kind(rules, registry=referencing.Registry())

    def check(document: Document) -> list[str]:
        try:
            errors = list(islice(validator.iter_errors(document), _MOST_FAULTS))
        except Unresolvable as error:
            raise ConfigurationError(
                f"domain.schema has a reference that does not exist in it: {error}"
            ) from error
        return [_format_fault(document, e.absolute_path, e.message) for e in errors]

    return check


def _format_fault(document: Document, path: Iterable[str | int], message: str) -> str:
    """A fault under the flat path of where it is, as edits name it."""
    value: Any = document
    named: list[str] = []
    for step in path:
        value = value[step]
        own = get_anchor(value) if isinstance(value, dict) else None
        named = [own] if own else [*named, str(step)]
    text = message if len(message) <= _LONGEST else message[:_LONGEST] + "..."
    return f"{'.'.join(named) or 'document'}: {text}"


def validate_document(value: object, check: DocumentCheck | None) -> Document:
    """A document as it came from outside, as a copy that fits the schema.

    Raises:
        InputError: If it cannot be used; names the path.
    """
    document = parse_document(value)
    faults = check(document) if check else []
    if faults:
        raise InputError(f"the document does not fit the schema: {'; '.join(faults)}")
    return document
