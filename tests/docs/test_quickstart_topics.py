"""The quick start's example of topics prints what the page says, in both languages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGES = Path(__file__).parents[2] / "docs"


@pytest.mark.slow
@pytest.mark.parametrize("page", ["start/quickstart.md", "zh/quickstart.md"])
def test_its_two_subjects_come_out_as_two_topics(
    page: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = (PAGES / page).read_text("utf-8")
    code, printed = re.findall(
        r"```python\n([^`]*memory\.topics[^`]*)```\n+```text\n([^`]*)```", text
    )[0]
    monkeypatch.setenv("TOPICLOOM_FOLDER", str(tmp_path))
    exec(compile(code, page, "exec"), {})  # as the page says
    *topics, _ = capsys.readouterr().out.splitlines()
    assert topics == printed.splitlines()[:-1]
    assert len(topics) == 2
