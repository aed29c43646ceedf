//! Arrays: typed bytes with a shape. An [`NdArray`] is a handle; clones share shape and bytes, `reshaped` and `narrow`
//! share the bytes alone. Zeros and constants are kept as such until the memory is needed.

pub mod alloc;
mod content;
mod data;
mod foreign;
mod free;
mod kept;
mod mirror;
mod ndarray_view;
pub mod scratch;
mod snapshot;
mod storage;
mod strided;
mod system;
mod views;
mod walk;

pub use crate::device::{Place, Site};
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::shape::Shape;
pub use content::ReadContent;
pub use data::Data;
pub use data::shape_changed;
pub use kept::{FormElements, FormName};
pub use ndarray_view::NdArrayView;
pub use snapshot::{ContentSnapshot, PlanContent};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
pub use storage::{Absent, Maker, clears, dropped_gradient, gone, is_any_shown, next_time, now};
pub use storage::{Content, Storage};
pub use strided::{AxisMap, Strided};
pub use views::Export;
pub use walk::{Destination, Source, Walk, WalkAxes};

/// What a kernel does with the old values of an array that it writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// They are overwritten.
    Write,
    /// What the kernel makes is added to them.
    Accumulate,
}

/// A dense, row-major N-dimensional array of one element type, shared by its clones.
///
/// ```
/// use nnrs_kernels::{NdArray, Shape};
/// let a = NdArray::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [2, 2].into())?;
/// assert_eq!(a.to_vec::<f64>()?, [1.0, 2.0, 3.0, 4.0]);
/// # Ok::<(), nnrs_kernels::Error>(())
/// ```
pub struct NdArray {
    inner: Arc<ArrayInner>,
    /// A handle outside of the engine: it counts.
    is_handle: bool,
}

struct ArrayInner {
    layout: Mutex<ArrayLayout>,
    /// Handles outside of the engine: an array that can be observed is not planned away.
    handles: AtomicU32,
    /// Variables that have it as data or gradient.
    variables: AtomicU32,
}

/// Where an array's elements lie.
#[derive(Clone)]
struct ArrayLayout {
    shape: Shape,
    storage: Arc<Storage>,
    /// First element, for arrays that are a part of another's storage.
    offset: usize,
}

impl ArrayLayout {
    fn is_whole(&self) -> bool {
        self.offset == 0 && self.shape.size() == self.storage.size()
    }
}

impl NdArray {
    /// An array of `shape` with a copy of `values`, row by row.
    ///
    /// # Errors
    /// Another number of values than `shape` has elements; not enough memory.
    ///
    /// ```
    /// let a = nnrs_kernels::NdArray::from_slice(&[1i32, 2], [2, 1].into())?;
    /// assert!(a.shape() == [2, 1].into() && nnrs_kernels::NdArray::from_slice(&[1i32], [2].into()).is_err());
    /// # Ok::<(), nnrs_kernels::Error>(())
    /// ```
    pub fn from_slice<T: Element>(values: &[T], shape: Shape) -> Result<NdArray> {
        if shape.size() != values.len() {
            return Err(
                Error::shape("values", format!("{} values for shape {shape}", shape.size())).actual(values.len())
            );
        }
        let a = NdArray::new(shape);
        a.storage().write_from(0, values)?;
        Ok(a)
    }

    /// An array with a copy of an array of the crate ndarray, whatever its layout.
    ///
    /// # Errors
    /// Not enough memory.
    ///
    /// ```
    /// let (a, flipped) = (ndarray::arr2(&[[1.0f32, 2.0], [3.0, 4.0]]), ndarray::s![.., ..;-1]);
    /// let b = nnrs_kernels::NdArray::from_ndarray(&a.slice(flipped))?;
    /// assert_eq!((b.shape(), b.to_vec::<f32>()?), ([2, 2].into(), vec![2.0, 1.0, 4.0, 3.0]));
    /// # Ok::<(), nnrs_kernels::Error>(())
    /// ```
    pub fn from_ndarray<S: ndarray::Data, D: ndarray::Dimension>(array: &ndarray::ArrayBase<S, D>) -> Result<NdArray>
    where
        S::Elem: Element,
    {
        let shape = array.shape().into();
        match array.as_slice() {
            Some(values) => NdArray::from_slice(values, shape),
            None => NdArray::from_slice(&array.iter().copied().collect::<Vec<_>>(), shape),
        }
    }

