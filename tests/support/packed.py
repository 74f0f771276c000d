"""Archives as earlier versions packed them, so that it is tested how they are read."""

from __future__ import annotations

import base64
import hashlib
import json
import lzma
from collections.abc import Sequence
from pathlib import Path

from langgraph.store.base import BaseStore

from topicloom.storage.chain import NO_PREV, split_line


def pack_file(plain: Path, month: str = "2026-03", *, brief: str = "", keep: bool = False) -> Path:
    """Pack the plain file of a chain, which goes unless it is to stay; returns the packed file."""
    folder = plain.parent / "archived" / month
    folder.mkdir(parents=True, exist_ok=True)
    packed = folder / f"{plain.name}.xz"
    lines = plain.read_bytes().splitlines(keepends=True)
    packed.write_bytes(lzma.compress(b"".join(lines)))
    (folder / f"{plain.stem}.json").write_bytes(make_summary(lines, brief))
    if not keep:
        plain.unlink()
    return packed


def pack_items(store: BaseStore, chain: tuple[str, ...], lines: Sequence[bytes]) -> str:
    """Pack a chain, by its namespace, into one block; returns the key of the block."""
    archive = (*chain[:-1], f"%archived-{chain[-1]}")
    block = lzma.compress(b"".join(lines))
    key = hashlib.sha256(block).hexdigest()[:32]
    store.put(archive, key, {"block": base64.b64encode(block).decode()})
    listed = {"month": "2026-03", "card": make_summary(lines, "").decode(), "blocks": [key]}
    store.put(archive, "card", listed)
    for item in store.search(chain, limit=100):
        store.delete(chain, item.key)
    return key


def make_summary(lines: Sequence[bytes], brief: str) -> bytes:
    """The summary that stands beside packed lines."""
    entries = [raw for raw in map(split_line, lines) if raw is not None]
    runs = [f"{raw.prev or NO_PREV} {raw.ref}" for raw in entries]
    return json.dumps({"brief": brief, "refs": runs}, indent=2).encode()
