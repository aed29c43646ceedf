"""Images are read, written and resized as NNabla does with the same backend; what is no image is an error."""

from __future__ import annotations

import importlib
import importlib.util
import io
import os
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

import nnrs as nn
from file_helpers import of_a_library
from nnrs.utils import image_utils
from nnrs.utils.image_utils import imread, imresize, imsave, minmax_auto_scale

PACKAGES = {"PilBackend": "PIL", "Cv2Backend": "cv2", "PngBackend": "png"}
RGB = (np.arange(60) * 4).astype(np.uint8).reshape(4, 5, 3)


@pytest.fixture(params=PACKAGES)
def backend(request):
    if importlib.util.find_spec(PACKAGES[request.param]) is None:
        pytest.skip(f"{PACKAGES[request.param]} is not installed")
    image_utils.set_backend(request.param)
    yield request.param
    image_utils.set_backend("")


@pytest.fixture
def pillow():
    pytest.importorskip("PIL.Image")
    image_utils.set_backend("pil")
    yield importlib.import_module("PIL.Image")
    image_utils.set_backend(None)


def encoded(pixels, kind="PNG", **options):
    """A file of that kind, written by Pillow."""
    image = pytest.importorskip("PIL.Image")
    file = io.BytesIO()
    (pixels if hasattr(pixels, "mode") else image.fromarray(pixels)).save(file, format=kind, **options)
    return file


@pytest.mark.parametrize("channels", [0, 1, 2, 3, 4])
def test_what_is_written_is_read(backend, channels, tmp_path):
    if channels == 2 and backend == "Cv2Backend":
        pytest.skip("OpenCV has no images of two channels")
    rng = np.random.default_rng(0)
    img = rng.integers(0, 256, (4, 5, channels) if channels else (4, 5), dtype=np.uint8)
    imsave(tmp_path / "a.png", img)
    expected = img[..., 0] if channels == 1 else img
    assert imread(tmp_path / "a.png").tolist() == expected.tolist()
    assert image_utils.get_backend() == backend
    with open(tmp_path / "a.png", "rb") as f:
        f.seek(7)
        assert imread(f).tolist() == expected.tolist()


def test_paths_are_texts_too_and_axes_may_come_first(backend, tmp_path):
    name = os.path.join(tmp_path, "a.png")
    imsave(name, RGB.transpose(2, 0, 1), channel_first=True)
    assert np.array_equal(imread(name), RGB)
    assert np.array_equal(imread(name, channel_first=True), RGB.transpose(2, 0, 1))
    assert imread(name, channel_first=True).flags.writeable


def test_grey_as_nnabla_gives_it(backend):
    expected = [[3, 15, 27, 39, 51], [63, 75, 87, 99, 111], [123, 135, 147, 159, 171], [183, 195, 207, 219, 231]]
    assert imread(encoded(RGB), grayscale=True).tolist() == expected
    assert imread(encoded(RGB), grayscale=True, num_channels=0).tolist() == expected
    assert imread(encoded(RGB), grayscale=True, num_channels=1).tolist() == np.array(expected)[..., None].tolist()
    assert imread(encoded(RGB), grayscale=True, num_channels=3)[..., 2].tolist() == expected


def test_channels(backend):
    rgba = imread(encoded(RGB), num_channels=4)
    assert np.array_equal(rgba[..., :3], RGB)
    assert (rgba[..., 3] == 255).all()
    assert np.array_equal(imread(encoded(rgba), num_channels=3), RGB)
    grey = imread(encoded(RGB[..., 0]), num_channels=3)
    assert np.array_equal(grey, np.repeat(RGB[..., :1], 3, 2))


# Of NNabla 1.39, the first channel of RGB at (width, height) = (3, 2).
RESIZED = {
    "PilBackend": {
        "nearest": [[60, 84, 108], [180, 204, 228]],
        "bilinear": [[48, 67, 86], [142, 161, 180]],
        "bicubic": [[39, 59, 79], [149, 169, 189]],
        "lanczos": [[36, 56, 76], [152, 172, 192]],
        "box": [[36, 54, 72], [156, 174, 192]],
        "hamming": [[39, 58, 77], [151, 170, 189]],
    },
    "Cv2Backend": {
        "nearest": [[0, 12, 36], [120, 132, 156]],
        "bilinear": [[34, 54, 74], [154, 174, 194]],
        "bicubic": [[27, 48, 69], [159, 180, 201]],
        "lanczos": [[29, 50, 71], [157, 178, 199]],
    },
}
RESIZED["PngBackend"] = RESIZED["PilBackend"]  # it cannot resize, the first that can does


