"""One case file a function: the file's stem is the function's Python name. See `case.py` for how to write one."""
