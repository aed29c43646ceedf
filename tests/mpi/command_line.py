"""The command line, as `nnrs` starts it."""

from __future__ import annotations

import sys

from nnrs.utils.cli.cli import main

sys.exit(main())