def test_resizing_as_nnabla_does(backend):
    for kind, expected in RESIZED[backend].items():
        assert imresize(RGB, (3, 2), interpolate=kind)[..., 0].tolist() == expected, kind
    with pytest.raises(ValueError, match="argument 'interpolate': expected one of nearest, bilinear"):
        imresize(RGB, (3, 2), interpolate="best")
    assert imread(encoded(RGB), size=(3, 2))[..., 0].tolist() == RESIZED[backend]["bilinear"]
    assert imread(encoded(RGB), size=(3, 2), interpolate="nearest").shape == (2, 3, 3)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32, np.float64, np.int64])
@pytest.mark.parametrize("shape", [(4, 6), (4, 6, 1), (4, 6, 2), (4, 6, 3), (4, 6, 4), (1, 1, 3)])
def test_types_and_shapes_of_resized_images(backend, dtype, shape):
    img = np.full(shape, 255, dtype)  # Pillow multiplies by alpha, so less would be rounded
    y = imresize(img, [3, 2])
    assert y.shape == (2, 3, *shape[2:])
    assert y.dtype == (dtype if dtype in (np.uint8, np.uint16) else np.float32)
    assert np.all(y == 255)
    if len(shape) == 3:
        assert imresize(img.transpose(2, 0, 1), (3, 2), channel_first=True).shape == (shape[2], 2, 3)


def test_overshooting_bicubic_does_not_wrap(backend):
    img = np.zeros((1, 8), np.uint16)
    img[:, 4:] = 65535
    y = imresize(img, (24, 1), interpolate="bicubic")[0].astype(int)
    assert (y[:8] < 100).all() and (y[16:] > 65000).all()


def test_scaling_of_what_is_written(backend, tmp_path):
    path = tmp_path / "a.png"
    imsave(path, np.array([[0, 0.25, 0.5, 1.0]]))
    assert imread(path).tolist() == [[0, 63, 127, 255]]
    imsave(path, np.array([[True, False]]))
    assert imread(path).tolist() == [[255, 0]]


@pytest.mark.parametrize("name", ["Cv2Backend", "PngBackend"])
def test_sixteen_bits(name, tmp_path):
    pytest.importorskip(PACKAGES[name])
    image_utils.set_backend(name)
    try:
        path = tmp_path / "a.png"
        deep = np.random.default_rng(1).integers(0, 65536, (3, 4, 3), dtype=np.uint16)
        imsave(path, deep, as_uint16=True)
        assert np.array_equal(imread(path, as_uint16=True), deep)
        imsave(path, RGB, as_uint16=True)
        assert np.array_equal(imread(path, as_uint16=True), RGB.astype(np.uint16) * 256)
        imsave(path, RGB, as_uint16=True, auto_scale=False)
        assert np.array_equal(imread(path, as_uint16=True), RGB)
        imsave(path, np.array([[0, 0.5, 1.0]]), as_uint16=True)
        assert imread(path, as_uint16=True).tolist() == [[0, 32767, 65535]]
        imsave(path, RGB)
        assert np.array_equal(imread(path, as_uint16=True), RGB.astype(np.uint16) * 256)
    finally:
        image_utils.set_backend("")


def test_the_backend_that_reads_resizes(tmp_path):
    """Without a choice OpenCV reads bitmaps, so resizes them, as in NNabla; its nearest pixels are not Pillow's."""
    cv2, _ = pytest.importorskip("cv2"), pytest.importorskip("PIL")
    img = np.random.default_rng(3).integers(0, 256, (9, 13, 3), dtype=np.uint8)
    imsave(tmp_path / "a.bmp", img)
    found = imread(tmp_path / "a.bmp", size=(5, 4), interpolate="nearest")
    assert np.array_equal(found, cv2.resize(img, (5, 4), interpolation=cv2.INTER_NEAREST))
    image_utils.set_backend("PilBackend")
    try:
        assert not np.array_equal(found, imread(tmp_path / "a.bmp", size=(5, 4), interpolate="nearest"))
    finally:
        image_utils.set_backend("")


