"""Check what a wheel holds: `python scripts/check_wheel.py dist/topicloom-*.whl`."""

from __future__ import annotations

import sys
from pathlib import PurePosixPath
from zipfile import ZipFile

WANTED = (
    "topicloom/py.typed",
    "topicloom/index/model/minilm-int8.onnx",
    "topicloom/index/model/tokenizer.json",
    "topicloom/boundary/boundary.npz",
    "topicloom/boundary/boundary.json",
    "topicloom/perception/rejoin/rejoin.npz",
    "topicloom/perception/rejoin/rejoin.json",
    "topicloom/prompts/en/*.md",
    "topicloom/prompts/zh/*.md",
    "topicloom/prompts/cues/*.txt",
    "topicloom/samples/*.jsonl",
    "topicloom/templates/*.jinja",
    "topicloom/evaluation/example.toml",
    "topicloom-*.dist-info/licenses/LICENSE",
    "topicloom-*.dist-info/licenses/NOTICE",
)
"""Patterns that some file has to match."""


def problems(names: list[str]) -> list[str]:
    """What is wrong with the names in a wheel, a sentence each."""
    paths = [PurePosixPath(name) for name in names]
    tops = {path.parts[0] for path in paths if not path.parts[0].endswith(".dist-info")}
    found = [f"{name} stands at the top beside topicloom" for name in sorted(tops - {"topicloom"})]
    return found + [f"nothing matches {p}" for p in WANTED if not any(x.match(p) for x in paths)]


def main(wheel: str) -> None:
    """Print what is wrong and exit with 1, or say that all is there."""
    with ZipFile(wheel) as file:
        names = file.namelist()
        size = sum(info.compress_size for info in file.infolist())
    found = problems(names)
    if found:
        sys.exit("\n".join(found))
    print(f"{PurePosixPath(wheel).name}: {len(names)} files, {size / 1e6:.1f} MB, as it should be")


if __name__ == "__main__":
    main(sys.argv[1])
