"""Encoders, words, ranking, centroids and time expressions, by which messages are found."""