def test_who_reads_is_told_also_where_another_one_resizes(tmp_path):
    """As in NNabla: pypng reads, and has no resizing of its own."""
    pytest.importorskip("png")
    imsave(tmp_path / "a.png", RGB)
    imread(tmp_path / "a.png", size=(3, 2))
    assert image_utils.get_backend() == "PngBackend"


@pytest.mark.parametrize("name", ["", "PilBackend", "Cv2Backend", "PngBackend"])
def test_what_cannot_be_resized_is_no_fault_of_the_file(name, tmp_path):
    if name and name not in image_utils.get_available_backends():
        pytest.skip(f"{name} is not installed")
    imsave(tmp_path / "a.png", RGB)
    image_utils.set_backend(name)
    try:
        with pytest.raises(ValueError, match="^imread: argument 'interpolate': expected one of nearest, .*'nope'$"):
            imread(tmp_path / "a.png", size=(3, 2), interpolate="nope")
        for call in (lambda **size: imread(tmp_path / "a.png", **size), lambda **size: imresize(RGB, **size)):
            with pytest.raises(MemoryError, match="argument 'size': expected an image that fits into memory") as e:
                call(size=(10**8, 10**8))
            assert isinstance(e.value, nn.Error)
            with pytest.raises((ValueError, MemoryError), match="argument 'size': expected ") as e:
                call(size=(2**31, 1))
            assert isinstance(e.value, nn.Error)
    finally:
        image_utils.set_backend("")


def test_a_backend_without_memory_is_an_error_of_ours(backend, tmp_path, monkeypatch):
    """Where the system had promised it the memory."""

    def fails(*_, **__):
        raise error

    imsave(tmp_path / "a.png", RGB)
    error: Exception = MemoryError()
    if backend == "Cv2Backend":
        cv2 = pytest.importorskip("cv2")
        error = cv2.error("std::bad_alloc")
        monkeypatch.setattr(cv2, "resize", of_a_library(fails))
    else:  # pypng cannot resize
        monkeypatch.setattr(pytest.importorskip("PIL.Image").Image, "resize", of_a_library(fails))
    for call in (lambda size: imread(tmp_path / "a.png", size=size), lambda size: imresize(RGB, size)):
        with pytest.raises(
            MemoryError, match="argument 'size': expected an image that fits into memory, got .3, 2."
        ) as e:
            call((3, 2))
        assert isinstance(e.value, nn.Error)
    error = MemoryError()
    module = importlib.import_module("nnrs.utils.image_utils._backends")
    monkeypatch.setattr(module, "_first", of_a_library(fails))
    with pytest.raises(MemoryError, match="argument 'path': .*a.png' is an image that does not fit into memory") as e:
        imread(tmp_path / "a.png")
    assert isinstance(e.value, nn.Error)


@pytest.mark.parametrize("name", ["PilBackend", "Cv2Backend", "PngBackend"])
def test_grey_with_four_channels_is_opaque_or_as_its_alpha_says(name, tmp_path):
    pytest.importorskip("PIL"), pytest.importorskip(PACKAGES[name])
    grey, alpha = GREY.astype(np.uint8), np.arange(12, dtype=np.uint8).reshape(3, 4) * 20
    image_utils.set_backend("PilBackend")
    imsave(tmp_path / "g.png", grey)
    imsave(tmp_path / "ga.png", np.stack([grey, alpha], 2))
    image_utils.set_backend(name)
    try:
        for file, expected in (("g.png", np.full_like(alpha, 255)), ("ga.png", alpha)):
            found = imread(tmp_path / file, num_channels=4)
            assert np.array_equal(found, np.stack([grey, grey, grey, expected], 2)), file
    finally:
        image_utils.set_backend("")


