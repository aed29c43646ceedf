//! The bytes of arrays: lazily zero or constant, in one element type at a time, converted on demand.

use super::alloc::Block;
use super::mirror::{Access, Place};
use crate::cuda;
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::with_dtype;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};

/// What a storage holds.
#[derive(Clone)]
pub enum Content {
    /// Nothing yet, or cleared: reads as zeros.
    Empty,
    /// All elements are 0; no memory yet.
    Zero,
    /// All elements are this number; no memory yet.
    Fill(f64),
    /// Memory.
    Bytes(Arc<Block>),
}

struct State {
    dtype: DType,
    content: Content,
    /// Set by `clear`, unset by the next content.
    cleared: bool,
    /// The memory may belong to another storage too: who writes first gets memory of its own.
    shared: bool,
    /// What there was when somebody got the memory to look at, and perhaps to write.
    shown: Option<Shown>,
}

/// The content's sum at one count of modifications; from then on to another one it was only shown.
#[derive(Clone, Copy)]
struct Shown {
    from: u64,
    to: u64,
    sum: u64,
}

impl State {
    fn new(dtype: DType, content: Content) -> State {
        State { dtype, content, cleared: false, shared: false, shown: None }
    }

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
    was_shown: AtomicBool,
    /// Some run has marked it: only then a sum will be asked for.
    was_marked: AtomicBool,
}

/// Memory of one element type, on the host or on a GPU, that lives as long as this value.
#[derive(Clone)]
pub struct Data {
    block: Arc<Block>,
    dtype: DType,
    offset: usize,
    len: usize,
    place: Place,
    /// Address of the block there.
    base: usize,
}

impl Storage {
    pub(super) fn new(size: usize) -> Storage {
        let state = State::new(DType::F32, Content::Empty);
        Storage {
            size,
            state: Mutex::new(state),
            modified: AtomicU64::new(0),
            was_shown: AtomicBool::new(false),
            was_marked: AtomicBool::new(false),
        }
    }

