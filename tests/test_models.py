"""Trained networks ask of their files what NNabla's do; images around them are computed as NNabla does."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import nnrs as nn
import recorded_models
from nnrs.models import imagenet, object_detection, semantic_segmentation, utils
from nnrs.models._pretrained import PretrainedNetwork
from nnrs.models.object_detection import draw_utils
from nnrs.models.object_detection.utils import (
    LetterBoxTransform,
    apply_inverse_letterbox_coordinate_transform,
    draw_bounding_boxes,
    letterbox,
)
from nnrs.models.semantic_segmentation import image_preprocess
from nnrs.models.semantic_segmentation import utils as segmentation
from nnrs.utils import image_utils

GOLDEN = json.loads((Path(__file__).parent / "golden" / "models.json").read_text(encoding="utf-8"))
IMAGE = (np.arange(6 * 9 * 3) * 37 % 256).astype(np.uint8).reshape(6, 9, 3)


@pytest.fixture
def recorded(monkeypatch):
    """Lets files be noted instead of loaded: `recorded(notes)`."""
    module = ModuleType("nnrs.utils.nnp_graph")
    module.NnpNetworkPass = recorded_models.Pass
    monkeypatch.setitem(sys.modules, module.__name__, module)

    def prepare(notes):
        monkeypatch.setattr(
            PretrainedNetwork, "_load_nnp", lambda self, name, url, path=None: notes.append([name, url])
        )

    return prepare


@pytest.fixture
def pillow():
    pytest.importorskip("PIL")
    image_utils.set_backend("pil")
    yield
    image_utils.set_backend("")


def test_networks_ask_what_nnablas_ask(recorded):
    found = recorded_models.imagenet("nnrs", recorded)
    assert found.keys() == GOLDEN["imagenet"].keys()
    without_normalization = "set_batch_normalization_batch_stat_all"
    for name, expected in GOLDEN["imagenet"].items():
        ours, theirs = json.loads(json.dumps(found[name])), expected
        if name.startswith("AlexNet"):  # it has none
            for call in ours[2:]:
                call[2] = [note for note in call[2] if without_normalization not in note]
        assert ours == theirs, name


def test_names_of_classes(recorded):
    recorded([])
    names = imagenet.ResNet18().category_names
    assert len(names) == 1000 and names[0] == "tench, Tinca tinca"
    assert object_detection.YoloV2().get_category_names()[:2] == ["aeroplane", "bicycle"]
    assert len(object_detection.YoloV2("coco").get_category_names()) == 80
    assert len(semantic_segmentation.DeepLabV3plus().category_names) == 20


def test_wrong_arguments(recorded):
    recorded([])
    network = imagenet.GoogLeNet()
    network.nnp = recorded_models.Loader([])
    for call in (
        lambda: imagenet.ResNet(19),
        lambda: imagenet.VGG(19),
        lambda: imagenet.ShuffleNet(7),
        lambda: imagenet.SqueezeNet("v2"),
        lambda: imagenet.ResNeXt(18),
        lambda: object_detection.YoloV2("imagenet"),
        lambda: semantic_segmentation.DeepLabV3plus("coco"),
        lambda: semantic_segmentation.DeepLabV3plus(output_stride=4),
        lambda: network(nn.Variable((3, 224, 224))),
        lambda: network(nn.Variable((1, 4, 224, 224))),
        lambda: network(use_up_to="end"),
        lambda: network(with_aux_tower=True),
    ):
        with pytest.raises(ValueError) as caught:
            call()
        assert isinstance(caught.value, nn.Error)
    with pytest.raises(TypeError, match="input_var"):
        network(np.zeros((1, 3, 224, 224)))
    with pytest.raises(NotImplementedError, match="use_from"):
        network(use_from="pool")


class Message(SimpleNamespace):
    """What stands for a message of a file."""


def function(shape, **params):
    return Message(inputs=[Message(proto=Message(shape=Message(dim=list(shape)), name="in"))], proto=Message(**params))


class Changes(recorded_models.Pass):
    """Keeps the changes that are made to functions."""

    last = None

    def __init__(self, verbose=0):
        super().__init__(verbose)
        self.by_name = {}
        type(self).last = self

    def on_generate_function_by_name(self, name):
        return lambda change: self.by_name.setdefault(name, change)


@pytest.fixture
def changes(recorded, monkeypatch):
    recorded([])
    monkeypatch.setattr(sys.modules["nnrs.utils.nnp_graph"], "NnpNetworkPass", Changes)
    return lambda network, shape: network(nn.Variable(shape)) and Changes.last.by_name


def test_detection_fits_the_image(changes, monkeypatch):
    network = object_detection.YoloV2()
    network.nnp = recorded_models.Loader([])
    monkeypatch.setattr(network, "get_nnp_input_size", lambda: (416, 416))
    by_name = changes(network, (2, 3, 320, 608))
    # Shapes of the file's network of 416 x 416 pixels, for one image.
    for name, shape, expected in [
        ("Reshape", (1, 64, 26, 26), [1, 16, 26, 2, 26, 2]),
        ("Reshape_2", (1, 2, 2, 64, 13, 13), [1, 1024, 6, 6]),
        ("Reshape_3", (1, 125, 13, 13), [1, 5, 25, 13, 13]),
        ("Reshape_8", (1, 5, 13, 13, 25), [1, 845, 25]),
    ]:
        dim = [1, 5, 25, 13, 13] if name == "Reshape_3" else [0] * 6
        f = function(shape, reshape_param=Message(shape=Message(dim=dim)))
        assert by_name[name](f).proto.reshape_param.shape.dim == expected, name
    for name, end in [("Slice", 2), ("Slice_2", 4), ("Slice_3", 5), ("Slice_4", 25)]:
        f = function((1, 5, 25, 13, 13), slice_param=Message(stop=[]))
        assert by_name[name](f).proto.slice_param.stop == [1, 5, end, 13, 13]
    for name, cells in [("Arange", 19), ("Arange_2", 10)]:
        assert by_name[name](function((), arange_param=Message(stop=13))).proto.arange_param.stop == cells
    for name, factor in [("MulScalar_2", 416 / 608), ("MulScalar_3", 416 / 320)]:
        f = function((), mul_scalar_param=Message(val=2.0))
        assert by_name[name](f).proto.mul_scalar_param.val == pytest.approx(2 * factor)


def test_the_size_in_a_file(recorded):
    recorded([])
    variables = [
        Message(name=name, type=kind, shape=Message(dim=dim))
        for name, kind, dim in (
            ("w", "Parameter", [4, 3, 3, 3]),
            ("x", "Buffer", [1, 3, 416, 320]),
            ("y", "Buffer", [1, 4, 414, 318]),
        )
    ]
    functions = [Message(input=["x", "w"], output=["y"])]
    network = object_detection.YoloV2()
    proto = Message(as_proto=lambda: Message(function=functions, variable=variables))
    network.nnp = Message(network_dict={"runtime": proto})
    assert network.get_nnp_input_size() == (416, 320)


def test_segmentation_fits_the_image(changes):
    network = semantic_segmentation.DeepLabV3plus()
    network.nnp = recorded_models.Loader([])
    by_name = changes(network, (1, 3, 513, 301))
    for name, size in [("Interpolate", [33, 19]), ("Interpolate_2", [129, 76]), ("Interpolate_3", [513, 301])]:
        f = function((), interpolate_param=Message(output_size=[]))
        assert by_name[name](f).proto.interpolate_param.output_size == size


def test_where_files_come_from(monkeypatch, tmp_path):
    monkeypatch.delenv("NNABLA_MODELS_URL_BASE", raising=False)
    assert utils.get_model_url_base_from_env() is None
    assert utils.get_model_url_base() == "https://nnabla.org/pretrained-models/nnp_models/"
    asked = []

    def download(url, target, open_file):
        asked.append((url, target))
        raise OSError("no network")

    module = ModuleType("nnrs.utils.download")
    module.download, module.get_data_home = download, lambda: str(tmp_path / "data")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    assert utils.get_model_home() == str(tmp_path / "data" / "nnp_models")
    monkeypatch.setenv("NNABLA_MODELS_URL_BASE", "http://localhost/models")
    url = "http://localhost/models/imagenet/AlexNet/AlexNet.nnp"
    with pytest.raises(OSError, match=rf"cannot fetch {url}: no network\n.*path="):
        imagenet.AlexNet()
    assert asked[0][1] == str(tmp_path / "data" / "nnp_models" / "imagenet" / "AlexNet.nnp")
    with pytest.raises(FileNotFoundError, match="there is no file"):
        imagenet.AlexNet(path=tmp_path / "none.nnp")


def test_a_file_that_is_there_is_loaded(monkeypatch, tmp_path):
    loaded = []
    module = ModuleType("nnrs.utils.nnp_graph")
    module.NnpLoader = lambda path: loaded.append(path) or "loader"
    monkeypatch.setitem(sys.modules, module.__name__, module)
    (tmp_path / "own.nnp").write_bytes(b"")
    assert imagenet.ResNet50(path=tmp_path / "own.nnp").nnp == "loader"
    monkeypatch.setattr("nnrs.models._pretrained.get_model_home", lambda: str(tmp_path))
    (tmp_path / "object_detection").mkdir()
    (tmp_path / "object_detection" / "yolov2-coco.nnp").write_bytes(b"")
    object_detection.YoloV2("coco")
    assert loaded == [str(tmp_path / "own.nnp"), str(tmp_path / "object_detection" / "yolov2-coco.nnp")]


NUMBERS = GOLDEN["numbers"]


def test_letter_boxes(pillow):
    box = LetterBoxTransform(IMAGE, 8, 10)
    assert [box.image.tolist(), box.new_w, box.new_h] == NUMBERS["letterbox"]
    tall = letterbox(IMAGE, 9, 4)
    assert [tall[0].tolist(), *tall[1:]] == NUMBERS["tall"]
    boxes = np.array([[0.5, 0.5, 0.2, 0.3, 0.9], [0.1, 0.7, 0.4, 0.1, 0.2]])
    before = boxes.copy()
    np.testing.assert_allclose(box.inverse_coordinate_transform(boxes), NUMBERS["inverse"])
    assert np.array_equal(boxes, before)
    assert apply_inverse_letterbox_coordinate_transform(boxes[:0], 4, 4, 1, 1).shape == (0, 5)
    for wrong in (IMAGE.astype(float), IMAGE[..., 0], IMAGE[:, :0]):
        with pytest.raises(ValueError, match="letterbox"):
            letterbox(wrong, 4, 4)
    assert letterbox(IMAGE, 1, 100)[1:] == (1, 1)


def test_drawing(pillow, monkeypatch):
    monkeypatch.setattr(draw_utils.importlib.util, "find_spec", lambda name: None)
    image = np.zeros((60, 80, 3), np.uint8)
    boxes = np.array([[40, 45, 20, 20, 1, 0.9, 0.6], [10, 10, 6, 6, 1, 0.1, 0.2]])
    drawn = draw_bounding_boxes(image, boxes, ["cat", "dog"])
    color = np.random.RandomState(1223).randint(0, 256, (2, 3))[0]  # NNabla's colours
    assert drawn[35, 35].tolist() == drawn[55, 45].tolist() == color.tolist()
    assert not drawn[7:13, 7:13].any() and not image.any()
    assert drawn[20:32].any()  # the label is above
    red = draw_bounding_boxes(image, boxes, ["cat", "dog"], colors=[(255, 0, 0), (0, 0, 0)], thresh=0.7)
    assert red[35, 35].tolist() == [255, 0, 0]
    with pytest.raises(ValueError, match="DrawBoundingBoxes"):
        draw_bounding_boxes(image[..., 0], boxes, ["cat", "dog"])


def test_drawing_by_opencv():
    pytest.importorskip("cv2")
    drawing = draw_utils.DrawBoundingBoxes(np.zeros((60, 80, 3), np.uint8), [(255, 0, 0)])
    drawing.draw((10, 20, 30, 40), 0, "cat")
    assert drawing.get()[20, 15].tolist() == [255, 0, 0]


def test_images_for_segmentation(pillow, tmp_path):
    np.testing.assert_allclose(segmentation.pre_process_image(IMAGE, 8, 10), NUMBERS["pre"], atol=1e-6)
    process = segmentation.ProcessImage(IMAGE, 8, 10)
    assert process.pre_process().shape == (1, 3, 8, 10)
    output = np.arange(80, dtype=np.float32).reshape(8, 10)
    assert process.post_process(output).tolist() == NUMBERS["post"]
    assert image_preprocess.resize(IMAGE[..., :1], (4, 4)).tolist() == NUMBERS["label"]
    assert segmentation.get_color().tolist() == NUMBERS["colors"]
    assert image_preprocess.pad(IMAGE, (4, 12), value=7).shape == (6, 12, 3)
    label = np.zeros((4, 5))
    label[1:3, 1:4] = 15
    segmentation.save_image(tmp_path / "a.png", label)
    written = image_utils.imread(tmp_path / "a.png")
    assert written[0, 0].tolist() == [0, 0, 0] and written[1, 1].tolist() == [
        255,
        170,
        170,
    ]  # (192, 128, 128) stretched
    segmentation.save_image(tmp_path / "b.png", np.zeros((4, 5)))
    assert not image_utils.imread(tmp_path / "b.png").any()
    with pytest.raises(RuntimeError, match="post_process comes before"):
        segmentation.ProcessImage(IMAGE, 8, 10).save_segmentation_image(tmp_path / "c.png")