def test_sixteen_bits_by_whichever_can(tmp_path):
    pytest.importorskip("PIL")
    pytest.importorskip("png")
    deep = np.arange(12, dtype=np.uint16).reshape(3, 4) * 5000
    imsave(tmp_path / "a.png", deep, as_uint16=True)
    assert np.array_equal(imread(tmp_path / "a.png", as_uint16=True), deep)
    assert np.array_equal(imread(tmp_path / "a.png"), deep >> 8)  # by Pillow: pypng does not narrow
    assert np.array_equal(imread(tmp_path / "a.png", num_channels=3), np.dstack([deep >> 8] * 3))
    opaque = np.dstack([deep >> 8] * 3 + [np.full((3, 4), 255)])
    assert np.array_equal(imread(tmp_path / "a.png", num_channels=4), opaque)


def test_pillow_alone_has_no_sixteen_bits(pillow, tmp_path):
    with pytest.raises(ValueError, match="pip install pypng"):
        imread(encoded(RGB), as_uint16=True)
    with pytest.raises(ValueError, match="pip install pypng"):
        imsave(tmp_path / "a.png", RGB, as_uint16=True)
    assert not list(tmp_path.iterdir())


def test_palettes(pillow):
    picture = pillow.fromarray(RGB).quantize(4)
    assert imread(encoded(picture)).shape == (4, 5, 3)
    indices = imread(encoded(picture), return_palette_indices=True)
    assert indices.shape == (4, 5) and indices.max() < 4
    assert imread(encoded(picture, transparency=0)).shape == (4, 5, 4)
    assert imread(encoded(picture), grayscale=True).shape == (4, 5)


@pytest.mark.parametrize("kind", ["BMP", "JPEG", "GIF", "TIFF", "PPM", "WEBP"])
def test_other_formats(kind, tmp_path):
    file = encoded(RGB, kind)
    assert imread(file, num_channels=3).shape == (4, 5, 3)
    name = tmp_path / f"A.{kind}"
    name.write_bytes(file.getvalue())
    assert np.array_equal(imread(name, num_channels=3), imread(file, num_channels=3))
    if kind != "GIF":
        imsave(name, RGB)
        assert np.abs(imread(name).astype(int) - RGB).max() <= (20 if kind in ("JPEG", "WEBP") else 0)


# Of NNabla 1.39.
SCALED = [
    (np.array([[-1.0, 0.0, 1.0]]), [[0, 127, 255]], [[0, 32767, 65535]]),
    (np.uint8([[10, 11, 13]]), [[0, 85, 255]], [[0, 21845, 65535]]),
    (np.full((1, 2), 3.0), [[255, 255]], [[65535, 65535]]),
    (np.zeros((1, 2)), [[0, 0]], [[0, 0]]),
]


def test_minmax_auto_scale():
    for img, bytes_, words in SCALED:
        assert minmax_auto_scale(img, False).tolist() == bytes_
        assert minmax_auto_scale(img, True).tolist() == words
    assert minmax_auto_scale(SCALED[0][0], False).dtype == np.uint8
    assert minmax_auto_scale(SCALED[0][0], True).dtype == np.uint16
    # NNabla's difference of int8 wraps around.
    assert minmax_auto_scale(np.int8([-128, 127]), False).tolist() == [0, 255]
    assert minmax_auto_scale(np.array([-1.7e308, 1.7e308]), False).tolist() == [0, 255]
    for bad in (np.array([np.nan, 1.0]), np.array([np.inf, 1.0]), np.zeros(0)):
        with pytest.raises(ValueError, match="minmax_auto_scale: argument 'img'"):
            minmax_auto_scale(bad, False)