    /// A copy as an array of the crate ndarray, converted to `T`.
    ///
    /// # Errors
    /// As [`NdArray::to_vec`].
    ///
    /// ```
    /// let a = nnrs_kernels::NdArray::from_slice(&[1, 2, 3, 4], [2, 2].into())?;
    /// assert_eq!(a.to_ndarray::<f64>()?, ndarray::arr2(&[[1.0, 2.0], [3.0, 4.0]]).into_dyn());
    /// # Ok::<(), nnrs_kernels::Error>(())
    /// ```
    pub fn to_ndarray<T: Element>(&self) -> Result<ndarray::ArrayD<T>> {
        let shape = self.shape();
        let values = self.to_vec()?;
        ndarray::ArrayD::from_shape_vec(ndarray::IxDyn(&shape), values)
            .map_err(|_| shape_changed(format!("it had shape {shape}")))
    }

    /// The sizes of the axes.
    ///
    /// ```
    /// assert_eq!(nnrs_kernels::NdArray::new([2, 3].into()).shape(), [2, 3].into());
    /// ```
    #[inline]
    pub fn shape(&self) -> Shape {
        self.layout().shape.clone()
    }

    /// Number of elements.
    ///
    /// ```
    /// assert_eq!(nnrs_kernels::NdArray::new([2, 3].into()).size(), 6);
    /// ```
    #[inline]
    pub fn size(&self) -> usize {
        self.layout().shape.size()
    }

    /// The elements, which views and parts of this array share.
    ///
    /// ```
    /// let a = nnrs_kernels::NdArray::new([2].into());
    /// assert!(a.storage().is_empty() && std::sync::Arc::ptr_eq(&a.storage(), &a.reshaped([1, 2].into())?.storage()));
    /// # Ok::<(), nnrs_kernels::Error>(())
    /// ```
    #[inline]
    pub fn storage(&self) -> Arc<Storage> {
        self.layout().storage.clone()
    }

    /// First element of this array in its storage.
    ///
    /// ```
    /// let a = nnrs_kernels::NdArray::new([3, 2].into());
    /// assert_eq!((a.offset(), a.narrow(0, 1, 2)?.offset()), (0, 2));
    /// # Ok::<(), nnrs_kernels::Error>(())
    /// ```
    #[inline]
    pub fn offset(&self) -> usize {
        self.layout().offset
    }

    /// The element type; float32 while there is no content.
    ///
    /// ```
    /// assert_eq!(nnrs_kernels::NdArray::from_slice(&[1u8], [1].into())?.dtype(), nnrs_kernels::DType::U8);
    /// # Ok::<(), nnrs_kernels::Error>(())
    /// ```
    #[inline]
    pub fn dtype(&self) -> DType {
        self.layout().storage.dtype()
    }

    /// True if both handles are the same array object.
    ///
    /// ```
    /// let a = nnrs_kernels::NdArray::new([2].into());
    /// assert!(a.is(&a.clone()) && !a.is(&a.deep_copy()?));
    /// # Ok::<(), nnrs_kernels::Error>(())
    /// ```
    #[inline]
    pub fn is(&self, other: &NdArray) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// An address that identifies the array object while it lives.
    ///
    /// ```
    /// let a = nnrs_kernels::NdArray::new([2].into());
    /// assert_eq!(a.address(), a.clone().address());
    /// ```
    #[inline]
    pub fn address(&self) -> usize {
        Arc::as_ptr(&self.inner) as usize
    }

    /// When the content was written last (or may have been), on a clock that counts the writes to all arrays; 0 if never.
    ///
    /// ```
    /// let a = nnrs_kernels::NdArray::new([2].into());
    /// let before = a.modification_count();
    /// a.fill(1.0)?;
    /// assert!(a.modification_count() > before);
    /// # Ok::<(), nnrs_kernels::Error>(())
    /// ```
    #[inline]
    pub fn modification_count(&self) -> u64 {
        self.layout().storage.modification_count()
    }

