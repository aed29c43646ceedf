"""`import nnabla` in programs that a script under `nnrs run` starts: nnrs in its place."""

import importlib
import sys

from nnrs import compat

_here = sys.modules.pop(__name__)
compat.install()
# What is in sys.modules after this file is what the import gives.
sys.modules[__name__] = importlib.import_module("nnrs")