@pytest.mark.parametrize(
    "img, options, kind, match",
    [
        ([[1]], {}, TypeError, "a NumPy array"),
        (np.zeros((2, 2), complex), {}, TypeError, "complex128"),
        (np.zeros(3), {}, ValueError, "shape \\(3,\\)"),
        (np.zeros((2, 0)), {}, ValueError, "none of them 0"),
        (np.zeros((2, 2, 5)), {}, ValueError, "1 to 4 channels"),
        (np.zeros((3, 9, 9)), {}, ValueError, "channel_first=True takes"),
        (np.full((2, 2), -0.1), {}, ValueError, "values from 0 to 1"),
        (np.full((2, 2), 1.1), {}, ValueError, "values from 0 to 1"),
        (np.full((2, 2), np.inf), {}, ValueError, "values from 0 to 1"),
        (np.zeros((2, 2)), {"auto_scale": False}, ValueError, "'auto_scale'"),
        (np.zeros((2, 2), np.uint16), {}, ValueError, "as_uint16=True"),
        (RGB, {"quality": 3}, TypeError, "argument 'quality'"),
    ],
)
def test_what_cannot_be_written(img, options, kind, match, tmp_path):
    (tmp_path / "a.png").write_bytes(b"old")
    with pytest.raises(kind, match=match) as caught:
        imsave(tmp_path / "a.png", img, **options)
    assert isinstance(caught.value, nn.Error)
    assert (tmp_path / "a.png").read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_pixel_that_is_not_a_number_is_black(backend, tmp_path):
    imsave(tmp_path / "a.png", np.array([[0.0, np.nan, 1.0]]))
    assert imread(tmp_path / "a.png", grayscale=True).tolist() == [[0, 0, 255]]


def test_where_nothing_can_be_written(backend, tmp_path):
    with pytest.raises(ValueError, match="imsave: argument 'path': expected a name .* got '.xyz'"):
        imsave(tmp_path / "a.xyz", RGB)
    with pytest.raises(FileNotFoundError):
        imsave(tmp_path / "no" / "a.png", RGB)
    assert not list(tmp_path.iterdir())


def test_what_is_no_image(backend, tmp_path):
    whole = encoded(np.random.default_rng(2).integers(0, 256, (40, 40, 3), dtype=np.uint8)).getvalue()
    for data in (
        b"",
        b"no image",
        whole[:20],
        whole[: len(whole) // 2],
        whole[:60] + b"\0" * 100,
        b"\x89PNG\r\n\x1a\n",
    ):
        (tmp_path / "a.png").write_bytes(data)
        try:
            imread(tmp_path / "a.png")
        except (ValueError, OSError) as error:
            assert isinstance(error, nn.Error)
        else:  # OpenCV gives what it could read
            assert backend == "Cv2Backend"
    with pytest.raises(FileNotFoundError, match="there is no file"):
        imread(tmp_path / "b.png")
    with pytest.raises(OSError, match="cannot read"):
        imread(tmp_path)
    with pytest.raises(TypeError, match="a path or an open binary file"):
        imread(3)
    with pytest.raises(ValueError, match="binary mode"):
        imread(io.StringIO("a"))


def test_changed_bytes_never_crash(backend):
    rng = np.random.default_rng(3)
    whole = bytearray(encoded(RGB).getvalue())
    for _ in range(150):
        data = bytearray(whole)
        for at in rng.integers(8, len(data), 3):
            data[at] = rng.integers(256)
        try:
            imread(io.BytesIO(bytes(data)))
        except (ValueError, OSError) as error:
            assert isinstance(error, nn.Error)


def claiming(kind):
    """A small file that says it has 60,000 x 60,000 pixels."""
    data = bytearray(encoded(RGB, kind).getvalue())
    if kind == "PNG":
        data[16:24] = struct.pack(">II", 60000, 60000)
        data[29:33] = struct.pack(">I", zlib.crc32(data[12:29]))
    elif kind == "BMP":
        data[18:26] = struct.pack("<ii", 60000, -60000)
    else:
        data = bytearray(b"P6\n# large\n60000 60000\n255\nabc")
    return io.BytesIO(bytes(data))


@pytest.mark.parametrize("kind", ["PNG", "BMP", "PPM"])
def test_files_that_cannot_hold_what_they_say(kind, backend):
    with pytest.raises(ValueError, match="bytes of pixels, but the file has"):
        imread(claiming(kind))


def test_files_that_shrink_well():
    for kind in ("PNG", "TIFF", "GIF"):
        assert not imread(encoded(np.zeros((3000, 3000), np.uint8), kind), num_channels=3).any()


@pytest.mark.parametrize(
    "options, match",
    [
        ({"num_channels": 2}, "num_channels"),
        ({"num_channels": 1}, "grayscale=True gives one channel"),
        ({"size": 3}, "size"),
        ({"size": (3,)}, "size"),
        ({"size": (0, 2)}, "size"),
        ({"size": (2.5, 2)}, "size"),
        ({"colour": 1}, "colour"),
    ],
)
def test_wrong_arguments_of_imread(options, match):
    with pytest.raises((ValueError, TypeError), match=match):
        imread(encoded(RGB), **options)


def test_the_choice_of_a_backend(monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name == "cv2" else find(name, *a))
    assert "Cv2Backend" not in image_utils.get_available_backends()
    with pytest.raises(ImportError, match="pip install 'opencv-python-headless'"):
        image_utils.set_backend("cv2")
    with pytest.raises(ValueError, match="one of PilBackend"):
        image_utils.set_backend("gd")
    with pytest.raises(TypeError):
        image_utils.set_backend(3)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None)
    assert image_utils.get_available_backends() == []
    with pytest.raises(ImportError, match="nnrs\\[image\\]"):
        imresize(RGB, (2, 2))


