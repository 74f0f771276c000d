"""What finds a message: encoders, words, ranking, centroids, expressions of time."""
