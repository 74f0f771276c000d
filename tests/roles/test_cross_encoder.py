"""The cross-encoder, loaded as any other by the real library."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_models import in_hub_cache, library, offline, tiny_bert, tiny_cross_encoder

from topicloom import UnknownModelError
from topicloom.hosting import name_install
from topicloom.roles.arbiter import CrossEncoderArbiter

IMPORT = (
    "from topicloom.errors import UnknownModelError\n"
    "from topicloom.roles.arbiter import CrossEncoderArbiter\n"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_cross_encoder(tmp_path_factory.mktemp("cross"))


def with_activation(folder: Path, name: str) -> Path:
    """Let the files of a model name the activation that the library applies by itself."""
    path = folder / "config.json"
    config: dict[str, Any] = json.loads(path.read_text())
    config["sentence_transformers"] = {"activation_fn": f"torch.nn.modules.{name}"}
    path.write_text(json.dumps(config))
    return folder


def test_the_score_goes_through_one_sigmoid_whatever_the_model_says(tmp_path: Path) -> None:
    model = tiny_cross_encoder(tmp_path)
    raw = library().CrossEncoder(str(with_activation(model, "linear.Identity")))
    (score,) = raw.predict([("deploy it", "snake game")])
    expected = 1 / (1 + np.exp(-score))
    for name in ("linear.Identity", "activation.Sigmoid", "activation.Tanh"):
        arbiter = CrossEncoderArbiter(with_activation(model, name))
        found = arbiter.check_coherence("deploy it", "snake game")
        assert found == pytest.approx(float(expected), abs=1e-6)


def test_other_weights_give_another_score(folder: Path, tmp_path: Path) -> None:
    other = tiny_cross_encoder(tmp_path, seed=1)
    scores = [CrossEncoderArbiter(f).check_coherence("a b", "c") for f in (folder, other)]
    assert scores[0] != scores[1]


def test_no_more_tokens_are_read_than_the_model_takes(folder: Path) -> None:
    arbiter = CrossEncoderArbiter(folder)
    one, other = ("a b c d e f g h " * 80 + end for end in ("q", "z"))
    assert arbiter.check_coherence(one, one) == arbiter.check_coherence(other, one)


@pytest.mark.parametrize("text", [True, False])
def test_from_a_folder_as_text_or_path(folder: Path, text: bool) -> None:
    arbiter = CrossEncoderArbiter(str(folder) if text else folder)
    assert 0 < arbiter.check_coherence("a", "b") < 1


def test_a_model_without_a_head_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownModelError, match="is no cross-encoder but BertModel"):
        CrossEncoderArbiter(tiny_bert(tmp_path)).check_coherence("a", "b")


def test_a_model_with_several_scores_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownModelError, match="gives 3 scores"):
        CrossEncoderArbiter(tiny_cross_encoder(tmp_path, labels=3)).check_coherence("a", "b")


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    library()
    with pytest.raises(UnknownModelError, match=r"no folder '.*nothing'"):
        CrossEncoderArbiter(tmp_path / "nothing").check_coherence("a", "b")


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("config.json", None),
        ("config.json", b"{"),
        ("model.safetensors", None),
        ("model.safetensors", b"cut"),
    ],
)
def test_a_folder_without_a_whole_model(tmp_path: Path, file: str, content: bytes | None) -> None:
    model = tiny_cross_encoder(tmp_path)
    (model / file).unlink()
    if content is not None:
        (model / file).write_bytes(content)
    with pytest.raises(UnknownModelError, match=r"holds no model that can be loaded: .+"):
        CrossEncoderArbiter(model).check_coherence("a", "b")


def test_weights_without_their_tokenizer_are_refused(tmp_path: Path) -> None:
    model = tiny_cross_encoder(tmp_path)
    for path in [*model.glob("tokenizer*"), *model.glob("special_tokens*")]:
        path.unlink()
    with pytest.raises(UnknownModelError, match=r"tokenizer|no model"):
        CrossEncoderArbiter(model).check_coherence("a", "b")


def test_a_name_on_the_hub_comes_from_its_cache(folder: Path, tmp_path: Path) -> None:
    in_hub_cache(tmp_path, folder, "org/tiny")
    expected = CrossEncoderArbiter(folder).check_coherence("a", "b")
    said = offline(
        tmp_path, f"{IMPORT}print(CrossEncoderArbiter('org/tiny').check_coherence('a', 'b'))"
    )
    assert float(said) == pytest.approx(expected, abs=1e-6)


def test_a_name_that_cannot_be_had_is_told(tmp_path: Path) -> None:
    library()
    said = offline(
        tmp_path,
        f"{IMPORT}try: CrossEncoderArbiter('BAAI/bge-reranker-v2-m3').check_coherence('a', 'b')\n"
        "except UnknownModelError as error: print(error)",
    )
    assert "'BAAI/bge-reranker-v2-m3' is neither in the cache of the hub" in said
    assert "give a folder" in said


@pytest.mark.slow
def test_the_missing_extra_is_named() -> None:
    code = (
        "import sys; sys.modules['sentence_transformers'] = None\n"
        "from topicloom.errors import ConfigurationError\n"
        "from topicloom.roles.arbiter import CrossEncoderArbiter\n"
        "try: CrossEncoderArbiter('BAAI/bge-reranker-v2-m3').check_coherence('a', 'b')\n"
        "except ConfigurationError as error: print(error)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert name_install("encoders") in said.stdout


@pytest.mark.slow
def test_nothing_is_imported_early() -> None:
    code = (
        "import sys; from topicloom.roles.arbiter import CrossEncoderArbiter;"
        "CrossEncoderArbiter('/nowhere');"
        "sys.exit(bool({'torch', 'sentence_transformers', 'openai'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
