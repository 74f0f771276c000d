"""Topics beside other memories: as Markdown files, and as documents of a vector store."""
