"""Files of data sets: csv sources, loaders, readers by path, HTTP and S3, downloads, progress."""

from __future__ import annotations

import contextlib
import http.server
import inspect
import io
import os
import random
import struct
import sys
import threading
import types
import urllib.error
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nnrs as nn
from file_helpers import of_a_library
from nnrs.utils import data_source_loader as loader
from nnrs.utils import progress as progress_module
from nnrs.utils.audio_utils import auread
from nnrs.utils.create_cache import CreateCache
from nnrs.utils.data_iterator import DataIterator, data_iterator_csv_dataset
from nnrs.utils.data_source_implements import CsvDataSource
from nnrs.utils.data_source_loader import FileReader, ResourceFileReader, get_file_extension, load
from nnrs.utils.download import download, get_data_home
from nnrs.utils.progress import configure_progress, progress
from signal_helpers import Late, on_a_thread, raising_at

# --- csv files --------------------------------------------------------------------------------------------------------


def written(folder: Path, text: str | bytes, name: str = "data.csv") -> str:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(path)


def test_a_csv_file_with_all_that_it_may_have(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(3, dtype=np.int16))
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "t.csv").write_text("1,2\n\n3,4\n")
    text = "\ufeffx__0:left,#skip,x__1:right,y:label,z,t\r\n1,a,2.5,-3,a.npy,sub/t.csv\r\n\r\n"
    text += "1e3,b,nan,4,a.npy,sub\\t.csv\r\n\r\n"
    source = CsvDataSource(written(tmp_path, text))
    assert source.variables == ("x", "y", "z", "t") and source.size == 2
    x, y, z, t = source.next()
    assert (x, y, z.tolist(), t.tolist()) == ([1.0, 2.5], [-3.0], [0, 1, 2], [[1, 2], [3, 4]])
    x, *_ = source.next()
    assert x[0] == 1000 and np.isnan(x[1])


@pytest.mark.parametrize(
    "text, match",
    [
        ("", "it is empty"),
        ("x,y\n", "no line below its header"),
        ("x,y\n1,2\n3\n", "data.csv:3: expected 2 cells, as its header has .x, y., got 1"),
        ("x,y\n1,2,3\n", "data.csv:2: expected 2 cells, .*, got 3"),
        ("x;y\n1;2,5\n", "got 2\n  hint: columns are separated by ',', not by ';'"),
        ("x,#y\n1,2\n\n1\n", "data.csv:4: .* got 1"),
        ("x,\n1,2\n", "a column without a name"),
        ("__0,x\n1,2\n", "a column without a name"),
        ("#x\n1\n", "names no variable"),
        ("x,x\n1,2\n", "several columns 'x'"),
        ("x,x__0\n1,2\n", "several columns 'x'"),
        (b"x,y\n\xff,2\n", "UTF-8"),
        ("x,y\n" + "1" * 200_000 + ",2\n", "field larger"),
    ],
)
def test_csv_files_that_do_not_fit(text, match, tmp_path):
    for kind in (CsvDataSource, CreateCache):
        with pytest.raises(ValueError, match=match) as e:
            kind(written(tmp_path, text))
        assert isinstance(e.value, nn.Error) and "data.csv" in str(e.value)


