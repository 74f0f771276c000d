"""Items that reflection keeps in a LangGraph store, and reads leniently."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

PREFIX = "topicloom"
"""The namespace that everything is under; that of `StoreStorage`, too."""

M = TypeVar("M", bound=BaseModel)


def read_item(kind: type[M], value: Mapping[str, Any]) -> M | None:
    try:
        return kind.model_validate(value)
    except ValidationError:
        return None


def clean(value: Any) -> Any:
    """JSON data without what PostgreSQL refuses: NUL characters and lone surrogates."""
    if isinstance(value, str):
        return value.replace("\0", "").encode("utf-8", "replace").decode()
    if isinstance(value, Mapping):
        return {key: clean(v) for key, v in value.items()}
    return [clean(v) for v in value] if isinstance(value, list | tuple) else value
