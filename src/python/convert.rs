//! Between Python and Rust: NumPy arrays, arguments, the script line that is running.

use super::errors::{self, describe};
use super::variable::PyVariable;
use super::{finish, reserve, stay};
use crate::function::{ArgDef, ArgKind, ArgValue};
use nnrs_kernels::array::{Data, Export, NdArray};
use nnrs_kernels::dtype::DType;
use nnrs_kernels::error::Error;
use nnrs_kernels::shape::Shape;
use nnrs_kernels::simd::stream;
use nnrs_kernels::with_dtype;
use numpy::npyffi::{NPY_ARRAY_CARRAY, NPY_ARRAY_CARRAY_RO, NPY_TYPES, NpyTypes, PY_ARRAY_API};
use numpy::npyffi::{get_type_object, npy_intp};
use numpy::{Element, PyArrayDescr, PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyImportError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyString, PyTuple};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::c_int;
use std::panic::catch_unwind;
use std::ptr::null_mut;
use std::sync::Arc;

/// What a NumPy array over memory of the engine has as its base: keeps the memory alive.
#[pyclass(frozen, module = "nnrs._core")]
struct NumpyBase {
    export: Export,
    /// Who has a view of an array's memory has the array.
    _array: Option<NdArray>,
}

/// A flag: the truth of anything that has one in Python, as in NNabla. An array of several elements has none.
pub(crate) fn flag(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    stay::mark();
    value.is_truthy().map_err(|e| match e.is_instance_of::<PyValueError>(value.py()) {
        true => {
            errors::shown(value).map_or_else(|e| e, |text| PyTypeError::new_err(format!("expected a bool, got {text}")))
        }
        false => e,
    })
}

/// As [`flag`]; None leaves the choice open.
pub(crate) fn choice(value: &Bound<'_, PyAny>) -> PyResult<Option<bool>> {
    if value.is_none() { Ok(None) } else { flag(value).map(Some) }
}

/// The element type of a NumPy dtype (or anything that `numpy.dtype` takes); bfloat16 by name.
pub(crate) fn dtype_of(dtype: &Bound<'_, PyAny>) -> PyResult<DType> {
    let py = dtype.py();
    finish::calling(py, || {
        let name = dtype.cast::<PyString>().ok().and_then(|name| name.to_str().ok());
        if let Some(d) = name.and_then(DType::from_name) {
            return Ok(d);
        }
        let descr = if dtype.is_none() { f64::get_dtype(py) } else { PyArrayDescr::new(py, dtype)? };
        known(&descr)?.map_err(|name| errors::wrong_type(py, "dtype", "dtype", "a type of numbers or booleans", name))
    })
}

/// The element type of a NumPy dtype of any byte order; the dtype's name if there is none.
pub(super) fn known(descr: &Bound<'_, PyArrayDescr>) -> PyResult<Result<DType, String>> {
    let is_numpys_own = (0..=NPY_TYPES::NPY_HALF as c_int).contains(&descr.num());
    Ok(Ok(match (descr.kind(), descr.itemsize()) {
        _ if !is_numpys_own => return by_name(descr),
        (b'b', _) => DType::Bool,
        (b'i', 1) => DType::I8,
        (b'u', 1) => DType::U8,
        (b'i', 2) => DType::I16,
        (b'u', 2) => DType::U16,
        (b'i', 4) => DType::I32,
        (b'u', 4) => DType::U32,
        (b'i', 8) => DType::I64,
        (b'u', 8) => DType::U64,
        (b'f', 2) => DType::F16,
        (b'f', 4) => DType::F32,
        (b'f', 8) => DType::F64,
        _ => return by_name(descr),
    }))
}

/// As [`known`], of a dtype of another package (bfloat16).
fn by_name(descr: &Bound<'_, PyArrayDescr>) -> PyResult<Result<DType, String>> {
    let name: String = descr.getattr(word!(descr.py(), "name"))?.extract()?;
    Ok(DType::from_name(&name).ok_or(name))
}

