"""`nnrs train`: trains the networks of a file as it says, and writes results to a folder.

In the folder are `results.nnp` (the best parameters), `results_current_<epoch>.nnp` (the newest),
`monitoring_report.yml` (cost and errors of each epoch) and `progress.txt` (how far it has come).

Processes that mpirun or torchrun starts train one network together: see `_ranks`.

>>> import os, tempfile, nnrs as nn, nnrs.functions as F, nnrs.parametric_functions as PF, nnrs.solvers as S
>>> from nnrs.utils.cli.cli import main
>>> from nnrs.utils.save import save
>>> x = nn.Variable((2, 1))
>>> loss, solver = F.mean((PF.affine(x, 1) - 1) ** 2), S.Sgd(0.1)
>>> solver.set_parameters(nn.get_parameters())
>>> feed = {"network": "net", "dataset": "data", "data_variables": {"x": "x"}, "loss_variables": ["loss"]}
>>> steps = {"update_interval": 1, "weight_decay": 0.0, "lr_decay": 1.0, "lr_decay_interval": 1}
>>> data = {"name": "data", "cache_dir": None, "variables": {"x": x}, "batch_size": 2, "shuffle": False}
>>> with tempfile.TemporaryDirectory() as folder:
...     with open(f"{folder}/x.csv", "w") as f:
...         _ = f.write("x\\n1\\n2\\n")
...     whole = {
...         "training_config": {"max_epoch": 1, "iter_per_epoch": 2, "save_best": True},
...         "networks": [{"name": "net", "batch_size": 2, "outputs": {"loss": loss}, "names": {"x": x}}],
...         "datasets": [{**data, "uri": f"{folder}/x.csv", "no_image_normalization": False}],
...         "optimizers": [{"name": "sgd", "solver": solver, **feed, **steps}],
...     }
...     save(f"{folder}/net.nnp", whole)
...     main(["train", "-c", f"{folder}/net.nnp", "-o", f"{folder}/results"])
...     sorted(os.listdir(f"{folder}/results"))
0
['monitoring_report.yml', 'network.nntxt', 'progress.txt', 'results.nnp', 'results_current_1.nnp']
"""

from __future__ import annotations

import os
from contextlib import nullcontext
from typing import Any

from ..._errors import ArgumentError, message
from ..._monitor_files import make_folder
from ...logger import logger
from ._arguments import add_parser
from ._progress import states_as_bar
from .utility import str_to_num

_EXAMPLES = """examples:
  nnrs train -c network.nntxt -o results             from the beginning
  nnrs train -c network.nnp -p network.nnp -o out    from the parameters of a file
  nnrs train -r -c network.nntxt -o results          go on where it was stopped
  mpirun -n 4 nnrs train -c network.nntxt -o results train in four processes, each with the batch of the file"""


def train_command(args: Any) -> bool:
    """Train."""
    from .. import callback
    from ._arguments import read_as
    from ._experiment import check_optimizers, open_experiment
    from ._ranks import Ranks
    from ._results import Results, load_train_state
    from ._training import Training

    _check_swapping(args)
    callback.update_status(args)
    ranks = Ranks()
    info = open_experiment("train", args.config, exclude_parameter=True, with_data=None, context=args.context)
    _check(info)
    x = info.training_config
    is_training = x.max_epoch * x.iter_per_epoch > 0
    x.iter_per_epoch = max(x.iter_per_epoch // ranks.size, 1)
    if is_training:
        check_optimizers("train", info)
    if ranks.is_first:
        make_folder("train", args.outdir)
    if args.param:
        with read_as("train", "param"):
            load_train_state(args.param, info)
    results = Results(info, args.config, args.outdir) if ranks.is_first else None
    if not is_training:
        logger.log(99, "0 epoch learning. (Just save parameter.)")
        done = True
        if results is not None:
            results.save(None, 0, force=True)
    else:
        ranks.use_context(info.default_context)
        shown = states_as_bar(os.path.join(args.outdir, "progress.txt")) if ranks.is_first else nullcontext()
        with shown, Training(args, info, results, ranks) as training:
            done = training.run()
    logger.log(99, "Training Completed." if done else "Training Incompleted.")
    callback.update_status("finished" if done else "failed")
    return done


def _check(info: Any) -> None:
    """Refuse what could only fail later."""
    for name, dataset in info.datasets.items():
        if not dataset.uri.strip():
            raise ArgumentError(message("train", "config", f"the dataset {name!r} has no URI"))
    for number in (info.training_config.max_epoch, info.training_config.iter_per_epoch):
        if number < 0:
            raise ArgumentError(message("train", "config", "epochs and iterations of 0 or more", number))


def _check_swapping(args: Any) -> None:
    for name in ("ooc_gpu_memory_size", "ooc_window_length"):
        said = getattr(args, name)
        if said is not None and str_to_num(said) < 0:
            hint = "such as 6000000000 or 6G"
            raise ArgumentError(message("train", name.replace("_", "-"), "a number of bytes", repr(said), hint))
    if args.enable_ooc:
        logger.warning("--enable-ooc is ignored: nnrs does not swap arrays out of a GPU; nn.memory can recompute them")


def add_train_command(subparsers: Any) -> None:
    """Add the command `train`."""
    from .. import callback

    parser = add_parser(subparsers, "train", "train the networks of a file as it says", examples=_EXAMPLES)
    parser.add_argument("-c", "--config", required=True, help=".nntxt or .nnp file with networks, optimizers, datasets")
    parser.add_argument("-p", "--param", help="file with the parameters to begin with (.nnp, .h5, ...)")
    parser.add_argument("-o", "--outdir", required=True, help="folder for the results")
    parser.add_argument("-r", "--resume", action="store_true", help="go on from the newest result in the folder")
    parser.add_argument("-C", "--context", help="where to run: cpu, cudnn or cudnn:DEVICE, whatever the file says")
    parser.add_argument("-O", "--enable-ooc", action="store_true", help="ignored: swapping out of the GPU's memory")
    parser.add_argument("-m", "--ooc-gpu-memory-size", metavar="BYTES", help="ignored: for -O")
    parser.add_argument("-w", "--ooc-window-length", metavar="BYTES", help="ignored: for -O")
    callback.add_train_command_arg(parser)
    parser.set_defaults(func=train_command)