@pytest.mark.parametrize(
    "cell, content, kind, match",
    [
        ("none.npy", None, FileNotFoundError, "none.npy"),
        ("", None, ValueError, "expected a number or the name of a file of kind .bmp.*got an empty cell"),
        ("a.xyz", b"1", ValueError, "expected a number or the name of a file of kind .bmp.*got 'a.xyz'"),
        ("1;2", None, ValueError, "got '1;2'$"),
        ('"1 000,5"', None, ValueError, "got '1 000,5'\n  hint: numbers are written with a point"),
        ("a.npy", b"rubbish", ValueError, "cannot read an array"),
        ("a.csv", b"1,2\n3\n", ValueError, r"\[1, 2\] columns"),
        ("a.csv", b"1,b\n", ValueError, "could not convert"),
        ("a.wav", b"RIFF", ValueError, "no sound|RIFF"),
        ("a\0.npy", None, Exception, "null byte|NUL"),
    ],
)
@pytest.mark.parametrize("thread", [False, True])
def test_cells_that_do_not_fit_name_their_line(cell, content, kind, match, thread, tmp_path):
    if content is not None:
        written(tmp_path, content, cell)
    good = {".npy": "b.npy", ".csv": "b.csv"}.get(os.path.splitext(cell)[1], "0")
    np.save(tmp_path / "b.npy", np.zeros(3))
    (tmp_path / "b.csv").write_text("1,2\n")
    path = written(tmp_path, f"x,y\n{good},1\n{cell},2\n")
    options: dict[str, Any] = {"with_file_cache": False, "with_memory_cache": False, "use_thread": thread}
    with pytest.raises((kind, nn.Error), match=match) as e, data_iterator_csv_dataset(path, 2, **options) as di:
        di.next()
    assert isinstance(e.value, nn.Error) and isinstance(e.value, kind)
    assert "data.csv:3, column 'x': " in str(e.value) or "\0" in cell


@pytest.mark.parametrize("options", [{"with_file_cache": True}, {"with_file_cache": False, "with_memory_cache": False}])
def test_values_of_several_shapes_name_their_lines(options, tmp_path):
    for n in (3, 4):
        np.save(tmp_path / f"{n}.npy", np.zeros(n))
    path = written(tmp_path, "x,y\n3.npy,1\n3.npy,2\n4.npy,3\n")
    with pytest.raises(ValueError, match=r"for 'x' .*, got \(3,\) in .*data.csv:2, \(4,\) in .*data.csv:4$"):
        with data_iterator_csv_dataset(path, 3, **options) as di:
            di.next()
    with pytest.raises(ValueError, match=r"data.csv:2, \(4,\) in .*data.csv:4"):
        CreateCache(path).create(tmp_path / "cache")


def test_lines_of_numbers_are_read_once(tmp_path):
    """What is given out is the caller's, and of files and wrong cells nothing is kept."""
    np.save(tmp_path / "a.npy", np.arange(2.0))
    path = written(tmp_path, "x__0,x__1,y\n1,1_0,nan\n3,a.npy,5\n6,7,wrong\n")
    source = CsvDataSource(path)
    for _ in range(2):
        source.reset()
        first = source.next()
        assert first[0] == [1.0, 10.0] and np.isnan(first[1]) and type(first[0]) is type(first[1]) is list
        first[0][:] = "ab"
        x, y = source.next()
        assert x[0] == 3 and x[1].tolist() == [0, 1] and y == [5]
        with pytest.raises(ValueError, match=":4, column 'y': expected a number"):
            source.next()
        np.save(tmp_path / "a.npy", np.arange(2.0))
    assert [isinstance(row, tuple) for row in source._rows] == [True, False, False]


def test_a_kind_of_ones_own_reads_each_line_each_time(tmp_path):
    class Noisy(CsvDataSource):
        def _get_value(self, value):
            return super()._get_value(value) + next(noise)

        def _process_row(self, row, line=None):
            return [[self._get_value(cell) for cell in row]]

    noise = iter(range(100))
    source = Noisy(written(tmp_path, "x\n1\n2\n"))
    with DataIterator(source, 2, use_thread=False) as batches:
        assert [batches.next()[0].tolist() for _ in range(2)] == [[[1], [3]], [[3], [5]]]


