"""Fit the weights of `topicloom.topics.belonging`, and judge them with each kind left out.

    python lab/scripts/belonging.py KIND=FILE[:MOST][*SHARE] ... [--level 1.5] [--cache FOLDER]

A file holds interleaved conversations as `topicloom eval threads` reads them; at most MOST of them
are taken, and the kind counts SHARE times as much as another.
"""

from __future__ import annotations

import argparse
import pickle
import re
from dataclasses import asdict
from itertools import islice
from pathlib import Path

import numpy as np

from topicloom import AdsorberPolicy, default_embedder
from topicloom.lab import CachedEmbedder, open_adsorber
from topicloom_lab.threads import load_threads
from topicloom_lab.training.belonging import Example, fit_weights, judge, prepare


def read(kind: str, path: Path, most: int | None, cache: Path | None) -> list[Example]:
    """The conversations of a file, from the cache where they were read before."""
    kept = cache / f"{kind}-{path.name}-{most}.pickle" if cache else None
    if kept and kept.exists():
        return list(pickle.loads(kept.read_bytes()))  # noqa: S301 - one's own cache
    embedder = CachedEmbedder(default_embedder())
    adsorber = open_adsorber(AdsorberPolicy(), embedder)
    found = [prepare(kind, c, embedder, adsorber) for c in islice(load_threads(path), most)]
    if kept:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(pickle.dumps(found))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", metavar="KIND=FILE[:MOST][*SHARE]")
    parser.add_argument("--level", type=float, default=1.5)
    parser.add_argument("--cache", type=Path)
    given = parser.parse_args()
    shares: dict[str, float] = {}
    examples: list[Example] = []
    for entry in given.files:
        found = re.fullmatch(r"(\w+)=(.+?)(?::(\d+))?(?:\*([\d.]+))?", entry)
        if not found:
            parser.error(f"{entry!r} is not KIND=FILE[:MOST][*SHARE]")
        kind, path, most, share = found.groups()
        shares[kind] = float(share or 1)
        examples += read(kind, Path(path), int(most) if most else None, given.cache)
    weights = fit_weights(examples, shares, given.level)
    print({name: round(value, 3) for name, value in asdict(weights).items()})
    for kind in shares:
        others = {other: share for other, share in shares.items() if other != kind}
        rows = [("all", weights)]
        rows += [("left out", fit_weights(examples, others, given.level))] if others else []
        for name, used in rows:
            scores = np.mean([judge(e, used) for e in examples if e.kind == kind], axis=0)
            print(f"{kind:12s} {name:9s} ARI {100 * scores[0]:.1f} purity {scores[1]:.2f}")


if __name__ == "__main__":
    main()
