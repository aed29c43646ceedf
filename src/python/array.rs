//! `nnrs.NdArray`.

use super::convert::word;
use super::{convert, errors, finish, operators, reserve};
use crate::graph;
use nnrs_kernels::array::{Maker, NdArray as Array};
use nnrs_kernels::dtype::DType;
use numpy::{PyArrayDescr, PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::basic::CompareOp;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyInt, PyTuple};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A dense N-dimensional array; shares its memory with the variables and arrays made from it.
#[pyclass(frozen, subclass, weakref, name = "NdArray", module = "nnrs._core")]
pub(crate) struct PyNdArray {
    array: Array,
    /// The result of a comparison: no truth that Python could go by.
    pub(super) is_comparison: AtomicBool,
    /// Who makes the content again that a run gave up: it stays as long as the array.
    _maker: Option<Arc<dyn Maker>>,
}

impl PyNdArray {
    pub(crate) fn new(array: Array) -> PyNdArray {
        PyNdArray { array: array.handle(), is_comparison: AtomicBool::new(false), _maker: None }
    }

    /// As [`PyNdArray::new`], of an array whose content will be made again when it is read, if it was given up.
    pub(crate) fn of_variable(array: Array) -> PyNdArray {
        let _maker = array.storage().maker();
        PyNdArray { _maker, ..PyNdArray::new(array) }
    }

    pub(crate) fn inner(&self) -> &Array {
        &self.array
    }
}

#[pymethods]
impl PyNdArray {
    #[new]
    #[pyo3(signature = (*args, **kwargs), text_signature = "(shape=None, *sizes)")]
    fn py_new(args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<PyNdArray> {
        if args.len() > 1 && kwargs.is_none_or(|k| k.is_empty()) {
            reserve::check(args.py())?;
            return Ok(PyNdArray::new(Array::new(convert::shape("NdArray", args)?)));
        }
        let [shape] = errors::bind("NdArray", [("shape", "None")], args, kwargs)?.map(errors::given);
        let size = shape.as_ref().filter(|s| s.is_instance_of::<PyInt>()).map(|s| PyTuple::new(s.py(), [s]));
        let shape = size.transpose()?.map(Bound::into_any).or(shape);
        let shape = shape.map_or(Ok(crate::Shape::default()), |s| convert::shape("NdArray", &s))?;
        Ok(PyNdArray::new(Array::new(shape)))
    }

    /// An array with a copy of `nparr`, of its shape and element type.
    ///
    /// >>> nn.NdArray.from_numpy_array(np.float32([1, 2])).data
    /// array([1., 2.], dtype=float32)
    #[staticmethod]
    fn from_numpy_array(nparr: &Bound<'_, PyAny>) -> PyResult<PyNdArray> {
        convert::from_numpy("NdArray.from_numpy_array", "nparr", nparr).map(PyNdArray::new)
    }

    #[staticmethod]
    fn _from_pickle(py: Python<'_>, values: &Bound<'_, PyAny>, dtype: &str) -> PyResult<PyNdArray> {
        let a = convert::from_numpy("NdArray", "values", values)?;
        if let Some(d) = DType::from_name(dtype) {
            errors::run(py, || a.cast(d))?;
        }
        Ok(PyNdArray::new(a))
    }

    /// Sizes of the axes, a tuple of int.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        convert::tuple(py, &self.array.shape())
    }

    /// Elements from one place on an axis to the next: arrays are dense, the last axis is contiguous.
    #[getter]
    fn strides(&self) -> Vec<usize> {
        self.array.shape().strides().to_vec()
    }

    /// Number of axes.
    #[getter]
    fn ndim(&self) -> usize {
        self.array.shape().ndim()
    }

    /// Number of elements.
    #[getter]
    fn size(&self) -> usize {
        self.array.size()
    }

    /// The product of the sizes from `axis` on. -1, the default, means all axes.
    ///
    /// >>> nn.NdArray((2, 3, 4)).size_from_axis(1)
    /// 12
    #[pyo3(signature = (axis=-1))]
    fn size_from_axis(&self, py: Python<'_>, #[pyo3(from_py_with = convert::plain)] axis: i64) -> PyResult<usize> {
        size_from_axis(py, &self.array.shape(), axis)
    }

