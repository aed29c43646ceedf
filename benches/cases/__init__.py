"""All cases, in the order of the table. A group's file imports no engine until one of its steps is built."""

from . import (
    convolution,
    data_feeding,
    depthwise,
    elementwise,
    feeding,
    functions,
    matmul,
    memory,
    networks,
    package,
    products,
    recompute,
    recurrent,
    resnet,
    small_graph,
    solvers,
    sound,
    step_memory,
    transformer,
    views,
)

TIMED = [
    *small_graph.CASES,
    *elementwise.CASES,
    *matmul.CASES,
    *products.CASES,
    *views.CASES,
    *feeding.CASES,
    *networks.CASES,
    *convolution.CASES,
    *depthwise.CASES,
    *sound.CASES,
    *resnet.CASES,
    *transformer.CASES,
    *recurrent.CASES,
    *solvers.CASES,
    *data_feeding.CASES,
]
FUNCTIONS = functions.CASES  # a table of their own
WHOLE = [*memory.CASES, *recompute.CASES, *step_memory.CASES, *package.CASES]
