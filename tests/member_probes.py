"""Small questions about the members of Variable, NdArray, Function, Context and their like, which golden/make_members.py
asks NNabla and test_members.py nnrs. Each is a script of a line or two, whose last expression is the answer.
"""

# ruff: noqa: E501

from __future__ import annotations

import ast
import importlib
import os
from typing import Any

import numpy as np

MODULE = os.environ.get("NNRS_TEST_MODULE", "nnrs")
nn = importlib.import_module(MODULE)
Array = np.ndarray


def v(values: Any, need_grad: bool | None = True) -> Any:
    """A Variable of float32."""
    return nn.Variable.from_numpy_array(np.array(values, np.float32), need_grad=need_grad)


def a(values: Any, dtype: Any = np.float32) -> Any:
    """An NdArray of any type."""
    return nn.NdArray.from_numpy_array(np.array(values, dtype))


def ran(y: Any) -> Any:
    """y after forward."""
    y.forward()
    return y


def sliced(y: Any) -> Any:
    """The function that picked the elements of y; single places are dropped by a reshape behind it."""
    return y.parent.inputs[0].parent if y.parent.name == "Reshape" else y.parent


VARIABLE = """
nn.Variable((2, 3)).shape
nn.Variable([2, 3]).shape
nn.Variable().shape
nn.Variable(()).shape
nn.Variable((0, 2)).shape
nn.Variable((np.int64(2),)).shape
nn.Variable(shape=(2,), need_grad=True).need_grad
nn.Variable((2,)).need_grad
nn.Variable((2,), None).need_grad
nn.Variable((2,), True, 3).info
nn.Variable((2,), info="a").info
nn.Variable((2,)).info
nn.Variable((2,)).d.dtype.name
nn.Variable((2,)).data.zeroing, nn.Variable((2,)).grad.zeroing
nn.Variable((2,)).parent
nn.Variable((2,)).name
nn.Variable((2,)).rank
nn.Variable((2,)).persistent, nn.Variable((2,)).recompute
nn.Variable((2, 3, 4)).size_from_axis(), nn.Variable((2, 3, 4)).size_from_axis(1), nn.Variable((2, 3)).size_from_axis(2)
nn.Variable((2, 3)).size_from_axis(-2)
nn.Variable((2, 3)).size_from_axis(3)
nn.Variable((2, 3)).ndim, nn.Variable((2, 3)).size, nn.Variable(()).size
nn.Variable.EXCEPTIONS_AT_DEALLOC
nn.Variable.from_numpy_array(np.array([1, 2])).d
nn.Variable.from_numpy_array(np.array([1.5])).d
nn.Variable.from_numpy_array(np.array([True])).d
nn.Variable.from_numpy_array([1.0, 2.0]).d
nn.Variable.from_numpy_array(3).d
nn.Variable.from_numpy_array(np.ones(2), np.zeros(2)).g
nn.Variable.from_numpy_array(np.ones(2), np.zeros(3)).g
nn.Variable.from_numpy_array(np.ones(2), need_grad=True).need_grad
nn.Variable.from_numpy_array(np.ones(2)).need_grad
nn.Variable.from_numpy_array(a([1, 2])).d
x = v([1, 2]); x.d = 3; x.d
x = v([1, 2]); x.d = [4, 5]; x.d
x = v([1, 2]); x.d = np.array([4, 5]); x.d.dtype.name
x = v([1, 2]); x.d = np.array([4, 5], np.float16); x.d.dtype.name
x = v([1, 2]); x.d = np.array([True, False]); x.d
x = v([1, 2]); x.d = np.ones(3); x.d
x = v([1, 2]); x.d = "a"; x.d
x = v([1, 2]); x.d = None; x.d
x = v([[1, 2]]); x.d = np.array([4, 5]); x.d
x = v([1, 2]); x.g = 3; x.g
x = v([1, 2]); x.g = np.array([1, 2]); x.g.dtype.name
x = v([1, 2]); x.g = np.ones(3); x.g
x = v([1, 2]); x.data = a([3, 4]); x.d
x = v([1, 2]); x.data = a([3, 4, 5]); x.d
x = v([1, 2]); x.data = np.ones(2); x.d
x = v([1, 2]); x.data = 1; x.d
x = v([1, 2]); x.grad = a([3, 4]); x.g
x = v([1, 2]); x.grad = None; x.g
x = v([1, 2]); b = a([3, 4]); x.data = b; x.data == b
x = v([1, 2]); x.data == x.data
x = v([1, 2]); x.name = "n"; x.name
x = v([1, 2]); x.name = 3; x.name
x = v([1, 2]); x.info = [1]; x.info
x = v([1, 2]); x.parent = None; x.parent
x = v([1, 2]); x.parent = 3; x.parent
x = v([1, 2]); x.rank = 3; x.rank
x = v([1, 2]); x.shape = (1, 2); x.shape
x = v([1, 2]); x.other = 3; x.other
x = v([1, 2]); x.need_grad = None; x.need_grad
y = F.exp(v([1, 2])); y.need_grad
y = F.exp(v([1, 2], False)); y.need_grad
y = F.exp(v([1, 2])); y.need_grad = False; y.need_grad
y = F.exp(v([1, 2])); y.need_grad = False; y.need_grad = None; y.need_grad
y = F.exp(v([1, 2])); y.rank, F.exp(y).rank
y = F.exp(v([1, 2])); y.parent = None; y.parent, y.rank
x = v([1, 2]); y, z = F.exp(x), F.tanh(x); sorted(f.name for f in x.function_references)
x = v([1, 2]); x.function_references
y = F.exp(v([1, 2])); y.function_references
x = v([1, 2]); x.get_number_of_references
x = v([1, 2]); u = x.get_unlinked_variable(); x.get_number_of_references
x = v([1, 2]); u = x.get_unlinked_variable(); u == x, u.data == x.data, u.grad == x.grad
y = F.exp(v([1, 2])); u = y.get_unlinked_variable(); u.parent, u.need_grad
y = F.exp(v([1, 2])); u = y.get_unlinked_variable(need_grad=False); u.need_grad, y.need_grad
y = F.exp(v([1, 2])); u = y.unlinked(need_grad=True); u.need_grad
x = v([1, 2]); u = x.get_unlinked_variable(); u.persistent = True; x.persistent
x = v([1, 2]); x.persistent = True; x.get_unlinked_variable().persistent
x = v([1, 2]); x.name = "n"; x.get_unlinked_variable().name
x = v([1, 2]); x.info = 5; x.get_unlinked_variable().info
x = v([1, 2]); x.recompute = True; x.get_unlinked_variable().recompute
x = v([1, 2]); x.reset_shape((2, 1)); x.d
x = v([1, 2]); x.reset_shape((3,)); x.shape
x = v([1, 2]); x.reset_shape((3,), True); x.shape
x = v([1, 2]); x.reset_shape((3,), force=True); x.d.shape, x.g.shape
x = v([1, 2]); x.reset_shape([2, 1]); x.shape
x = v([1, 2]); x.reset_shape(2); x.shape
x = v([1, 2]); x.reset_shape((2,), True, 3); x.shape
x = v([1, 2]); x.reset_shape((-1,)); x.shape
x = v([1, 2]); y = x.reshape((2, 1)); y.parent.name, ran(y).d
x = v([1, 2]); y = x.reshape((2, 1), unlink=True); y.parent, y.need_grad, y.d
x = v([1, 2]); y = x.reshape((2, 1), unlink=True); y.d = 5; x.d
x = v([1, 2]); y = x.reshape((2, 1), unlink=True); y.g = 5; x.g
x = v([1, 2]); y = x.reshape((2, 1), unlink=True); y == x
x = v([1, 2]); x.reshape((3,))
x = v([1, 2]); x.reshape((3,), unlink=True)
x = v([1, 2]); x.reshape((-1, 1)).shape
x = v([1, 2]); x.reshape((-1, 1), unlink=True).shape
x = v([1, 2]); x.reshape([2, 1]).shape
x = v([1, 2]); x.reshape(2).shape
x = v([1, 2]); x.reshape(2, 1).shape
x = v([1, 2]); F.exp(x).reshape((2, 1), unlink=True).need_grad
y = F.exp(v([1, 2])); y.apply(persistent=True) is y, y.persistent
x = v([1, 2]); x.apply(d=3, name="q"); x.d, x.name
x = v([1, 2]); x.apply(nonsense=3)
x = v([1, 2]); x.apply(3)
x = v([1, 2]); y = x.apply(); y is x
x = v([1, 2]); x.forward(); x.d
x = v([1, 2]); x.backward(); x.g
x = v([1, 2]); x.backward(3); x.g
x = v([1, 2], False); x.backward(); x.g
y = F.exp(v([0, 0])); y.d
x = v([1, 2]); y = ran(x * x); y.backward(); x.g
x = v([1, 2]); y = ran(x * x); y.backward(2); x.g
x = v([1, 2]); y = ran(x * x); y.backward(2.5); x.g
x = v([1, 2]); y = ran(x * x); y.backward(np.float32([1, 2])); x.g
x = v([1, 2]); y = ran(x * x); y.backward(a([1, 2])); x.g
x = v([1, 2]); y = ran(x * x); y.backward(np.ones(3)); x.g
x = v([1, 2]); y = ran(x * x); y.backward(True); x.g
x = v([1, 2]); y = ran(x * x); y.backward("a"); x.g
x = v([1, 2]); y = ran(x * x); y.g = 3; y.backward(None); x.g
x = v([1, 2]); y = ran(x * x); y.backward(grad=2, clear_buffer=True); x.g
x = v([1, 2]); y = ran(x * x); y.backward(); y.backward(); x.g
x = v([1, 2]); y = ran(x * x); y.backward(communicator_callbacks=[]); x.g
x = v([1, 2]); y = ran(x * x); y.backward(communicator_callbacks=3); x.g
x = v([1, 2]); y = ran(x * x); y.backward(communicator_callbacks=(Callback(),)); x.g
x = v([1, 2]); y = ran(x * x); y.backward(communicator_callbacks=[3]); x.g
names = []; y = F.tanh(F.exp(v([1, 2]))); y.forward(function_pre_hook=lambda f: names.append(f.name)); names
names = []; y = F.tanh(F.exp(v([1, 2]))); y.forward(function_post_hook=lambda f: names.append(f.name)); names
names = []; y = ran(F.tanh(F.exp(v([1, 2])))); y.backward(function_pre_hook=lambda f: names.append(f.name)); names
names = []; y = ran(F.tanh(F.exp(v([1, 2])))); y.backward(function_post_hook=lambda f: names.append(f.name)); names
y = F.exp(v([1, 2])); y.forward(False, False, None, None, None)
y = F.exp(v([1, 2])); y.forward(nonsense=1)
names = []; F.tanh(F.exp(v([1, 2]))).visit(lambda f: names.append(f.name)); names
v([1, 2]).visit(lambda f: 1)
F.exp(v([1, 2])).visit(3)
names = []; F.tanh(F.exp(v([1, 2]))).visit_check(lambda f: names.append(f.name) or f.name == "Exp"), names
F.tanh(F.exp(v([1, 2]))).visit_check(lambda f: f.name == "Sin")
v([1, 2]).visit_check(lambda f: True)
x, y = v([1, 2]), F.exp(v([1, 2])); x.rewire_on(y); x.parent.name, y.parent
x, y = v([1, 2]), v([1, 2]); x.rewire_on(y)
x, y = v([1, 2]), F.exp(v([1, 2, 3])); x.rewire_on(y)
x = v([1, 2]); x.rewire_on(3)
y = F.tanh(F.exp(v([1, 2]))); y.clear_all_graph_links(); y.parent
y = F.tanh(F.exp(v([1, 2]))); y.no_grad().need_grad
x = v([1, 2]); y = x.masked_fill_(v([1, 0]), 5); y.forward(); y.d, x.d
x = v([1, 2]); y = x.bool_fill_(v([1, 0]), 5); y.parent.name, y.parent.info.args
x = v([1, 2]); x.masked_fill_(v([1, 0, 1]), 5)
x = v([1, 2]); x.masked_fill_(v([1, 0]), "a")
bool(v([0])), bool(v(0))
len(v([0]))
list(v([0]))
float(v(3))
int(v(3))
v([1]) == 1
x = v([1]); x == x, x != x, x == v([1]), x != v([1])
x = v([1]); hash(x) == hash(x)
v([1]) < v([2])
v([1]) != 1
a([1]) == 1
a([1]) >= v([2])
repr(v([1, 2])).split(" at ")[0]
str(v([1, 2])).split(" at ")[0]
repr(nn.Variable((2,), None)).split(" at ")[0]
v([1]) in [v([1])]
x = v([1]); {x: 2}[x]
x = v([1, 2]); (+x) == x
ran(-v([1, 2])).d
abs(v([-1]))
~v([-1])
x = v([1, 2]); x += 1; ran(x).d
x = v([1, 2]); y = x; y += 1; x.parent
x = v([1, 2]); x *= v([3, 4]); ran(x).d, x.parent.name
import copy; copy.copy(v([1, 2])).d
import copy; copy.deepcopy(v([1, 2])).d
import pickle; pickle.loads(pickle.dumps(v([1, 2]))).d
"""

