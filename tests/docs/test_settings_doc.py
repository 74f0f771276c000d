"""The page of settings and the example of an environment say what the code says."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from topicloom.settings import Settings

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "settings_doc.py"))


def test_the_page_has_every_setting_as_it_is() -> None:
    page = (ROOT / "docs" / "reference" / "settings.md").read_text("utf-8")
    made = SCRIPT["page_with_tables"](page)
    assert made == page, "run: python scripts/settings_doc.py"


def test_the_example_of_an_environment_names_every_role() -> None:
    example = (ROOT / ".env.example").read_text("utf-8")
    assert SCRIPT["example_with_roles"](example) == example, "run: python scripts/settings_doc.py"


def test_the_example_of_an_environment_can_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    example = (ROOT / ".env.example").read_text("utf-8")
    variables = dict(re.findall(r"^#?(TOPICLOOM_\w+)=(.*)$", example, re.MULTILINE))
    assert variables
    for name, value in variables.items():
        setting = name.removeprefix("TOPICLOOM_").lower()
        assert setting in Settings.model_fields
        monkeypatch.setenv(name, value.strip("'") or "x")
        assert setting in Settings().model_fields_set
