"""Our encoders for what takes those of LangChain."""

from __future__ import annotations

from langchain_core.embeddings import Embeddings

from topicloom import Embedder


class LangChainEmbeddings(Embeddings):
    """`Embeddings` by one of ours; the async forms run in a thread, as LangChain has it."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        vectors: list[list[float]] = self._embedder.embed(texts).tolist()
        return vectors

    def embed_query(self, text: str) -> list[float]:
        """The vector of a query, made as those of documents are."""
        return self.embed_documents([text])[0]
