//! What kernels see: typed slices with shapes, and the circumstances of the run.

use nnrs_kernels::array::{Data, NdArray, Place};
use nnrs_kernels::dtype::{DType, Element};
use nnrs_kernels::error::Result;
use nnrs_kernels::saved::Saved;
use nnrs_kernels::shape::Shape;
use std::any::Any;
use std::sync::Arc;

pub use nnrs_kernels::array::Output;

/// An array to read.
pub struct View<'a> {
    /// Its shape.
    pub shape: &'a Shape,
    pub(crate) data: Data,
}

impl View<'_> {
    /// The elements, row by row.
    ///
    /// # Panics
    /// If `T` is not their type, which is `run.dtype`, or `i64` for index inputs.
    pub fn slice<T: Element>(&self) -> &[T] {
        self.data.as_slice()
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.data.dtype()
    }
}

/// An array to write.
pub struct ViewMut<'a> {
    /// Its shape.
    pub shape: &'a Shape,
    pub(crate) data: Data,
}

impl ViewMut<'_> {
    /// The elements, row by row; what they are before they are written is undefined.
    ///
    /// # Panics
    /// If `T` is not their type, which is `run.dtype`, or what [`Function::output_dtype`](super::Function::output_dtype) says.
    pub fn slice<T: Element>(&mut self) -> &mut [T] {
        self.data.as_mut_slice()
    }
}

/// A gradient to write or to add to.
pub struct GradMut<'a> {
    /// Its shape: that of the input.
    pub shape: &'a Shape,
    /// Whether to write the gradient or to add to what is there.
    pub output: Output,
    /// The memory holds the gradient of an output, to be written over: see
    /// [`Function::grad_over`](super::Function::grad_over).
    pub over: bool,
    pub(crate) data: Data,
}

impl GradMut<'_> {
    /// The elements, row by row.
    ///
    /// # Panics
    /// If `T` is not their type, which is `run.dtype`.
    pub fn slice<T: Element>(&mut self) -> &mut [T] {
        self.data.as_mut_slice()
    }
}

/// The circumstances of one run of a function.
pub struct Run<'a> {
    /// The type to compute in: `F32` or `F64`.
    pub dtype: DType,
    /// True when the forward pass runs again for its values: no side effects, the same random numbers.
    pub again: bool,
    /// True if a backward pass may follow, so that what it reads in place of inputs is to be saved: see
    /// [`Function::saves`](super::Function::saves).
    pub keep: bool,
    pub(crate) saved: &'a Saved,
    /// The number of the call's shapes.
    pub(crate) call: u64,
    pub(crate) shapes: &'a [&'a Shape],
    pub(crate) inputs: &'a [NdArray],
}

impl Run<'_> {
    /// Keeps a value for the backward pass: statistics, a seed; what is large only if [`Run::keep`] says so.
    pub fn save<T: Any + Send + Sync>(&self, value: T) {
        self.saved.restore(Some((self.call, Arc::new(value))));
    }

    /// What `save` kept in the last forward pass, if inputs and outputs had the same shapes then.
    pub fn saved<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.saved.of_call(self.call).and_then(|v| v.downcast().ok())
    }

    /// The shape of input `i` in this call, whatever has become of the array's meanwhile.
    ///
    /// # Panics
    /// If there is no such input.
    pub fn shape(&self, i: usize) -> &Shape {
        self.shapes[i]
    }

    /// The `n` elements of input `i` in the memory of `place`, in its own floating-point type, to be updated.
    pub(crate) fn input_to_update(&self, i: usize, place: Place, n: usize) -> Result<Data> {
        let a = &self.inputs[i];
        let dtype = if a.dtype().is_float() { a.dtype() } else { self.dtype };
        a.modify_at(place, dtype)?.of(n)
    }

    /// Updates the `n` elements of input `i` in the type to compute in.
    pub fn update_input<T: Element>(&self, i: usize, n: usize, f: impl FnOnce(&mut [T])) -> Result<()> {
        let a = &self.inputs[i];
        let dtype = a.dtype();
        let data = a.modify(T::DTYPE)?.of(n)?;
        f(data.as_mut_slice());
        if dtype != T::DTYPE && dtype.is_float() { a.cast(dtype) } else { Ok(()) }
    }
}
