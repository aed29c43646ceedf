"""Makes the files of golden/nnp/ with NNabla, which nnrs must load and run to the same numbers, and write alike.

    NNRS_TEST_MODULE=nnabla python tests/golden/make_nnp.py     # with nnabla 1.39 installed

The networks are those of tests/nnp_networks.py. That NNabla loads what nnrs writes, too:

    python tests/nnp_networks.py save FOLDER
    NNRS_TEST_MODULE=nnabla python tests/nnp_networks.py check FOLDER
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import nnabla as nn
import numpy as np
from nnabla.utils.save import save

HERE = Path(__file__).parent / "nnp"
sys.path.insert(0, str(HERE.parent.parent))

import nnp_networks  # noqa: E402 - found by the line above


def deflate(path: Path) -> None:
    """Pack an archive's files, which NNabla leaves as they are."""
    with zipfile.ZipFile(path) as old:
        files = {name: old.read(name) for name in old.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as new:
        for name, data in files.items():
            new.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)


nnp_networks.save(HERE)
deflate(HERE / "functions.nnp")
nn.clear_parameters()
save(str(HERE / "contents.nntxt"), nnp_networks.contents())
np.savez_compressed(HERE / "loops.npz", **nnp_networks.looped(HERE / "loops.nntxt"))
nn.clear_parameters()
made = [nnp_networks.network(*network) for network in nnp_networks.composed()]
save(str(HERE / "composed.nntxt"), {"networks": made}, variable_batch_size=False)
np.savez_compressed(HERE / "composed.npz", **nnp_networks.composed_values(HERE / "composed.nntxt"))
save(str(HERE / "composed-open.nntxt"), nnp_networks.open_composed(), True, variable_batch_size=True)
np.savez_compressed(HERE / "composed-open.npz", **nnp_networks.open_values(HERE / "composed-open.nntxt"))
