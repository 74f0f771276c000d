"""`topicloom receipt`."""

from __future__ import annotations

import json
from pathlib import Path

from command_line import Run


def test_one_for_people_all_for_programs(run: Run, recording: Path) -> None:
    arguments = ("--session", "talk", "--no-questions", "--window", "1000")
    assert run("replay", str(recording), *arguments).code == 0
    assert run("receipt", "talk").out.count("answering m") == 1
    assert run("receipt", "talk", "-n", "3").out.count("answering m") == 3
    rows = [json.loads(line) for line in run("receipt", "talk", "--json").out.splitlines()]
    newest = run("receipt", "talk", "--json", "-n", "2").out.splitlines()
    assert [json.loads(line) for line in newest] == rows[-2:]
    assert len(rows) > 10
