"""Made-up conversations: needles where they should be, counts that are true, the same again."""

from __future__ import annotations

import inspect
import re
import uuid
from collections import Counter
from itertools import islice

import pytest
from hypothesis import given, settings, strategies as st
from tables import each_row

from topicloom import InputError, count_budget_tokens
from topicloom_app import Conversation
from topicloom_lab.cli.app import SOURCES
from topicloom_lab.generators import GENERATORS, generate
from topicloom_lab.generators.spec import score


def texts(conversation: Conversation) -> dict[str, str]:
    return {m.id: m.text for m in conversation.messages}


class TestSpecifications:
    @each_row(
        ("spec", "said"),
        [
            ("hay", "no generator 'hay': there are sniah, oolong, hotpotqa"),
            ("sniah:depths", "'depths' is no option"),
            ("sniah:depths=2,depths=3", "'depths' is given twice"),
            ("sniah:colour=red", "option 'colour': Unexpected keyword argument"),
            ("sniah:tokens=many", "option 'tokens': .*integer"),
            ("sniah:needle=pin", "option 'needle': .*'number', 'word' or 'uuid'"),
            ("hotpotqa", "option 'folder': Missing required keyword"),
        ],
    )
    def test_what_cannot_be_followed_is_named(self, spec: str, said: str) -> None:
        with pytest.raises(InputError, match=said):
            generate(spec)

    def test_blanks_do_not_matter(self) -> None:
        one = generate(" sniah : depths = 1 , tokens = 200 ")
        assert list(one) == list(generate("sniah:depths=1,tokens=200"))

    def test_the_help_names_every_generator_and_option(self) -> None:
        for name, generator in GENERATORS.items():
            options = list(inspect.signature(generator).parameters)
            assert f"{name} ({', '.join(options)})" in " ".join(SOURCES.split())


class TestNeedles:
    @settings(max_examples=40, deadline=None)
    @given(
        needle=st.sampled_from(["number", "word", "uuid"]),
        haystack=st.sampled_from(["noise", "prose"]),
        form=st.sampled_from(["chat", "prompt"]),
        tokens=st.integers(100, 4_000),
        depths=st.integers(1, 8),
        together=st.booleans(),
        seed=st.integers(0, 5),
    )
    def test_every_needle_stands_in_its_evidence_and_nowhere_else(
        self,
        needle: str,
        haystack: str,
        form: str,
        tokens: int,
        depths: int,
        together: bool,
        seed: int,
    ) -> None:
        spec = (
            f"sniah:needle={needle},haystack={haystack},form={form},tokens={tokens},"
            f"depths={depths},together={together},seed={seed}"
        )
        made = list(generate(spec))
        assert made == list(generate(spec))
        assert len(made) == (1 if together else depths)
        questions = [(c, q) for c in made for q in c.questions]
        assert len({q.id for _, q in questions}) == depths
        for conversation, question in questions:
            said = texts(conversation)
            thing = re.search(r"of the (\w+ \w+),", question.question)
            assert thing is not None
            sentence = f"of the {thing[1]} is: {question.answer}."
            (evidence,) = question.evidence
            assert [i for i, text in said.items() if sentence in text] == [evidence]

    def test_kinds_of_needles(self) -> None:
        def answer(needle: str) -> str:
            return next(generate(f"sniah:needle={needle},tokens=200,depths=1")).questions[0].answer

        assert re.fullmatch(r"\d{7}", answer("number"))
        assert re.fullmatch(r"[a-z]+-[a-z]+", answer("word"))
        assert uuid.UUID(answer("uuid")).version == 4

    @pytest.mark.parametrize("haystack", ["noise", "prose"])
    def test_the_length_is_about_what_is_asked_for(self, haystack: str) -> None:
        (chat,) = generate(f"sniah:haystack={haystack},tokens=50000,depths=1")
        told = sum(count_budget_tokens(m.text) for m in chat.messages if m.role == "user")
        assert told == pytest.approx(50_000, rel=0.15)

    def test_depths_go_from_the_first_message_to_the_last(self) -> None:
        (chat,) = generate("sniah:tokens=8000,depths=40,together=yes")
        places = [int(q.evidence[0][1:]) for q in chat.questions]
        assert places == sorted(places)
        assert (places[0], places[-1]) == (1, len(chat.messages) // 2)
        assert [q.category for q in chat.questions][::39] == ["0.000", "1.000"]

    @pytest.mark.slow
    def test_nothing_is_made_before_it_is_asked_for(self) -> None:
        (first,) = islice(generate("sniah:tokens=10000000,form=chat,message=50000,depths=40"), 1)
        assert len(first.questions) == 1

    def test_prose_hardly_repeats(self) -> None:
        (chat,) = generate("sniah:haystack=prose,tokens=100000,depths=1")
        sentences = Counter(s for m in chat.messages for s in re.findall(r"[^.]{60,}\.", m.text))
        assert sum(n for n in sentences.values() if n > 1) < 0.02 * sentences.total()


class TestAggregation:
    @settings(max_examples=25, deadline=None)
    @given(items=st.integers(10, 200), message=st.integers(1, 7), seed=st.integers(0, 50))
    def test_answers_are_true_and_rest_on_their_evidence(
        self, items: int, message: int, seed: int
    ) -> None:
        (chat,) = generate(f"oolong:items={items},message={message},seed={seed}")
        said = texts(chat)
        entry = re.compile(r"Entry \d+: (\w+) brought .*\. Label: (\w+)\.")
        all_of = [m.groups() for t in said.values() for m in entry.finditer(t)]
        assert len(all_of) == items
        labels = Counter(label for _, label in all_of)
        for question in chat.questions:
            shown = [m.groups() for i in question.evidence for m in entry.finditer(said[i])]
            named = [label for label in labels if label in question.question.split(" Answer")[0]]
            if question.category == "count":
                (label,) = named or [""]
                assert int(question.answer) == labels[label]
                assert [label_ for _, label_ in shown].count(label) == labels[label]
            elif question.category == "most frequent":
                assert all(
                    labels[question.answer] > n for k, n in labels.items() if k != question.answer
                )
            elif question.category == "least frequent":
                assert all(
                    labels[question.answer] < n for k, n in labels.items() if k != question.answer
                )

    def test_kinds_of_questions(self) -> None:
        (chat,) = generate("oolong:items=500")
        kinds = Counter(q.category for q in chat.questions)
        assert kinds.keys() == {
            "count",
            "most frequent",
            "least frequent",
            "comparison",
            "count by person",
        }
        assert len({q.id for q in chat.questions}) == len(chat.questions)

    def test_generated_conversations_differ(self) -> None:
        one, two = generate("oolong:items=50,conversations=2")
        assert one.id != two.id
        assert one.messages != two.messages


class TestScoring:
    @each_row(
        ("expected", "said", "points"),
        [
            ("12", "12", 1.0),
            ("12", "I count 12 of them.", 1.0),
            ("12", "There are 3 kinds; the answer is 14", 0.75**2),
            ("1200", "Answer: **1,200**", 1.0),
            ("12", "a dozen", 0.0),
            ("fruit", "Fruit.", 1.0),
            ("fruit", "Label: [fruit]", 1.0),
            ("fruit", "fruit and paper", 0.0),
            ("less often", 'Answer: "less often"', 1.0),
            ("less often", "", 0.0),
        ],
    )
    def test_answers_are_scored_by_points(self, expected: str, said: str, points: float) -> None:
        assert score(expected, said) == pytest.approx(points)
