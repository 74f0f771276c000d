"""What is made from the code is of today's code: pages, pictures, translations, types, a sample."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from scripts.generate.files import ROOT, Generated
from scripts.generate.registry import list_quick, list_slow

SLOW = {file.path.name: file for file in list_slow()}


def list_stale(files: Iterable[Generated]) -> list[str]:
    return [str(file.path.relative_to(ROOT)) for file in files if not file.is_current()]


def test_everything_that_is_generated_is_up_to_date() -> None:
    assert not list_stale(list_quick()), "run: bin/generate"


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(n, marks=pytest.mark.slow if n == "README.md" else pytest.mark.long)
        for n in SLOW
    ],
)
def test_what_takes_minutes_is_up_to_date_too(name: str) -> None:
    assert not list_stale([SLOW[name]]), "run: bin/generate --sample"