    /// Another shape for the same elements; with `force` also another size, which drops the content.
    ///
    /// # Errors
    /// Another size without `force`; one that does not fit into memory.
    ///
    /// ```
    /// let a = nnrs_kernels::NdArray::from_slice(&[1i32, 2], [2].into())?;
    /// a.reset_shape([2, 1].into(), false)?;
    /// assert!(a.to_vec::<i32>()? == [1, 2] && a.reset_shape([3].into(), false).is_err());
    /// # Ok::<(), nnrs_kernels::Error>(())
    /// ```
    pub fn reset_shape(&self, shape: Shape, force: bool) -> Result<()> {
        let shape = shape.checked()?;
        let mut place = self.layout();
        if shape.size() != place.shape.size() {
            if !force {
                return Err(Error::shape("shape", format!("{} elements as in {}", place.shape.size(), place.shape))
                    .actual(&shape)
                    .hint("pass force=True to change the size"));
            }
            place.storage = Arc::new(Storage::in_place_of_another(shape.size()));
            place.offset = 0;
        }
        place.shape = shape;
        Ok(())
    }

    /// An array of another shape over the same memory.
    ///
    /// # Errors
    /// A shape of another size.
    ///
    /// ```
    /// use nnrs_kernels::NdArray;
    /// let a = NdArray::new([2, 3].into());
    /// a.reshaped([6].into())?.fill(1.5)?;
    /// assert_eq!(a.to_vec::<f32>()?, [1.5; 6]);
    /// # Ok::<(), nnrs_kernels::Error>(())
    /// ```
    pub fn reshaped(&self, shape: Shape) -> Result<NdArray> {
        let place = self.layout().clone();
        if shape.size() != place.shape.size() {
            let want = format!("{} elements as in {}", place.shape.size(), place.shape);
            return Err(Error::shape("shape", want).actual(shape));
        }
        Ok(NdArray::placed(ArrayLayout { shape, ..place }).handle())
    }

    /// The part `start .. start + length` of axis `dim` (which must be the first that is not 1), over the same memory.
    ///
    /// # Errors
    /// No such part, or not one piece of memory.
    ///
    /// ```
    /// use nnrs_kernels::NdArray;
    /// let a = NdArray::from_slice(&[1i32, 2, 3, 4, 5, 6], [3, 2].into())?;
    /// assert_eq!(a.narrow(0, 1, 2)?.to_vec::<i32>()?, [3, 4, 5, 6]);
    /// # Ok::<(), nnrs_kernels::Error>(())
    /// ```
    pub fn narrow(&self, dim: i64, start: i64, length: i64) -> Result<NdArray> {
        let place = self.layout().clone();
        let axis = place.shape.axis(dim, "dim")?;
        let n = place.shape[axis] as i64;
        let from = if start < 0 { start + n } else { start };
        if !(0..=n).contains(&from) || !(0..=n - from).contains(&length) {
            return Err(Error::arg("start, length", format!("a part of axis {axis} of {}", place.shape))
                .actual(format!("start {start}, length {length}")));
        }
        if place.shape.size_to(axis) != 1 {
            return Err(Error::arg("dim", "an axis with only axes of size 1 before it (the part must be contiguous)")
                .actual(format!("{dim} of {}", place.shape)));
        }
        let mut shape = place.shape.clone();
        shape.as_mut_slice()[axis] = length as usize;
        let offset = place.offset.saturating_add((from as usize).saturating_mul(place.shape.size_from(axis + 1)));
        // In the type in which its function makes it. What cannot be made is an error for the reader of the part.
        if place.storage.fetch().is_ok() {
            place.storage.lay_out(place.storage.dtype())?;
        }
        Ok(NdArray::placed(ArrayLayout { shape, storage: place.storage, offset }).handle())
    }
}