    /// The type of the elements that are in memory now.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        convert::dtype_object(py, self.array.dtype())
    }

    /// The elements as a NumPy array over the same memory, for reading and writing; it keeps the memory alive.
    ///
    /// Assigning copies values in: an array brings its element type, a number is taken in the type that is there.
    ///
    /// >>> a = nn.NdArray((2,))
    /// >>> a.data = np.float32([1, 2])
    /// >>> a.data[0] = 5
    /// >>> a.data
    /// array([5., 2.], dtype=float32)
    #[getter]
    fn get_data<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        convert::writable(py, &self.array)
    }

    #[setter]
    fn set_data(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        assign("NdArray.data", &self.array, value)
    }

    /// The elements as a NumPy array of type `dtype` (None: the current one).
    ///
    /// `mode` is "r" (a read-only array, converted beside the content), "w" (to be written, content undefined) or "rw"
    /// (converted for good). Raises ValueError for another mode.
    #[pyo3(name = "get_data", signature = (mode="rw", dtype=None))]
    fn data_as<'py>(
        &self,
        py: Python<'py>,
        mode: &str,
        dtype: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let a = &self.array;
        if mode != "w" {
            errors::run(py, || a.fetch())?;
        }
        let dtype = dtype.filter(|d| !d.is_none()).map_or(Ok(a.dtype()), convert::dtype_of)?;
        let data = match mode {
            "r" if dtype == a.dtype() => errors::run(py, || a.lay_out())?,
            "r" => errors::run(py, || a.read(dtype))?,
            "w" => errors::run(py, || a.overwrite(dtype))?,
            "rw" => errors::run(py, || a.modify(dtype))?,
            _ => {
                let e = crate::Error::arg("mode", "'r', 'w' or 'rw'").actual(format!("'{mode}'")).function("get_data");
                return Err(errors::raise(py, e));
            }
        };
        convert::view_of(py, a, a.storage().export(data, mode != "r"))
    }

    /// Converts the content to `dtype` for good, and gives it as a NumPy array. `ctx` is not used.
    ///
    /// >>> nn.NdArray.from_numpy_array(np.float32([1.5])).cast(np.int32)
    /// array([1], dtype=int32)
    #[pyo3(signature = (dtype, ctx=None))]
    fn cast<'py>(
        &self,
        py: Python<'py>,
        dtype: &Bound<'py, PyAny>,
        ctx: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = ctx;
        let dtype = convert::dtype_of(dtype)?;
        errors::detached(py, || graph::interruptible(|| self.array.cast(dtype), |e| e))?;
        match dtype {
            DType::BF16 => convert::to_numpy(py, errors::run(py, || self.array.read(DType::F32))?, self.array.shape()),
            _ => convert::writable(py, &self.array),
        }
    }

    /// The address of the memory as `dtype`; with `write_only` its content is undefined afterwards. It stays valid until
    /// the array is written by other code, cleared, or freed.
    #[pyo3(signature = (dtype, ctx=None, write_only=false))]
    fn data_ptr(
        &self,
        py: Python<'_>,
        dtype: &Bound<'_, PyAny>,
        ctx: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = convert::flag)] write_only: bool,
    ) -> PyResult<usize> {
        let _ = ctx;
        let dtype = convert::dtype_of(dtype)?;
        let a = &self.array;
        let data = errors::run(py, || if write_only { a.overwrite(dtype) } else { a.modify(dtype) })?;
        Ok(data.ptr() as usize)
    }

    /// Sets all elements to `value`, lazily: memory is written at the first read.
    ///
    /// >>> a = nn.NdArray((2,))
    /// >>> a.fill(3)
    /// >>> a.data
    /// array([3., 3.], dtype=float32)
    fn fill(&self, py: Python<'_>, #[pyo3(from_py_with = convert::plain)] value: f64) -> PyResult<()> {
        errors::run_as(py, "NdArray.fill", || self.array.fill(value))
    }

    /// Sets all elements to 0, lazily.
    fn zero(&self, py: Python<'_>) -> PyResult<()> {
        errors::run(py, || self.array.zero())
    }

    /// Gives the memory back. Reading finds zeros.
    fn clear(&self) {
        self.array.clear();
    }

    /// True if the array was cleared, by `clear` or by a run, and not written since.
    #[getter]
    fn clear_called(&self) -> bool {
        self.array.storage().is_cleared()
    }

    /// True from `zero` on until the array is taken for writing.
    #[getter]
    fn zeroing(&self) -> bool {
        self.array.is_zeroed()
    }

    /// When the content was last handed out for writing, by a run, an assignment, or `data`, on a clock that counts what is
    /// written to any array: another number than before if this array was written. 0 if it never was.
    #[getter]
    fn modification_count(&self) -> u64 {
        self.array.modification_count()
    }

    /// Which memory it is a part of, and from which element to which.
    #[getter]
    fn _place(&self) -> (usize, usize, usize) {
        let first = self.array.offset();
        (Arc::as_ptr(&self.array.storage()) as usize, first, first + self.array.size())
    }

    /// Copies the elements of `arr`, with their type, and gives this array. Raises ValueError for another number of elements.
    #[pyo3(signature = (arr, use_current_context=true))]
    fn copy_from<'py>(
        slf: Bound<'py, PyNdArray>,
        arr: &PyNdArray,
        #[pyo3(from_py_with = convert::flag)] use_current_context: bool,
    ) -> PyResult<Bound<'py, PyNdArray>> {
        let _ = use_current_context;
        let (to, from) = (&slf.get().array, &arr.array);
        let same = |from: Array| errors::run_as(slf.py(), "NdArray.copy_from", || to.copy_or_fill(&from));
        same(if from.size() == to.size() {
            errors::run(slf.py(), || from.reshaped(to.shape()))?
        } else {
            Array::clone(from)
        })?;
        Ok(slf)
    }

    /// An array of another shape over the same memory. Raises ValueError if the number of elements is another.
    ///
    /// >>> a = nn.NdArray.from_numpy_array(np.float32([1, 2, 3, 4]))
    /// >>> a.view((2, 2)).data[1, 1] = 9
    /// >>> a.data
    /// array([1., 2., 3., 9.], dtype=float32)
    fn view(&self, py: Python<'_>, shape: &Bound<'_, PyAny>) -> PyResult<PyNdArray> {
        let shape = convert::shape("NdArray.view", shape)?;
        errors::run_as(py, "NdArray.view", || self.array.reshaped(shape)).map(PyNdArray::new)
    }

    /// The part from `start` of `length` places along axis `dim`, over the same memory. All axes before it must be of size 1.
    /// Raises ValueError for a part that is not inside.
    fn narrow(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = convert::plain)] dim: i64,
        #[pyo3(from_py_with = convert::plain)] start: i64,
        #[pyo3(from_py_with = convert::plain)] length: i64,
    ) -> PyResult<PyNdArray> {
        errors::run_as(py, "NdArray.narrow", || self.array.narrow(dim, start, length)).map(PyNdArray::new)
    }

    /// Sets the elements to `value` where `mask`, of the same shape or one that broadcasts to it, is not 0.
    fn masked_fill<'py>(
        slf: &Bound<'py, PyNdArray>,
        mask: &Bound<'py, PyAny>,
        value: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        super::members::in_python(slf.py(), "bool_fill", (slf, mask, value))
    }

    /// As `masked_fill`.
    fn bool_fill<'py>(
        slf: &Bound<'py, PyNdArray>,
        mask: &Bound<'py, PyAny>,
        value: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        PyNdArray::masked_fill(slf, mask, value)
    }

    /// NumPy's numbers and arrays leave an operator with a Variable or NdArray to that.
    #[classattr]
    fn __array_priority__() -> f64 {
        1000.0
    }

    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        as_numpy(py, &self.array, dtype, copy)
    }

    fn __len__(&self) -> PyResult<usize> {
        self.array.shape().first().copied().ok_or_else(|| PyTypeError::new_err("len() of a 0-d array"))
    }

    fn __float__(&self, py: Python<'_>) -> PyResult<f64> {
        scalar(py, &self.array)
    }

    fn __int__(&self, py: Python<'_>) -> PyResult<i64> {
        scalar(py, &self.array).map(|v| v as i64)
    }

    /// An array is an object, not a number: always true, as in NNabla. But what a comparison gives has a truth only if it
    /// is one element.
    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        match (self.is_comparison.load(Relaxed), self.array.size()) {
            (false, _) => Ok(true),
            (true, 1) => scalar(py, &self.array).map(|v| v != 0.0),
            (true, _) => Err(operators::no_truth(py)),
        }
    }

    /// Whether a comparison gave this array.
    #[getter]
    fn _is_comparison(&self) -> bool {
        self.is_comparison.load(Relaxed)
    }

    fn __repr__(&self) -> String {
        format!("<NdArray({}) at {:#x}>", self.array.shape(), self.array.address())
    }

    fn __hash__(&self) -> usize {
        self.array.address()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyAny>, &'static str))> {
        let class = py.get_type::<PyNdArray>();
        Ok((class.getattr("_from_pickle")?, (pickled(py, &self.array)?, self.array.dtype().name())))
    }

    fn __richcmp__<'py>(
        slf: &Bound<'py, PyNdArray>,
        other: &Bound<'py, PyAny>,
        op: CompareOp,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let same = |o: &Bound<'py, PyNdArray>| o.get().array.address() == slf.get().array.address();
        match (op, other.cast::<PyNdArray>()) {
            (CompareOp::Eq, Ok(o)) => Ok(same(o).into_pyobject(py)?.to_owned().into_any()),
            (CompareOp::Ne, Ok(o)) => Ok((!same(o)).into_pyobject(py)?.to_owned().into_any()),
            _ => operators::compare(slf.as_any(), other, op),
        }
    }
}

