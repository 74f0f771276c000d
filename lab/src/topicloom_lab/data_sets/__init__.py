"""Public data sets of long conversations: where they are, their licences, and how they become ours.

Ours is a conversation a line, with questions and the messages that their answers rest on. A data
set that knows which topic a message is in also becomes conversations with threads.
"""

from topicloom_lab.data_sets.catalogue import DATA_SETS, DataSet
from topicloom_lab.data_sets.published import Published, find_label, read_published

__all__ = ["DATA_SETS", "DataSet", "Published", "find_label", "read_published"]