ARRAY = """
nn.NdArray(2, 2).shape
nn.NdArray((2, 2)).shape
nn.NdArray([2, 2]).shape
nn.NdArray(2).shape
nn.NdArray().shape
nn.NdArray(2, 3, 4).shape
nn.NdArray(()).shape
nn.NdArray((0,)).shape
nn.NdArray((np.int64(2),)).shape
nn.NdArray((2,), 3).shape
nn.NdArray((2, 3), (4,)).shape
nn.NdArray(((2, 3),)).shape
nn.NdArray("a").shape
nn.NdArray(None).shape
nn.NdArray(2.0).shape
nn.NdArray((2,)).data
nn.NdArray((2,)).dtype
nn.NdArray((2,)).zeroing, nn.NdArray((2,)).clear_called, nn.NdArray((2,)).modification_count
nn.NdArray((2, 3)).strides, nn.NdArray((2, 3)).ndim, nn.NdArray((2, 3)).size
nn.NdArray((2, 3, 4)).size_from_axis(), nn.NdArray((2, 3, 4)).size_from_axis(1)
nn.NdArray((2, 3)).size_from_axis(5)
nn.NdArray(()).strides, nn.NdArray((2, 1, 3)).strides, nn.NdArray((0, 2)).strides
nn.NdArray.from_numpy_array(np.array([1, 2], np.int8)).dtype
nn.NdArray.from_numpy_array([1, 2]).data
nn.NdArray.from_numpy_array(3.0).data
nn.NdArray.from_numpy_array(np.array(["a"]))
nn.NdArray.from_numpy_array(np.asfortranarray(np.arange(4).reshape(2, 2))).data
x = a([1, 2]); x.data = 3; x.data
x = a([1, 2]); x.data = [3, 4]; x.data
x = a([1, 2]); x.data = np.array([3, 4]); x.dtype
x = a([1, 2], np.int32); x.data = 3.7; x.data
x = a([1, 2], np.int32); x.data = np.array([3.7, 1.2]); x.data
x = a([1, 2]); x.data = np.ones(3)
x = a([1, 2]); x.data[0] = 9; x.data
x = a([1, 2]); x.shape = (2, 1)
x = a([1, 2]); x.dtype = np.int32
x = a([1, 2]); x.fill(5); x.data, x.dtype, x.zeroing
x = a([1, 2], np.int32); x.fill(5); x.dtype
x = a([1, 2], np.int32); x.fill(5.7); x.data
x = a([1, 2], np.int32); x.fill(5); x.cast(np.int32)
x = a([1, 2]); x.fill("a")
x = a([1, 2]); x.fill(None)
x = a([1, 2]); x.zero(); x.zeroing, x.data, x.zeroing, x.dtype
x = a([1, 2], np.int32); x.zero(); x.dtype, x.data
x = a([1, 2], np.int32); x.zero(); x.cast(np.float64)
x = a([1, 2]); x.clear(); x.clear_called
x = a([1, 2]); x.clear(); x.shape, x.size
x = a([1, 2]); x.clear(); x.data = 1; x.clear_called
x = a([1, 2]); x.clear(); x.zero(); x.clear_called, x.zeroing
x = a([1, 2]); x.clear(); x.fill(1); x.clear_called
x = a([1, 2], np.int32); x.clear(); x.dtype
x = a([1, 2]); x.cast(np.int32), x.dtype
x = a([1.7, -2.7]); x.cast(np.int32)
x = a([1.7, 0]); x.cast(bool)
x = a([1, 2]); x.cast("float64"), x.dtype
x = a([1, 2]); x.cast(np.float16), x.dtype
x = a([1, 2]); x.cast("nonsense")
x = a([1, 2]); x.cast(None)
x = a([300, -1]); x.cast(np.uint8)
x = a([1, 2]); x.get_data(), x.get_data("r"), x.get_data("w").shape
x = a([1, 2]); x.get_data("r").flags.writeable, x.get_data("rw").flags.writeable
x = a([1, 2]); x.get_data("r", np.int32), x.dtype
x = a([1, 2]); x.get_data("rw", np.int32), x.dtype
x = a([1, 2]); x.get_data("w", np.int32).dtype, x.dtype
x = a([1, 2]); x.get_data("x")
x = a([1, 2]); x.get_data(mode="rw", dtype=np.float64)
x = a([1, 2]); c = x.modification_count; x.data; x.modification_count - c
x = a([1, 2]); c = x.modification_count; x.get_data("r"); x.modification_count - c
x = a([1, 2]); c = x.modification_count; x.data = 1; x.modification_count > c
x = a([1, 2]); c = x.modification_count; x.zero(); x.modification_count - c
x = a([1, 2]); c = x.modification_count; x.fill(1); x.modification_count - c
x = a([1, 2]); c = x.modification_count; x.cast(np.int32); x.modification_count > c
x = a([1, 2]); y = x.view((2, 1)); y.data[0, 0] = 7; x.data
x = a([1, 2]); x.view((3,))
x = a([1, 2]); x.view([2, 1]).shape
x = a([1, 2]); x.view((-1, 1)).shape
x = a([1, 2]); x.view(2).shape
x = a([1, 2]); y = x.view((2, 1)); y.zero(); x.data
x = a([1, 2]); y = x.view((2, 1)); x.fill(4); y.data
x = a([1, 2], np.int32); x.view((2, 1)).dtype
x = a([1, 2]); y = x.view((2, 1)); x.cast(np.int32); y.dtype
x = a([1, 2]); y = x.view((2, 1)); y == x, hash(y) == hash(x)
x = a([1, 2, 3, 4]); x.narrow(0, 1, 2).data
x = a([1, 2, 3, 4]); x.narrow(0, 1, 2).data[0] = 9; x.data
x = a([1, 2, 3, 4]); x.narrow(0, 1, 4)
x = a([1, 2, 3, 4]); x.narrow(0, -1, 1)
x = a([1, 2, 3, 4]); x.narrow(1, 0, 1)
x = a([1, 2, 3, 4]); x.narrow(0, 1, 0)
x = a([[1, 2], [3, 4]]); x.narrow(0, 1, 1).data
x = a([[1, 2], [3, 4]]); x.narrow(1, 1, 1).data
x = a([[1, 2, 3, 4]]); x.narrow(1, 1, 2).data
x = a([1, 2, 3, 4], np.int32); x.narrow(0, 1, 2).data, x.narrow(0, 1, 2).dtype
x = a([1, 2, 3, 4], np.int8); y = x.narrow(0, 1, 2); y.dtype, y.data
x = a([1, 2, 3, 4], np.float64); y = x.narrow(0, 1, 2); y.data[0] = 9; x.data, x.dtype
x = a([1, 2, 3, 4]); y = x.narrow(0, 1, 2); y.zero(); x.data, y.data
x = a([1, 2, 3, 4]); y = x.narrow(0, 1, 2); y.fill(7); x.data, y.data
x = a([1, 2, 3, 4]); y = x.narrow(0, 1, 2); x.zero(); x.data, y.data
x = a([1, 2, 3, 4]); y = x.narrow(0, 1, 2); x.fill(7); x.data, y.data
x = a([1, 2, 3, 4]); x.zero(); y = x.narrow(0, 1, 2); y.data, y.zeroing
x = a([1, 2, 3, 4]); x.fill(3); y = x.narrow(0, 1, 2); y.data
x = a([1, 2, 3, 4]); x.fill(3); y = x.narrow(0, 1, 2); y.data = 5; x.data
x = a([1, 2, 3, 4]); x.zero(); y = x.narrow(0, 1, 2); y.data = 5; x.data
x = a([1, 2, 3, 4]); y = x.narrow(0, 1, 2); y.data = np.array([8, 9]); x.data, y.dtype, x.dtype
x = a([1, 2, 3, 4]); y = x.narrow(0, 1, 2); y.cast(np.int32), x.data, x.dtype
x = a([1, 2, 3, 4]); y = x.narrow(0, 1, 2); x.cast(np.int32); y.data, y.dtype
x = a([1, 2, 3, 4]); y = x.narrow(0, 1, 2); y.clear(); x.clear_called, y.clear_called
x = a([1, 2, 3, 4]); y = x.narrow(0, 0, 4); y == x
x = a([1, 2]); x.copy_from(a([3, 4])) is x
x = a([1, 2]); x.copy_from(a([3, 4])); x.data
x = a([1, 2]); x.copy_from(a([3, 4], np.int32)); x.dtype, x.data
x = a([1, 2], np.int32); x.copy_from(a([3.5, 4.5])); x.dtype, x.data
x = a([1, 2], np.int8); x.copy_from(a([3.5, 4.5], np.float64)); x.dtype, x.data
x = a([1, 2]); x.copy_from(a([3, 4], np.int32), use_current_context=False); x.dtype, x.data
x = a([1, 2], np.float64); x.copy_from(a([3, 4], np.float16)); x.dtype, x.data
x = a([1, 2]); x.copy_from(a([True, False], bool)); x.dtype, x.data
x = nn.NdArray((2,)); x.copy_from(a([3, 4], np.int32)); x.dtype, x.data
x = a([1, 2], np.int32); y = a([3, 4]); y.zero(); x.copy_from(y); x.dtype, x.data, x.zeroing
x = a([1, 2], np.int32); y = a([3, 4]); y.fill(6); x.copy_from(y); x.dtype, x.data
x = a([1, 2], np.int32); x.zero(); x.copy_from(a([3, 4])); x.dtype, x.data
x = a([1, 2], np.int32); x.fill(2); x.copy_from(a([3, 4])); x.dtype, x.data
x = a([1, 2]); x.copy_from(a([3, 4, 5]))
x = a([1, 2]); x.copy_from(a([[3], [4]])); x.shape, x.data
x = a([1, 2]); x.copy_from(np.ones(2))
x = a([1, 2]); x.copy_from(v([3, 4]))
x = a([1, 2]); x.copy_from(x); x.data
x = a([1, 2]); x.masked_fill(a([1, 0]), 5).data
x = a([1, 2]); x.bool_fill(a([1, 0]), 5); x.data
x = a([1, 2]); x.masked_fill(a([1, 0]), 5) is x
x = a([1, 2]); x.bool_fill(a([1, 0, 1]), 5)
x = a([1, 2]); x == x, x == a([1, 2]), x != x
x = a([1, 2]); hash(x) == hash(x)
bool(a([0])), bool(a(0))
len(a([0]))
float(a(3))
repr(a([1, 2])).split(" at ")[0]
x = a([1, 2]); (+x) == x
(-a([1, 2])).data
x = a([1, 2]); y = x; y += 1; x.data
x = a([1, 2]); y = x; y -= a([3, 4]); x.data
x = a([1, 2]); y = x; y *= 3; y /= 2; y **= 2; x.data
x = a([1, 2]); x += v([1, 2]); type(x).__name__, x.data
x = a([1, 2]); x -= v([1, 2]); type(x).__name__, x.data
x = a([1, 2]); x *= v([1, 2]); type(x).__name__, x.data
x = a([1, 2]); x /= v([1, 2]); type(x).__name__, x.data
x = a([1, 2]); x **= v([1, 2]); type(x).__name__, x.data
x = v([1, 2]); x += a([1, 2]); type(x).__name__
x = a([1, 2]); y = x; y += v([1, 2]); x.data
x = a([1, 2], np.int32); (x + 1).dtype, (x + 1).data
x = a([1, 2], np.int32); x += 1; x.dtype, x.data
x = a([1, 2], np.int32); (x * x).dtype
import copy; copy.deepcopy(a([1, 2])).data
import pickle; pickle.loads(pickle.dumps(a([1, 2]))).data
np.asarray(a([1, 2]))
"""