/// For the engine.
#[doc(hidden)]
impl NdArray {
    /// An array without content; memory comes when it is first used, as zeros.
    ///
    /// ```
    /// assert_eq!(nnrs_kernels::NdArray::new([2].into()).to_vec::<f32>()?, [0.0, 0.0]);
    /// # Ok::<(), nnrs_kernels::Error>(())
    /// ```
    #[inline]
    pub fn new(shape: Shape) -> NdArray {
        NdArray::of_engine(shape).handle()
    }

    /// As [`NdArray::new`], for the engine alone.
    #[inline]
    pub fn of_engine(shape: Shape) -> NdArray {
        let storage = Arc::new(Storage::new(shape.size()));
        NdArray::placed(ArrayLayout { shape, storage, offset: 0 })
    }

    fn placed(layout: ArrayLayout) -> NdArray {
        let (handles, variables) = (AtomicU32::new(0), AtomicU32::new(0));
        NdArray { inner: Arc::new(ArrayInner { layout: Mutex::new(layout), handles, variables }), is_handle: false }
    }

    /// A handle for a caller outside the engine: while it or a clone of it lives, what is in the array is not planned away.
    #[inline]
    pub fn handle(&self) -> NdArray {
        self.inner.handles.fetch_add(1, Relaxed);
        NdArray { inner: self.inner.clone(), is_handle: true }
    }

    /// A reference of the engine's, which does not count.
    fn reference(&self) -> NdArray {
        NdArray { inner: self.inner.clone(), is_handle: false }
    }

    #[inline]
    fn layout(&self) -> MutexGuard<'_, ArrayLayout> {
        self.inner.layout.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Addresses of the memory, on the host and on a GPU, and shape, if there is any and no other thread is just changing it.
    #[inline]
    pub fn try_addresses(&self) -> Option<(impl Iterator<Item = usize>, Shape)> {
        let place = self.inner.layout.try_lock().ok()?;
        Some((place.storage.try_addresses()?, place.shape.clone()))
    }

    #[inline]
    pub fn is_held(&self) -> bool {
        self.inner.handles.load(Relaxed) > 0
    }

    /// It can be observed beside the one variable that has it: by a handle, another variable (be it as its gradient), an
    /// array that is a part or a view of it, or a view of another library.
    #[inline]
    pub fn is_observed(&self) -> bool {
        if self.is_kept_by_user_code() {
            return true;
        }
        let layout = self.layout();
        Arc::strong_count(&layout.storage) > 1 || layout.storage.is_exported()
    }

    /// As [`NdArray::is_observed`], for callers that got it in the middle of a run.
    #[inline]
    pub fn is_kept_by_user_code(&self) -> bool {
        self.is_held() || self.inner.variables.load(Relaxed) > 1
    }

    /// True if it is the data or the gradient of a variable.
    #[inline]
    pub fn is_of_variable(&self) -> bool {
        self.inner.variables.load(Relaxed) > 0
    }

    /// True if another variable, or an array that is a part or a view of it, has the same elements.
    #[inline]
    pub fn is_shared(&self) -> bool {
        self.inner.variables.load(Relaxed) > 1 || Arc::strong_count(&self.layout().storage) > 1
    }

    /// True if there is nothing to read.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.layout().storage.is_empty()
    }

    /// True if there is nothing to read but zeros that need no memory.
    #[inline]
    pub fn is_nothing(&self) -> bool {
        self.layout().storage.is_nothing()
    }

    /// Changes are noticed from now on: see [`Storage::watch`].
    #[inline]
    pub fn watch(&self) {
        self.layout().storage.watch();
    }

    /// A function has written it: what another thread was shown meanwhile was not whole.
    #[inline]
    pub fn note_whole(&self) {
        self.layout().storage.note_whole();
    }

    /// A function that may run again has read it: changes are noticed from now on.
    #[inline]
    pub fn note_read(&self) {
        self.watch();
        self.mark();
    }

    /// A function has read it: if there is a view of it, what is there is noted (see [`Storage::mark`]).
    pub fn mark(&self) {
        self.mark_where(Storage::may_be_exported);
    }

    /// As [`NdArray::mark`], if changes are noticed.
    pub fn mark_watched(&self) {
        self.mark_where(|s| s.may_be_exported() && s.is_watched());
    }

    fn mark_where(&self, is_due: impl FnOnce(&Storage) -> bool) {
        let layout = self.layout();
        if !is_due(&layout.storage) {
            return;
        }
        let storage = layout.storage.clone();
        drop(layout);
        storage.mark();
    }

    /// Has a content that was given up made again: see [`Storage::fetch`].
    #[inline]
    pub fn fetch(&self) -> Result<()> {
        match self.is_empty() {
            true => self.storage().fetch(),
            false => Ok(()),
        }
    }

    /// True if the array covers its whole storage (no `narrow`).
    #[inline]
    pub fn is_whole(&self) -> bool {
        self.layout().is_whole()
    }
}

