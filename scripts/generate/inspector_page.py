"""The page of the inspector, built from `ui/` into the application."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

from scripts.generate.files import ROOT

PATH = ROOT / "app" / "src" / "topicloom_app" / "ui" / "static" / "digests.json"


def is_current() -> bool:
    """True if what is built fits its sources, by the digests that the build wrote."""
    built, sources = PATH.parent, ROOT / "ui"
    names = ("build.mjs", "package-lock.json", "package.json", "tsconfig.json")
    digests = {
        "sources": _digest([*map(sources.joinpath, names), *sorted(sources.glob("src/*"))]),
        "built": _digest(path for path in sorted(built.iterdir()) if path != PATH),
    }
    return bool(json.loads(PATH.read_text("utf-8")) == digests)


def build() -> None:
    """Build the page. Needs Node 20 or newer."""
    for command in (["npm", "ci"], ["npm", "run", "build"]):
        subprocess.run(command, cwd=ROOT / "ui", check=True)


def _digest(paths: Iterable[Path]) -> str:
    return sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()
