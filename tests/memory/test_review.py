"""Reviews of real sessions: what is put away, merged and summed up, and doing it again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage, RemoveMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from reviewed import AWAKE, CONFIG, Merger, Reviewer, World
from sessions import last_receipt, past, record, tell, thread

from topicloom import (
    MERGER,
    REVIEWER,
    Answer,
    FileStorage,
    MergeRequest,
    MissingThreadError,
    NoNewMessageError,
    ReviewReport,
    Settings,
    TurnOptions,
    areview_session,
    build_session_graph,
    review_session,
)
from topicloom.search.encoders import ForeignEmbedder, LangChainEmbeddings
from topicloom.search.hashing import HashingEmbedder
from topicloom.testing import Clock, FailingRole, FixedRole, fake_roles, make_topic_search


class Meanwhile(Merger):
    """Merges nothing; whatever else happens during a review does so before it first answers."""

    def __init__(self, happens: Callable[[], object]) -> None:
        super().__init__()
        self.happens: Callable[[], object] | None = happens

    def call(self, request: MergeRequest) -> Answer[float]:
        happens, self.happens = self.happens, None
        if happens:
            happens()
        return super().call(request)


def kill(request: object) -> float:
    raise KeyboardInterrupt


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


class TestArchive:
    @pytest.mark.slow
    def test_what_slept_for_days_and_does_not_matter(self, world: World) -> None:
        world.begin()
        before = world.checked()
        report = world.review()
        assert world.checked() == before
        tea = world.id_of("茶")
        assert world.named() == {"茶": "archived", "雨": "open", "山": "open", "海": "open"}
        assert report.archived == (tea,)
        assert set(report.reviewed) == {t.id for t in world.topic_table}
        assert report.troubles == ()
        row = world.topic_table[tea]
        assert (row.archived, row.summary) == ("2026-03", "茶, 6 summed up")
        assert f"archived/2026-03/topic-{tea}.jsonl" in world.files()
        assert f"topic-{tea}.jsonl" not in world.files()
        assert any(
            line.startswith(f"archived {tea} “茶”: not spoken of for") for line in report.told
        )
        assert "of little importance (0.10)" in next(t for t in report.told if "archived" in t)
        receipt = last_receipt(world.folder, world.graph, CONFIG)
        assert set(report.told) <= set(receipt.events)
        assert receipt.calls == ()

    @pytest.mark.slow
    def test_nothing_is_unrelated_while_the_encoder_is_down(self, world: World) -> None:
        class Flaky(LangChainEmbeddings):
            down = True

            def embed_documents(self, texts: list[str]) -> list[list[float]]:
                if self.down:
                    raise ConnectionError("no server")
                return super().embed_documents(texts)

        world.reviewer.importance = dict.fromkeys("茶雨山海", 0.5)
        world.begin()
        flaky = Flaky(HashingEmbedder())
        world.embedder = ForeignEmbedder(flaky, rest=0)
        for down in (True, False, True):  # topics that were embedded before are known in the end
            flaky.down = down
            report = world.review(dry_run=True)
            assert (report.archived == (), len(report.reviewed)) == (down, 4)

    @pytest.mark.slow
    def test_not_before_its_time(self, world: World) -> None:
        world.begin(days=3)
        assert world.review().archived == ()
        world.clock.now += timedelta(days=8)
        again = world.review()
        assert again.archived == (world.id_of("茶"),)
        assert again.reviewed == (), "what was said of it holds still"
        assert world.topic_table[world.id_of("茶")].summary

    @pytest.mark.slow
    def test_what_it_was_active_for_may_be_out_of_view(self, world: World) -> None:
        world.begin()
        shown = world.graph.get_state(CONFIG).values["messages"]
        removed = [RemoveMessage(id=str(m.id)) for m in shown if isinstance(m, HumanMessage)]
        world.graph.invoke({"messages": [*removed, HumanMessage("海：再说")]}, CONFIG)
        assert world.store.superseded(world.session)
        assert world.review().archived == (world.id_of("茶"),)

    @pytest.mark.slow
    def test_the_clock_may_go_backwards(self, world: World) -> None:
        world.begin()
        assert world.review(now=world.clock.now - timedelta(days=900)).archived == ()
        assert world.review(now=world.clock.now + timedelta(days=1)).archived

    @pytest.mark.slow
    def test_a_topic_that_was_asked_once(self, world: World) -> None:
        world.reviewer = Reviewer(once=("雨",))
        world.begin()
        assert world.review().archived == (world.id_of("雨"),)

    @pytest.mark.slow
    def test_neither_words_nor_time_wake_it_but_a_request_does(self, world: World) -> None:
        world.begin()
        world.review()
        graph, tea = world.graph, world.id_of("茶")
        tell(graph, CONFIG, "茶：第1次说到茶的事情。")
        assert world.topic_table[tea].status == "archived"
        for when in ("上个月", "on 2 March", "2026-03-02"):
            fresh = World(world.folder, world.clock, world.checkpointer)
            fresh.clock.now = datetime(2026, 4, 3, 9, tzinfo=world.clock.now.tzinfo)
            fresh.responder.script = [
                make_topic_search("茶", when=when, include_archived=True),
                "Yes.",
            ]
            tell(fresh.graph, CONFIG, "What did we say then?")
            assert fresh.topic_table[tea].status == "open"
            prompt = "\n".join(fresh.responder.prompts[-1])
            original = next(r for r in fresh.checked() if r.text.startswith("茶"))
            assert original.text in prompt, "quoted word for word"
            assert last_receipt(fresh.folder, fresh.graph, CONFIG).searches[0].when == when
            fresh.sleep("茶")
            fresh.clock.now += timedelta(days=40)
            assert tea in fresh.review().archived
            world.clock = fresh.clock

    @pytest.mark.slow
    def test_another_time_does_not_find_it(self, world: World) -> None:
        world.begin()
        world.review()
        world.responder.script = [
            make_topic_search("茶", when="2025-11", include_archived=True),
            "No.",
        ]
        tell(world.graph, CONFIG, "What did we say then?")
        assert world.topic_table[world.id_of("茶")].status == "archived"

    @pytest.mark.slow
    def test_it_is_shown_by_its_summary(self, world: World) -> None:
        world.begin()
        world.review()
        world.responder.script = [make_topic_search("茶", include_archived=True), "Yes."]
        tell(world.graph, CONFIG, "What did we say then?")
        shown = {t.name: t.brief for t in world.router.requests[-1].topics}
        assert shown["茶"] == "茶, 6 summed up"

    @pytest.mark.slow
    def test_once_revived_it_stays_and_its_messages_come_back(self, world: World) -> None:
        world.begin()
        world.review()
        world.responder.script = [make_topic_search("茶", include_archived=True), "Yes."]
        tell(world.graph, CONFIG, "What did we say then?")
        world.sleep("茶")
        report = world.review()
        tea = world.id_of("茶")
        assert report.archived == ()
        assert f"topic-{tea}.jsonl" in world.files()
        world.checked()


class TestMerge:
    @pytest.mark.slow
    def test_topics_about_the_same_thing(self, world: World) -> None:
        world.merger = Merger(frozenset({"茶", "雨"}))
        world.awake = {"floor": 4, "usual": 4, "ceiling": 4}
        world.begin("茶", "山", "雨", "海")
        before = world.checked()
        report = world.review()
        assert world.checked() == before
        tea, rain = world.id_of("茶"), world.id_of("雨")
        ((gone, stays),) = report.merged
        assert {gone, stays} == {tea, rain}
        assert world.topic_table[gone].merged_into == stays
        assert world.topic_table[stays].count == 12
        assert world.topic_table[stays].summary.endswith("12 summed up")
        assert any(t.startswith(f"merged {gone} “") for t in report.told)
        assert world.topic_table[stays].reviewed == world.topic_table[stays].content
        again = world.review()
        assert (again.merged, again.changes) == ((), ())

    @pytest.mark.slow
    def test_a_merged_topic_that_sleeps_is_put_away_by_the_same_review(self, world: World) -> None:
        world.merger = Merger(frozenset({"茶", "雨"}))
        world.begin("茶", "山", "雨", "海")
        world.review()
        assert world.review().changes == ()

    @pytest.mark.slow
    @pytest.mark.parametrize("unrelated", [0.1, 0.3, 0.5])
    @pytest.mark.parametrize("merges", [0, 1, 3])
    def test_nothing_is_left_for_a_second_review(
        self, world: World, merges: int, unrelated: float
    ) -> None:
        # What is put away or merged must not make what stays less alike to what goes on.
        likely = {"unrelated": unrelated, "important": 1.0, "merges": merges}
        world.settings, world.merger = {"review": likely}, Merger(everything=True)
        world.begin("茶", "雨", "书", "琴", "花", "鸟", "山", "海")
        first = world.review()
        assert len(first.merged) == merges
        assert first.archived
        assert world.review().changes == ()
        world.checked()

    @pytest.mark.slow
    def test_what_one_was_read_for_counts_for_both(self, world: World) -> None:
        over = {"茶": 0.1, "雨": 0.1}
        world.merger = Merger(frozenset(over))
        world.reviewer = Reviewer(importance=over)
        world.begin()
        (gone, stays) = world.review(dry_run=True).merged[0]
        world.wake(gone)
        tell(world.graph, CONFIG, "你好")
        world.sleep("茶", "雨")
        world.clock.now += timedelta(days=3)
        first = world.review()
        assert (first.merged, first.archived) == (((gone, stays),), ())
        assert world.review().changes == (), "it was read for three days ago"
        world.clock.now += timedelta(days=5)
        assert world.review().archived == (stays,)

    @pytest.mark.slow
    def test_at_most_some_at_once_and_only_if_a_role_agrees(self, world: World) -> None:
        world.merger = FailingRole()
        world.begin()
        assert world.review(dry_run=True).merged == ()
        assert world.merger.asked > 1
        world.settings = {"review": {"merges": 1}}
        world.merger = Merger()
        assert world.review(dry_run=True).merged == ()
        assert len(world.merger.asked) == 4
        world.merger = Merger(everything=True)
        assert len(world.review().merged) == 1
        world.checked()

    @pytest.mark.slow
    def test_for_each_merge_the_four_likeliest_pairs_are_asked_about(self, world: World) -> None:
        world.begin("茶", "雨", "书", "琴", "山", "海")
        asked = list[list[float]]()
        for merges in (0, 1, 2, 4):
            world.settings, world.merger = {"review": {"merges": merges}}, Merger()
            assert world.review(dry_run=True).merged == ()
            asked.append(world.merger.likeness)
        *fewer, every = asked
        assert len(every) == 15, "each topic with each other one"
        assert every[-1] < 0.4, "the role decides, however unlike they are"
        assert fewer == [[], every[:4], every[:8]]

    @pytest.mark.slow
    def test_not_if_they_would_be_too_large(self, world: World) -> None:
        world.settings = {"topic_window": 1_000, "topic_share": 0.1}
        world.begin()
        world.review()
        assert world.merger.asked == []

    @pytest.mark.slow
    def test_by_the_embedded_roles(self, world: World) -> None:
        embedded = fake_roles()
        world.reviewer, world.merger = embedded[REVIEWER], embedded[MERGER]
        world.begin()
        before = world.checked()
        report = world.review()
        assert world.checked() == before
        assert {t.id for t in world.topic_table} == set(report.reviewed) | {
            g for g, _ in report.merged
        }
        assert all(0 < (t.importance or 0) < 1 for t in world.topic_table.open())


class TestSafety:
    @pytest.mark.slow
    def test_a_dry_run_changes_nothing(self, world: World) -> None:
        world.begin()
        before, files = world.graph.get_state(CONFIG), world.files()
        report = world.review(dry_run=True)
        assert report.archived == (world.id_of("茶"),)
        assert report.told
        assert world.graph.get_state(CONFIG) == before
        assert world.files() == files

    @pytest.mark.slow
    def test_twice_is_once(self, world: World) -> None:
        world.begin()
        world.review()
        session = world.session
        asked = len(world.reviewer.requests)
        report = world.review()
        assert (report.changes, report.calls) == ((), ())
        assert world.session == session
        assert len(world.reviewer.requests) == asked

    @pytest.mark.slow
    def test_only_what_was_touched_is_looked_at_again(self, world: World) -> None:
        world.begin(days=1)
        world.review()
        world.reviewer.requests.clear()
        record(world.graph, CONFIG, *past("海", rounds=2, characters=99))
        tell(world.graph, CONFIG, "嗯", keep=0)
        report = world.review()
        assert world.id_of("海") in report.reviewed
        assert world.id_of("茶") not in report.reviewed
        assert len(world.reviewer.requests) == len(report.reviewed)

    @pytest.mark.slow
    def test_two_at_once(self, world: World) -> None:
        world.begin()
        reports = list[ReviewReport]()
        world.merger = Meanwhile(lambda: reports.append(world.review()))
        second = world.review()
        (first,) = reports
        assert first.archived == (world.id_of("茶"),)
        assert (second.changed, second.archived) == ((), ())
        assert set(second.refused) == {t.id for t in world.topic_table}
        world.checked()

    @pytest.mark.slow
    def test_killed_before_its_changes_it_is_done_again(self, world: World) -> None:
        world.begin()
        before = world.graph.get_state(CONFIG)
        world.merger = FixedRole(kill)
        with pytest.raises(KeyboardInterrupt):
            world.review()
        assert world.graph.get_state(CONFIG) == before
        world.merger = Merger()
        assert world.review().archived == (world.id_of("茶"),)
        world.checked()

    @pytest.mark.slow
    def test_a_turn_goes_on_beside_it(self, world: World) -> None:
        world.begin()

        def talk() -> None:
            record(world.graph, CONFIG, *past("茶", rounds=1, characters=99))
            tell(world.graph, CONFIG, "嗯", keep=0)

        world.merger = Meanwhile(talk)
        before = world.checked()
        report = world.review()
        tea = world.id_of("茶")
        assert report.refused[tea] == f"{tea} has changed since"
        assert world.topic_table[tea].status == "open"
        assert world.checked()[: len(before)] == before
        events = last_receipt(world.folder, world.graph, CONFIG).events
        assert f"left {tea} as it is: {tea} has changed since" in events

    @pytest.mark.slow
    def test_what_woke_meanwhile_stays(self, world: World) -> None:
        world.begin()
        tea = world.id_of("茶")
        world.merger = Meanwhile(lambda: world.wake(tea))
        assert world.review().refused[tea] == f"{tea} is active"

    @pytest.mark.slow
    def test_a_turn_that_has_no_answer_yet_is_left_alone(self, world: World) -> None:
        world.begin()
        world.responder.script = [RuntimeError("down"), RuntimeError("down")]
        with pytest.raises(Exception, match="down"):
            tell(world.graph, CONFIG, "山：然后呢？")
        before = world.graph.get_state(CONFIG)
        report = world.review()
        assert report.changed == ()
        assert set(report.refused.values()) == {"a turn of the session is not finished"}
        assert world.graph.get_state(CONFIG) == before
        world.graph.invoke(None, CONFIG)
        assert world.review().archived

    @pytest.mark.slow
    def test_a_reviewer_that_fails_costs_its_summaries_only(self, world: World) -> None:
        world.reviewer = FailingRole()
        world.begin()
        report = world.review()
        assert {c.failure for c in report.calls if c.failure} == {"RuntimeError: out of order"}
        assert set(report.reviewed) == {t.id for t in world.topic_table}, "its stand-in reviews"

    @pytest.mark.slow
    def test_a_review_whose_roles_fail_changes_nothing(self, world: World) -> None:
        broken = FailingRole()
        roles = world.roles.replace(REVIEWER, broken, stand_in=broken)
        world.begin()
        report = world.review(roles=roles)
        assert report.changes == ()
        assert world.review().archived, "they are due still"

    @pytest.mark.slow
    def test_on_the_event_loop(self, world: World) -> None:
        world.begin()
        report = asyncio.run(areview_session(world.graph, CONFIG))
        assert report.archived == (world.id_of("茶"),)
        world.checked()

    def test_in_the_store_of_the_graph(self) -> None:
        clock = Clock()
        roles = fake_roles().replace(REVIEWER, Reviewer(importance={"茶": 0.1}))
        settings = Settings.model_validate({"window": 2_000, "activation": AWAKE})
        graph = build_session_graph(
            roles=roles, settings=settings, storage="store", clock=clock
        ).compile(checkpointer=InMemorySaver(), store=InMemoryStore())
        record(graph, CONFIG, *past("茶", "雨", "山", rounds=3))
        tell(graph, CONFIG, "山：还有吗？", keep=0)
        clock.now += timedelta(days=8)
        report = review_session(graph, CONFIG)
        assert len(report.reviewed) == 3
        assert review_session(graph, CONFIG).changes == ()

    @pytest.mark.slow
    def test_a_fork_from_before_sees_it_open(self, world: World) -> None:
        world.begin()
        before = world.graph.get_state(CONFIG).config
        world.review()
        world.graph.invoke({"messages": [HumanMessage("雨：再说")]}, before)
        assert world.named()["茶"] == "open"
        world.checked()

    def test_a_session_without_topics(self, world: World) -> None:
        assert world.review().changes == ()
        tell(world.graph, CONFIG, "Hello")
        assert world.review().changes == ()

    def test_what_is_missing_is_said(self, world: World) -> None:
        with pytest.raises(MissingThreadError):
            review_session(world.graph, {})

    @pytest.mark.slow
    def test_a_turn_with_neither_message_nor_conversation(self, world: World) -> None:
        world.begin()
        changes = tuple(world.review(dry_run=True).changes)
        with pytest.raises(NoNewMessageError):
            world.graph.invoke({"messages": []}, CONFIG)
        with pytest.raises(NoNewMessageError):
            world.graph.invoke(
                {"messages": []},
                thread("new"),
                context=TurnOptions(answer=False, changes=changes),
            )

    @pytest.mark.slow
    def test_changes_come_along_with_a_message(self, world: World) -> None:
        world.begin()
        changes = tuple(world.review(dry_run=True).changes)
        world.graph.invoke(
            {"messages": [HumanMessage("山：还有")]}, CONFIG, context=TurnOptions(changes=changes)
        )
        assert world.named()["茶"] == "archived"
        assert world.checked()[-1].role == "assistant"

    @pytest.mark.slow
    def test_no_tokens_of_it_are_kept_in_the_conversation(self, world: World) -> None:
        world.begin()
        before = world.graph.get_state(CONFIG).values["messages"]
        world.review()
        assert world.graph.get_state(CONFIG).values["messages"] == before
        assert not list(FileStorage(world.folder).open("s").reports())
