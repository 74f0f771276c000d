"""Models of sentence-transformers with random weights, small enough to be made in a test.

Everything about them is real but what they have learnt: files, tokenizer, configuration.
"""

from __future__ import annotations

import os
import shutil
import string
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import BertProcessing

from topicloom.hosting import name_install

COMMIT = "0123456789abcdef0123456789abcdef01234567"
_SPECIAL = ("PAD", "UNK", "CLS", "SEP", "MASK")
_LETTERS = string.ascii_lowercase + string.digits
_VOCABULARY = [*(f"[{name}]" for name in _SPECIAL), *_LETTERS, *(f"##{x}" for x in _LETTERS)]
_SIZES = {
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 64,
}


def library() -> Any:
    """The sentence-transformers package; skips the test where the extra is not installed."""
    reason = f"the extra is not installed: {name_install('encoders')}"
    return pytest.importorskip("sentence_transformers", reason=reason)


def tiny_encoder(folder: Path, *, seed: int = 0) -> Path:
    """A sentence encoder with 16 columns that reads letters, with its list of modules."""
    sentence_transformers = library()
    plain = _saved(folder / "plain", "BertModel", seed)
    encoder = folder / "encoder"
    sentence_transformers.SentenceTransformer(str(plain), device="cpu").save(str(encoder))
    return encoder


def tiny_bert(folder: Path) -> Path:
    """A model without a head of any kind."""
    library()
    return _saved(folder / "bert", "BertModel", 0)


def tiny_cross_encoder(folder: Path, *, labels: int = 1, seed: int = 0) -> Path:
    """A cross-encoder that reads letters."""
    library()
    name = "BertForSequenceClassification"
    return _saved(folder / f"cross-{labels}-{seed}", name, seed, num_labels=labels)


def in_hub_cache(cache: Path, model: Path, name: str, commit: str = COMMIT) -> None:
    """Put a model into a cache of the hub, as if it had been downloaded."""
    kept = cache / f"models--{name.replace('/', '--')}"
    (kept / "refs").mkdir(parents=True)
    (kept / "refs" / "main").write_text(commit)
    shutil.copytree(model, kept / "snapshots" / commit)


def offline(cache: Path, code: str) -> str:
    """Run code in a process whose hub is a cache folder and nothing else; what it prints."""
    hub = {"HF_HUB_CACHE": str(cache), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=os.environ | hub, capture_output=True, text=True, check=True)
    return done.stdout


def _saved(folder: Path, architecture: str, seed: int, **config: Any) -> Path:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    folder.mkdir(parents=True)
    vocabulary = {word: place for place, word in enumerate(_VOCABULARY)}
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=_tokenizer(vocabulary),
        model_max_length=64,
        **{f"{name.lower()}_token": f"[{name}]" for name in _SPECIAL},
    ).save_pretrained(folder)
    torch.manual_seed(seed)
    sizes = transformers.BertConfig(vocab_size=len(vocabulary), **_SIZES, **config)
    getattr(transformers, architecture)(sizes).save_pretrained(folder)
    return folder


def _tokenizer(vocabulary: dict[str, int]) -> Tokenizer:
    tokenizer = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = BertNormalizer()
    tokenizer.pre_tokenizer = BertPreTokenizer()
    ends = ("[SEP]", vocabulary["[SEP]"]), ("[CLS]", vocabulary["[CLS]"])
    tokenizer.post_processor = BertProcessing(*ends)
    return tokenizer