MORE = """
x = a([1, 2]); x.fill(np.nan); x.data
x = a([1, 2]); x.fill(1e300); x.data
x = a([1, 2]); x.fill(True); x.data
x = a([1, 2]); x.fill(np.float32(2)); x.data
x = a([1, 2]); x.fill(np.array(2)); x.data
x = a([1, 2]); x.fill(2**60); x.data
x = a([1, 2]); x.fill(); x.data
x = a([1, 2]); x.zero(1)
x = v([1, 2]); x.d = np.float64(3); x.d.dtype.name, x.d
x = v([1, 2]); x.d = np.array(3); x.d.dtype.name, x.d
x = v([1, 2]); x.d = np.array(3.5, np.float16); x.d.dtype.name, x.d
x = v([1, 2]); x.d = np.int64(3); x.d.dtype.name
x = v([1, 2]); x.d = np.float16(3); x.d.dtype.name
x = v([1, 2]); x.d = np.bool_(1); x.d.dtype.name
x = v([1, 2]); x.d = np.array([3]); x.d.dtype.name
x = v([1, 2]); x.g = np.array(3); x.g.dtype.name
x = a([1, 2]); x.data = np.array(3); x.dtype
x = a([1, 2]); x.data = np.array(True); x.dtype
x = a([1, 2]); x.data = np.int8(3); x.dtype
x = a([1, 2], np.int32); x.data = np.float64(3.5); x.dtype, x.data
x = a(1); x.data = np.array(3); x.dtype
x = v([1, 2]); x.d = True; x.d
x = v([1, 2]); x.d = float("nan"); x.d
x = v([1, 2]); x.d = 1j
x = v([1, 2]); x.d = np.array([1j, 2])
x = v([1, 2]); x.d = (3, 4); x.d
x = v([1, 2]); x.d = [[3, 4]]; x.d
x = v([1, 2]); x.d = [3]; x.d
x = v([1, 2]); x.d[0] = 5; x.d
x = v([1, 2]); x.d += 1; x.d
x = v([1, 2]); x.g += 1; x.g
x = v([1, 2]); d = x.d; x.d = 7; d
x = v([1, 2]); d = x.d; x.d = np.array([7, 8]); d
x = v([1, 2]); d = x.d; x.d = np.float32([7, 8]); d
x = v([1, 2]); d = x.d; x.data.zero(); d, x.d
x = v([1, 2]); d = x.d; x.data.fill(4); d, x.d
x = v([1, 2]); d = x.d; x.data.cast(np.int32); d, x.d
x = v([1, 2]); x.data.dtype, x.grad.clear_called, x.data.clear_called
x = nn.Variable((2,)); x.data.modification_count
x = v([1, 2]); x.reset_shape((1, 2)); x.data.shape, x.grad.shape
x = v([1, 2]); y = F.exp(x); x.reset_shape((3,), True); x.d = 0; y.forward(); y.d
x = v([1, 2]); y = F.exp(x); x.d = [0, 0]; y.forward(); y.d
x = v([1, 2]); y = F.exp(x); y.d = 5; y.d
x = v([1, 2]); y = F.exp(x); y.parent.inputs[0] == x, y.parent.outputs[0] == y
x = v([1, 2]); y = F.exp(x); y.parent.inputs[0] is x
x = v([1, 2]); y = F.exp(x); y2 = F.exp(x); y == y2
x = v([1, 2]); y = F.exp(x); y.name = "q"; y.parent.outputs[0].name
x = v([1, 2]); y = F.exp(x); y.persistent = True; y.parent.outputs[0].persistent
x = v([1, 2]); y = F.exp(x); y.parent.outputs[0].need_grad
x = v([1, 2]); y = F.exp(x); x.need_grad = False; y.need_grad
x = v([1, 2]); y = ran(F.exp(x)); y.backward(); y.g
x = v([1, 2]); y = ran(F.exp(x)); y.g = 3; y.backward(None); y.g
x = v([1, 2]); y = ran(F.exp(x)); y.backward(0.0); x.g
x = v([1, 2]); y = ran(F.exp(x)); y.backward(np.array(2.)); x.g
x = v([1, 2]); y = ran(F.exp(x)); y.backward(clear_buffer=True); y.d
x = v([1, 2]); y = F.exp(x); y.backward(); x.g
x = v([1, 2]); x.g = 5; y = ran(F.exp(x) * 1); y.backward(); np.round(x.g, 3)
x = v([1, 2]); x.grad.zero(); y = ran(F.exp(x) * 1); y.backward(); y.backward(); np.round(x.g, 3)
x = v([1, 2]); y = F.exp(x); z = F.tanh(y); z.forward(clear_no_need_grad=True); z.backward(); np.round(x.g, 4)
with nn.auto_forward(): y = F.exp(v([0, 0]))
with nn.auto_forward(): y = v([1, 2]) + 1; d = y.d.tolist()
nn.get_auto_forward()
nn.get_current_context().backend, nn.get_current_context().array_class
with nn.context_scope(nn.Context(["cpu:half", "cpu:float"])): y = F.exp(v([0, 0])); y.forward(); t = y.data.dtype
nn.array_classes()
nn.forward_all([]); 1
nn.forward_all(3)
x = v([1, 2]); y, z = F.exp(x), F.sin(x); nn.forward_all([y, z]); np.round(z.d, 4)
x = v([1, 2]); y, z = F.exp(x), F.sin(x); nn.forward_all((y, z)); np.round(z.d, 4)
x = v([1, 2]); nn.grad(F.sum(x * x), x)[0].shape
x = v([1, 2]); nn.grad([F.sum(x * x)], [x], [1, 2])
x = v([1, 2]); nn.grad([3], [x])
x = v([1, 2]); nn.grad([F.sum(x * x)], [3])
x = v([1, 2]); g = nn.grad([F.sum(x * x)], [x], 2)[0]; g.forward(); g.d
x = v([1, 2]); g = nn.grad([x * x], [x], a([1., 2.]))[0]; g.forward(); g.d
x = v([1, 2]); g = nn.grad([x * x], [x], [None])[0]; g.forward(); g.d
x = v([1, 2]); y = x * x; g = nn.grad([y], [x])[0]; y.persistent, g.persistent, g.need_grad
x = v([1, 2]); y = x * x; g = nn.grad([y], [x], persistent_outputs=[False])[0]; y.persistent
x = v([1, 2]); y = x * x; g = nn.grad([y], [x], persistent_outputs=[True, True])[0]; y.persistent
F.exp(x=v([0, 0])).shape
F.exp(v([0, 0]), n_outputs=1).shape
F.exp(v([0, 0]), outputs=[nn.NdArray((2,))]).shape
b = nn.NdArray((2,)); F.exp(a([0, 0]), outputs=[b]); b.data
b = nn.NdArray((3,)); y = F.exp(v([0, 0]), outputs=[b]); y.forward(); b.data
F.exp(3)
F.exp(np.zeros(2))
F.exp([v([0, 0])])
F.exp(None)
F.exp(v([0]), v([0]))
F.add2(v([0]), 1)
F.sum(v([[1, 2]]), axis=(0, 1)).shape, F.sum(v([[1, 2]]), axis=-1).shape, F.sum(v([[1, 2]]), axis=[0]).shape
F.sum(v([[1, 2]]), axis=3)
F.sum(v([[1, 2]]), axis=None).shape
F.reshape(v([1, 2]), (-1,)).shape, F.reshape(v([1, 2]), [2, 1]).shape
F.reshape(v([1, 2]), (3,))
F.transpose(v([[1, 2]]), (0, 0))
F.concatenate(v([1]), v([2]), axis=0).shape
F.split(v([[1, 2]]), axis=1)[1].shape
F.stack(v([1]), v([2]), axis=1).shape
F.broadcast(v([1]), (3,)).shape
F.broadcast(v([1, 2]), (3,))
F.slice(v([1, 2, 3]), start=(1,), stop=(3,), step=(1,)).shape
F.pad(v([1, 2]), (1, 1)).shape
F.one_hot(v([[1]], False), (3,)).shape
F.softmax(v([1, 2]), axis=0).shape
F.max(v([[1, 2]]), axis=1, with_index=True)[1].shape
F.mean(v([1, 2]), keepdims=True).shape
F.dropout(v([1, 2]), p=0).shape
F.relu(v([1, 2]), True).shape
F.constant(3, (2,)).shape
F.constant(shape=(2,)).shape
F.randn(shape=[2]).shape
"""

