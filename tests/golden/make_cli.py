"""Makes golden/cli: a small network with data, and what NNabla's commands make of it.

cd tests/golden && NNABLA_CLI=.../bin/nnabla_cli python make_cli.py    # with NNabla 1.39, Python 3.10
"""

import csv
import os
import shutil
import subprocess
from pathlib import Path

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
import nnabla.solvers as S
import numpy as np
from nnabla.utils.save import save

FOLDER = Path(__file__).parent / "cli"
CLI = os.environ["NNABLA_CLI"]
BATCH = 8


def network(x, is_training):
    rng = np.random.RandomState(5)
    h = F.relu(PF.affine(x, 16, name="a1", w_init=np.float32(rng.randn(6, 16) * 0.3)))
    h = PF.batch_normalization(h, batch_stat=is_training, name="bn")
    return PF.affine(h, 3, name="a2", w_init=np.float32(rng.randn(16, 3) * 0.3))


def write_csv(name, rng, count, prefix):
    with open(name, "w") as f:
        writer = csv.writer(f, lineterminator="\n")
        writer.writerow([f"{prefix}__{i}" for i in range(6)] + ["y"])
        for _ in range(count):
            label = rng.randint(3)
            writer.writerow([f"{v:.4f}" for v in rng.randn(6) + np.eye(6)[label] * 2] + [label])


def dataset(name, x, t, shuffle):
    variables = {"x": x, "y": t}
    options = {"shuffle": shuffle, "batch_size": BATCH, "no_image_normalization": False}
    return {"name": name, "uri": f"{name}.csv", "cache_dir": None, "variables": variables, **options}


def write_network():
    x, t = nn.Variable((BATCH, 6)), nn.Variable((BATCH, 1))
    loss = F.mean(F.softmax_cross_entropy(network(x, True), t))
    vx, vt = nn.Variable((BATCH, 6)), nn.Variable((BATCH, 1))
    error = F.mean(F.top_n_error(network(vx, False), vt))
    rx = nn.Variable((BATCH, 6))
    y = F.softmax(network(rx, False))
    solver = S.Adam(0.01)
    solver.set_parameters(nn.get_parameters())
    optimizer = {"name": "opt", "solver": solver, "network": "Main", "dataset": "train", "update_interval": 1}
    optimizer |= {"weight_decay": 0.001, "lr_decay": 0.9, "lr_decay_interval": 5}
    optimizer["data_variables"] = {"x": "x", "t": "y"}
    monitor = {"name": "valid_error", "network": "Valid", "dataset": "valid"}
    monitor["data_variables"] = {"vx": "x", "vt": "y"}
    contents = {
        "global_config": {"default_context": nn.Context(["cpu:float"], "CpuCachedArray", "0")},
        "training_config": {"max_epoch": 6, "iter_per_epoch": 5, "save_best": True},
        "networks": [
            {"name": "Main", "batch_size": BATCH, "outputs": {"loss": loss}, "names": {"x": x, "t": t}},
            {"name": "Valid", "batch_size": BATCH, "outputs": {"error": error}, "names": {"vx": vx, "vt": vt}},
            {"name": "Run", "batch_size": BATCH, "outputs": {"y": y}, "names": {"rx": rx}},
        ],
        "datasets": [dataset("train", x, t, True), dataset("valid", vx, vt, False)],
        "optimizers": [optimizer],
        "monitors": [monitor],
        "executors": [{"name": "Executor", "network": "Run", "data": ["rx"], "output": ["y"]}],
    }
    save("network.nnp", contents)


def run(*args):
    done = subprocess.run([CLI, *args], check=True, capture_output=True, text=True)
    return done.stdout


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    os.chdir(FOLDER)
    rng = np.random.RandomState(1)
    write_csv("train.csv", rng, 40, "x")
    write_csv("valid.csv", rng, 24, "x")
    write_csv("test.csv", rng, 12, "rx")
    write_network()
    os.mkdir("out")
    run("train", "-c", "network.nnp", "-p", "network.nnp", "-o", "out")
    os.rename("out/monitoring_report.yml", "monitoring_report.yml")
    os.rename("out/results_current_6.nnp", "trained.nnp")
    run("forward", "-c", "network.nnp", "-d", "test.csv", "-o", "out")
    os.rename("out/output_result.csv", "output_result.csv")
    np.arange(12, dtype=np.float32).tofile("x.bin")
    run("infer", "-c", "network.nnp", "-b", "2", "-o", "out/y", "x.bin")
    np.savetxt("infer.txt", [np.fromfile(f"out/y_{i}.bin", np.float32) for i in range(2)])
    run("decode_param", "-p", "network.nnp", "-o", "decoded")
    dumped = run("dump", "network.nnp").splitlines()
    Path("dump.txt").write_text("".join(f"{line}\n" for line in dumped if line.startswith("  ")))
    shutil.rmtree("out")


if __name__ == "__main__":
    main()
