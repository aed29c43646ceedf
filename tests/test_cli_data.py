"""`nnrs conv_dataset`, `create_cache`, `create_tar` and the commands that make data sets of images."""

from __future__ import annotations

import csv
import os
import resource
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from nnrs.utils.cli import _anchors, _images, _progress, cli, conv_dataset
from nnrs.utils.cli._anchors import ObjectRect
from nnrs.utils.data_iterator import data_iterator_cache

Run = Callable[..., int]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    return lambda *args: cli.main([str(a) for a in args])


def write_csv(path: str, count: int = 5) -> None:
    Path(path).write_text("x__0,x__1,y\n" + "".join(f"{i},{-i},{i % 2}\n" for i in range(count)))


def samples(folder: str, count: int) -> np.ndarray:
    with data_iterator_cache(folder, count) as iterator:
        x, y = iterator.next()
    return np.hstack([x, y])


# --- caches -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["conv_dataset", "create_cache"])
def test_a_csv_as_a_cache(run: Run, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    write_csv("a.csv")
    assert run(command, "-t", 2, "a.csv", "a.cache") == 0
    assert capsys.readouterr().out.splitlines() == [
        "Number of Data: 5",
        "Shuffle:        False",
        "Normalize:      False",
    ]
    np.testing.assert_array_equal(samples("a.cache", 5), [[i, -i, i % 2] for i in range(5)])
    assert {"cache_index.csv", "order.csv", "original.csv"} <= set(os.listdir("a.cache"))
    assert sorted(os.listdir()) == ["a.cache", "a.csv"]
    assert run(command, "a.csv", "folder") == 0  # any name, as with NNabla
    np.testing.assert_array_equal(samples("folder", 5), samples("a.cache", 5))


def test_shuffled_and_again(run: Run) -> None:
    write_csv("a.csv", 20)
    assert run("conv_dataset", "-S", "a.csv", "a.cache") == 0
    found = samples("a.cache", 20)
    assert found[:, 0].tolist() != list(range(20)) and sorted(found[:, 0]) == list(range(20))
    assert run("conv_dataset", "a.cache", "b.cache") == 0
    np.testing.assert_array_equal(samples("b.cache", 20), found)


def test_only_force_writes_over_a_cache(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    write_csv("a.csv")
    assert run("conv_dataset", "a.csv", "a.cache") == 0
    write_csv("a.csv", 3)
    assert run("conv_dataset", "a.csv", "a.cache") == 1 and "-F" in capsys.readouterr().err
    assert len(samples("a.cache", 5)) == 5
    assert run("conv_dataset", "-F", "a.csv", "a.cache") == 0
    assert len(samples("a.cache", 3)) == 3


def test_what_fails_leaves_the_old_cache(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    write_csv("a.csv")
    assert run("conv_dataset", "a.csv", "a.cache") == 0
    Path("b.csv").write_text("x,y\n1\n2,3\n")
    assert run("conv_dataset", "-F", "b.csv", "a.cache") == 1
    monkeypatch.setattr(conv_dataset, "_convert", lambda *args: (_ for _ in ()).throw(KeyboardInterrupt))
    assert run("conv_dataset", "-F", "a.csv", "a.cache") == 130
    assert len(samples("a.cache", 5)) == 5 and sorted(os.listdir()) == ["a.cache", "a.csv", "b.csv"]


def test_places_that_are_no_caches(run: Run) -> None:
    write_csv("a.csv")
    Path("file.cache").write_text("x")
    os.mkdir("mine.cache")
    Path("mine.cache", "letter.txt").write_text("x")
    for args in (
        ("-F", "a.csv", "file.cache"),
        ("-F", "a.csv", "mine.cache"),
        ("a.bin", "a.cache"),
        ("none.csv", "a.cache"),
        ("none.cache", "a.cache"),
        ("a.csv", "none/a.cache"),
    ):
        assert run("conv_dataset", *args) == 1, args
    os.mkdir("ds")
    write_csv("ds/data.csv")
    Path("ds", "0.npy").write_text("x")
    os.mkdir("other")
    Path("other", "1.npy").write_text("x")
    for args in (  # what would be deleted is no cache
        ("ds/data.csv", ""),
        ("ds/data.csv", "none/.."),
        ("-F", "ds/data.csv", "."),
        ("-F", "ds/data.csv", ".."),
        ("-F", "ds/data.csv", "ds"),
        ("-F", "ds/data.csv", "other"),
    ):
        assert run("conv_dataset", *args) == 1, args
    assert sorted(os.listdir("ds")) == ["0.npy", "data.csv"] and os.listdir("other") == ["1.npy"]
    assert Path("file.cache").read_text() == Path("mine.cache", "letter.txt").read_text() == "x"
    with pytest.raises(SystemExit):
        run("conv_dataset", "-t", 0, "a.csv", "a.cache")


def test_tar(run: Run) -> None:
    os.makedirs("d/i")
    for name in ("a.png", "b.png"):
        Path("d/i", name).write_text(name)
    Path("d/a.csv").write_text("x:image,y\ni/a.png,1\ni\\b.png,2\nnone.png,3\n")
    assert run("create_tar", "d/a.csv", "a.tar") == 0
    with tarfile.open("a.tar") as tar:
        index = tar.extractfile("index.csv")
        assert index is not None and index.read().decode().splitlines() == [
            "x:image,y",
            "data/000000000000_a.png,1",
            "data/000000000001_b.png,2",
            "none.png,3",
        ]
        second = tar.extractfile("data/000000000001_b.png")
        assert second is not None and second.read() == b"b.png"
    Path("d/b.csv").write_text("x,y\n1\n")
    assert run("create_tar", "d/b.csv", "b.tar") == run("create_tar", "none.csv", "b.tar") == 1
    assert not os.path.exists("b.tar")


def test_bars(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tqdm")
    assert list(_progress.tracked([1, 2], "Work")) == [1, 2] and capsys.readouterr().err == ""  # no terminal
    shown: list[tuple[str, float]] = []

    class Bar:
        def __init__(self, total: float, label: str, **options: object) -> None:
            self.label, self.done = label, 0.0

        def set_description(self, label: str, refresh: bool) -> None:
            self.label = label

        def update(self, n: float) -> None:
            self.done += n
            shown.append((self.label, round(self.done)))

        def close(self) -> None:
            shown.append(("closed", 0))

    monkeypatch.setattr(_progress, "bar", Bar)
    from nnrs.utils.progress import progress

    with _progress.states_as_bar(None):
        for part in (0.25, 0.5):
            progress("a", part)
        progress("b", 0.25)
    assert shown == [("a", 25), ("a", 50), ("closed", 0), ("b", 25), ("closed", 0)]


# --- images -----------------------------------------------------------------------------------------------------------

COMMON = "-c 3 -w 8 -g 4 -s false -f1 a.csv".split()


def save(path: str, image: np.ndarray) -> None:
    pytest.importorskip("PIL")
    from nnrs.utils.image_utils import imsave

    os.makedirs(os.path.dirname(path), exist_ok=True)
    imsave(path, image)


def rows(path: str) -> list[list[str]]:
    with open(path, newline="") as f:
        return list(csv.reader(f))


def test_images_are_cut_or_padded() -> None:
    pytest.importorskip("PIL")
    wide = np.zeros((4, 16), np.uint8)
    wide[:, 4:12] = 200
    assert (_images.shaped(wide, (8, 4), "trimming") == 200).all()
    tall = np.full((8, 4, 3), 100, np.uint8)
    assert _images.shaped(tall, (8, 4), "trimming").shape == (4, 8, 3)
    padded = _images.shaped(tall, (8, 4), "padding")
    assert padded.shape == (4, 8, 3) and not padded[:, 0].any() and (padded[:, 4] > 80).all()
    assert _images.shaped(wide, (16, 4), "padding") is wide


def test_channels() -> None:
    grey, rgb = np.uint8([[1, 2]]), np.uint8([[[255, 0, 0], [0, 255, 0]]])
    assert _images.with_channels(grey, 3).tolist() == [[[1, 1, 1], [2, 2, 2]]]
    assert _images.with_channels(rgb, 1).tolist() == [[76, 149]]
    assert _images.with_channels(rgb, 3) is rgb


def test_classification(run: Run) -> None:
    for name in ("b/2.png", "b/1.jpg", "a/1.png", "empty/none.txt", "z/1.bmp"):
        os.makedirs(f"in/{os.path.dirname(name)}", exist_ok=True)
        if name.endswith(".txt"):
            Path("in", name).write_text("x")
        else:
            save(f"in/{name}", np.full((6, 6), 50, np.uint8))
    Path("in/a/broken.png").write_text("no image")
    command = "create_image_classification_dataset"
    assert run(command, "-i", "in", "-o", "out", "-m", "padding", *COMMON, "-f2", "b.csv", "-r2", 50) == 0
    assert rows("out/a.csv") == [["x:image", "y:label"], ["./a/1.png", "0"], ["./b/1.png", "1"]]
    assert rows("out/b.csv") == [["x:image", "y:label"], ["./b/2.png", "1"], ["./z/1.png", "2"]]
    from nnrs.utils.image_utils import imread

    assert imread("out/b/1.png").shape == (4, 8, 3)
    os.mkdir("no")
    for source, target in (("no", "out"), ("none", "out"), ("in", "in/../in"), ("in/a", "out")):
        assert run(command, "-i", source, "-o", target, "-m", "padding", *COMMON) == 1
    for wrong in ("-c 2", "-w 0", "-s maybe", "-r2 101", "-m other"):
        with pytest.raises(SystemExit):
            run(command, "-i", "in", "-o", "out", "-m", "padding", *COMMON, *wrong.split())


def test_a_full_disk_ends_it(tmp_path: Path) -> None:
    os.makedirs(tmp_path / "in/a")
    save(str(tmp_path / "in/a/1.png"), np.full((6, 6), 50, np.uint8))
    command = ["create_image_classification_dataset", "-i", "in", "-o", "out", "-m", "padding", *map(str, COMMON)]
    done = subprocess.run(
        [sys.executable, "-m", "nnrs", *command],
        cwd=tmp_path,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10)),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and "cannot write 'out/a/1.png': File too large" in done.stderr, done.stderr
    assert not (tmp_path / "out/a.csv").exists()


def test_boxes() -> None:
    a, b = ObjectRect(LRTB=[0, 0, 0.5, 1]), ObjectRect(XYWH=[0.5, 0.5, 0.5, 1])
    assert a.overlap(b) == 0.25 and a.iou(b) == pytest.approx(1 / 3)
    assert a.overlap(ObjectRect(LRTB=[0.75, 0, 1, 1])) == 0 and ObjectRect().iou(ObjectRect()) == 0
    assert ObjectRect(LRTB=[-1, 0.5, 2, 3]).clip().rect.tolist() == [0, 0.5, 1, 1]
    assert ObjectRect(XYWH=[0.25, 0.5, 0.5, 1]).center() == (0.25, 0.5)


@pytest.mark.parametrize("mode", ["trimming", "padding", "resize"])
def test_boxes_move_with_their_image(mode: str) -> None:
    """The box is where its pixels are once the image has been cut or padded."""
    for shape in ((40, 80), (80, 40), (40, 40)):
        image = np.zeros(shape, np.uint8)
        h, w = shape
        image[h // 2 - 4 : h // 2 + 8, w // 2 - 8 : w // 2 + 4] = 255
        box = [1.0, (w / 2 - 2) / w, (h / 2 + 2) / h, 12 / w, 12 / h]
        found = _anchors.warped(box, (w, h), (60, 40), mode)
        pytest.importorskip("PIL")
        ys, xs = np.nonzero(_images.shaped(image, (60, 40), mode) > 127)
        expected = [(xs.min() + xs.max() + 1) / 120, (ys.min() + ys.max() + 1) / 80, np.ptp(xs) / 60, np.ptp(ys) / 40]
        assert found[0] == 1
        np.testing.assert_allclose(found[1:], expected, atol=0.05)


def test_anchors_are_means_of_groups() -> None:
    rng = np.random.RandomState(1)
    boxes = np.concatenate([rng.rand(20, 2) * 0.01 + 0.1, rng.rand(20, 2) * 0.01 + 0.5])
    found = _anchors.get_anchors(boxes, 2)
    np.testing.assert_allclose(found, [boxes[:20].mean(axis=0), boxes[20:].mean(axis=0)])
    assert _anchors.get_anchors(boxes[:1], 1).tolist() == boxes[:1].tolist()


def test_objects_on_a_grid() -> None:
    anchors = np.array([[0.1, 0.1], [0.5, 0.5]])
    labels = [[2, 0.6, 0.3, 0.5, 0.4], [0, 1.0, 1.0, 0.1, 0.1], [1, 2.0, 2.0, 0.1, 0.1]]
    classes, regions = _anchors.on_grid(labels, (2, 4), anchors)
    assert classes.shape == (2, 4, 2) and (classes >= 0).sum() == 2
    assert classes[1, 1, 1] == 2 and classes[1, 3, 1] == 0
    np.testing.assert_allclose(regions[1, 1, 1], [0.2, 0.2, 0.0, np.log(1.6)], atol=1e-9)


def test_detection(run: Run) -> None:
    for name in ("a.png", "sub/b.png"):
        save(f"in/{name}", np.full((4, 8, 3), 9, np.uint8))
    Path("in/a.txt").write_text("1 0.5 0.5 0.25 0.5\n0 0.1 0.1 0.1 0.1\n")
    Path("in/sub/b.txt").write_text("0 0.9 0.9 0.2 0.2\n\n")
    command = "create_object_detection_dataset"
    options = ["-m", "trimming", "-n", 2, "-a", 2, *COMMON]
    assert run(command, "-i", "in", "-o", "out", "-d", 4, *options) == 0
    stems = ["./data/a", "./data/sub/b"]
    assert rows("out/a.csv")[1:] == [[f"{s}.png", f"{s}_label.csv", f"{s}_region.csv"] for s in stems]
    labels = np.loadtxt("out/data/a_label.csv", delimiter=",").reshape(2, 1, 2)
    assert sorted(labels[labels >= 0]) == [0, 1]
    assert np.loadtxt("out/data/a_region.csv", delimiter=",").shape == (2, 8)
    assert run(command, "-i", "in", "-o", "out2", "-d", 3, *options) == 1
    assert run(command, "-i", "in", "-o", "out2", "-d", 4, *options, "-a", 9) == 1
    Path("in/a.txt").write_text("x y z\n")
    assert run(command, "-i", "in", "-o", "out2", "-d", 4, *options) == 1 and not os.path.exists("out2")
