"""Layers: a skeleton whole once, then what changed; curations as they come."""

from __future__ import annotations

from hypothesis import given, strategies as st
from tables import each_row

from topicloom import Receipt, TurnPlan
from topicloom.context.notes import format_layer
from topicloom.domain.curation import Curation
from topicloom.domain.skeleton import build_skeleton_layer, split_elements
from topicloom.state.layers import CuratedEntry, Layer

A, B, C = ("<a>\n1\n</a>", "<b>\n2\n</b>", '<c kind="x">\n3\n</c>')


def whole(*elements: str) -> Layer:
    return Layer(kind="deterministic", text="\n".join(elements))


def test_elements_by_name() -> None:
    text = f"before\n{A}\nbetween <a>\n{C}\n<b> 2 </b>\n{B}\n{A}"
    assert split_elements(text) == {
        "a": f"{A}\n{A}",
        "c": C,
        "b": B,
        "": "before\n\nbetween <a>\n\n<b> 2 </b>",
    }


class TestSkeleton:
    def test_whole_where_none_is_in_view(self) -> None:
        assert build_skeleton_layer(f"{A}\n{B}", []) == whole(A, B)
        curated = Layer(kind="probabilistic", rationale="x")
        assert build_skeleton_layer(A, [(3, curated)]) == whole(A)

    def test_nothing_where_nothing_changed(self) -> None:
        assert build_skeleton_layer(f"{A}\n{B}", [(3, whole(A, B))]) is None
        assert build_skeleton_layer("", []) is None

    def test_what_changed_since(self) -> None:
        other = "<b>\n5\n</b>"
        layer = build_skeleton_layer(f"{A}\n{other}", [(3, whole(A, B))])
        assert layer == Layer(kind="deterministic", text=other, since="m3")
        assert layer is not None
        assert build_skeleton_layer(f"{A}\n{other}", [(3, whole(A, B)), (5, layer)]) is None
        again = build_skeleton_layer(f"{A}\n{B}", [(3, whole(A, B)), (5, layer)])
        assert again == Layer(kind="deterministic", text=B, since="m5")

    def test_what_is_gone(self) -> None:
        gone = build_skeleton_layer(A, [(3, whole(A, B))])
        assert gone == Layer(kind="deterministic", text="<b>\n</b>", since="m3")
        assert gone is not None
        assert build_skeleton_layer(A, [(3, whole(A, B)), (5, gone)]) is None
        back = build_skeleton_layer(f"{A}\n{B}", [(3, whole(A, B)), (5, gone)])
        assert back == Layer(kind="deterministic", text=B, since="m5")

    def test_whole_again_where_all_of_it_changed(self) -> None:
        assert build_skeleton_layer("<a>\n9\n</a>", [(3, whole(A))]) == whole("<a>\n9\n</a>")

    @given(
        st.lists(
            st.dictionaries(st.sampled_from("abc"), st.sampled_from("123"), min_size=1), min_size=1
        )
    )
    def test_the_layers_together_say_what_is(self, history: list[dict[str, str]]) -> None:
        """Whoever reads them in order, as the prompt tells, knows the newest skeleton."""
        shown: list[tuple[int, Layer]] = []
        for turn, state in enumerate(history):
            text = "\n".join(f"<{k}>\n{v}\n</{k}>" for k, v in state.items())
            layer = build_skeleton_layer(text, shown)
            shown += [(2 * turn + 1, layer)] if layer else []
            known: dict[str, str] = {}
            for _, said in shown:
                known = (known if said.since else {}) | split_elements(said.text)
            assert {k: v for k, v in known.items() if v != f"<{k}>\n</{k}>"} == split_elements(text)


class TestText:
    def test_a_skeleton_layer_says_since_when(self) -> None:
        assert format_layer(whole(A)) == (
            f'<context_layer type="deterministic">\n{A}\n</context_layer>'
        )
        since = Layer(kind="deterministic", text=A, since="m12")
        assert format_layer(since).startswith('<context_layer type="deterministic" since="m12">')

    def test_a_curated_layer_parts_knowledge_and_memories(self) -> None:
        key = CuratedEntry(id="lore_1", kind="lore", knowledge=True, title="Key", text="Of jade.")
        told = CuratedEntry(id="narrative_t3", kind="narrative", text="The elder refused.")
        why = "The message names the key."
        layer = Curation(entries=(key, told), rationale=why, model="gpt-5-mini").layer
        assert layer is not None
        assert format_layer(layer).splitlines() == [
            '<context_layer type="probabilistic" model="gpt-5-mini">',
            "<rationale>The message names the key.</rationale>",
            "<knowledge_base>",
            '<entry id="lore_1" type="lore" title="Key">',
            "Of jade.",
            "</entry>",
            "</knowledge_base>",
            "<relevant_memories>",
            '<memory id="narrative_t3" type="narrative">',
            "The elder refused.",
            "</memory>",
            "</relevant_memories>",
            "</context_layer>",
        ]
        assert Curation().layer is None

    @each_row("hostile", ["</context_layer>", '"><x', "</memory></entry>", "<a b='c'>"])
    def test_nothing_gets_out_of_its_element(self, hostile: str) -> None:
        entry = CuratedEntry(id=hostile, kind="lore", title=hostile, text=hostile)
        layer = Layer(kind="probabilistic", entries=(entry,), rationale=hostile, model=hostile)
        text = format_layer(layer)
        assert hostile not in text.removesuffix("</context_layer>")
        assert text.count("<") == text.count(">") == 8, "four elements, as they are without it"


def test_a_receipt_keeps_all_of_its_plan() -> None:
    row = {"turn": 1, "user": "m1", "started": "", "seconds": 0, "scores": {}}
    plan = {"focus": "q_1", "search": {"keywords": ["key"], "weights": {"lore": 0.9}}}
    receipt = Receipt.model_validate({**row, "plan": plan})
    assert receipt.plan is not None
    assert receipt.plan.model_dump(exclude_defaults=True) == plan
    assert TurnPlan.model_validate(receipt.plan.model_dump()).search.weights.lore == 0.9
