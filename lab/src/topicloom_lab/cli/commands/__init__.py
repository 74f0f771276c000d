"""The commands of the laboratory with their options, by what they measure or do.

What they do is imported when one of them runs.
"""
