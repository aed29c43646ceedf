//! Memory of other libraries as memory of arrays.

use super::array::PyNdArray;
use super::{convert, finish};
use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use std::ptr::NonNull;

#[pymethods]
impl PyNdArray {
    /// Takes the memory of a NumPy array, which may be another library's, for its own, whatever the array's flags say of
    /// writing. False, and nothing happens, where it cannot be: another size, a type or strides that nnrs lacks, booleans.
    fn _adopt(&self, values: &Bound<'_, PyUntypedArray>) -> PyResult<bool> {
        finish::calling(values.py(), || {
            let (Ok(dtype), true) = (convert::known(&values.dtype())?, values.is_c_contiguous()) else {
                return Ok(false);
            };
            if !values.dtype().is_native_byteorder().unwrap_or(true) {
                return Ok(false);
            }
            // SAFETY: the object is a NumPy array.
            let data = unsafe { (*values.as_array_ptr()).fields.data.cast::<u8>() };
            let Some(data) = NonNull::new(data) else { return Ok(false) };
            let owner = Box::new(values.clone().unbind());
            // SAFETY: a contiguous array has `len` elements of its type there, for as long as it lives; that other code
            // writes them at any time is what NumPy's own arrays over memory of others live with.
            Ok(unsafe { self.inner().adopt_memory(data, values.len(), dtype, owner) })
        })
    }
}
