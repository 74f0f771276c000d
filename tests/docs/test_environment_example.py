"""The example of an environment can be used as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from topicloom import Settings

ROOT = Path(__file__).parents[2]


def test_the_example_of_an_environment_can_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    example = (ROOT / ".env.example").read_text("utf-8")
    variables = dict(re.findall(r"^#?(TOPICLOOM_\w+)=(.*)$", example, re.MULTILINE))
    assert variables
    for name, value in variables.items():
        setting = name.removeprefix("TOPICLOOM_").lower()
        assert setting in Settings.model_fields
        monkeypatch.setenv(name, value.strip("'") or "x")
        assert setting in Settings().model_fields_set
