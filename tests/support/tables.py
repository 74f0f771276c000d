"""Tables of data: a test runs over all the rows of one, and lists all that are wrong."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from textwrap import indent
from typing import Any

import pytest

Test = Callable[..., None]


class WrongRowsError(AssertionError):
    """Rows of a table are wrong."""


def each_row(names: str | Sequence[str], rows: Iterable[Any]) -> Callable[[Test], Test]:
    """Run a test with each row of a table, in one test.

    Takes what `pytest.mark.parametrize` takes. The rows share the fixtures of the test. If some
    are wrong, the test fails with a line for each of them and the traceback of the first.
    """
    keys = names.replace(",", " ").split() if isinstance(names, str) else list(names)
    table = [row if len(keys) > 1 else (row,) for row in rows]

    def decorate(test: Test) -> Test:
        @wraps(test)
        def test_all(*instance: Any, **fixtures: Any) -> None:
            wrong: list[tuple[str, BaseException]] = []
            for row in table:
                named = dict(zip(keys, row, strict=True))
                try:
                    test(*instance, **fixtures, **named)
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - a row's
                    wrong.append((f"{row!r:.100}", error))
            if wrong:
                lines = [f"{row}: {_describe(error)}" for row, error in wrong]
                title = f"{len(wrong)} of {len(table)} rows are wrong"
                raise WrongRowsError("\n".join((title, *lines))) from wrong[0][1]

        signature = inspect.signature(test)
        left = [p for name, p in signature.parameters.items() if name not in keys]
        vars(test_all)["__signature__"] = signature.replace(parameters=left)
        return test_all

    return decorate


def _describe(error: BaseException) -> str:
    if isinstance(error, WrongRowsError):
        return indent(str(error), "  ").lstrip()
    return f"{type(error).__name__}: {error}".partition("\n")[0]