    /// An empty storage in the place of another: it goes on counting, so that nobody takes it for unchanged.
    pub(super) fn after(old: &Storage, size: usize) -> Storage {
        Storage { modified: AtomicU64::new(old.modification_count() + 1), ..Storage::new(size) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Number of elements.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The element type; float32 while there is no content.
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

    /// How often the content was written (or may have been).
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

    /// Puts another state in the place of this one. What was there is freed without the lock: a fork in between, which
    /// waits for the allocator, would leave it locked in the child.
    fn replace(&self, state: State) {
        let old = std::mem::replace(&mut *self.state(), state);
        drop(old);
        self.touch();
    }

    /// Drops the content; the next reading finds zeros.
    pub fn clear(&self) {
        let dtype = self.dtype();
        self.replace(State { cleared: true, ..State::new(dtype, Content::Empty) });
    }

    /// Gives the content up: nobody has an interest in it. Not a modification.
    pub(crate) fn release(&self) -> Content {
        std::mem::replace(&mut self.state().content, Content::Empty)
    }

    /// Takes over memory of this storage's size.
    pub(crate) fn adopt(&self, dtype: DType, content: Content) {
        self.replace(State::new(dtype, content));
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

    /// Where the content is; a GPU if it is there too.
    pub(crate) fn place(&self) -> Place {
        match &self.state().content {
            Content::Bytes(b) => b.place(),
            _ => Place::Host,
        }
    }

    /// True if nobody else has the memory.
    pub(crate) fn is_exclusive(&self) -> bool {
        self.state().is_exclusive()
    }

    /// Takes the content of `other` as a whole, if it is memory of this size at which nobody looks. It is shared until one
    /// of the two writes.
    pub(super) fn adopt_shared(&self, other: &Storage) -> bool {
        let mut from = other.state();
        let Content::Bytes(block) = from.content.clone() else { return false };
        if from.is_exported() || other.size != self.size {
            return false;
        }
        from.shared = true;
        let dtype = from.dtype;
        drop(from);
        self.replace(State { shared: true, ..State::new(dtype, Content::Bytes(block)) });
        true
    }

    pub(super) fn set_content(&self, content: Content) {
        let dtype = self.dtype();
        self.replace(State::new(dtype, content));
    }

    /// Makes memory in `dtype` out of whatever there is. Works without the lock, and again if somebody was faster.
    fn own(&self, place: Place, dtype: DType) -> Result<Arc<Block>> {
        loop {
            let (content, from) = {
                let mut s = self.state();
                if let (true, Content::Bytes(block)) = (s.is_own() && s.dtype == dtype, &s.content) {
                    let block = block.clone();
                    s.shared = false;
                    return Ok(block);
                }
                (s.content.clone(), s.dtype)
            };
            let data = match &content {
                Content::Bytes(old) => {
                    Data::over(old.clone(), from, place, Access::Read)?.whole(self.size).converted(dtype)?
                }
                lazy => constant(lazy, place, dtype, self.size)?,
            };
            let mut s = self.state();
            if s.dtype == from && s.content.is(&content) {
                let block = data.block.clone();
                let old = std::mem::replace(&mut *s, State::new(dtype, Content::Bytes(data.block)));
                drop(s);
                drop(old);
                return Ok(block);
            }
        }
    }

    /// Makes sure that there is memory in `dtype`, of this storage alone.
    pub(super) fn lay_out(&self, dtype: DType) -> Result<()> {
        self.own(Place::Host, dtype).map(drop)
    }

    pub(super) fn read(&self, place: Place, dtype: DType, offset: usize, len: usize) -> Result<Data> {
        let (content, now) = {
            let s = self.state();
            (s.content.clone(), s.dtype)
        };
        let part = |data: Data| Data { offset, len, ..data };
        match content {
            Content::Bytes(block) => {
                let data = part(Data::over(block, now, place, Access::Read)?);
                if now == dtype { Ok(data) } else { data.converted(dtype) }
            }
            // Rounded to the type that is asked for, not first to the array's own.
            lazy @ (Content::Zero | Content::Fill(_)) if now != dtype => constant(&lazy, place, dtype, len),
            _ => Ok(part(Data::over(self.own(place, dtype)?, dtype, place, Access::Read)?)),
        }
    }

    pub(super) fn modify(&self, place: Place, dtype: DType, offset: usize, len: usize) -> Result<Data> {
        let data = Data::over(self.own(place, dtype)?, dtype, place, Access::Modify)?;
        self.touch();
        Ok(Data { offset, len, ..data })
    }

    pub(super) fn overwrite(&self, place: Place, dtype: DType, offset: usize, len: usize) -> Result<Data> {
        if len != self.size {
            return self.modify(place, dtype, offset, len);
        }
        let old = {
            let mut s = self.state();
            if s.is_own() && s.can_become(dtype) {
                (s.dtype, s.cleared, s.shared, s.shown) = (dtype, false, false, None);
                let Content::Bytes(block) = &s.content else { unreachable!("it is its own memory") };
                let block = block.clone();
                drop(s);
                self.touch();
                return Ok(Data::over(block, dtype, place, Access::Overwrite)?.whole(len));
            }
            std::mem::replace(&mut s.content, Content::Empty)
        };
        drop(old); // first: its memory may do
        let data = Data::new_at(place, dtype, len)?;
        self.replace(State::new(dtype, Content::Bytes(data.block.clone())));
        Ok(data)
    }

    /// As `modify`, for somebody who will rather look at the elements than write them.
    #[cfg(feature = "python")]
    pub(super) fn show(&self, dtype: DType) -> Result<Data> {
        let before = self.modification_count();
        let data = self.modify(Place::Host, dtype, 0, self.size)?;
        self.was_shown.store(true, Relaxed);
        if !self.was_marked.load(Relaxed) {
            return Ok(data);
        }
        let now = self.modification_count();
        let known = self.state().shown.filter(|shown| shown.to == before);
        let (from, sum) = known.map_or_else(|| (before, data.sum()), |shown| (shown.from, shown.sum));
        self.state().shown = Some(Shown { from, to: now, sum });
        Ok(data)
    }

    /// The count of modifications, to be compared by [`is_as_at`](Storage::is_as_at).
    pub(crate) fn mark(&self) -> u64 {
        let count = self.modification_count();
        self.was_marked.store(true, Relaxed);
        if self.was_shown.load(Relaxed) {
            let shown = self.is_exported().then(|| self.content_sum()).flatten();
            self.was_shown.store(shown.is_some(), Relaxed);
            self.state().shown = shown.map(|sum| Shown { from: count, to: count, sum });
        }
        count
    }

    /// True if the content is what it was when [`mark`](Storage::mark) gave `count`, as far as one can know: nobody had
    /// it for writing, or it was only shown and has the same sum.
    pub(crate) fn is_as_at(&self, count: u64) -> bool {
        let now = self.modification_count();
        if now == count && !self.is_exported() {
            return true;
        }
        let shown = self.state().shown;
        shown.is_some_and(|s| s.from == count && s.to == now && self.content_sum() == Some(s.sum))
    }

    fn content_sum(&self) -> Option<u64> {
        let s = self.state();
        let Content::Bytes(block) = s.content.clone() else { return None };
        let dtype = s.dtype;
        drop(s);
        // What is on a GPU alone, nobody has changed by a view.
        let data = if block.is_away() { None } else { Data::over(block, dtype, Place::Host, Access::Read).ok() };
        data.map(|data| data.whole(self.size).sum())
    }

    pub(super) fn fill_part(&self, offset: usize, len: usize, value: f64) -> Result<()> {
        let dtype = self.dtype();
        let data = self.modify(Place::Host, dtype, offset, len)?;
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
        match len == self.size {
            true => self.overwrite(Place::Host, dtype, offset, len),
            false => self.modify(Place::Host, dtype, offset, len),
        }
    }
}

/// A storage's content as it was at some time.
pub(crate) struct Kept {
    dtype: DType,
    content: Content,
    cleared: bool,
    shared: bool,
    /// Address of the copy on a GPU.
    address: Option<usize>,
}

impl Kept {
    pub(crate) fn is(&self, other: &Kept) -> bool {
        self.dtype == other.dtype
            && self.content.is(&other.content)
            && (self.address.is_none() || self.address == other.address)
    }

    /// A number that tells contents apart, as far as it is worth it.
    pub(crate) fn mark(&self) -> usize {
        match &self.content {
            Content::Empty => 0,
            Content::Zero => 1,
            Content::Fill(v) => v.to_bits() as usize | 2,
            Content::Bytes(b) => Arc::as_ptr(b) as usize,
        }
    }

    /// Brings memory that the GPU had then up to date there, where it must be.
    pub(crate) fn bring(&self, gpu: &'static cuda::Gpu, array: &super::NdArray) -> Result<()> {
        let (Content::Bytes(block), Some(address)) = (&self.content, self.address) else { return Ok(()) };
        match block.at(Place::Gpu(gpu), Access::Read)? == address {
            true => Ok(()),
            false => Err(Error::graph(format!("the memory of {array:?} has moved"))),
        }
    }

    /// The GPU has written the memory.
    pub(crate) fn written_on(&self, gpu: &'static cuda::Gpu) -> Result<()> {
        match (&self.content, self.address) {
            (Content::Bytes(block), Some(_)) => block.at(Place::Gpu(gpu), Access::Overwrite).map(drop),
            _ => Ok(()),
        }
    }
}

impl Storage {
    /// The content as it is now.
    pub(crate) fn keep(&self) -> Kept {
        let s = self.state();
        let address = match &s.content {
            Content::Bytes(b) => b.gpu_address(),
            _ => None,
        };
        Kept { dtype: s.dtype, content: s.content.clone(), cleared: s.cleared, shared: s.shared, address }
    }

    /// Makes the content what it was.
    pub(crate) fn restore(&self, k: &Kept) {
        let (dtype, content) = (k.dtype, k.content.clone());
        self.replace(State { cleared: k.cleared, shared: k.shared, ..State::new(dtype, content) });
    }
}

impl Content {
    /// The same memory, or the same constant.
    fn is(&self, other: &Content) -> bool {
        match (self, other) {
            (Content::Bytes(a), Content::Bytes(b)) => Arc::ptr_eq(a, b),
            (Content::Fill(a), Content::Fill(b)) => a.to_bits() == b.to_bits(),
            (a, b) => std::mem::discriminant(a) == std::mem::discriminant(b),
        }
    }
}

/// Memory with what a lazy content stands for.
fn constant(content: &Content, place: Place, dtype: DType, len: usize) -> Result<Data> {
    let data = Data::new_at(place, dtype, len)?;
    match content {
        _ if place.gpu().is_some() => {
            let value = if let Content::Fill(v) = content { *v } else { 0.0 };
            cuda::kernels::fill(&data, value)?;
        }
        Content::Fill(v) => with_dtype!(dtype, T => data.as_mut_slice::<T>().fill(T::from_f64(*v))),
        _ => data.bytes_mut().fill(0),
    }
    Ok(data)
}

/// Converts `n` elements; both pointers must be valid for them, which every caller in this file knows from its blocks.
fn convert(dst: *mut u8, to: DType, src: *const u8, from: DType, n: usize) {
    // SAFETY: see above.
    unsafe { crate::cpu::simd::convert(dst, to, src, from, n) }
}

impl Data {
    /// Fresh memory on the host, content undefined.
    pub fn new(dtype: DType, len: usize) -> Result<Data> {
        Data::new_at(Place::Host, dtype, len)
    }

    /// Fresh memory, content undefined.
    pub(crate) fn new_at(place: Place, dtype: DType, len: usize) -> Result<Data> {
        let bytes = len.saturating_mul(dtype.size());
        let block = match place {
            Place::Host => Block::new(bytes)?,
            Place::Gpu(gpu) => Block::on_gpu(gpu, bytes)?,
        };
        Ok(Data::over(Arc::new(block), dtype, place, Access::Overwrite)?.whole(len))
    }

    /// A block's memory at `place`; which elements of it is to be said.
    fn over(block: Arc<Block>, dtype: DType, place: Place, access: Access) -> Result<Data> {
        let base = block.at(place, access)?;
        Ok(Data { block, dtype, offset: 0, len: 0, place, base })
    }

    /// All `len` elements of a storage.
    fn whole(self, len: usize) -> Data {
        Data { len, ..self }
    }

    /// The GPU that the memory is of.
    ///
    /// # Panics
    /// If it is the host's.
    pub(crate) fn gpu(&self) -> &'static cuda::Gpu {
        self.place.gpu().expect("memory of a GPU")
    }

    /// Where the memory is.
    pub(crate) fn place(&self) -> Place {
        self.place
    }

    /// Address of the first element on the GPU.
    pub(crate) fn address(&self) -> u64 {
        (self.base + self.offset * self.dtype.size()) as u64
    }

    /// Views of other libraries over this memory.
    #[cfg(feature = "python")]
    pub(crate) fn exports(&self) -> &std::sync::atomic::AtomicUsize {
        self.block.exports()
    }

    /// A number that another content will hardly have.
    fn sum(&self) -> u64 {
        let mut lanes = [0x9e37_79b9_7f4a_7c15_u64; 4];
        let (chunks, rest) = self.bytes_mut().as_chunks::<32>();
        for chunk in chunks {
            for (lane, part) in lanes.iter_mut().zip(chunk.as_chunks::<8>().0) {
                *lane = (*lane ^ u64::from_le_bytes(*part)).wrapping_mul(0xff51_afd7_ed55_8ccd).rotate_left(29);
            }
        }
        let mix = |sum: u64, part: u64| (sum ^ part).wrapping_mul(0xc4ce_b9fe_1a85_ec53).rotate_left(31);
        rest.iter().map(|&b| b as u64).chain(lanes).fold(self.bytes() as u64, mix)
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

    /// The elements from number `n` on.
    pub(crate) fn after(&self, n: usize) -> Data {
        assert!(n <= self.len, "an element of the array");
        Data { offset: self.offset + n, len: self.len - n, ..self.clone() }
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Where the first element lies.
    ///
    /// # Panics
    /// If it is on a GPU.
    pub fn ptr(&self) -> *mut u8 {
        assert!(matches!(self.place, Place::Host), "memory of a GPU was taken for the host's");
        (self.base + self.offset * self.dtype.size()) as *mut u8
    }

    fn bytes(&self) -> usize {
        self.len * self.dtype.size()
    }

    /// A copy in another element type.
    pub fn converted(&self, dtype: DType) -> Result<Data> {
        let data = Data::new_at(self.place, dtype, self.len)?;
        data.take(self)?;
        Ok(data)
    }

    /// Copies (and converts) the elements of `src`, which has as many and is at the same place.
    pub(crate) fn take(&self, src: &Data) -> Result<()> {
        match self.place {
            Place::Host => self.copy_from(src),
            Place::Gpu(_) => cuda::kernels::convert(self, src)?,
        }
        Ok(())
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

    /// The elements for reading.
    ///
    /// # Panics
    /// If `T` is not their type.
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