/// NumPy's dtype object; bfloat16, which NumPy has not, as its name.
pub(crate) fn dtype_object(py: Python<'_>, dtype: DType) -> PyResult<Bound<'_, PyAny>> {
    match dtype {
        DType::BF16 => Ok(PyString::new(py, "bfloat16").into_any()),
        d => descr(py, d).map(Bound::into_any),
    }
}

/// NumPy's dtype of memory: of bfloat16 that of two bytes.
fn descr(py: Python<'_>, dtype: DType) -> PyResult<Bound<'_, PyArrayDescr>> {
    match dtype {
        DType::BF16 => PyArrayDescr::new(py, "V2"),
        d => Ok(with_dtype!(d, T => T::get_dtype(py))),
    }
}

/// The content of a cell, which `make` makes on first use. Other than `PyOnceLock::get_or_init` this never lets go of the
/// GIL with the cell half made: a fork of that moment would leave it so for good.
pub(crate) fn filled<'a, T>(
    py: Python<'_>,
    cell: &'a PyOnceLock<T>,
    make: impl FnOnce() -> PyResult<T>,
) -> PyResult<&'a T> {
    if cell.get(py).is_none() {
        let _ = cell.set(py, make()?);
    }
    Ok(cell.get(py).expect("it was filled"))
}

/// A Python string that is made once.
macro_rules! word {
    ($py:expr, $text:literal) => {{
        static WORD: pyo3::sync::PyOnceLock<pyo3::Py<pyo3::types::PyString>> = pyo3::sync::PyOnceLock::new();
        $crate::python::convert::interned($py, &WORD, $text)
    }};
}
pub(crate) use word;

pub(crate) fn interned<'a, 'py>(
    py: Python<'py>,
    cell: &'a PyOnceLock<Py<PyString>>,
    text: &str,
) -> &'a Bound<'py, PyString> {
    if cell.get(py).is_none() {
        let _ = cell.set(py, PyString::intern(py, text).unbind());
    }
    cell.get(py).expect("it was filled").bind(py)
}

static NUMPY: PyOnceLock<Py<PyModule>> = PyOnceLock::new();

pub(crate) fn module(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    Ok(filled(py, &NUMPY, || py.import("numpy").map(Bound::unbind))?.bind(py))
}

/// Makes Python's type of memory ready, and NumPy's C API: what the crate numpy keeps of that, it would make on first use,
/// and panic where it cannot.
pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = m.py();
    py.get_type::<NumpyBase>();
    numpy::get_array_module(py)?.getattr("_ARRAY_API")?;
    let made = catch_unwind(|| numpy::npyffi::is_numpy_2(py));
    made.map(drop).map_err(|_| PyImportError::new_err("nnrs does not know the C API of this version of NumPy"))
}

/// A NumPy array of anything that NumPy makes one of.
pub(crate) fn asarray<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyUntypedArray>> {
    let py = value.py();
    Ok(module(py)?.getattr(word!(py, "asarray"))?.call1((value,))?.cast_into()?)
}

/// The error for what NumPy makes no array of: too deep a list, or one of lists of different lengths. What a value's own
/// methods raise stays.
pub(crate) fn no_array(py: Python<'_>, e: PyErr, function: &str, arg: &str) -> PyErr {
    match e.is_instance_of::<PyValueError>(py) && e.traceback(py).is_none() {
        true => errors::raise(py, Error::arg(arg, e.value(py).to_string()).function(function)),
        false => e,
    }
}

/// A NumPy array over `data`'s memory.
pub(crate) fn to_numpy(py: Python<'_>, data: Data, shape: Shape) -> PyResult<Bound<'_, PyAny>> {
    over(py, NumpyBase { export: Export::new(data, false), _array: None }, &shape, NPY_ARRAY_CARRAY)
}

/// A NumPy array over memory of the array `a`.
pub(crate) fn view_of<'py>(py: Python<'py>, a: &NdArray, export: Export) -> PyResult<Bound<'py, PyAny>> {
    let flags = if export.writes() { NPY_ARRAY_CARRAY } else { NPY_ARRAY_CARRAY_RO };
    over(py, NumpyBase { export, _array: Some(a.handle()) }, &a.shape(), flags)
}

/// Other than `PyArray::borrow_from_array` this gives NumPy's error where NumPy makes no array: too many axes, no memory.
fn over<'py>(py: Python<'py>, memory: NumpyBase, shape: &Shape, flags: c_int) -> PyResult<Bound<'py, PyAny>> {
    let data = errors::run(py, || memory.export.data().clone().of(shape.size()))?;
    let (descr, memory) = (descr(py, data.dtype())?, Bound::new(py, memory)?);
    let (axes, sizes) = (shape.ndim() as c_int, shape.as_ptr() as *mut npy_intp);
    // SAFETY: NumPy reads `axes` sizes, and takes over the references to `descr` and `memory`. There are as many elements of
    // that type, aligned, as the sizes say; they live as long as `memory`, the array's base.
    unsafe {
        let class = get_type_object(py, NpyTypes::PyArray_Type);
        let (descr, at) = (descr.into_dtype_ptr(), data.ptr().cast());
        let array = PY_ARRAY_API.PyArray_NewFromDescr(py, class, descr, axes, sizes, null_mut(), at, flags, null_mut());
        let array = Bound::from_owned_ptr_or_err(py, array).map_err(|e| refused(py, e, shape))?;
        match PY_ARRAY_API.PyArray_SetBaseObject(py, array.as_ptr().cast(), memory.into_ptr()) {
            0 => Ok(array),
            _ => Err(PyErr::fetch(py)),
        }
    }
}

