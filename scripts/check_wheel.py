"""Check what wheels hold: `python scripts/check_wheel.py dist/*.whl`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from zipfile import ZipFile

WANTED: Mapping[str, Sequence[str]] = {
    "topicloom": (
        "topicloom/py.typed",
        "topicloom/topics/lexicon.txt.gz",
        "topicloom/search/model/minilm-int8.onnx",
        "topicloom/search/model/tokenizer.json",
        "topicloom/search/model/chinese-int8.onnx",
        "topicloom/search/model/chinese-tokenizer.json",
        "topicloom/topics/boundary.npz",
        "topicloom/topics/boundary.json",
        "topicloom/prompts/en/*.md",
        "topicloom/prompts/zh/*.md",
        "topicloom/prompts/cues/*.txt",
        "topicloom/prompts/cues/times_*.txt",
        "topicloom/templates/*.jinja",
        "topicloom-*.dist-info/licenses/LICENSE",
        "topicloom-*.dist-info/licenses/NOTICE",
    ),
    "topicloom_app": (
        "topicloom_app/py.typed",
        "topicloom_app/samples/*.jsonl",
        "topicloom_app/samples/*.zip",
        "topicloom_app/ui/static/app.js",
        "topicloom_app/ui/static/preact-LICENSE.txt",
        "topicloom_app/cli/locale/zh/LC_MESSAGES/topicloom_app.mo",
        "topicloom_app-*.dist-info/entry_points.txt",
        "topicloom_app-*.dist-info/licenses/LICENSE",
        "topicloom_app-*.dist-info/licenses/NOTICE",
    ),
    "topicloom_lab": (
        "topicloom_lab/py.typed",
        "topicloom_lab/comparison/example.toml",
        "topicloom_lab-*.dist-info/entry_points.txt",
        "topicloom_lab-*.dist-info/licenses/LICENSE",
    ),
}
"""For each package that is alone in its wheel, patterns that some file has to match."""


def problems(package: str, names: Sequence[str]) -> list[str]:
    """The problems with the names in the wheel of a package, a sentence each."""
    paths = [PurePosixPath(name) for name in names]
    tops = {path.parts[0] for path in paths if not path.parts[0].endswith(".dist-info")}
    found = [f"{name} stands at the top beside {package}" for name in sorted(tops - {package})]
    missing = [p for p in WANTED[package] if not any(path.match(p) for path in paths)]
    return found + [f"nothing matches {pattern}" for pattern in missing]


def check(wheel: PurePosixPath) -> None:
    """Print what is wrong and exit with 1, or say that all is there."""
    with ZipFile(wheel) as file:
        names = file.namelist()
        size = sum(info.compress_size for info in file.infolist())
    found = problems(wheel.name.partition("-")[0], names)
    if found:
        sys.exit("\n".join(found))
    print(f"{wheel.name}: {len(names)} files, {size / 1e6:.1f} MB, as it should be")


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        check(PurePosixPath(argument))
