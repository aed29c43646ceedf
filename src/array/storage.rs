//! The bytes of arrays: lazily zero or constant, in one element type at a time, converted on demand.

use super::alloc::Block;
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::with_dtype;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};

/// What a storage holds.
#[derive(Clone)]
pub enum Content {
    /// Nothing yet, or cleared: reads as zeros.
    Empty,
    Zero,
    Fill(f64),
    Bytes(Arc<Block>),
}

struct State {
    dtype: DType,
    content: Content,
    /// Set by `clear`, unset by the next content.
    cleared: bool,
    /// The memory may belong to another storage too: who writes first gets memory of its own.
    shared: bool,
}

impl State {
    /// Nobody else has the memory, as content or to work on it.
    fn is_exclusive(&self) -> bool {
        matches!(&self.content, Content::Bytes(b) if Arc::strong_count(b) == 1)
    }

    /// The memory can be written without another storage noticing.
    fn is_own(&self) -> bool {
        matches!(self.content, Content::Bytes(_)) && (!self.shared || self.is_exclusive())
    }

    /// The memory can hold elements of another type.
    fn can_become(&self, dtype: DType) -> bool {
        self.dtype == dtype || (self.dtype.size() == dtype.size() && !self.is_exported())
    }

    fn is_exported(&self) -> bool {
        matches!(&self.content, Content::Bytes(b) if b.exports().load(Relaxed) > 0)
    }
}

/// Elements shared by arrays. All access goes through [`Data`], which keeps the memory alive.
///
/// Two threads that write one array at the same time get mixed numbers, as with NumPy; never a crash.
pub struct Storage {
    size: usize,
    state: Mutex<State>,
    modified: AtomicU64,
}

/// Memory of one element type that lives as long as this value.
#[derive(Clone)]
pub struct Data {
    block: Arc<Block>,
    dtype: DType,
    offset: usize,
    len: usize,
}

impl Storage {
    pub(super) fn new(size: usize) -> Storage {
        let state = State { dtype: DType::F32, content: Content::Empty, cleared: false, shared: false };
        Storage { size, state: Mutex::new(state), modified: AtomicU64::new(0) }
    }

