"""Makes the test helpers importable from anywhere; which package is under test is said by `function_harness.py`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