OPERATORS = [
    f"y = {p} {op} {q}; type(y).__name__, y.data if type(y).__name__ == 'NdArray' else ran(y).d"
    for op in ("+", "-", "*", "/", "**", "@", "//", "%", "&", "|", "^", "<<", ">>")
    for p, q in (
        ("v([[1, 2], [3, 4]])", "a([[2, 1], [1, 2]])"),
        ("a([[1, 2], [3, 4]])", "v([[2, 1], [1, 2]])"),
        ("a([[1, 2], [3, 4]])", "a([[2, 1], [1, 2]])"),
        ("v([[1, 2], [3, 4]])", "v([[2, 1], [1, 2]])"),
        ("a([1, 2])", "2"),
        ("2", "a([1, 2])"),
        ("v([1, 2])", "2.5"),
        ("2.5", "v([1, 2])"),
        ("v([1, 2])", "np.float32(2)"),
        ("np.float32(2)", "v([1, 2])"),
        ("np.float32(2)", "a([1, 2])"),
        ("v([1, 2])", "True"),
        ("v([1, 2])", "None"),
        ("v([1, 2])", "'a'"),
        ("None", "a([1, 2])"),
        ("v([1, 2])", "[1, 2]"),
        ("a([1, 2])", "[1, 2]"),
        ("v([1, 2])", "a([[1], [2]])"),
    )
]
OPERATORS += [
    f"y = {p} @ {q}; type(y).__name__, y.shape"
    for p, q in (
        ("v([1, 2])", "a([1, 2])"),
        ("a([1, 2])", "v([[1, 2], [3, 4]])"),
        ("v([[1, 2], [3, 4]])", "a([1, 2])"),
        ("v(np.ones((2, 2, 3)))", "a(np.ones((2, 3, 4)))"),
        ("a(np.ones((3, 2, 2, 3)))", "v(np.ones((2, 3, 4)))"),
        ("v(np.ones((2, 3)))", "a(np.ones((5, 3, 4)))"),
        ("v(3)", "a(4)"),
        ("v([1, 2])", "3"),
        ("v([1, 2])", "np.ones(2)"),
        ("np.ones(2)", "v([1, 2])"),
    )
]

