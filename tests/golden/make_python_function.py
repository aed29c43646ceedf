"""Runs the scripts of tests/python_functions.py on NNabla and writes python_function.json, which nnrs must agree with.

python tests/golden/make_python_function.py     # with nnabla 1.39 installed
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

os.environ["NNRS_TEST_MODULE"] = "nnabla"
sys.path.insert(0, str(Path(__file__).parent.parent))

import python_functions as scripts  # noqa: E402

if __name__ == "__main__":
    golden = {script.__name__: scripts.plain(script()) for script in scripts.SCRIPTS}
    text = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in golden.items())
    Path(__file__).with_name("python_function.json").write_text("{\n" + text + "\n}\n")