@pytest.mark.parametrize(("kind", "cell"), [(Late, "a.npy"), (TimeoutError, "a.npy"), (ValueError, "4")])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # a file between `open` and `with`
@on_a_thread
def test_what_a_signal_handler_raises_is_no_fault_of_a_cell(tmp_path, kind, cell):
    np.save(tmp_path / "a.npy", np.arange(2.0))
    path, before = written(tmp_path, f"x,y\n{cell},5\n"), sys.gettrace()
    at, is_over = 0, False
    while not is_over:
        at += 1
        source, trace = CsvDataSource(path), raising_at(at, kind("late"))
        came = False
        sys.settrace(trace)
        try:
            source.next()
        except kind as error:
            came = type(error) is kind and str(error) == "late"
        finally:
            sys.settrace(before)
        is_over = trace.seen < at
        assert came != is_over
    assert at > 10


def test_a_csv_file_that_is_not_there(tmp_path):
    for path, kind in ((str(tmp_path / "a.csv"), FileNotFoundError), (str(tmp_path), OSError), (3, TypeError)):
        with pytest.raises(kind) as e:
            FileReader(path).open().__enter__() if kind is not TypeError else FileReader(path)
        assert isinstance(e.value, nn.Error)


# --- loaders ----------------------------------------------------------------------------------------------------------


def test_kinds_that_are_loaded():
    kinds = ".bmp .jpg .jpeg .png .gif .tif .tiff .dcm .csv .npy .wav".split()
    for kind in kinds:
        names = list(inspect.signature(load(kind)).parameters)
        assert names[1:] == ["shape", "normalize"]
    with pytest.raises(ValueError, match="'.exe'"):
        load(".exe")


def test_a_table(tmp_path):
    found = loader.load_csv(io.BytesIO(b"\xef\xbb\xbf1,2\r\n\r\n-3,4e2\r\n"))
    assert found.dtype == np.float64 and found.tolist() == [[1, 2], [-3, 400]]
    assert loader.load_csv(io.BytesIO(b"1,2\n3,4"), (4,)).tolist() == [1, 2, 3, 4]
    with pytest.raises(ValueError, match="4 elements"):
        loader.load_csv(io.BytesIO(b"1,2\n3,4"), (3,))


def test_arrays(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, np.arange(6, dtype=">i2"))
    assert loader.load_npy(str(path), (2, 3)).tolist() == [[0, 1, 2], [3, 4, 5]]
    with open(path, "rb") as f:
        assert loader.load_npy(f).tolist() == [0, 1, 2, 3, 4, 5]
    np.save(path, np.array([{}]), allow_pickle=True)
    with pytest.raises(ValueError, match="pickles"):
        loader.load_npy(str(path))


@pytest.mark.parametrize("dtype", ["u1", "<i2", "<i4", "<f4", "<f8"])
@pytest.mark.parametrize("channels", [1, 2])
def test_sounds_are_scipys(dtype, channels, tmp_path):
    wavfile = pytest.importorskip("scipy.io.wavfile")
    samples = np.random.RandomState(0).randint(0, 200, (7, channels)).astype(dtype)
    path = str(tmp_path / "a.wav")
    wavfile.write(path, 8000, samples if channels > 1 else samples[:, 0])
    found = loader.load_wav(path)
    assert found.dtype == np.dtype(dtype) and np.array_equal(found, samples)
    assert loader.load_wav(path, (channels, 7)).shape == (channels, 7)
    with open(path, "rb") as f:
        assert np.array_equal(loader.load_wav(f), samples)


def wav(form: bytes, data: bytes, riff: bytes = b"RIFF") -> io.BytesIO:
    order = "<" if riff == b"RIFF" else ">"
    chunks = b"".join(
        name + struct.pack(order + "I", len(body)) + body + b"\0" * (len(body) % 2)
        for name, body in ((b"LIST", b"odd"), (b"fmt ", form), (b"data", data))
    )
    return io.BytesIO(riff + struct.pack(order + "I", 4 + len(chunks)) + b"WAVE" + chunks)