/// NumPy's error for a shape that its arrays cannot have, as one of nnrs.
fn refused(py: Python<'_>, e: PyErr, shape: &Shape) -> PyErr {
    let wrong = || {
        let of = Error::shape("shape", "a shape that a NumPy array can have").actual(format!("{} axes", shape.ndim()));
        errors::raise(py, of.hint(e.value(py).to_string()))
    };
    if e.is_instance_of::<PyValueError>(py) { wrong() } else { e }
}

/// A NumPy array over an array's memory, for reading and writing.
pub(crate) fn writable<'py>(py: Python<'py>, a: &NdArray) -> PyResult<Bound<'py, PyAny>> {
    let export = errors::run(py, || {
        a.fetch()?; // in the type that it has
        a.show(|own| if own == DType::BF16 { DType::F32 } else { own })
    })?;
    view_of(py, a, export)
}

/// Copies anything that NumPy makes an array of; keeps its element type.
pub(crate) fn from_numpy(function: &str, arg: &str, value: &Bound<'_, PyAny>) -> PyResult<NdArray> {
    let py = value.py();
    finish::calling(py, || {
        let array = asarray(value).map_err(|e| no_array(py, e, function, arg))?;
        let dtype = known(&array.dtype())?.map_err(|name| {
            errors::wrong_type(py, function, arg, "an array of numbers or booleans", format!("dtype {name}"))
        })?;
        let a = NdArray::new(errors::run_as(py, function, || Shape::from(array.shape()).checked())?);
        write_all(py, &a, dtype, &array)?;
        Ok(a)
    })
}

/// Writes what NumPy can broadcast to the array's shape. Booleans become 0 or 1: those of NumPy may be any byte.
pub(crate) fn write_all(py: Python<'_>, a: &NdArray, dtype: DType, values: &Bound<'_, PyUntypedArray>) -> PyResult<()> {
    reserve::check(py)?;
    let (data, shape) = (errors::run(py, || a.overwrite(dtype))?, a.shape());
    if write_large(py, &data, &shape, values)? {
        return Ok(());
    }
    finish::calling(py, || {
        // Another thread may have given the array another shape since the values were found to fit.
        let misfit = |e: PyErr| match e.is_instance_of::<PyValueError>(py) {
            true => errors::raise(py, Error::shape("value", format!("an array that broadcasts to shape {shape}"))),
            false => e,
        };
        to_numpy(py, data.clone(), shape.clone())?.set_item(py.Ellipsis(), values).map_err(misfit)?;
        if dtype == DType::Bool {
            data.settle_booleans();
        }
        Ok(())
    })
}

/// Copies a large array that needs no conversion, on all threads. Whether it was one.
fn write_large(py: Python<'_>, data: &Data, shape: &Shape, values: &Bound<'_, PyUntypedArray>) -> PyResult<bool> {
    let n = data.bytes();
    let is_plain = n >= stream::LARGE
        && data.len() == shape.size()
        && values.shape() == &shape[..]
        && values.is_c_contiguous()
        && data.dtype() != DType::Bool
        && values.dtype().is_equiv_to(&descr(py, data.dtype())?);
    // SAFETY: the object is a NumPy array.
    let (from, to) = (unsafe { (*values.as_array_ptr()).fields.data as usize }, data.ptr() as usize);
    if !is_plain || (from < to + n && to < from + n) {
        return Ok(false);
    }
    // SAFETY: both have n bytes, which the array and `data` keep. That another thread may write to them meanwhile is what
    // NumPy's own copy has too: the values are then mixed.
    finish::detached(py, || unsafe { stream::copy(from as *const u8, to as *mut u8, n) });
    Ok(true)
}

pub(crate) fn tuple<'py>(py: Python<'py>, s: &[usize]) -> PyResult<Bound<'py, PyTuple>> {
    PyTuple::new(py, s)
}

