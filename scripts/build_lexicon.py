"""Build the word list by which topics are named: words of English and Chinese with their class.

    python -m scripts.build_lexicon

The words come from the wheel of textblob and the source archive of jieba on PyPI. The same files
give the same bytes.

The list has one line for each class, `<language><class> <word> <word> ...`.

English: the words of Brill's lexicon that are mostly something else than a noun: `a` adjective, `b`
base form of a verb, `v` another form, `p` participle or -ing form, `x` anything else.

Chinese: the words of jieba's dictionary: `n` noun, `v` verb, `a` adjective, `x` anything else. Each
class is divided by the power of two of the words' counts (`n7`: 128 to 255), which say how likely a
word is where several ways to cut a text into words are possible.
"""

from __future__ import annotations

import gzip
import tarfile
import tempfile
import zipfile
from collections import defaultdict
from io import BytesIO
from pathlib import Path

from scripts.bundling import check_hash, fetch

ENGLISH_SOURCE = (
    "textblob==0.20.1",
    "f957699169a3e7b9a03a504883111b7b6973679496b9af959db2f74ee2449977",
)
CHINESE_SOURCE = (
    "jieba==0.42.1",
    "055ca12f62674fafed09427f176506079bc135638a14e23e25be909131928db2",
)
TARGET = Path(__file__).parents[1] / "src/topicloom/topics/lexicon.txt.gz"
LONGEST = 5
"""Characters of a Chinese word at most: longer ones are sayings and titles."""
RARE_NOUN, RARE = 5, 20
"""Counts in jieba's dictionary from which a noun, or another word, is taken."""

ENGLISH = {"JJ": "a", "VB": "b", "VBP": "v", "VBZ": "v", "VBD": "v", "VBG": "p", "VBN": "p"}
CHINESE = {"n": "n", "j": "n", "v": "v", "a": "a", "b": "a", "z": "a"}


def english_words(text: str) -> dict[str, list[str]]:
    """Words by class, in alphabetical order."""
    found: dict[str, list[str]] = defaultdict(list)
    for line in text.splitlines():
        word, _, tag = line.partition(" ")
        if word.isascii() and word.isalpha() and word.islower() and not tag.startswith("NN"):
            found["en" + ENGLISH.get(tag.strip(), "x")].append(word)
    return found


def chinese_words(text: str) -> dict[str, list[str]]:
    """Words by class and power of two of their counts, in alphabetical order."""
    found: dict[str, list[str]] = defaultdict(list)
    for line in text.splitlines():
        word, counted, tag = line.split(" ")
        count, kind = int(counted), CHINESE.get(tag[0], "x")
        rare = RARE_NOUN if tag in ("n", "nz", "nt") and len(word) < LONGEST else RARE
        if len(word) <= LONGEST and count >= rare:
            found[f"zh{kind}{count.bit_length() - 1}"].append(word)
    return found


def read(requirement: str, digest: str) -> BytesIO:
    """The file of a requirement, fetched and checked."""
    with tempfile.TemporaryDirectory() as folder:
        found = fetch(requirement, folder)
        return BytesIO(check_hash(found.read_bytes(), digest, found.name))


def main() -> None:
    """Write the list."""
    with zipfile.ZipFile(read(*ENGLISH_SOURCE)) as wheel:
        english = wheel.read("textblob/en/en-lexicon.txt").decode("utf-8-sig")
    with tarfile.open(fileobj=read(*CHINESE_SOURCE)) as archive:
        member = archive.extractfile("jieba-0.42.1/jieba/dict.txt")
        assert member is not None
        chinese = member.read().decode()
    groups = {**english_words(english), **chinese_words(chinese)}
    text = "\n".join(" ".join([name, *sorted(groups[name])]) for name in sorted(groups))
    TARGET.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    print(f"{TARGET.name}: {TARGET.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
