"""Internal: the formats of other chats' exports, one a file; `known.py` lists them."""
