"""What a vector store should hold of a topic, against what it holds."""

from __future__ import annotations

from hypothesis import given, strategies as st
from langchain_core.documents import Document

from topicloom.review.archive_index import TopicDocuments, diff_documents
from topicloom.roles.archive_search import SessionFilter

IDS = st.sampled_from([f"d{n}" for n in range(6)])
TEXTS = st.sampled_from(["one", "two"])
STORES = st.dictionaries(IDS, TEXTS)


@given(wanted=STORES, there=STORES, others=st.dictionaries(st.just("x"), TEXTS))
def test_afterwards_it_holds_just_that(
    wanted: dict[str, str], there: dict[str, str], others: dict[str, str]
) -> None:
    shelf = TopicDocuments("t1", _documents(wanted), [f"d{n}" for n in range(6)])
    stale, fresh = diff_documents(shelf, _documents(there | others))
    assert not {i for i in wanted if there.get(i) == wanted[i]} & {*stale, *(d.id for d in fresh)}
    after = {i: text for i, text in (there | others).items() if i not in stale}
    assert after.keys().isdisjoint(d.id for d in fresh), "some stores refuse an id that they have"
    after |= {str(d.id): d.page_content for d in fresh}
    assert after == wanted | others
    assert diff_documents(shelf, _documents(after)) == ([], [])


def _documents(store: dict[str, str]) -> list[Document]:
    return [Document(id=i, page_content=text) for i, text in store.items()]


def test_the_filter_is_what_any_store_takes() -> None:
    own = SessionFilter("s")
    assert own == {"session": "s"}
    assert own(Document("", metadata={"session": "s"}))
    assert own({"session": "s", "topic": "t1"})
    assert not own(Document("", metadata={"session": "t"}))
    assert not own({})