/// A shape given by a user: a sequence of non-negative integers.
pub(crate) fn shape(function: &str, value: &Bound<'_, PyAny>) -> PyResult<Shape> {
    let py = value.py();
    let sizes: Vec<i64> =
        ints(value)?.ok_or_else(|| errors::wrong_type(py, function, "shape", "a sequence of int", describe(value)))?;
    let shape: Option<Shape> = sizes.iter().map(|&d| usize::try_from(d).ok()).collect();
    let wrong = || {
        errors::raise(py, Error::shape("shape", "sizes of 0 or more").actual(format!("{sizes:?}")).function(function))
    };
    let shape = shape.ok_or_else(wrong)?;
    errors::run_as(value.py(), function, || shape.checked())
}

/// A value as `T`; `None` where it is none.
pub(crate) fn fitting<'py, T: FromPyObjectOwned<'py>>(value: &Bound<'py, PyAny>) -> PyResult<Option<T>> {
    fits(value.py(), plain(value))
}

/// An argument as `T`, which its own methods may make of it.
pub(crate) fn plain<'py, T: FromPyObjectOwned<'py>>(value: &Bound<'py, PyAny>) -> PyResult<T> {
    stay::mark();
    value.extract().map_err(Into::into)
}

/// A list as an argument. A Variable or an array is none, however many elements it has.
pub(crate) fn list<'py, T: FromPyObjectOwned<'py>>(value: &Bound<'py, PyAny>) -> PyResult<Vec<T>> {
    match is_array(value) {
        true => Err(PyTypeError::new_err(format!("expected a list, got {}", errors::type_name(value)))),
        false => plain(value),
    }
}

/// `None` in place of an error that says that a value does not fit. What its own methods raise beside that stays (Ctrl-C).
pub(crate) fn fits<T>(py: Python<'_>, found: PyResult<T>) -> PyResult<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(e) if errors::says_misfit(py, &e) => Ok(None),
        Err(e) => Err(e),
    }
}

/// An integer: anything with `__index__`, or a whole float.
fn int(value: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
    if let Some(i) = fitting(value)? {
        return Ok(Some(i));
    }
    Ok(float(value)?.filter(|f| f.fract() == 0.0 && f.abs() < 9e15).map(|f| f as i64))
}

fn float(value: &Bound<'_, PyAny>) -> PyResult<Option<f64>> {
    fitting(value)
}

fn ints(value: &Bound<'_, PyAny>) -> PyResult<Option<Vec<i64>>> {
    if value.is_instance_of::<PyString>() || is_array(value) {
        return Ok(None);
    }
    items(value, |i| if i.is_none() { Ok(Some(OPEN)) } else { int(i) })
}

/// Elements of a list of numbers at most: there are some for each axis.
const MOST_ITEMS: usize = 1 << 16;

