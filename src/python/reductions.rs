//! What `nnrs._communication` leaves to the engine: sums of rows in their order.

use super::{convert, errors, finish};
use nnrs_kernels::dtype::DType;
use nnrs_kernels::error::Error;
use nnrs_kernels::kernel::ordered_sum::{SumBy, ordered_sum_at};
use numpy::npyffi::{NPY_ARRAY_ALIGNED, NPY_ARRAY_BEHAVED};
use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;

/// Bytes from which on other Python threads may run meanwhile.
const LARGE: usize = 1 << 16;

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(ordered_sum, m)?)
}

/// `out` becomes the sum of the rows from first to last, divided where that is asked for.
///
/// Whole numbers wrap around, as NumPy's do, and quotients of them are cut off towards zero. Both arrays are contiguous and
/// of one type; `out` has the shape of a row, and may be the memory of the only one. `alone`: by this thread, so that a graph that
/// another one computes meanwhile keeps the other threads.
#[pyfunction]
#[pyo3(signature = (rows, out, divide_by=1, alone=false))]
fn ordered_sum(
    py: Python<'_>,
    rows: &Bound<'_, PyUntypedArray>,
    out: &Bound<'_, PyUntypedArray>,
    divide_by: usize,
    alone: bool,
) -> PyResult<()> {
    let by = if alone { SumBy::Caller } else { SumBy::Pool };
    let (dtype, count) = finish::calling(py, || checked(rows, out, divide_by))?;
    let (from, to, n) = (address(rows), address(out), out.len());
    let sum = || {
        // SAFETY: as many numbers of the type, contiguous and aligned, of arrays that the caller holds; `checked` has seen
        // to it that they are apart. That other threads may write to them meanwhile is what NumPy's own sums have too.
        unsafe { ordered_sum_at(dtype, from as *const u8, count, to as *mut u8, n, divide_by, by) };
        Ok(())
    };
    match rows.len() * dtype.size() < LARGE {
        true => errors::run(py, sum),
        false => errors::detached(py, sum),
    }
}

fn address(array: &Bound<'_, PyUntypedArray>) -> usize {
    // SAFETY: the object is a NumPy array.
    unsafe { (*array.as_array_ptr()).fields.data as usize }
}

/// The type and the number of rows.
fn checked(
    rows: &Bound<'_, PyUntypedArray>,
    out: &Bound<'_, PyUntypedArray>,
    divide_by: usize,
) -> PyResult<(DType, usize)> {
    let wrong = |arg: &str, expected: &str, actual: String| {
        errors::raise(rows.py(), Error::arg(arg, expected).actual(actual).function("ordered_sum"))
    };
    let (Ok(dtype), Ok(other)) = (convert::known(&rows.dtype())?, convert::known(&out.dtype())?) else {
        return Err(wrong("rows", "numbers", rows.dtype().to_string()));
    };
    if dtype != other || rows.ndim() == 0 || rows.shape()[1..] != *out.shape() {
        let expected = format!("{dtype} of shape {:?}", rows.shape().get(1..).unwrap_or_default());
        return Err(wrong("out", &expected, format!("{other} of shape {:?}", out.shape())));
    }
    for (name, array, needed) in [("rows", rows, NPY_ARRAY_ALIGNED), ("out", out, NPY_ARRAY_BEHAVED)] {
        // SAFETY: the object is a NumPy array.
        let flags = unsafe { (*array.as_array_ptr()).fields.flags };
        let is_native = array.dtype().is_native_byteorder().unwrap_or(true);
        if !array.is_c_contiguous() || !is_native || flags & needed != needed {
            return Err(wrong(name, "a contiguous array, to be written where it is the sum", "another".to_string()));
        }
    }
    let (from, to, n) = (address(rows), address(out), dtype.size());
    let is_apart = to + out.len() * n <= from || from + rows.len() * n <= to || (from == to && rows.shape()[0] == 1);
    if divide_by == 0 || !is_apart {
        return Err(wrong("out, divide_by", "other memory than that of rows, and 1 or more", divide_by.to_string()));
    }
    Ok((dtype, rows.shape()[0]))
}
