"""`core.graph_optimizer` changes tables of a network as NNabla's does (golden/graph_optimizer.json)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import nnrs as nn
from graph_tables import NETWORKS, described, network, without_identities
from nnrs.core import graph_optimizer

GOLDEN = json.loads((Path(__file__).parent / "golden" / "graph_optimizer.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", NETWORKS)
def test_identities_go_as_in_nnabla(name):
    assert without_identities(graph_optimizer, name) == GOLDEN[name]


def test_only_what_is_required_goes():
    net = network("two in a row")
    remover = graph_optimizer.IdentityRemover(is_required=lambda f: f.name == "j")
    for f in list(net.functions.values()):
        remover(f)
    assert list(net.functions) == ["i", "g"] and remover.renamed == {"b": "a"}
    assert net.functions["g"].inputs == ["a"] and net.variables["a"].required == ["g"]


def test_renaming_reaches_all_that_name_a_variable():
    net = network("in the middle")
    graph_optimizer.rename_variable(net, {"a": "new", "y": "out"})
    assert net.functions["f"].outputs == net.functions["i"].inputs == ["new"]
    assert net.outputs == net.functions["g"].outputs == ["out"]
    assert net.variables["new"].name == net.variables["new"].proto.name == "new" and "a" not in net.variables


def test_renaming_what_is_not_there_changes_nothing():
    net = network("in the middle")
    before = described(net)
    with pytest.raises(ValueError, match="rename_variable: argument 'renames': .*'nonsense'") as e:
        graph_optimizer.rename_variable(net, {"a": "new", "nonsense": "b"})
    assert isinstance(e.value, nn.Error) and described(net) == before