def test_sounds_of_other_forms():
    form = struct.pack("<HHIIHH", 1, 1, 8000, 24000, 3, 24)
    assert loader.load_wav(wav(form, b"\1\0\0\xff\xff\xff")).tolist() == [[256], [-256]]
    extensible = struct.pack("<HHIIHHHHIH", 0xFFFE, 1, 8000, 16000, 2, 16, 22, 16, 0, 1) + bytes(14)
    assert loader.load_wav(wav(extensible, b"\1\0\xff\xff")).tolist() == [[1], [-1]]
    big = struct.pack(">HHIIHH", 1, 2, 8000, 32000, 4, 16)
    assert loader.load_wav(wav(big, b"\0\1\xff\xff", b"RIFX")).tolist() == [[1, -1]]


@pytest.mark.parametrize("riff", [b"RIFF", b"RIFX"])
@pytest.mark.parametrize("kind, name", [(1, "u1"), (1, "i2"), (1, "i4"), (1, "i8"), (3, "f4"), (3, "f8")])
def test_both_readers_of_sounds_give_the_same(riff, kind, name):
    order = "<" if riff == b"RIFF" else ">"
    samples = np.random.RandomState(1).randint(0, 100, (5, 3)).astype(name)
    width = samples.itemsize
    form = struct.pack(order + "HHIIHH", kind, 3, 8000, 8000 * 3 * width, 3 * width, 8 * width)
    data = wav(form, samples.astype(order + name).tobytes(), riff).getvalue()
    found = loader.load_wav(io.BytesIO(data))
    assert found.dtype == samples.dtype and np.array_equal(found, samples)
    assert np.array_equal(auread(io.BytesIO(data)), samples)


def test_sounds_that_are_none():
    form = struct.pack("<HHIIHH", 1, 1, 8000, 16000, 2, 16)
    whole = wav(form, b"\1\0\2\0").getvalue()
    broken = {
        "cut short": whole[:40],
        "compressed": wav(struct.pack("<HHIIHH", 2, 1, 8000, 8000, 1, 8), b"\1").getvalue(),
        "no samples in the file": whole[:48],
        "not with a RIFF header": b"OggS" + whole[4:],
        "are no samples": wav(struct.pack("<HHIIHH", 1, 0, 8000, 0, 0, 16), b"").getvalue(),
    }
    for text, data in broken.items():
        with pytest.raises(ValueError, match=rf"^load_wav: argument 'path': .*{text}"):
            loader.load_wav(io.BytesIO(data))


def test_sounds_that_are_cut_short():
    """NNabla's reader gives what is there, with a warning; `auread` refuses it."""
    form = struct.pack("<HHIIHH", 1, 1, 8000, 16000, 2, 16)
    data = wav(form, b"\1\0\2\0").getvalue()[:-1]
    with pytest.warns(RuntimeWarning, match="cut short: b'data' should have 4 bytes, 3 are there"):
        assert loader.load_wav(io.BytesIO(data)).tolist() == [[1]]
    with pytest.raises(ValueError, match="cut short"):
        auread(io.BytesIO(data))
    assert loader.load_wav(wav(form, b"\1\0\2")).tolist() == [[1]]


@pytest.mark.filterwarnings("ignore:nnrs. the file is cut short")
def test_any_bytes_are_a_sound_or_refused():
    good = wav(struct.pack("<HHIIHH", 1, 2, 8000, 32000, 4, 16), bytes(range(16))).getvalue()
    rng = random.Random(0)
    for _ in range(2000):
        data = bytearray(good)
        for _ in range(rng.choice((1, 3))):
            data[rng.randrange(len(data))] = rng.randrange(256)
        try:
            loader.load_wav(io.BytesIO(bytes(data[: rng.choice((len(data), rng.randrange(len(data))))])))
        except nn.Error:
            pass


def test_audio_without_pydub_is_wav(monkeypatch):
    monkeypatch.setitem(sys.modules, "pydub", None)
    found = loader.load_audio(wav(struct.pack("<HHIIHH", 1, 1, 8000, 8000, 1, 8), b"\1\2"))
    assert found.tolist() == [[1], [2]]