operators::arithmetic!(PyNdArray);
operators::in_place!(PyNdArray);
operators::refused!(PyNdArray);

/// A NumPy copy of the content (bfloat16 as float32).
fn pickled<'py>(py: Python<'py>, a: &Array) -> PyResult<Bound<'py, PyAny>> {
    let data = errors::run(py, || {
        let data = a.content()?;
        if data.dtype() == DType::BF16 { data.converted(DType::F32) } else { Ok(data) }
    })?;
    convert::to_numpy(py, data, a.shape())
}

/// Sizes from `axis` on; a negative one counts from the end, and -1, the default, means all as in NNabla.
pub(crate) fn size_from_axis(py: Python<'_>, shape: &crate::Shape, axis: i64) -> PyResult<usize> {
    if axis < 0 {
        return Ok(shape.size());
    }
    match axis as usize <= shape.ndim() {
        true => Ok(shape.size_from(axis as usize)),
        false => Err(errors::raise(
            py,
            crate::Error::arg("axis", format!("at most {}", shape.ndim())).actual(axis).function("size_from_axis"),
        )),
    }
}

/// Below it, each whole number is one of type double.
const EXACT: f64 = (1u64 << 53) as f64;

/// Sets all elements: an array brings its element type, a number is taken in the type that is there (as in NNabla).
pub(crate) fn assign(function: &str, a: &Array, value: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = value.py();
    finish::calling(py, || {
        let wrong =
            || errors::wrong_type(py, function, "value", "an array of numbers or a number", errors::describe(value));
        let numpy = convert::module(py)?;
        let is_number = value.is_instance(&numpy.getattr(word!(py, "generic"))?)?
            && value
                .getattr(word!(py, "dtype"))?
                .cast_into::<PyArrayDescr>()
                .is_ok_and(|d| b"biuf".contains(&d.kind()));
        if value.is_instance_of::<PyFloat>() || value.is_instance_of::<PyInt>() || is_number {
            match value.extract::<f64>() {
                Ok(v) if !is_number || v.abs() < EXACT => {
                    return errors::run(py, || if v == 0.0 { a.zero() } else { a.fill(v) });
                }
                Err(e) if !is_number => return Err(errors::instead(py, e, wrong)),
                _ => {}
            }
        }
        let mut values = convert::asarray(value).map_err(|e| convert::no_array(py, e, function, "value"))?;
        let shape = a.shape();
        if *values.shape() != *shape {
            let shown = numpy.call_method1("broadcast_to", (&values, convert::tuple(py, &shape)?));
            values = shown.and_then(|v| Ok(v.cast_into()?)).map_err(|e| {
                errors::instead(py, e, || {
                    let e = crate::Error::shape("value", format!("an array that broadcasts to shape {}", a.shape()));
                    let given = crate::Shape::from(values.shape());
                    errors::raise(py, e.actual(format!("shape {given}")).function(function))
                })
            })?;
        }
        let dtype = match (is_number, a.dtype()) {
            (true, DType::BF16) => DType::F32,
            (true, d) => d,
            (false, _) => convert::dtype_of(&values.dtype()).map_err(|e| errors::instead(py, e, wrong))?,
        };
        convert::write_all(py, a, dtype, &values)
    })
}

pub(crate) fn as_numpy<'py>(
    py: Python<'py>,
    a: &Array,
    dtype: Option<&Bound<'py, PyAny>>,
    copy: Option<bool>,
) -> PyResult<Bound<'py, PyAny>> {
    finish::calling(py, || {
        let mut array = convert::writable(py, a)?;
        if let Some(dtype) = dtype.filter(|d| !d.is_none())
            && !PyArrayDescr::new(py, dtype)?.is_equiv_to(&array.cast::<PyUntypedArray>()?.dtype())
        {
            if copy == Some(false) {
                let e = crate::Error::arg("copy", "True or None where the type changes").actual("False");
                return Err(errors::raise(py, e));
            }
            array = array.call_method1("astype", (dtype,))?;
        }
        if copy == Some(true) { array.call_method0("copy") } else { Ok(array) }
    })
}

pub(crate) fn scalar(py: Python<'_>, a: &Array) -> PyResult<f64> {
    let shape = a.shape();
    if shape.size() != 1 {
        let e = crate::Error::shape("self", "an array with one element").actual(format!("shape {shape}"));
        return Err(errors::raise(py, e.hint("use .d or .data for the NumPy array")));
    }
    Ok(errors::run(py, || a.to_vec::<f64>())?[0])
}