def test_packages_are_imported_when_they_are_used():
    code = (
        "import sys, nnrs.utils.image_utils as i; i.get_available_backends(); "
        "assert not {'PIL', 'cv2', 'png'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parent)


def scan(pixels, **more):
    """A medical image as a file."""
    pydicom = pytest.importorskip("pydicom")
    uid = pydicom.uid
    meta = pydicom.dataset.FileMetaDataset()
    meta.TransferSyntaxUID, meta.MediaStorageSOPClassUID = uid.ExplicitVRLittleEndian, uid.SecondaryCaptureImageStorage
    meta.MediaStorageSOPInstanceUID = uid.generate_uid()
    made = pydicom.dataset.Dataset()
    made.file_meta = meta
    made.Rows, made.Columns = pixels.shape[:2]
    made.SamplesPerPixel = 1 if pixels.ndim == 2 else 3
    made.PhotometricInterpretation = "MONOCHROME2" if pixels.ndim == 2 else "RGB"
    if pixels.ndim == 3:
        made.PlanarConfiguration = 0
    made.BitsAllocated = made.BitsStored = 8 * pixels.itemsize
    made.HighBit = made.BitsStored - 1
    made.PixelRepresentation = 0
    made.PixelData = pixels.tobytes()
    for name, value in more.items():
        setattr(made, name, value)
    file = io.BytesIO()
    pydicom.dcmwrite(file, made, enforce_file_format=True)
    return file


GREY = (np.arange(12, dtype=np.uint16) * 300).reshape(3, 4)
# Of NNabla 1.39: options of the file, and the first channel.
SCANS = [
    ({}, [0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12]),
    ({"WindowCenter": 1500, "WindowWidth": 2000}, [0, 0, 12, 51, 89, 127, 165, 204, 242, 255, 255, 255]),
    (
        {"WindowCenter": 1000, "WindowWidth": 1200, "RescaleSlope": 0.5, "RescaleIntercept": 20},
        [0, 0, 0, 15, 46, 78, 110, 142, 174, 206, 238, 255],
    ),
    (
        {"PhotometricInterpretation": "MONOCHROME1", "WindowCenter": 64000, "WindowWidth": 4000},
        [225, 206, 187, 168, 148, 129, 110, 91, 72, 53, 34, 15],  # NNabla's first wraps around to 0
    ),
]


@pytest.mark.parametrize("more, expected", SCANS)
def test_medical_images(more, expected):
    file = scan(GREY, **more)
    img = imread(file)
    assert image_utils.get_backend() == "DicomBackend"
    assert img.shape == (3, 4, 3) and img.dtype == np.uint8
    assert img[..., 0].ravel().tolist() == img[..., 2].ravel().tolist() == expected
    assert imread(file, grayscale=True).ravel().tolist() == expected
    assert imread(file, num_channels=4)[..., 3].min() == 255
    with pytest.raises(ValueError, match="DicomBackend"):
        imread(io.BytesIO(file.getvalue()[:200]))


def test_medical_images_in_colour_or_below_zero(tmp_path):
    (tmp_path / "a.dcm").write_bytes(scan(RGB, WindowCenter=128, WindowWidth=255).getvalue())
    assert np.abs(imread(tmp_path / "a.dcm").astype(int) - RGB).max() <= 1
    below = scan(np.zeros((2, 2), np.uint16), RescaleIntercept=-1024, WindowCenter=0, WindowWidth=100)
    assert not imread(below).any()  # NNabla's values wrap around