    /// An empty storage in the place of another: it goes on counting, so that nobody takes it for unchanged.
    pub(super) fn after(old: &Storage, size: usize) -> Storage {
        Storage { modified: AtomicU64::new(old.modification_count() + 1), ..Storage::new(size) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    pub fn size(&self) -> usize {
        self.size
    }

    pub fn dtype(&self) -> DType {
        self.state().dtype
    }

    /// Bytes of memory that are really held.
    pub fn bytes(&self) -> usize {
        match &self.state().content {
            Content::Bytes(b) => b.bytes(),
            _ => 0,
        }
    }

    pub fn modification_count(&self) -> u64 {
        self.modified.load(Relaxed)
    }

    fn touch(&self) {
        self.modified.fetch_add(1, Relaxed);
    }

    /// True if there is nothing to read.
    pub fn is_empty(&self) -> bool {
        matches!(self.state().content, Content::Empty)
    }

    /// True if the content is a lazy zero.
    pub fn is_zero(&self) -> bool {
        matches!(self.state().content, Content::Zero)
    }

    /// The number that all elements have, if the content is kept as such.
    pub(crate) fn constant(&self) -> Option<f64> {
        match self.state().content {
            Content::Zero => Some(0.0),
            Content::Fill(v) => Some(v),
            _ => None,
        }
    }

    /// True if `clear` was called since the last content.
    pub fn is_cleared(&self) -> bool {
        self.state().cleared
    }

    pub fn clear(&self) {
        let mut s = self.state();
        s.content = Content::Empty;
        s.cleared = true;
        drop(s);
        self.touch();
    }

    /// Gives the content up: nobody has an interest in it. Not a modification.
    pub(crate) fn release(&self) -> Content {
        std::mem::replace(&mut self.state().content, Content::Empty)
    }

    /// Takes over memory of this storage's size.
    pub(crate) fn adopt(&self, dtype: DType, content: Content) {
        let mut s = self.state();
        *s = State { dtype, content, cleared: false, shared: false };
        drop(s);
        self.touch();
    }

    /// Address of the memory, if there is any and nobody is just changing it.
    pub(crate) fn try_address(&self) -> Option<usize> {
        match &self.state.try_lock().ok()?.content {
            Content::Bytes(b) => Some(b.ptr() as usize),
            _ => None,
        }
    }

    /// True if a view of another library over the memory is alive.
    pub(crate) fn is_exported(&self) -> bool {
        self.state().is_exported()
    }

    /// True if nobody else has the memory.
    pub(crate) fn is_exclusive(&self) -> bool {
        self.state().is_exclusive()
    }

    /// Takes the content of `other`, of `data`'s elements. Whole memory is shared until one of the two writes; what others
    /// look at, or a part of a larger one, is copied.
    pub(super) fn adopt_shared(&self, other: &Storage, data: Data) -> Result<()> {
        let data = data.of(self.size)?;
        let mut from = other.state();
        let is_current = matches!(&from.content, Content::Bytes(b) if Arc::ptr_eq(b, &data.block));
        if !is_current || from.is_exported() || other.size != self.size {
            drop(from);
            self.overwrite(data.dtype, 0, self.size)?.copy_bytes(&data);
            return Ok(());
        }
        from.shared = true;
        drop(from);
        let content = Content::Bytes(data.block);
        *self.state() = State { dtype: data.dtype, content, cleared: false, shared: true };
        self.touch();
        Ok(())
    }

    pub(super) fn set_content(&self, content: Content) {
        let mut s = self.state();
        s.content = content;
        s.cleared = false;
        drop(s);
        self.touch();
    }

    /// Makes memory in `dtype` out of whatever there is.
    pub(super) fn own(&self, dtype: DType) -> Result<()> {
        own(&mut self.state(), self.size, dtype)
    }

    pub(super) fn read(&self, dtype: DType, offset: usize, len: usize) -> Result<Data> {
        let mut s = self.state();
        if !matches!(s.content, Content::Bytes(_)) {
            own(&mut s, self.size, dtype)?; // a constant has no type until somebody asks for one
        }
        let Content::Bytes(block) = &s.content else { unreachable!("owned above") };
        let data = Data { block: block.clone(), dtype: s.dtype, offset, len };
        drop(s);
        if data.dtype == dtype { Ok(data) } else { data.converted(dtype) }
    }

    pub(super) fn modify(&self, dtype: DType, offset: usize, len: usize) -> Result<Data> {
        let mut s = self.state();
        own(&mut s, self.size, dtype)?;
        let Content::Bytes(block) = &s.content else { unreachable!("owned above") };
        let data = Data { block: block.clone(), dtype, offset, len };
        drop(s);
        self.touch();
        Ok(data)
    }

    pub(super) fn overwrite(&self, dtype: DType, offset: usize, len: usize) -> Result<Data> {
        if len != self.size {
            return self.modify(dtype, offset, len);
        }
        let mut s = self.state();
        if !(s.is_own() && s.can_become(dtype)) {
            s.content = Content::Empty;
            s.content = Content::Bytes(Arc::new(Block::new(self.size.saturating_mul(dtype.size()))?));
        }
        (s.dtype, s.cleared, s.shared) = (dtype, false, false);
        let Content::Bytes(block) = &s.content else { unreachable!("set above") };
        let data = Data { block: block.clone(), dtype, offset: 0, len };
        drop(s);
        self.touch();
        Ok(data)
    }

    pub(super) fn fill_part(&self, offset: usize, len: usize, value: f64) -> Result<()> {
        let dtype = self.dtype();
        let data = self.modify(dtype, offset, len)?;
        with_dtype!(dtype, T => data.as_mut_slice::<T>().fill(T::from_f64(value)));
        Ok(())
    }

    /// Copies values in, converting to this storage's type; an empty storage takes theirs.
    pub(super) fn write_from<T: Element>(&self, offset: usize, values: &[T]) -> Result<()> {
        let dtype = if self.is_empty() { T::DTYPE } else { self.dtype() };
        let data = self.overwrite_or_modify(dtype, offset, values.len())?;
        convert(data.ptr(), dtype, values.as_ptr() as *const u8, T::DTYPE, values.len());
        Ok(())
    }

    fn overwrite_or_modify(&self, dtype: DType, offset: usize, len: usize) -> Result<Data> {
        if len == self.size { self.overwrite(dtype, offset, len) } else { self.modify(dtype, offset, len) }
    }
}

fn own(s: &mut State, size: usize, dtype: DType) -> Result<()> {
    if s.is_own() && s.dtype == dtype {
        s.shared = false;
        return Ok(());
    }
    let block = Arc::new(Block::new(size.saturating_mul(dtype.size()))?);
    let data = Data { block, dtype, offset: 0, len: size };
    match &s.content {
        Content::Empty | Content::Zero => data.bytes_mut().fill(0),
        Content::Fill(v) => with_dtype!(dtype, T => data.as_mut_slice::<T>().fill(T::from_f64(*v))),
        Content::Bytes(old) => convert(data.ptr(), dtype, old.ptr(), s.dtype, size),
    }
    *s = State { dtype, content: Content::Bytes(data.block), cleared: false, shared: false };
    Ok(())
}

/// Converts `n` elements; both pointers must be valid for them, which every caller in this file knows from its blocks.
fn convert(dst: *mut u8, to: DType, src: *const u8, from: DType, n: usize) {
    // SAFETY: see above.
    unsafe { crate::cpu::simd::convert(dst, to, src, from, n) }
}

impl Data {
    /// Fresh memory, content undefined.
    pub fn new(dtype: DType, len: usize) -> Result<Data> {
        let block = Arc::new(Block::new(len.saturating_mul(dtype.size()))?);
        Ok(Data { block, dtype, offset: 0, len })
    }

    /// Views of other libraries over this memory.
    #[cfg(feature = "python")]
    pub(crate) fn exports(&self) -> &std::sync::atomic::AtomicUsize {
        self.block.exports()
    }

    /// The same memory, if it still has `n` elements: another thread, or user code in the middle of a run, may have given
    /// its array another size.
    pub(crate) fn of(self, n: usize) -> Result<Data> {
        match self.len == n {
            true => Ok(self),
            false => Err(Error::graph(format!(
                "the shape of an array was changed while it was in use: it has {} elements now instead of {n}",
                self.len
            ))
            .hint("reset_shape is for graphs that do not run at the moment: not for hooks, nor for another thread")),
        }
    }

    pub fn dtype(&self) -> DType {
        self.dtype
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn ptr(&self) -> *mut u8 {
        // SAFETY: the offset lies inside the block.
        unsafe { self.block.ptr().add(self.offset * self.dtype.size()) }
    }

    fn bytes(&self) -> usize {
        self.len * self.dtype.size()
    }

    /// A copy in another element type.
    pub fn converted(&self, dtype: DType) -> Result<Data> {
        let data = Data::new(dtype, self.len)?;
        convert(data.ptr(), dtype, self.ptr(), self.dtype, self.len);
        Ok(data)
    }

    /// Copies (and converts) the elements of `src`, which has as many.
    pub fn copy_from(&self, src: &Data) {
        assert_eq!(self.len, src.len, "copy between arrays of one size");
        convert(self.ptr(), self.dtype, src.ptr(), src.dtype, self.len);
    }

    pub(super) fn copy_bytes(&self, src: &Data) {
        // SAFETY: same type and length; the ranges may overlap, which `copy` allows.
        unsafe { std::ptr::copy(src.ptr(), self.ptr(), self.bytes()) }
    }

    /// The memory as bytes, for writing; see `as_mut_slice` on sharing.
    #[allow(clippy::mut_from_ref)]
    pub(crate) fn bytes_mut(&self) -> &mut [u8] {
        // SAFETY: the block has that many bytes; see `as_mut_slice` on sharing.
        unsafe { std::slice::from_raw_parts_mut(self.ptr(), self.bytes()) }
    }

    pub fn as_slice<T: Element>(&self) -> &[T] {
        assert_eq!(T::DTYPE, self.dtype);
        // SAFETY: type checked; memory lives as long as self, is aligned, and any bytes are a value
        // (bools are only ever written as 0 or 1).
        unsafe { std::slice::from_raw_parts(self.ptr() as *const T, self.len) }
    }

    /// The elements for writing. The caller is the only one who works on this memory now: the engine by its plan,
    /// a user as with NumPy.
    #[allow(clippy::mut_from_ref)]
    pub fn as_mut_slice<T: Element>(&self) -> &mut [T] {
        assert_eq!(T::DTYPE, self.dtype);
        // SAFETY: as in `as_slice`, and exclusive by the contract above.
        unsafe { std::slice::from_raw_parts_mut(self.ptr() as *mut T, self.len) }
    }
}
