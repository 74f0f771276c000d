"""What `bin/generate` makes from the code, a module for each kind of file.

`__main__.py` lists all of it; `tests/docs/test_generated.py` says which files are out of date.
"""