/// What `read` finds in each element; `None` where it is no list of arguments, or one that would not end soon.
fn items<T>(
    value: &Bound<'_, PyAny>,
    read: impl Fn(&Bound<'_, PyAny>) -> PyResult<Option<T>>,
) -> PyResult<Option<Vec<T>>> {
    finish::calling(value.py(), || {
        let Some(items) = fits(value.py(), value.try_iter())? else { return Ok(None) };
        let mut found = Vec::new();
        for item in items {
            match read(&item?)?.filter(|_| found.len() < MOST_ITEMS) {
                Some(item) => found.push(item),
                None => return Ok(None),
            }
        }
        Ok(Some(found))
    })
}

/// What stands for None within a list (`slice`).
const OPEN: i64 = i64::MIN;

/// A Variable or an array is no list of arguments, however many elements it has.
fn is_array(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyVariable>() || value.is_instance_of::<super::array::PyNdArray>()
}

fn floats(value: &Bound<'_, PyAny>) -> PyResult<Option<Vec<f64>>> {
    if is_array(value) {
        return Ok(None);
    }
    items(value, float)
}

/// An argument as its declaration says; `None` for a value that does not fit. Anything has a truth, but None for what may be left out.
pub(crate) fn declared(value: &Bound<'_, PyAny>, arg: &ArgDef) -> PyResult<Option<ArgValue>> {
    if value.is_none() && arg.optional { Ok(Some(ArgValue::None)) } else { argument(value, arg.kind, arg.name) }
}

/// An argument of kind `kind`; `None` for a value that does not fit.
pub(crate) fn argument(value: &Bound<'_, PyAny>, kind: ArgKind, name: &str) -> PyResult<Option<ArgValue>> {
    if value.is_none() && kind != ArgKind::Bool {
        return Ok(Some(ArgValue::None));
    }
    Ok(match kind {
        ArgKind::Bool => fits(value.py(), flag(value))?.map(ArgValue::Bool),
        ArgKind::Int => int(value)?.map(ArgValue::Int),
        ArgKind::Float if value.is_instance_of::<PyString>() => None,
        ArgKind::Float => fitting(value)?.map(ArgValue::Float),
        ArgKind::Str => fitting(value)?.map(ArgValue::Str),
        ArgKind::Ints => match ints(value)? {
            Some(v) => Some(ArgValue::Ints(v)),
            None => int(value)?.map(ArgValue::Int),
        },
        ArgKind::Floats => match floats(value)? {
            Some(v) => Some(ArgValue::Floats(v)),
            None => fitting(value)?.map(ArgValue::Float),
        },
        ArgKind::Level if !value.is_instance_of::<PyVariable>() => match fitting(value)? {
            Some(number) => Some(ArgValue::Int(number)),
            None => argument(value, ArgKind::Float, name)?,
        },
        ArgKind::Init
        | ArgKind::Inits
        | ArgKind::Apply
        | ArgKind::Rng
        | ArgKind::Variable
        | ArgKind::Level
        | ArgKind::Arrays => super::parametric::argument(value, kind, name)?,
    })
}

/// An argument as a Python object.
pub(crate) fn to_object<'py>(py: Python<'py>, v: &ArgValue) -> PyResult<Bound<'py, PyAny>> {
    Ok(match v {
        ArgValue::None => py.None().into_bound(py),
        ArgValue::Bool(b) => b.into_pyobject(py)?.to_owned().into_any(),
        ArgValue::Int(i) => i.into_pyobject(py)?.into_any(),
        ArgValue::Float(f) => f.into_pyobject(py)?.into_any(),
        ArgValue::Str(s) => s.into_pyobject(py)?.into_any(),
        ArgValue::Ints(v) => v.into_pyobject(py)?.into_any(),
        ArgValue::Floats(v) => v.into_pyobject(py)?.into_any(),
        ArgValue::Object(_) => py.None().into_bound(py),
    })
}

type Lines = HashMap<(usize, i32), (Py<PyAny>, Option<Arc<str>>)>;

thread_local! {
    /// Known lines by code object (which the entry keeps alive) and line; `None` for code of this package.
    static LINES: RefCell<Lines> = RefCell::new(HashMap::new());
}

/// Lines kept at most.
const MOST_LINES: usize = 10_000;

/// File and line of the innermost frame outside this package.
pub(crate) fn script_line(py: Python<'_>) -> Option<Arc<str>> {
    // SAFETY: the GIL is held; the result is borrowed, or null outside Python code.
    let frame = unsafe { Bound::from_borrowed_ptr_or_opt(py, ffi::PyEval_GetFrame() as *mut ffi::PyObject) }?;
    let mut frame = frame;
    for _ in 0..16 {
        // SAFETY: `frame` is a frame object.
        let (code, line) = unsafe {
            let f = frame.as_ptr() as *mut ffi::PyFrameObject;
            (
                Bound::from_owned_ptr_or_opt(py, ffi::PyFrame_GetCode(f) as *mut ffi::PyObject)?,
                ffi::PyFrame_GetLineNumber(f),
            )
        };
        if let Some(text) = known_line(&code, line) {
            return Some(text);
        }
        frame = frame.getattr(word!(py, "f_back")).ok()?;
        if frame.is_none() {
            return None;
        }
    }
    None
}

fn known_line(code: &Bound<'_, PyAny>, line: i32) -> Option<Arc<str>> {
    let key = (code.as_ptr() as usize, line);
    if let Some(known) = LINES.with_borrow(|l| l.get(&key).map(|(_, text)| text.clone())) {
        return known;
    }
    let file: String = code.getattr(word!(code.py(), "co_filename")).ok()?.extract().ok()?;
    let ours = file.contains("/nnrs/") && !file.contains("/tests/") || file.contains("\\nnrs\\");
    let text: Option<Arc<str>> = (!ours).then(|| format!("{file}:{line}").into());
    LINES.with_borrow_mut(|l| {
        if l.len() >= MOST_LINES {
            l.clear();
        }
        l.insert(key, (code.clone().unbind(), text.clone()));
    });
    text
}