TEN = [
    ":", "1:3", "-2:", "1", "-1", "5:1", "10:20", "-20:3", "-20:-15", "::2", ":3", "3:", "-3:-1", "2:-1", "9:10:3",
    "::-1", "-1:-11:-1", "8:2:-2", "9::-1", ":0:-1", "-1:-10:-1", ":-11:-1", "2:8:-1", "-2:-5:-2", "3:-20:-1",
    "-9:-1:1", "-1::-1", "20::-1", "20:0:-3", "3:3", "...", "None", "...,None", "None,1:3", "None,...,::2", "True",
    "1.0", "'a'", "1:3,0", "::0", "1.0:2", "10", "-11", "np.array([1])", "[1, 2]", "np.int64(3)", "np.int64(1):np.int64(3)",
    "[True] * 10", "x > 5", "v([1, 2], False)", "a([1, 2])",
]  # fmt: skip
BLOCK = [
    "0", ":,1", "...,-1", "0,1,2", "1:,None,::-1", "0,:,::2", "None,0", "-1:-3:-1,-1:-4:-1", "0:1,...,2", "[0, 1]",
    "[0, 1],1", "np.array([0, 1]),np.array([1, 2])", ":,[0, 1]", "...,None,0", "0,None,...", "5:,0", "::-1,::-1,::-1",
    "0,0,0,0", "...,...", "np.ones((2, 3, 4)) > 0", ":,:,1:-1", "-1,-1,-1",
]  # fmt: skip
SLICES = [f"x = v(np.arange(10)); y = x[{k}]; sliced(y).name, sliced(y).info.args, y.shape" for k in TEN]
SLICES += [f"x = v(np.arange(10)); y = ran(x[{k}]); y.d" for k in TEN]
SLICES += [
    f"x = v(np.arange(24).reshape(2, 3, 4)); y = x[{k}]; sliced(y).name, sliced(y).info.args, y.shape" for k in BLOCK
]
SLICES += [f"x = a(np.arange(10)); x[{k}].data" for k in TEN]
SLICES += [f"x = a(np.arange(10)); x[{k}] = 7; x.data" for k in TEN]
SLICES += [f"x = v(np.arange(10)); x[{k}] = 7; ran(x).d" for k in TEN]
SLICES += [
    f"y = F.slice(v(np.arange(10)), {k}); y.parent.arguments, y.shape"
    for k in (
        "(1,), (3,), (1,)",
        "(-1,), (-11,), (-1,)",
        "[8], [2], [-2]",
        "start=(2,)",
        "stop=(-1,)",
        "(0,), (20,), (3,)",
        "(None,), (None,), (-1,)",
        "(1,), (None,), (2,)",
    )  # fmt: skip
]