def fake_images(image: np.ndarray) -> types.ModuleType:
    """`nnrs.utils.image_utils` that reads one image, and resizes by what it is asked for."""
    module: Any = types.ModuleType("nnrs.utils.image_utils")
    module.imread = lambda file: image
    module.imresize = lambda img, size: np.full((size[1], size[0], *img.shape[2:]), 7, img.dtype)
    return module


@pytest.mark.parametrize(
    "image, shape, normalize, expected, dtype, most",
    [
        ((4, 6), None, False, (1, 4, 6), "u1", 255),
        ((4, 6, 3), None, True, (3, 4, 6), "f8", 1.0),
        ((4, 6), (1, 2, 3), False, (1, 2, 3), "u1", 7),
        ((4, 6, 3), (3, 8, 9), True, (3, 8, 9), "f8", 7 / 255),
        ((4, 6), (1, 4, 6), True, (1, 4, 6), "f8", 1.0),
    ],
)
def test_images_are_colours_first(image, shape, normalize, expected, dtype, most, monkeypatch):
    monkeypatch.setitem(sys.modules, "nnrs.utils.image_utils", fake_images(np.full(image, 255, np.uint8)))
    found = loader.load_image("a.png", shape, normalize)
    assert found.shape == expected and found.dtype == np.dtype(dtype) and np.allclose(found.max(), most)


def test_images_of_16_bits_and_wrong_colours(monkeypatch):
    monkeypatch.setitem(sys.modules, "nnrs.utils.image_utils", fake_images(np.full((2, 2), 65535, np.uint16)))
    assert loader.load_image("a.png", None, True).max() == 1.0
    assert loader.load_image_imread("a.png", max_range=65535.0).dtype == np.uint16
    assert loader.load_image_imread("a.png", max_range=255.0).max() == 255.0
    with pytest.raises(ValueError, match="1 colours"):
        loader.load_image("a.png", (3, 2, 2))


def test_images_of_a_csv_file(tmp_path):
    image_module = pytest.importorskip("PIL.Image")
    pytest.importorskip("nnrs.utils.image_utils", exc_type=ImportError)
    pixels = np.random.RandomState(0).randint(0, 256, (2, 4, 5, 3)).astype(np.uint8)
    for i in range(2):
        image_module.fromarray(pixels[i]).save(tmp_path / f"{i}.png")
    path = written(tmp_path, "x,y\n0.png,0\n1.png,1\n")
    with data_iterator_csv_dataset(path, 2) as di:
        x, _ = di.next()
    assert np.allclose(x, pixels.transpose(0, 3, 1, 2) / 255)
    (tmp_path / "1.png").write_bytes(b"this is no image")
    for thread in (False, True):
        with pytest.raises(Exception, match="data.csv:3, column") as e:
            with data_iterator_csv_dataset(path, 2, with_file_cache=False, use_thread=thread) as di:
                di.next()
        assert isinstance(e.value, nn.Error)