impl std::fmt::Debug for NdArray {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NdArray({}, {})", self.shape(), self.dtype())
    }
}

impl Clone for NdArray {
    #[inline]
    fn clone(&self) -> NdArray {
        if self.is_handle { self.handle() } else { self.reference() }
    }
}

impl Drop for NdArray {
    #[inline]
    fn drop(&mut self) {
        if self.is_handle {
            self.inner.handles.fetch_sub(1, Relaxed);
        }
    }
}

/// While it lives, some arrays that user code is about to fill read as zeros: what was lost is not made again.
pub struct Unset(Vec<(Arc<Storage>, Absent)>);

impl Unset {
    pub fn new<'a>(arrays: impl Iterator<Item = &'a NdArray>) -> Unset {
        let unset = |a: &NdArray| {
            let storage = a.storage();
            let absent = storage.swap_absent(Absent::Unset);
            (storage, absent)
        };
        Unset(arrays.map(unset).collect())
    }
}

impl Drop for Unset {
    #[inline]
    fn drop(&mut self) {
        for (storage, absent) in self.0.drain(..).rev() {
            drop(storage.swap_absent(absent));
        }
    }
}

/// An array as a variable's data or gradient: it counts.
pub struct VariableArray(NdArray);

impl VariableArray {
    #[inline]
    pub fn new(array: NdArray) -> VariableArray {
        array.inner.variables.fetch_add(1, Relaxed);
        VariableArray(array.reference())
    }
}

impl std::ops::Deref for VariableArray {
    type Target = NdArray;
    #[inline]
    fn deref(&self) -> &NdArray {
        &self.0
    }
}

impl Drop for VariableArray {
    #[inline]
    fn drop(&mut self) {
        self.0.inner.variables.fetch_sub(1, Relaxed);
    }
}

#[cfg(feature = "emulate")]
mod tests {
    use super::*;

    unit_test!(views_share_memory);
    fn views_share_memory() {
        let a = NdArray::from_slice(&[1i32, 2, 3, 4, 5, 6], [3, 2].into()).unwrap();
        let b = a.narrow(0, 1, 2).unwrap();
        b.fill(7.0).unwrap();
        assert_eq!(a.to_vec::<i32>().unwrap(), [1, 2, 7, 7, 7, 7]);
        let c = a.reshaped([6].into()).unwrap();
        c.write(&[0i32, 1, 2, 3, 4, 5]).unwrap();
        assert_eq!(b.to_vec::<f32>().unwrap(), [2.0, 3.0, 4.0, 5.0]);
        assert!(a.narrow(0, 2, 2).is_err() && a.reshaped([5].into()).is_err());
    }

    unit_test!(lazy_content);
    fn lazy_content() {
        let a = NdArray::new([1 << 40].into());
        a.fill(3.0).unwrap();
        let b = NdArray::new([4].into());
        assert_eq!(b.to_vec::<f32>().unwrap(), [0.0; 4]);
        b.fill(2.5).unwrap();
        assert_eq!(b.to_vec::<f64>().unwrap(), [2.5; 4]);
        b.cast(DType::I32).unwrap();
        assert_eq!(b.to_vec::<f32>().unwrap(), [2.0; 4]);
    }
}