FUNCTION = """
y = F.exp(v([1, 2])); y.parent.name, str(y.parent), y.parent.info.type_name
y = F.exp(v([1, 2])); repr(y.parent).split(" at ")[0]
y = F.affine(v([[1, 2]]), v([[1], [2]])); y.parent.inputs[0].d, len(y.parent.inputs), len(y.parent.outputs)
y = F.affine(v([[1, 2]]), v([[1], [2]])); y.parent.outputs[0] == y, y.parent.inputs[0] == y.parent.inputs[0]
y = F.affine(v([[1, 2]]), v([[1], [2]])); y.parent.arguments, y.parent.args, y.parent.info.args, y.parent.info.tags
y = F.exp(v([1, 2])); y.parent.tags
y = F.exp(v([1, 2])); y.parent.tags = {"a": "b"}; y.parent.tags, y.parent.info.tags
y = F.exp(v([1, 2])); y.parent.tags = 3
y = F.exp(v([1, 2])); y.parent.tags = {"a": 3}; y.parent.tags
y = F.exp(v([1, 2])); y.parent.tags = None; y.parent.tags
y = F.exp(v([1, 2])); y.parent.rank, F.exp(y).parent.rank
y = F.exp(v([1, 2])); y.parent.need_grad, F.exp(v([1, 2], False)).parent.need_grad
y = F.exp(v([1, 2])); y.parent.context.backend
y = F.exp(v([1, 2])); y.parent.min_outputs(), F.split(v([[1], [2]]), axis=0)[0].parent.min_outputs()
y = F.exp(v([1, 2])); y.parent == y.parent, y.parent != y.parent, hash(y.parent) == hash(y.parent)
y, z = F.exp(v([1, 2])), F.exp(v([1, 2])); y.parent == z.parent, y.parent == 1, y.parent is y.parent
y, z = F.exp(v([1, 2])), F.exp(v([1, 2])); y.parent < z.parent
y = F.exp(v([1, 2])); y.parent.inplace_data(0), y.parent.inplace_data_with(0)
y = F.relu(v([1, 2])); y.parent.inplace_data_with(0)
y = F.exp(v([1, 2])); y.parent.inplace_data(1)
y = F.exp(v([1, 2])); y.parent.inplace_data(-1)
y = F.exp(v([1, 2])); y.parent.inplace_data("a")
y = F.exp(v([1, 2])); y.parent.inplace_data()
y = F.exp(v([1, 2])); y.parent.grad_depends_input_data(0, 0)
y = F.exp(v([1, 2])); y.parent.grad_depends_output_data(0, 0)
y = F.exp(v([1, 2])); y.parent.grad_depends_input_data(0, "a")
y = F.exp(v([1, 2])); y.parent.grad_depends_input_data(0)
y = F.exp(v([1, 2])); y.parent.need_setup_recompute(0), F.dropout(v([1, 2])).parent.need_setup_recompute(0)
y = F.mul2(v([1, 2]), v([3, 4])); [y.parent.auto_grad_depends_input_data(0, j) for j in (0, 1)]
y = F.tanh(v([1, 2])); y.parent.auto_grad_depends_output_data(0, 0)
x, y = v([1, 2]), nn.Variable(); f = F.mul_scalar(v([0]), 3).parent; f.setup([x], [y]); f.forward([x], [y]); y.d
x, y = v([1, 2]), nn.Variable((2,)); f = F.mul_scalar(v([0]), 3).parent; f.forward((x,), (y,)); y.d
x, y = v([1, 2]), nn.Variable((2,)); f = F.mul_scalar(v([0]), 3).parent; f.setup([x], []); y.d
x, y = v([1, 2]), v([0, 0]); f = F.mul_scalar(v([0]), 3).parent; f.setup([x], [y]); y.g = 1; x.g = 5; f.backward([x], [y]); x.g
x, y = v([1, 2]), v([0, 0]); f = F.mul_scalar(v([0]), 3).parent; f.setup([x], [y]); y.g = 1; x.g = 5; f.backward([x], [y], [False]); x.g
x, y = v([1, 2]), v([0, 0]); f = F.mul_scalar(v([0]), 3).parent; f.setup([x], [y]); f.recompute([x], [y]); y.d
x, y = v([1, 2]), v([0, 0]); f = F.mul_scalar(v([0]), 3).parent; f.setup([x], [y]); f.setup_recompute([x], [y]); y.shape
y = F.add_n(v([1]), v([2]), v([4])); y.parent.set_active_input_mask([True, False, True]); ran(y).d
y = F.exp(v([1])); y.parent.set_active_input_mask([True])
y = F.exp(v([1, 2])); z = y.parent(v([0, 0])); type(z).__name__, z.parent.name, z.d
y = F.exp(v([1, 2])); z = y.parent(a([0, 0])); type(z).__name__, z.data
y = F.exp(v([1, 2])); y.parent(3)
y = F.exp(v([1, 2])); y.parent()
y = F.exp(v([1, 2])); y.parent.name = "a"
y = F.exp(v([1, 2])); y.parent.nonsense
y = F.mul_scalar(v([1]), 3); y.parent.arguments["val"] = 5; y.parent.arguments
y = F.softmax(v([[1, 2]])); y.parent.arguments
y = F.sum(v([[1, 2]]), axis=1, keepdims=True); y.parent.arguments
y = F.transpose(v([[1, 2]]), (1, 0)); y.parent.arguments
y = F.concatenate(v([1]), v([2])); y.parent.arguments
y = F.reshape(v([1, 2]), (2, -1)); y.parent.arguments
y = F.convolution(v(np.ones((1, 1, 4, 4))), v(np.ones((1, 1, 3, 3))), pad=(1, 1)); y.parent.arguments
y = F.max_pooling(v(np.ones((1, 1, 4, 4))), (2, 2)); y.parent.arguments
y = F.broadcast(v([1]), (3,)); y.parent.arguments
y = F.pad(v([1]), (1, 1)); y.parent.arguments
y = F.split(v([[1], [2]]), axis=0)[0]; y.parent.arguments
y = F.stack(v([1]), v([2])); y.parent.arguments
y = F.one_hot(v([1], False), (3,)); y.parent.arguments
y = F.tile(v([1]), (2,)); y.parent.arguments
y = F.flip(v([1, 2])); y.parent.arguments
y = F.dropout(v([1, 2])); y.parent.arguments
y = F.constant(3, (2,)); y.parent.arguments
y = F.randn(shape=(2,)); y.parent.arguments
y = F.arange(0, 3); y.parent.arguments
"""

INPLACE = [
    "F.exp(v([1, 2]))",
    "F.relu(v([1, 2]))",
    "F.relu(v([1, 2]), inplace=True)",
    "F.leaky_relu(v([1, 2]), inplace=True)",
    "F.elu(v([1, 2]))",
    "F.selu(v([1, 2]))",
    "F.add2(v([1, 2]), v([1, 2]))",
    "F.add2(v([1, 2]), v([1, 2]), inplace=True)",
    "F.bc_add2(v([1, 2]), v([1, 2]), inplace=True)",
    "F.sub2(v([1, 2]), v([1, 2]), inplace=True)",
    "F.mul2(v([1, 2]), v([1, 2]), inplace=True)",
    "F.div2(v([1, 2]), v([1, 2]), inplace=True)",
    "F.pow2(v([1, 2]), v([1, 2]), inplace=True)",
    "F.add_scalar(v([1, 2]), 2, inplace=True)",
    "F.mul_scalar(v([1, 2]), 2, inplace=True)",
    "F.pow_scalar(v([1, 2]), 2, inplace=True)",
    "F.add_n(v([1, 2]), v([1, 2]))",
    "F.identity(v([1, 2]))",
    "F.unlink(v([1, 2]))",
    "F.reshape(v([1, 2]), (2, 1))",
    "F.reshape(v([1, 2]), (2, 1), inplace=False)",
    "F.bool_fill(v([1, 2]), v([1, 0]), 3)",
    "F.bool_gather(v([1, 2]), v([1, 0], False))",
    "F.bool_scatter(v([1]), v([1, 0], False))",
    "F.bool_scatter(v([1]), v([1, 0], False), v([3, 4]))",
    "F.scatter_nd(v([1]), v([[1]], False), (2,))",
    "F.scatter_nd(v([1]), v([[1]], False), out=v([3, 4]))",
    "F.scatter_nd(v([1]), v([[1]], False), out=v([3, 4]), add=True)",
    "F.scatter_add(v([[1, 2]]), v([[0, 0]], False), v([[1, 2]]))",
    "F.assign(v([1, 2]), v([1, 2]))",
    "F.dropout(v([1, 2]))",
    "v([1, 2])[:1]",
    "F.transpose(v([[1, 2]]), (1, 0))",
    "F.broadcast(v([1]), (2,))",
    "F.sink(v([1]), v([2]))",
    "F.batch_normalization(v([[1, 2]]), v([[1, 2]]), v([[1, 2]]), v([[1, 2]]), v([[1, 2]]))",
    "F.maximum_scalar(v([1, 2]), 1)",
    "F.where(v([1, 0]), v([1, 2]), v([1, 2]))",
    "F.concatenate(v([1]), v([2]))",
    "F.split(v([[1], [2]]), axis=0)[0]",
    "F.logical_not(v([1, 2]))",
    "F.round(v([1, 2]))",
    "F.flip(v([1, 2]))",
    "F.softmax(v([[1, 2]]))",
    "F.reset_nan(v([1, 2]))",
    "F.squared_error(v([1]), v([2]))",
    "F.gather_nd(v([1, 2]), v([[1]], False))",
]
LAYS = [f"f = {call}.parent; [f.inplace_data(i) for i in range(len(f.inputs))]" for call in INPLACE]