# --- readers ----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def server(files: dict[str, bytes], short: bool = False):
    """Files over HTTP, on this machine; `short`: one that breaks off before it has sent all."""

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            content = files.get(self.path.partition("?")[0].lstrip("/"))
            self.send_response(404 if content is None else 200)
            self.send_header("Content-Length", str(len(content or b"") + 5 * short))
            self.end_headers()
            self.wfile.write(content or b"")

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer) as found:
        thread = threading.Thread(target=found.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{found.server_port}"
        found.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


def array_bytes(array: Any) -> bytes:
    f = io.BytesIO()
    np.save(f, np.asarray(array))
    return f.getvalue()


def test_a_data_set_over_http():
    files = {"set/data.csv": b"x,y\na.npy,1\nsub/b.npy,2\n", "set/a.npy": array_bytes([1, 2])}
    files["set/sub/b.npy"] = array_bytes([3, 4])
    with server(files) as at, data_iterator_csv_dataset(f"{at}/set/data.csv", 2) as di:
        assert [v.tolist() for v in di.next()] == [[[1, 2], [3, 4]], [[1], [2]]]
        with pytest.raises(OSError, match="404") as e:
            CsvDataSource(f"{at}/set/none.csv")
        assert isinstance(e.value, nn.Error)
        assert FileReader(f"{at}/set").listdir() is None


@pytest.mark.parametrize("cache", [False, True])
def test_a_data_set_whose_transfer_breaks_off(cache):
    files = {"data.csv": b"x\n" + b"12\n" * 4000, "set/data.csv": b"x\na.npy\n", "set/a.npy": array_bytes([1, 2])}
    with server(files, short=True) as at:
        for name in ("data.csv", "set/data.csv"):
            with pytest.raises(nn.utils.download.UnreachedError, match="broke off 5 bytes before its end") as e:
                data_iterator_csv_dataset(f"{at}/{name}", 2, with_file_cache=cache)
            assert f"{at}/{name}" in str(e.value)
        with pytest.raises(OSError, match="broke off"), FileReader(f"{at}/set/a.npy").open() as f:
            list(f)


def test_a_data_set_of_s3(monkeypatch):
    files = {"set/data.csv": b"x\na.npy\n", "set/a.npy": array_bytes([1, 2])}

    class Bucket:
        def __init__(self, name):
            assert name == "bucket"
            self.objects = types.SimpleNamespace(filter=self.filter)

        def Object(self, key):
            return types.SimpleNamespace(get=lambda: {"Body": io.BytesIO(files[key])})

        def filter(self, Prefix, Delimiter):
            return [types.SimpleNamespace(key=name) for name in files if name.startswith(Prefix)]

    session = types.SimpleNamespace(resource=lambda name: types.SimpleNamespace(Bucket=Bucket))
    boto3: Any = types.ModuleType("boto3")
    boto3.session = types.SimpleNamespace(Session=lambda: session)
    monkeypatch.setitem(sys.modules, "boto3", boto3)
    (x,) = CsvDataSource("s3://bucket/set/data.csv").next()
    assert x.tolist() == [1, 2]
    assert FileReader("s3://bucket/set").listdir() == ["a.npy", "data.csv"]
    with pytest.raises(OSError, match="none.csv") as e:
        CsvDataSource("s3://bucket/set/none.csv")
    assert isinstance(e.value, nn.Error)
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(ImportError, match=r"nnrs\[s3\]"):
        FileReader("s3://bucket/set")


def test_kinds_of_files_without_a_name():
    known = {
        ".png": b"\x89PNG\r\n\x1a\n",
        ".jpg": b"\xff\xd8\xff\xe0",
        ".gif": b"GIF89a",
        ".bmp": b"BM..",
        ".tiff": b"II*\0",
        ".wav": b"RIFF",
        ".dcm": bytes(0x80) + b"DICM",
        "": b"what",
    }
    for ext, content in known.items():
        f = io.BytesIO(content + bytes(300))
        f.seek(7)
        assert get_file_extension(f) == ext and f.tell() == 0
    assert get_file_extension("a/B.PNG") == ".png" and get_file_extension(3) == ""


def test_a_resource_knows_its_kind(tmp_path):
    path = written(tmp_path, b"GIF89a rest", "noname")
    for source in (path, io.BytesIO(b"GIF89a rest"), open(path, "rb")):
        reader = ResourceFileReader(source)
        for _ in range(2):
            with reader.open() as f:
                assert f.read() == b"GIF89a rest"
        if not isinstance(source, io.BufferedReader):
            assert reader.ext == ".gif"
        getattr(source, "close", str)()
    end, start = os.pipe()
    os.close(start)
    with os.fdopen(end, "rb") as pipe:
        for wrong in (3, io.StringIO("text"), b"bytes", pipe):
            with pytest.raises(ValueError, match="ResourceFileReader") as e:
                ResourceFileReader(wrong)
            assert isinstance(e.value, nn.Error)


@pytest.mark.parametrize("kind", [ValueError, TypeError, OSError, EOFError])
@pytest.mark.parametrize("method", [lambda f: f, of_a_library], ids=["own", "library"])
def test_what_an_open_file_raises_comes_through(kind, method):
    """Also where its class is a library's."""

    def fail(*_):
        raise kind("mine")

    file = type("File", (io.BytesIO,), {"read": method(fail), "readinto": method(fail)})(b"1,2")
    for read in (load(".csv"), load(".npy"), load(".wav"), load(".png"), ResourceFileReader):
        with pytest.raises(kind, match="^mine$") as e:
            read(file)
        assert type(e.value) is kind


# --- downloads --------------------------------------------------------------------------------------------------------


def test_a_download_is_kept(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HOME", str(tmp_path))
    files = {"a/b.bin": b"12345"}
    with server(files) as at:
        with download(f"{at}/a/b.bin?x=1") as f:
            assert f.read() == b"12345"
        assert get_data_home() == str(tmp_path / "nnabla_data") and os.listdir(get_data_home()) == ["b.bin"]
        files["a/b.bin"] = b"new"
        for again, expected in ((False, b"12345"), (True, b"new")):
            with download(f"{at}/a/b.bin", allow_overwrite=again) as f:
                assert f.read() == expected
        assert download(f"{at}/a/b.bin", str(tmp_path / "c"), open_file=False) is None
        assert (tmp_path / "c").read_bytes() == b"new"


def test_a_download_that_fails_leaves_what_was_there(tmp_path):
    target = tmp_path / "a"
    target.write_bytes(b"old")
    with server({"a": b"new"}, short=True) as at:
        for url in (
            f"{at}/a",
            f"{at}/none",
            "http://127.0.0.1:1/a",
            "file:///no/such/file",
            "nonsense",
            "gopher://x/y",
        ):
            with pytest.raises(OSError, match="cannot fetch|broke off") as e:
                download(url, str(target), allow_overwrite=True)
            assert isinstance(e.value, nn.Error) and isinstance(e.value, urllib.error.URLError) and e.value.reason
            assert target.read_bytes() == b"old" and os.listdir(tmp_path) == ["a"]
    with pytest.raises(ValueError, match="output_file"):
        download("http://127.0.0.1:1/")
    with pytest.raises(TypeError):
        download(3)


# --- progress ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def quiet(monkeypatch):
    for name, value in (("state_file_name", ""), ("state_callback", None), ("_written", float("-inf"))):
        monkeypatch.setattr(progress_module, name, value)


def test_progress_goes_to_a_file_and_a_function(tmp_path, monkeypatch, quiet):
    path, seen, now = tmp_path / "state", [], [10.0]
    monkeypatch.setattr(progress_module.time, "monotonic", lambda: now[0])
    configure_progress(str(path), lambda state, part: seen.append((state, part)))
    assert path.read_text() == ""
    texts = []
    for second, part in ((10.5, 0.1), (11.1, 0.25), (11.5, 0.5)):
        now[0] = second
        progress("Work", part)
        texts.append(path.read_text())
    assert texts == ["", "Work (25.00%)", "Work (25.00%)"]
    progress(None)
    assert path.read_text() == ""
    assert seen == [(None, 0.0), ("Work", 0.1), ("Work", 0.25), ("Work", 0.5), (None, 0.0)]


def test_a_file_that_cannot_be_written_does_not_stop_work(tmp_path, quiet, caplog):
    configure_progress(str(tmp_path / "none" / "state"))
    progress("Work", 0.5)
    assert "cannot write" in caplog.text
