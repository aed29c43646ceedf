"""How processes that train one network exchange arrays; `nnrs.communicators` is what a script sees of it.

`transport` says what carries bytes (one group of processes), `mpi` does it by mpi4py, `control` finds out who is
missing, `launch` reads what started the processes, `reductions` has the collectives as steps over a transport,
`arrays` puts NdArrays into flat memory, `line` runs collectives in order, and `overlap` reduces gradients while
backward goes on.
"""