CONTEXT = """
c = nn.Context(); c.backend, c.array_class, c.device_id
c = nn.Context(["cpu:float"]); c.backend, c.array_class, c.device_id
c = nn.Context(["cpu:float"], "CpuCachedArray", "0"); c.backend, c.array_class, c.device_id
c = nn.Context(backend=["cpu:float"], array_class="CpuArray", device_id="1"); c.backend, c.array_class, c.device_id
c = nn.Context("cpu:float"); c.backend
c = nn.Context(("cpu:float",)); c.backend
c = nn.Context(["cpu:float"], device_id=0)
c = nn.Context(); c.device_id = "1"; c.device_id
c = nn.Context(); c.array_class = "CpuArray"; c.array_class
c = nn.Context(); c.backend = ["cpu:half", "cpu:float"]; c.backend
c = nn.Context(); c.backend = 3
c = nn.Context(["cpu:float"]); c["backend"]
c = nn.Context(["cpu:float"]); c["array_class"], c["device_id"]
c = nn.Context(["cpu:float"]); c["nonsense"]
c = nn.Context(["cpu:float"]); c[0]
repr(nn.Context(["cpu:float"], "CpuArray", "0"))
str(nn.Context(["cpu:float"], "CpuArray", "0"))
nn.Context(["cpu:float"]) == nn.Context(["cpu:float"])
nn.Context(["cpu:float"], "CpuArray") == nn.Context(["cpu:float"], "CpuCachedArray")
c = nn.Context(["cpu:float"]); c == c, c != c
dict(**nn.Context(["cpu:float"]))
"""

ELSEWHERE = """
y = v([.1, .2]); g = nn.grad([y], [y])
x = v([.1, .2]); y = x + 1; g = nn.grad([y], [x])[0]; g.forward(); g.d
x = v([.1, .2]); y = x + v([1, 2]); g = nn.grad([y], [x], [v([3, 4])])[0]; g.forward(); g.d
x = v([.1, .2]); z = v([1, 2], False); g = nn.grad([x * z], [z])[0]; g.forward(); g.d
x = v([.1, .2]); y = F.exp(x); g = nn.grad([y], [y])[0]; g.forward(); g.d
x = v([.1, .2]); y = F.exp(x); g = nn.grad([y], [y, x])[1]; g.forward(); g.d
x = v([.1, .2]); y = x * x; h = y * x; g = nn.grad([h, y], [y])[0]; g.forward(); g.d
x = v([.1, .2]); y = F.exp(x); g = nn.grad([y], [y], [3])[0]; g.forward(); g.d
x = v([.1, .2]); y = F.exp(x); nn.grad([y], [v([1, 2])])
type(Callback()).__name__
x = v([1, 2]); y = ran(x * x); y.backward(communicator_callbacks=Callback()); x.g
x = v([1, 2]); y = ran(x * x); y.backward(communicator_callbacks=[Callback()]); x.g
PF.affine(v([[1, 2]]), 3); [type(p.info.initializer).__name__ for p in nn.get_parameters().values()]
PF.convolution(v(np.ones((1, 1, 4, 4))), 2, (3, 3)); [type(p.info.initializer).__name__ for p in nn.get_parameters().values()]
PF.batch_normalization(v(np.ones((2, 3)))); [type(p.info.initializer).__name__ for p in nn.get_parameters(grad_only=False).values()]
PF.layer_normalization(v(np.ones((2, 3)))); [type(p.info.initializer).__name__ for p in nn.get_parameters(grad_only=False).values()]
PF.embed(v([0], False), 2, 3); [type(p.info.initializer).__name__ for p in nn.get_parameters(grad_only=False).values()]
PF.affine(v([[1, 2]]), 3, w_init=I.NormalInitializer(2)); nn.get_parameters()["affine/W"].info.initializer.sigma
PF.affine(v([[1, 2]]), 3, w_init=np.ones((2, 3))); nn.get_parameters()["affine/W"].info
PF.affine(v([[1, 2]]), 3, w_init=lambda s: np.ones(s)); type(nn.get_parameters()["affine/W"].info.initializer).__name__
PF.affine(v([[1, 2]]), 3); sorted(vars(nn.get_parameters()["affine/W"].info))
PF.affine(v([[1, 2]]), 3); type(nn.get_parameters()["affine/W"].info).__name__
PF.affine(v([[1, 2]]), 3); nn.get_parameters()["affine/W"].info.initializer.lim[1]
P.get_parameter_or_create("q", (2,)); P.get_parameter("q").info
P.get_parameter_or_create("q", (2,), np.ones(2)); P.get_parameter("q").info
P.get_parameter_or_create("q", (2,), I.ConstantInitializer(3)); P.get_parameter("q").info.initializer.value
P.get_parameter_or_create("q", (2,), I.ConstantInitializer(3)); P.get_parameter_or_create("q", (2,), I.ConstantInitializer(4)).info.initializer.value
w = P.get_parameter_or_create("q", (2,), I.ConstantInitializer(3), True, False); w.info.initializer.value
P.get_parameter_or_create("q", (2,), lambda s: np.ones(s)); type(P.get_parameter("q").info).__name__
P.get_parameter_or_create("q", (2,), lambda shape: np.ones(shape)); type(P.get_parameter("q").info.initializer).__name__
P.get_parameter_or_create("q", (2,)); P.get_parameter("q").info.initializer
P.get_parameter_or_create("q", (2,), np.float32([1, 2])); P.get_parameter("q").info.initializer
w = P.get_parameter_or_create("q", (2,)); w.info
P.get_parameter_or_create("q", (2,), nn.Variable((2,)))
P.get_parameter_or_create("q", initializer=np.ones(3)).shape
P.get_parameter_or_create("q", (2,), [1, 2])
P.get_parameter_or_create("q", (2,), 3)
P.set_parameter("z", v([1, 2])); P.get_parameter("z").info
y = PF.affine(a([[1, 2]]), 3, b_init=np.ones(3), w_init=np.ones((2, 3))); type(y).__name__, y.data
y = PF.batch_normalization(a([[1, 2], [3, 5]])); type(y).__name__, y.data
y = PF.batch_normalization(a([[1, 2], [3, 5]])); nn.get_parameters(grad_only=False)["bn/mean"].d
y = PF.batch_normalization(a([[1, 2], [3, 5]]), batch_stat=False); type(y).__name__, y.data
y = PF.convolution(a(np.ones((1, 1, 4, 4))), 2, (3, 3), w_init=np.ones((2, 1, 3, 3))); type(y).__name__, y.data
y = PF.embed(a([0, 1]), 2, 3, initializer=np.ones((2, 3))); type(y).__name__, y.data
y = PF.layer_normalization(a([[1, 2], [3, 5]])); type(y).__name__, y.data
y = PF.affine(np.ones((1, 2)), 3)
y = PF.affine(3, 3)
y = F.batch_normalization(a([[1, 2], [3, 5]]), a([[0, 0]]), a([[1, 1]]), a([[0, 0]]), a([[1, 1]])); type(y).__name__, y.data
y = F.affine(a([[1, 2]]), v([[1], [2]])); type(y).__name__, y.data
y = F.affine(v([[1, 2]]), a([[1], [2]])); type(y).__name__, y.data
y = F.layer_normalization(a([[1, 2], [3, 5]]), a([[0, 0]]), a([[1, 1]])); type(y).__name__, y.data
y = F.mean(a([[1, 2], [3, 5]])); type(y).__name__, y.data
y = F.split(a([[1], [2]]), axis=0); [type(q).__name__ for q in y]
"""

