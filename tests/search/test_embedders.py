"""The contract of every embedder, and what each one is for."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from weakref import ref

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from langchain_core.embeddings import Embeddings
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from tables import each_row

from topicloom import Session, SessionStore, open_session
from topicloom.errors import ConfigurationError
from topicloom.graph.session import build_session_graph
from topicloom.search import bundled
from topicloom.search.bundled import (
    BGE_CHINESE,
    MINILM as MINILM_MODEL,
    MODEL_FOLDER,
    BundledEmbedder,
    BundledModel,
)
from topicloom.search.embedder import CachedEmbedder, Embedder, Vectors, unit_rows
from topicloom.search.encoders import ForeignEmbedder, MixedEmbedder, open_embedder, script_shares
from topicloom.search.hashing import CHUNK_TEXTS, HashingEmbedder
from topicloom.search.vectors import StoredVectors
from topicloom.settings import Settings
from topicloom.storage.files import FileStorage
from topicloom.testing import ScriptedResponder, fake_roles
from topicloom.topics.boundary_features import WINDOW

MINILM = BundledEmbedder(MINILM_MODEL)
BGE = BundledEmbedder(BGE_CHINESE)
HASHING = HashingEmbedder()
MIXED = MixedEmbedder(MINILM, BGE, HASHING)
EMBEDDERS: dict[str, Embedder] = {
    "minilm": MINILM,
    "chinese": BGE,
    "hashing": HASHING,
    "mixed": MIXED,
    "cached": CachedEmbedder(HashingEmbedder(256), size=3),
}
FINGERPRINTS = {
    "minilm": "all-minilm-l6-v2-int8-2af9f1a6",
    "hashing": "character-hashing-1-512",
    "chinese": "bge-small-zh-v1.5-int8-mapped-566e22f3",
    "mixed": "mixed-2(all-minilm-l6-v2-int8-2af9f1a6,bge-small-zh-v1.5-int8-mapped-566e22f3,"
    "character-hashing-1-512)",
    "cached": "character-hashing-1-256",
}
TEXTS = [
    "How do I reset my password?",
    "怎么重置密码?",
    "",
    "用 Python 写一个快速排序",
    "a",
    "Wo liegt der nächste Bahnhof, und wann fährt der Zug nach Köln?",
    "비밀번호를 어떻게 재설정하나요?",
    "no " * 600,
    "How do I reset my password?",
]
ENGLISH = (
    "How can I reset my password?",
    "I forgot my login and have to recover the account",
    "The soup needs more salt and a little lemon",
)
KNOWN_COLUMNS = [75, 206, 260, 306, 321, 365, 444, 472, 481]
KNOWN_SIGNS = [-1, 1, 1, 1, 1, 1, -1, 1, -1]
CHINESE = ("附近有什么好吃的火锅店", "推荐一家这边的火锅餐厅", "数据库连接超时怎么办")


@pytest.fixture(params=EMBEDDERS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def embedder(name: str) -> Embedder:
    return EMBEDDERS[name]


def lengths(vectors: Vectors) -> Vectors:
    return np.asarray(np.linalg.norm(vectors, axis=1), dtype=np.float32)


def paraphrase_margin(embedder: Embedder, texts: Sequence[str]) -> float:
    """How much closer the second text is to the first than the third is."""
    first, second, third = embedder.embed(texts)
    return float(first @ second - first @ third)


class TestContract:
    def test_shape_and_unit_rows(self, embedder: Embedder) -> None:
        vectors = embedder.embed(TEXTS)
        assert vectors.shape == (len(TEXTS), embedder.dimension)
        assert vectors.dtype == np.float32
        expected = [0.0 if text == "" else 1.0 for text in TEXTS]
        assert lengths(vectors) == pytest.approx(expected, abs=1e-5)

    def test_nothing_to_embed(self, embedder: Embedder) -> None:
        assert embedder.embed([]).shape == (0, embedder.dimension)
        assert not embedder.embed(["", " \n\t", "\x00", ""]).any()

    @pytest.mark.slow
    def test_batch_equals_single(self, embedder: Embedder) -> None:
        batch = embedder.embed(TEXTS)
        single = np.concatenate([embedder.embed([text]) for text in TEXTS])
        assert np.abs(batch - single).max() < 1e-4

    @pytest.mark.slow
    def test_the_same_texts_get_the_same_vectors(self, embedder: Embedder) -> None:
        assert np.array_equal(embedder.embed(TEXTS), embedder.embed(TEXTS))

    def test_the_caller_may_change_the_result(self, embedder: Embedder) -> None:
        before = embedder.embed(TEXTS[:2])
        kept = before.copy()
        before[:] = 7
        assert np.allclose(embedder.embed(TEXTS[:2]), kept, atol=1e-6)

    def test_the_fingerprint_stays_as_it_was(self, name: str, embedder: Embedder) -> None:
        assert embedder.fingerprint == FINGERPRINTS[name]

    def test_odd_characters_are_embedded(self, embedder: Embedder) -> None:
        odd = [
            "a\x00b",
            "cut \ud83d short",
            "👩‍👩‍👧‍👦 family",
            "[PAD] [CLS]",
            "[SEP]",
            "\u202e abc",
        ]
        assert lengths(embedder.embed(odd)) == pytest.approx([1.0] * len(odd), abs=1e-5)

    @pytest.mark.slow
    @settings(max_examples=25, deadline=None)
    @given(texts=st.lists(st.text(max_size=40), max_size=4))
    def test_any_unicode_gets_unit_vectors(self, texts: list[str]) -> None:
        for embedder in EMBEDDERS.values():
            vectors = embedder.embed(texts)
            assert vectors.shape == (len(texts), embedder.dimension)
            assert np.all((np.abs(lengths(vectors) - 1) < 1e-4) | (lengths(vectors) == 0))

    @pytest.mark.slow
    def test_an_embedder_serves_several_threads(self, embedder: Embedder) -> None:
        expected = embedder.embed(TEXTS[:6])
        with ThreadPoolExecutor(4) as pool:
            for vectors in pool.map(embedder.embed, [TEXTS[:6]] * 8):
                assert np.allclose(vectors, expected, atol=1e-4)


class TestMiniLM:
    def test_paraphrases_are_nearer(self) -> None:
        assert paraphrase_margin(MINILM, ENGLISH) > 0.3

    def test_minilm_gives_the_published_similarities(self) -> None:
        texts = ("That is a happy person", "That is a happy dog", "That is a very happy person")
        person, *others = MINILM.embed(texts)
        assert [float(person @ other) for other in others] == pytest.approx(
            [0.695, 0.943], abs=0.02
        )

    @pytest.mark.slow
    def test_long_text_is_truncated(self) -> None:
        long = "harbour crane " * 150
        first, second = MINILM.embed([long, long + "and an unrelated ending about baking bread"])
        assert np.allclose(first, second, atol=1e-5)

    def test_one_at_a_time_and_unsorted(self) -> None:
        single = np.concatenate([MINILM.embed([text]) for text in TEXTS[:4]])
        assert np.allclose(single, MINILM.embed(TEXTS[:4]), atol=1e-4)

    @pytest.mark.parametrize("model", [MINILM_MODEL, BGE_CHINESE], ids=lambda model: model.name)
    def test_only_the_file_that_the_fingerprint_names_is_loaded(
        self, model: BundledModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        shipped = (MODEL_FOLDER / model.file).read_bytes()
        assert hashlib.sha256(shipped).hexdigest() == model.sha256
        (tmp_path / model.file).write_bytes(shipped[:-1] + b"\0")
        (tmp_path / model.tokenizer).write_bytes((MODEL_FOLDER / model.tokenizer).read_bytes())
        monkeypatch.setattr("topicloom.search.bundled.MODEL_FOLDER", tmp_path)
        with pytest.raises(ConfigurationError, match="not the file that topicloom ships"):
            BundledEmbedder(model).embed(["tea"])

    @pytest.mark.slow
    def test_no_batch_of_the_tokenizer_is_made(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """It reads the environment: where another thread changed that, the process was ended."""
        whole = bundled._tokenizer(MINILM_MODEL)
        one_by_one = SimpleNamespace(encode=whole.encode)
        monkeypatch.setattr(bundled, "_tokenizer", lambda model: one_by_one)
        texts = ["tea", "", "a cup of tea"]
        assert np.array_equal(BundledEmbedder(MINILM_MODEL).embed(texts), MINILM.embed(texts))

    @pytest.mark.slow
    def test_nothing_heavy_is_imported_early(self) -> None:
        code = (
            "import sys; from topicloom.search.encoders import default_embedder;"
            "default_embedder().embed(['']);"
            "sys.exit(bool({'onnxruntime', 'tokenizers'} & set(sys.modules)))"
        )
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


class TestHashing:
    def test_paraphrases_are_nearer(self) -> None:
        assert paraphrase_margin(HASHING, CHINESE) > 0.15
        assert (
            paraphrase_margin(HASHING, ["resetting passwords", "Reset the password", "soup"]) > 0.2
        )

    def test_hashes_are_the_same_in_every_process(self) -> None:
        """The hash is the same in every process and on every machine."""
        row = HASHING.embed(["密码 reset"])[0]
        assert np.flatnonzero(row).tolist() == KNOWN_COLUMNS
        assert np.sign(row[KNOWN_COLUMNS]).tolist() == KNOWN_SIGNS

    def test_width_case_and_punctuation_do_not_matter(self) -> None:
        one, other = HASHING.embed(["ＡＢＣ, 密码!", "abc。密码"])
        assert one @ other == pytest.approx(1)

    def test_order_of_words_matters_less_than_the_words(self) -> None:
        one, swapped, other = HASHING.embed(["red green", "green red", "blue black"])
        assert one @ swapped == pytest.approx(1)
        assert abs(one @ other) < 0.3

    def test_repetition_is_dampened(self) -> None:
        one, other = HASHING.embed(["bread bread bread bread bread wine", "wine"])
        assert one @ other > 0.25

    def test_neighbours_in_a_batch_do_not_mix(self) -> None:
        texts = [f"text {number} 文{number}" for number in range(CHUNK_TEXTS + 3)] + ["x" * 200_000]
        batch = HASHING.embed(texts)
        for row in (0, 1, CHUNK_TEXTS - 1, CHUNK_TEXTS, len(texts) - 1):
            assert np.array_equal(batch[row], HASHING.embed([texts[row]])[0])

    def test_dimension_is_checked(self) -> None:
        with pytest.raises(ValueError, match="dimension=0"):
            HashingEmbedder(0)


class TestMixed:
    @pytest.mark.parametrize("texts", [ENGLISH, CHINESE])
    def test_paraphrases_are_nearer(self, texts: Sequence[str]) -> None:
        assert paraphrase_margin(MIXED, texts) > 0.15

    @each_row(
        ("text", "shares"),
        [
            ("plain English", (1, 0, 0.2)),
            ("", (1, 0, 0.2)),
            ("全是中文", (0, 1, 0.2)),
            ("第1个bug", (0, 1, 0.2)),
            ("ab中cd", (0.6667, 0.3333, 0.2)),
            ("そろそろ東京へ行きます", (0, 0, 1)),
            ("비밀번호를 재설정", (0, 0, 1)),
            ("のabひcd", (0.2222, 0, 0.8222)),
        ],
    )
    def test_shares_follow_the_script(self, text: str, shares: tuple[float, ...]) -> None:
        assert script_shares(text) == pytest.approx(shares, abs=1e-4)

    def test_english_is_encoded_as_if_there_were_no_chinese(self) -> None:
        alone = MINILM.embed(ENGLISH) * np.sqrt(np.float32(0.8))
        hashed = HASHING.embed(ENGLISH) * np.sqrt(np.float32(0.2))
        expected = unit_rows(np.concatenate([alone, hashed], axis=1))
        assert MIXED.embed([*ENGLISH, "全是中文"])[:3].tobytes() == expected.tobytes()

    def test_japanese_and_korean_are_hashed(self) -> None:
        texts = ["そろそろ東京へ行きます", "비밀번호를 어떻게 재설정하나요?"]
        columns = MIXED.embed(texts)
        assert not columns[:, : MINILM.dimension].any()
        assert np.allclose(columns[:, MINILM.dimension :], HASHING.embed(texts))

    def test_chinese_and_english_meet_by_meaning(self) -> None:
        texts = [
            "妈妈有痛风，不能吃海鲜",
            "My mother has gout and eats no fish",
            "The train is late",
        ]
        assert paraphrase_margin(MIXED, texts) > 0.2
        texts = ["她有什么忌口", "我妈痛风，海鲜内脏都不碰", "下周二下午三点开会"]
        assert paraphrase_margin(MIXED, texts) > 0.1

    def test_traditional_characters_are_read(self) -> None:
        texts = ["妈妈对花生过敏", "媽媽對花生過敏", "我們下週二開會"]
        assert paraphrase_margin(MIXED, texts) > 0.3

    def test_a_name_in_latin_letters_is_found(self) -> None:
        chinese, named = MIXED.embed(["怎么部署服务", "Kubernetes 怎么部署服务"])
        kubernetes = MIXED.embed(["Kubernetes"])[0]
        assert named @ kubernetes > chinese @ kubernetes + 0.1


class Said(str):
    """A text of which can be seen whether somebody keeps it."""


class CountingEmbedder(HashingEmbedder):
    """Records what it was asked."""

    def __init__(self) -> None:
        super().__init__(64)
        self.asked: list[list[str]] = []

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.asked.append(list(texts))
        return super().embed(texts)


class HeldEmbedder(CountingEmbedder):
    """Waits for a sign before it answers."""

    def __init__(self, fails: bool = False) -> None:
        super().__init__()
        self.fails = fails
        self.begun, self.go_on = threading.Event(), threading.Event()

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.begun.set()
        assert self.go_on.wait(10)
        if self.fails:
            raise OSError("no encoder")
        return super().embed(texts)


class TestCached:
    def test_a_cached_text_is_embedded_once(self) -> None:
        inner = CountingEmbedder()
        cached = CachedEmbedder(inner)
        cached.embed(["a", "b", "a"])
        cached.embed(["b", "c"])
        cached.embed(["a", "c"])
        assert inner.asked == [["a", "b"], ["c"]]

    def test_forgets_the_least_recently_used(self) -> None:
        inner = CountingEmbedder()
        cached = CachedEmbedder(inner, size=2)
        for text in ("a", "b", "a", "c", "a", "b"):
            cached.embed([text])
        assert inner.asked == [["a"], ["b"], ["c"], ["b"]]

    def test_waits_for_what_another_thread_has_begun(self) -> None:
        inner = HeldEmbedder()
        cached = CachedEmbedder(inner)
        with ThreadPoolExecutor() as threads:
            first = threads.submit(cached.embed, ["a", "b"])
            assert inner.begun.wait(10)
            second = threads.submit(cached.embed, ["b", "c"])
            inner.go_on.set()
            assert np.array_equal(first.result()[1], second.result()[0])
        assert sorted(inner.asked) == [["a", "b"], ["c"]]

    def test_a_failure_is_not_remembered_and_who_waits_tries_again(self) -> None:
        inner = HeldEmbedder(fails=True)
        cached = CachedEmbedder(inner)
        with ThreadPoolExecutor() as threads:
            first = threads.submit(cached.embed, ["a"])
            assert inner.begun.wait(10)
            second = threads.submit(cached.embed, ["a"])
            inner.go_on.set()
            for asked in (first, second):
                with pytest.raises(OSError, match="no encoder"):
                    asked.result()
        inner.fails = False
        assert cached.embed(["a"]).any()

    def test_no_text_is_kept(self) -> None:
        cached, said = CachedEmbedder(HASHING), Said("green tea")
        kept = ref(said)
        assert cached.embed([said]).any()
        del said
        assert kept() is None

    def test_size_is_checked(self) -> None:
        with pytest.raises(ValueError, match="size=0"):
            CachedEmbedder(HASHING, size=0)


class Counted(Embeddings):
    """An application's own: letters counted, by one of two calls at a time."""

    def __init__(self, model: str = "letters-1") -> None:
        self.model = model
        self.embedded: list[str] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.embedded += texts
        return [[3.0 * text.count(letter) for letter in "abcde"] + [1.0] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        raise AssertionError("documents and queries are embedded alike")


class TestForeign:
    def test_unit_rows_of_what_says_anything(self) -> None:
        embedder = ForeignEmbedder(Counted())
        vectors = embedder.embed(["bad cab", "", " \n", "\x00", "zzz"])
        assert vectors.shape == (5, embedder.dimension) == (5, 6)
        assert lengths(vectors) == pytest.approx([1, 0, 0, 0, 1], abs=1e-6)
        assert embedder.embed([]).shape == (0, 6)

    def test_odd_and_long_texts(self) -> None:
        theirs = Counted()
        ForeignEmbedder(theirs).embed(["cut \ud83d short", "a" * 100_000])
        assert theirs.embedded[-2] == "cut ? short"
        assert len(theirs.embedded[-1]) < 10_000

    def test_the_model_is_in_the_fingerprint(self) -> None:
        one, other = (ForeignEmbedder(Counted(name)).fingerprint for name in ("x-1", "x-2"))
        assert (one, other) == ("Counted:x-1/6", "Counted:x-2/6")
        assert ForeignEmbedder(Counted("")).fingerprint == "Counted/6"

    def test_it_is_chosen_and_cached(self) -> None:
        theirs = Counted()
        chosen = open_embedder(theirs)
        assert theirs.embedded == []
        chosen.embed(["bad", "cab", "bad"])
        chosen.embed(["cab"])
        assert sorted(t for t in theirs.embedded if t != "a") == ["bad", "cab"]

    def test_an_embedder_is_taken_as_it_is(self) -> None:
        assert open_embedder(HASHING) is HASHING


class _Telling(Embeddings):
    """Two numbers a text, and how many texts there were."""

    told = 0

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.told += len(texts)
        return [[1.0, 0.0]] * len(texts)

    def embed_query(self, text: str) -> list[float]:
        raise NotImplementedError


def test_the_newest_texts_of_a_thousand_sessions_are_embedded_once() -> None:
    telling = _Telling()
    embedder, texts = open_embedder(telling), [f"text {n}" for n in range(1_000 * WINDOW)]
    dimension = embedder.dimension
    embedder.embed(texts)
    embedder.embed(texts[:WINDOW])
    assert (telling.told, dimension) == (len(texts) + 1, 2)


@pytest.mark.slow
def test_a_graph_searches_with_the_embeddings_of_the_application(tmp_path: Path) -> None:
    theirs = Counted()
    graph = build_session_graph(
        settings=Settings(folder=tmp_path, window=1_500, fsync=False), embedder=theirs
    ).compile(checkpointer=InMemorySaver())
    config: RunnableConfig = {"configurable": {"thread_id": "s"}}
    for number in range(24):
        text = f"Note number {number} on the cabbage beds: " + "water them every day. " * 8
        graph.invoke({"messages": [HumanMessage(text)]}, config)
    assert any("cabbage beds" in text for text in theirs.embedded)
    assert list(tmp_path.rglob("vectors-Counted*letters-1*"))


class Falling(Counted):
    """Fails while it is down, and tells what it was sent."""

    down = False

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        if self.down:
            raise RuntimeError(f"401: key sk-abc123def456ghi789jkl for {texts} refused" * 99)
        return super().embed_documents(texts)


def begin(
    folder: Path, responder: ScriptedResponder, encoder: ForeignEmbedder
) -> tuple[Callable[[str], tuple[str, ...]], Callable[[], tuple[Session, SessionStore]]]:
    """What asks a session and tells the events of the turn, and what opens what is stored of it."""
    graph = build_session_graph(
        settings=Settings(folder=folder, window=1_500, recall_tokens=300, fsync=False),
        roles=fake_roles(responder),
        embedder=encoder,
    ).compile(checkpointer=InMemorySaver())
    config: RunnableConfig = {"configurable": {"thread_id": "s"}}

    def open_stored() -> tuple[Session, SessionStore]:
        return open_session(graph, config)

    def ask(text: str) -> tuple[str, ...]:
        graph.invoke({"messages": [HumanMessage(text)]}, config)
        session, store = open_stored()
        (receipt,) = store.receipts(session, 1)
        return receipt.events

    return ask, open_stored


@pytest.mark.slow
def test_a_turn_goes_on_without_an_encoder(tmp_path: Path) -> None:
    theirs, responder = Falling(), ScriptedResponder()
    ask, open_stored = begin(tmp_path, responder, ForeignEmbedder(theirs, rest=0.0))
    for number in range(8):
        ask(f"tea: Note number {number} on the cabbage beds: " + "water them every day. " * 8)
    ask("rain: The barrel is a Zwickauer.")
    theirs.down = True
    for number in range(8):
        events = ask(f"Rain {number}: mending the gutter with Ottokar. " + "and so on. " * 20)
    (told,) = [e for e in events if e.startswith("the encoder failed")]
    assert len(told) < 400
    assert not any(secret in told for secret in ("sk-abc", "gutter", "Ottokar"))
    ask("What is a Zwickauer?")
    assert "The barrel is a Zwickauer" in str(responder.prompts[-1])
    theirs.down = False
    assert not any("encoder" in e for e in ask("tea: And Ottokar?"))
    stored = StoredVectors(ForeignEmbedder(theirs), FileStorage(tmp_path).open("s"))
    session, store = open_stored()
    before = len(theirs.embedded)
    topics = store.topic_table(session).open()
    rows = [stored.of(store.topic_messages(session, topic)) for topic in topics]
    assert all(row.any(axis=1).all() for row in rows)
    assert len(theirs.embedded) == before, "what it missed was made up for"


@pytest.mark.slow
def test_an_encoder_that_is_down_from_the_first(tmp_path: Path) -> None:
    theirs, responder = Falling(), ScriptedResponder()
    theirs.down = True
    encoder = ForeignEmbedder(theirs, rest=0.0)
    ask, open_stored = begin(tmp_path, responder, encoder)
    ask("rain: The barrel is a Zwickauer.")
    for number in range(16):
        events = ask(f"tea: Note number {number} on the cabbage beds: " + "water them. " * 20)
    (told,) = [e for e in events if e.startswith("the encoder failed")]
    assert len(told) < 400
    assert "sk-abc" not in told
    assert ask("What is a Zwickauer?")
    assert "The barrel is a Zwickauer" in str(responder.prompts[-1])
    assert encoder.dimension == 1
    theirs.down = False
    assert not any("encoder" in e for e in ask("tea: And Ottokar?"))
    session, store = open_stored()
    before = len(theirs.embedded)
    stored = StoredVectors(ForeignEmbedder(theirs), FileStorage(tmp_path).open("s"))
    topics = store.topic_table(session).open()
    rows = [stored.of(store.topic_messages(session, t)) for t in topics]
    assert all(row.any(axis=1).all() for row in rows)
    assert len(theirs.embedded) <= before + 1, "what it missed was made up for"
