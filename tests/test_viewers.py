"""Pictures of graphs are well-formed SVG that shows every function, variable and parameter without overlap."""

import os
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest

import nnrs as nn
import nnrs.functions as F
import nnrs.parametric_functions as PF
from nnrs.experimental.viewers import SimpleGraph

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    nn.clear_parameters()
    yield
    nn.clear_parameters()


def network():
    x = nn.Variable((2, 3, 8, 8))
    x.name = "x<&>"
    h = F.relu(PF.convolution(x, 4, (3, 3), pad=(1, 1), name="c1"))
    h = F.add2(F.relu(PF.convolution(h, 4, (3, 3), pad=(1, 1), name="c2")), h)
    return PF.affine(h, 3)


def draw(v, path, **options):
    return ElementTree.parse(SimpleGraph(format="svg", **options).save(v, path)).getroot()


def texts(root):
    return [t.text for t in root.iter(f"{SVG}text")]


def test_every_node_is_there(tmp_path):
    root = draw(network(), tmp_path / "g")
    said = texts(root)
    assert len(list(root.iter(f"{SVG}rect"))) == 1 + 6  # the ground and six functions
    assert [said.count(name) for name in ("Convolution", "ReLU", "Add2", "Affine")] == [2, 2, 1, 1]
    assert (
        "c1/conv" in said
        and "affine" in said
        and "x<&>" in said
        and "4 _ 3 _ 3 _ 3".replace("_", "\N{MULTIPLICATION SIGN}") in said
    )
    assert (said.count("W"), said.count("b")) == (3, 3)
    assert len(list(root.iter(f"{SVG}ellipse"))) == 1 + 6 + 6  # x, parameters, outputs
    fills = [e.get("fill") for e in root.iter(f"{SVG}ellipse")]
    assert sorted(fills.count(f) for f in set(fills)) == [6, 7]


def test_nothing_overlaps_and_all_is_inside(tmp_path):
    root = draw(network(), tmp_path / "g")
    left, top, width, height = (float(n) for n in root.get("viewBox").split())
    boxes = []
    for e in root.iter(f"{SVG}ellipse"):
        cx, cy, rx, ry = (float(e.get(k)) for k in ("cx", "cy", "rx", "ry"))
        boxes.append((cx - rx, cy - ry, cx + rx, cy + ry))
    for e in list(root.iter(f"{SVG}rect"))[1:]:
        x, y, w, h = (float(e.get(k)) for k in ("x", "y", "width", "height"))
        boxes.append((x, y, x + w, y + h))
    for i, a in enumerate(boxes):
        assert left <= a[0] and a[2] <= left + width and top <= a[1] and a[3] <= top + height
        for b in boxes[:i]:
            assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]


def test_verbose_and_colours(tmp_path):
    root = draw(network(), tmp_path / "g", verbose=True, fname_color_map={"ReLU": "#00ff00"})
    assert "base_axis=1" in texts(root) and "need_grad=True" in texts(root)
    assert [e.get("fill") for e in root.iter(f"{SVG}rect")].count("#00ff00") == 2


def test_variable_without_history(tmp_path):
    assert texts(draw(nn.Variable((2,)), tmp_path / "g")) == ["2"]


def test_long_chain(tmp_path):
    x = nn.Variable((2,))
    for _ in range(2000):
        x = F.relu(x)
    assert texts(draw(x, tmp_path / "g")).count("ReLU") == 2000


def test_ending_is_added_once(tmp_path):
    draw(nn.Variable((2,)), tmp_path / "a")
    draw(nn.Variable((2,)), tmp_path / "b.svg")
    assert sorted(os.listdir(tmp_path)) == ["a.svg", "b.svg"]


def test_errors(tmp_path):
    with pytest.raises(RuntimeError, match="'png' needs the program dot"):
        SimpleGraph().save(nn.Variable((2,)), tmp_path / "g")
    with pytest.raises(TypeError, match="argument 'vleaf': expected a Variable, got int 3"):
        SimpleGraph(format="svg").save(3, tmp_path / "g")
    assert os.listdir(tmp_path) == []


def test_dot_is_used_where_it_is(tmp_path, monkeypatch):
    dot = tmp_path / "dot"
    dot.write_text("#!/bin/sh\necho $1\ncat\n")
    dot.chmod(0o755)
    monkeypatch.setattr(shutil, "which", lambda name: str(dot))
    v = nn.Variable((2,))
    v.name = 'say "hi"\\'
    text = Path(SimpleGraph(format="png").save(v, tmp_path / "g")).read_text()
    assert text.startswith("-Tpng\ndigraph {") and '[label="say \\"hi\\"\\\\\\n2" shape="ellipse"' in text