SOLVER = """
S.Adam().name, S.Sgd().name, S.AdamW().name
S.Adam().learning_rate(), S.Sgd(lr=0.5).learning_rate()
s = S.Adam(); s.set_learning_rate(0.5); s.learning_rate()
s = S.Adam(); s.set_learning_rate("a")
s = S.Adam(); s.info
s = S.Adam(); s.get_parameters(), s.get_states()
s = S.Adam(); s.set_parameters({"w": v([1, 2])}); list(s.get_parameters()), list(s.get_states())
s = S.Adam(); s.set_parameters({"w": v([1, 2])}); sorted(s.get_states()["w"].pstate), s.get_states()["w"].t
s = S.Momentum(); s.set_parameters({"w": v([1, 2])}); sorted(s.get_states()["w"].pstate)
s = S.Sgd(); w = v([1, 2]); s.set_parameters({"w": w}); w.g = 1; s.update(); w.d
s = S.Sgd(lr=1); w = v([1, 2]); s.set_parameters({"w": w}); w.g = 1; s.weight_decay(0.5); s.update(); w.d
s = S.Sgd(lr=1); w = v([1, 2]); s.set_parameters({"w": w}); w.g = 1; s.scale_grad(0.5); w.g
s = S.Sgd(lr=1); w = v([1, 2]); s.set_parameters({"w": w}); w.g = [3, 4]; s.clip_grad_by_norm(1); w.g
s = S.Sgd(lr=1); w = v([1, 2]); s.set_parameters({"w": w}); w.g = [3, np.inf]; s.check_inf_grad(), s.check_nan_grad(), s.check_inf_or_nan_grad()
s = S.Sgd(lr=1); w = v([1, 2]); s.set_parameters({"w": w}); w.g = [3, np.nan]; s.check_inf_grad(), s.check_nan_grad(), s.check_inf_or_nan_grad()
s = S.Sgd(lr=1); w = v([1, 2]); s.set_parameters({"w": w}); w.g = 3; s.zero_grad(); w.g
s = S.Sgd(); s.set_parameters({"w": v([1, 2])}); s.remove_parameters(["w"]); list(s.get_parameters())
s = S.Sgd(); s.set_parameters({"w": v([1, 2])}); s.remove_parameters(["nonsense"])
s = S.Sgd(); s.set_parameters({"w": v([1, 2])}); s.clear_parameters(); list(s.get_parameters())
s = S.Sgd(); s.set_parameters({"w": v([1, 2])}); s.set_parameters({"u": v([1, 2])}); list(s.get_parameters())
s = S.Sgd(); s.set_parameters({"w": v([1, 2])}); s.set_parameters({"u": v([1, 2])}, reset=False); sorted(s.get_parameters())
s = S.Sgd(); s.set_parameters([v([1, 2])])
s = S.Sgd(); s.set_parameters({"w": 3})
s = S.Sgd(); s.set_parameters({"w": v([1, 2], False)}); s.update()
s = S.Sgd(); s.setup({"w": v([1, 2])})
S.Sgd().weight_decay_is_fused(), S.AdamW().weight_decay_is_fused()
names = []; s = S.Sgd(); w = v([1, 2]); s.set_parameters({"w": w}); w.g = 1; s.update(update_pre_hook=lambda: names.append(1), update_post_hook=lambda: names.append(2)); names
s = S.Sgd(); w = v([1, 2]); s.set_parameters({"w": w}); w.g = 1; s.update(); s.get_states()["w"].t
s = S.Adam(); w = v([1, 2]); s.set_parameters({"w": w}); w.g = 1; s.update(); t = s.get_states(); s.update(); s.set_states(t); s.get_states()["w"].t
S.Adam(0.1, 0.5).learning_rate()
S.Adam(alpha=0.1, beta1=0.5, nonsense=3)
S.Momentum(lr=0.1, momentum=0.5).info
"""

TREE = """
nn.get_parameters()
P.get_parameter_or_create("a/b", (2,)); list(nn.get_parameters()), P.get_parameter("a/b").shape, P.get_parameter("b")
P.get_parameter_or_create("a", (2,), need_grad=False); list(nn.get_parameters()), list(nn.get_parameters(grad_only=False))
w = P.get_parameter_or_create("a", (2,)); w.need_grad, w.name, w.persistent
w = P.get_parameter_or_create("a", (2,)); w == P.get_parameter("a"), w.data == P.get_parameter("a").data
P.get_parameter_or_create("a", (2,)); P.get_parameter_or_create("a", (3,))
P.get_parameter_or_create("a", (2,)); P.get_parameter_or_create("a").shape
P.get_parameter_or_create("a", (2,)); P.get_parameter_or_create("a/b", (2,))
P.get_parameter_or_create("a")
P.get_parameter_or_create("a", (2,)); P.pop_parameter("a").shape, list(nn.get_parameters())
P.pop_parameter("nonsense")
P.set_parameter("a", v([1, 2])); P.get_parameter("a").d
P.set_parameter("a", v([1, 2])); P.set_parameter("a", v([3, 4])); P.get_parameter("a").d
P.get_parameter("nonsense")
with nn.parameter_scope("s"): P.get_parameter_or_create("a", (2,)); names = list(nn.get_parameters())
with nn.parameter_scope("s/t"): P.get_parameter_or_create("a", (2,))
with nn.parameter_scope("s") as s: t = nn.get_current_parameter_scope() is s
with nn.parameter_scope(3): pass
with nn.parameter_scope(""): P.get_parameter_or_create("a", (2,))
PF.affine(v([[1, 2]]), 3, name="x"); list(nn.get_parameters(path="p"))
PF.affine(v([[1, 2]]), 3, name="x"); list(nn.get_parameters({}, "p"))
PF.affine(v([[1, 2]]), 3, name="x"); nn.clear_parameters(); list(nn.get_parameters())
PF.affine(v([[1, 2]]), 3, name="a/b"); list(nn.get_parameters())
"""

GROUPS: dict[str, list[str]] = {
    "variable": VARIABLE.strip().splitlines(),
    "array": ARRAY.strip().splitlines(),
    "more": MORE.strip().splitlines(),
    "operators": OPERATORS,
    "slices": SLICES,
    "function": FUNCTION.strip().splitlines() + LAYS,
    "context": CONTEXT.strip().splitlines(),
    "solver": SOLVER.strip().splitlines(),
    "parameter": TREE.strip().splitlines(),
    "elsewhere": ELSEWHERE.strip().splitlines(),
}


def plain(value: Any) -> Any:
    """The answer as JSON holds it."""
    name = type(value).__name__
    if isinstance(value, (bool, int, float, str, type(None))):
        return value
    if isinstance(value, (list, tuple)):
        return [name, *map(plain, value)]
    if isinstance(value, dict):
        return {str(k): plain(x) for k, x in value.items()}
    if isinstance(value, np.ndarray):
        return [f"array of {value.dtype.name}", plain(value.tolist())]
    if isinstance(value, np.generic):
        return [f"number of {value.dtype.name}", plain(value.item())]
    if isinstance(value, np.dtype):
        return ["dtype", value.name]
    if isinstance(value, type):
        return ["type", np.dtype(value).name if issubclass(value, np.generic) else name]
    if name in ("Variable", "NdArray"):
        return [name, plain(value.shape)]
    return [name]


def answer(script: str) -> Any:
    """What a probe gives; "error" where it is refused."""
    names = ("functions", "parametric_functions", "parameter", "initializer", "solvers")
    callback = importlib.import_module(f"{MODULE}._variable").CommunicatorBackwardCallback
    space = {"Callback": callback, "nn": nn, "np": np, "v": v, "a": a, "ran": ran, "sliced": sliced}
    space |= {
        short: importlib.import_module(f"{MODULE}.{m}")
        for short, m in zip(("F", "PF", "P", "I", "S"), names, strict=True)
    }
    nn.clear_parameters()
    try:
        tree = ast.parse(script)
        *body, last = tree.body
        exec(compile(ast.Module(body, []), "probe", "exec"), space)
        if not isinstance(last, ast.Expr):
            exec(compile(ast.Module([last], []), "probe", "exec"), space)
            return None
        return plain(eval(compile(ast.Expression(last.value), "probe", "eval"), space))
    except Exception:  # noqa: BLE001  (whatever its kind)
        return "error"
    finally:
        nn.clear_parameters()
