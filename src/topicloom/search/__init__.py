"""Internal: encoders, BM25, ranking and centroids, by which messages and topics are found."""
