"""What people use today, through its own public interface and in this process.

Each module imports its library when a strategy is made. All get the same embedder and budget; who
needs a model to sum up gets the configured one, or else the extractive stand-in.
"""
