"""How processes that train one network exchange arrays; `nnrs.communicators` is what a script sees of it.

`transport` says what carries bytes (one group of processes), `mpi` does it by mpi4py, `control` finds out who is
missing, `launch` reads what started the processes. `exchange` has the collectives of arrays by the host, over the steps
of `reductions` and the flat memory of `arrays`; `nccl` has those between GPUs. `line` runs collectives in order, and
`overlap` reduces gradients while backward goes on.
"""
