"""Build the word list by which topics are named: words of English and Chinese with their class.

    python -m scripts.build_lexicon

The words come from the wheel of textblob and the source archive of jieba on PyPI, and from the
vocabulary of the bundled English encoder, which is in the order of how often words are used. The
same files give the same bytes.

The list has one line for each class, `<language><class><bits> <word> <word> ...`. `bits` says how
rare the words are: about one of 2 to the power of `bits` words of everyday texts is one of them.

English: the words of Brill's lexicon that are mostly something else than a noun (`a` adjective, `b`
base form of a verb, `v` another form, `p` participle or -ing form, `x` anything else), and the
nouns of the vocabulary, `n`. Others are rare nouns.

Chinese: the words of jieba's dictionary: `n` noun, `v` verb, `a` adjective, `x` anything else.
"""

from __future__ import annotations

import gzip
import json
import tarfile
import tempfile
import zipfile
from collections import defaultdict
from collections.abc import Mapping
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
PACKAGE = Path(__file__).parents[1] / "src/topicloom"
VOCABULARY = PACKAGE / "search/model/tokenizer.json"
TARGET = PACKAGE / "topics/lexicon.txt.gz"
LONGEST = 5
"""Characters of a Chinese word at most: longer ones are sayings and titles."""
TOTAL_BITS = 27
"""Power of two of all counts in jieba's dictionary, 60 million, and one."""
RARE_NOUN, RARE = 5, 20
"""Counts in jieba's dictionary from which a noun, or another word, is taken."""

ENGLISH = {"JJ": "a", "VB": "b", "VBP": "v", "VBZ": "v", "VBD": "v", "VBG": "p", "VBN": "p"}
CHINESE = {"n": "n", "j": "n", "v": "v", "a": "a", "b": "a", "z": "a"}


def english_words(text: str, vocabulary: Mapping[str, int]) -> dict[str, list[str]]:
    """Words by class and rarity."""
    kinds = dict.fromkeys(filter(_is_word, vocabulary), "n")
    for line in text.splitlines():
        word, _, tag = line.partition(" ")
        if _is_word(word) and not tag.startswith("NN"):
            kinds[word] = ENGLISH.get(tag.strip(), "x")
    found: dict[str, list[str]] = defaultdict(list)
    for word, kind in kinds.items():
        # By Zipf's law a word is as rare as its place in the order, times about ten.
        place = vocabulary.get(word, len(vocabulary)) - vocabulary["the"] + 1
        found[f"en{kind}{(10 * place).bit_length()}"].append(word)
    return found


def _is_word(word: str) -> bool:
    return word.isascii() and word.isalpha() and word.islower()


def chinese_words(text: str) -> dict[str, list[str]]:
    """Words by class and rarity."""
    found: dict[str, list[str]] = defaultdict(list)
    for line in text.splitlines():
        word, counted, tag = line.split(" ")
        count, kind = int(counted), CHINESE.get(tag[0], "x")
        rare = RARE_NOUN if tag in ("n", "nz", "nt") and len(word) < LONGEST else RARE
        if len(word) <= LONGEST and count >= rare:
            found[f"zh{kind}{TOTAL_BITS - count.bit_length()}"].append(word)
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
    vocabulary = json.loads(VOCABULARY.read_text("utf-8"))["model"]["vocab"]
    groups = {**english_words(english, vocabulary), **chinese_words(chinese)}
    text = "\n".join(" ".join([name, *sorted(groups[name])]) for name in sorted(groups))
    TARGET.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    print(f"{TARGET.name}: {TARGET.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
