"""`python -m nnrs`: the command line, as `nnrs`."""

from __future__ import annotations

import sys

from .utils.cli.cli import main

if __name__ == "__main__":
    sys.exit(main())
