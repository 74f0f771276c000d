"""Embed the examples of kinds of messages that ship: `python scripts/pack_examples.py`.

Run it after a change of `idle_*.txt`, `needing_*.txt`, `fact_*.txt` or `going_on_*.txt` in
`prompts/cues/`, or of the encoder that ships.
Until then everything works, but the first turn of each process embeds them anew.
"""

from __future__ import annotations

from topicloom import default_embedder
from topicloom.lab import PACKED, load_examples, pack_vectors

if __name__ == "__main__":
    embedder, texts = default_embedder(), load_examples()
    pack_vectors(embedder.fingerprint, texts, {kind: embedder.embed(texts[kind]) for kind in texts})
    print(f"{PACKED.name}: {PACKED.stat().st_size:,} bytes")
