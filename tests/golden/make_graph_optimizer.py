"""Asks NNabla what its graph optimizer makes of the networks of graph_tables.py: graph_optimizer.json for the tests.

python tests/golden/make_graph_optimizer.py     # with nnabla 1.39
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from nnabla.core import graph_optimizer

sys.path.insert(0, str(Path(__file__).parent.parent))

from graph_tables import NETWORKS, without_identities  # noqa: E402

if __name__ == "__main__":
    found = {name: without_identities(graph_optimizer, name) for name in NETWORKS}
    Path(__file__).with_name("graph_optimizer.json").write_text(json.dumps(found, indent=1) + "\n")
