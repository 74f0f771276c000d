"""The figures of the boundary model, from the file that its training wrote beside the weights."""

from __future__ import annotations

import json
from typing import Any

from topicloom.lab import PACKAGED


def list_figures() -> str:
    """A row for each data set."""
    described = json.loads(PACKAGED.with_suffix(".json").read_text("utf-8"))
    rows = {(f["split"], f["mode"], f["granularity"], f["file"]): f for f in described["figures"]}
    lines = [
        "| set | online | retrospective | online, `fine` | kind left out: online | retrospective |",
        "|---|---|---|---|---|---|",
    ]
    for file in sorted({f["file"] for f in described["figures"]}):
        keys = (
            ("folds", "online", "auto"),
            ("folds", "retrospective", "auto"),
            ("folds", "online", "fine"),
            ("kind", "online", "auto"),
            ("kind", "retrospective", "auto"),
        )
        lines.append(f"| {file} | " + " | ".join(_cell(rows[*k, file]) for k in keys) + " |")
    return "\n".join(lines)


def _cell(row: dict[str, Any]) -> str:
    return f"{_three(row['score'])} / {_three(row['pk'])} / {row['ratio']:.2f}"


def _three(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")
