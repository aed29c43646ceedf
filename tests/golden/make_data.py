"""Runs feeding_scenarios.py on NNabla, writes data_feeding.json and small cache folders for the tests.

    NNRS_TEST_MODULE=nnabla python tests/golden/make_data.py            # with nnabla 1.39
    NNRS_TEST_MODULE=nnabla python tests/golden/make_data.py FOLDER     # reads caches that nnrs wrote there

The second reads each folder of FOLDER (test_data_caches.py writes them) and prints what NNabla finds, as JSON.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("NNRS_TEST_MODULE", "nnabla")
HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

import feeding_scenarios as scenarios  # noqa: E402


def each(specs: dict[str, Any], run: Callable[[Any, Path], Any]) -> dict[str, Any]:
    found = {}
    for name, spec in specs.items():
        with tempfile.TemporaryDirectory() as folder:
            found[name] = run(spec, Path(folder))
    return found


def write_caches() -> None:
    """As DataSourceWithFileCache and CreateCache write them."""
    for kind in (".npy", ".h5"):
        for maker in ("source", "create"):
            target = HERE / f"cache_{kind[1:]}_{maker}"
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir()
            scenarios.configure(kind)
            with tempfile.TemporaryDirectory() as folder:
                path = scenarios.write_csv(Path(folder), 8)
                if maker == "create":
                    create = scenarios.module("utils.create_cache").CreateCache
                    create(path, rng=scenarios.rng_of(2), shuffle=True).create(str(target))
                else:
                    source = scenarios.module("utils.data_source_implements").CsvDataSource(path)
                    scenarios.module("utils.data_source").DataSourceWithFileCache(source, cache_dir=str(target))


def main() -> None:
    logging.disable(logging.INFO)
    if len(sys.argv) > 1:
        print(json.dumps({p.name: scenarios.read_cache(p) for p in sorted(Path(sys.argv[1]).iterdir())}))
        return
    golden = {
        "runs": each(scenarios.SPECS, lambda spec, folder: scenarios.run(spec, folder, thread=False)),
        "slices": each(scenarios.SLICES, scenarios.run_slices),
        "cached slices": each(scenarios.CACHED_SLICES, scenarios.run_cached_slice),
    }
    golden["wrapped"] = each(scenarios.WRAPPED, scenarios.run_wrapped)
    write_caches()
    golden["caches"] = {p.name: scenarios.read_cache(p) for p in sorted(HERE.glob("cache_*"))}
    text = ",\n".join(
        f'"{k}": {{\n' + ",\n".join(f"{json.dumps(n)}: {json.dumps(v)}" for n, v in group.items()) + "\n}"
        for k, group in golden.items()
    )
    (HERE / "data_feeding.json").write_text("{\n" + text + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
