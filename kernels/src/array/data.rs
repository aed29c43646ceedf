//! Memory of one element type that is being worked on.

use super::alloc::Block;
use super::mirror::Access;
use super::storage::Content;
use crate::device::{DeviceMemory, Place};
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::pool;
use crate::pool::tasks::{MIN_PARALLEL, PART, SendPtr};
use crate::simd;
use crate::with_dtype;
use std::ops::Range;
use std::sync::Arc;

/// Memory of one element type, on the host or on a GPU, that lives as long as this value.
///
/// ```
/// let a = nnrs_kernels::NdArray::from_slice(&[1.0f32, 2.0], [2].into())?;
/// let data = a.read(nnrs_kernels::DType::F32)?;
/// drop(a);
/// assert_eq!(data.as_slice::<f32>(), [1.0, 2.0]);
/// # Ok::<(), nnrs_kernels::Error>(())
/// ```
#[derive(Clone)]
pub struct Data {
    block: Arc<Block>,
    dtype: DType,
    offset: usize,
    len: usize,
    place: Place,
    /// Address of the block there.
    base: usize,
    /// The block's memory there, if that is a GPU.
    _memory: Option<Arc<DeviceMemory>>,
}

/// Converts `n` elements, large arrays on all threads; both pointers must be valid for them, which every caller knows from its blocks.
#[inline]
pub(super) fn convert(dst: *mut u8, to: DType, src: *const u8, from: DType, n: usize) {
    if n < MIN_PARALLEL || meet((dst as usize, n * to.size()), (src as usize, n * from.size())) {
        // SAFETY: see above.
        return unsafe { crate::simd::convert(dst, to, src, from, n) };
    }
    let (dst, src) = (SendPtr(dst), SendPtr(src.cast_mut()));
    pool::run(n.div_ceil(PART), &|i| {
        let (dst, src) = (dst.add(i * PART * to.size()).0, src.add(i * PART * from.size()).0);
        // SAFETY: as above; the parts of tasks do not overlap.
        unsafe { crate::simd::convert(dst, to, src, from, PART.min(n - i * PART)) }
    });
}

/// Whether two pieces of memory, each an address and its bytes, have a part in common.
#[inline]
fn meet((a, n): (usize, usize), (b, m): (usize, usize)) -> bool {
    a < b + m && b < a + n
}

/// Elements that are converted before a run is asked again whether to stop.
const PIECE: usize = 1 << 22;

/// What a function gives that meets an array of another size than when its call was prepared.
#[inline]
pub fn shape_changed(how: String) -> Error {
    Error::graph(format!("the shape of an array was changed while it was in use: {how}"))
        .hint("reset_shape is for graphs that do not run at the moment: not for hooks, nor for another thread")
}

impl Data {
    /// Fresh memory on the host, content undefined.
    ///
    /// # Errors
    /// Not enough memory.
    ///
    /// ```
    /// let data = nnrs_kernels::array::Data::new(nnrs_kernels::DType::I32, 3)?;
    /// unsafe { data.slice_mut::<i32>().fill(7) }; // SAFETY: no other owner
    /// assert_eq!(data.as_slice::<i32>(), [7, 7, 7]);
    /// # Ok::<(), nnrs_kernels::Error>(())
    /// ```
    #[inline]
    pub fn new(dtype: DType, len: usize) -> Result<Data> {
        Data::new_at(Place::Host, dtype, len)
    }

    /// The element type.
    ///
    /// ```
    /// assert_eq!(nnrs_kernels::array::Data::new(nnrs_kernels::DType::I32, 3)?.dtype(), nnrs_kernels::DType::I32);
    /// # Ok::<(), nnrs_kernels::Error>(())
    /// ```
    #[inline]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Number of elements.
    ///
    /// ```
    /// assert_eq!(nnrs_kernels::array::Data::new(nnrs_kernels::DType::I32, 3)?.len(), 3);
    /// # Ok::<(), nnrs_kernels::Error>(())
    /// ```
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if there are no elements.
    ///
    /// ```
    /// use nnrs_kernels::{array::Data, DType};
    /// assert!(Data::new(DType::I32, 0)?.is_empty() && !Data::new(DType::I32, 3)?.is_empty());
    /// # Ok::<(), nnrs_kernels::Error>(())
    /// ```
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Where the first element lies.
    ///
    /// # Panics
    /// If it is on a GPU.
    ///
    /// ```
    /// let data = nnrs_kernels::array::Data::new(nnrs_kernels::DType::F32, 3)?;
    /// assert_eq!(data.ptr() as *const f32, data.as_slice::<f32>().as_ptr());
    /// # Ok::<(), nnrs_kernels::Error>(())
    /// ```
    #[inline]
    pub fn ptr(&self) -> *mut u8 {
        assert!(matches!(self.place, Place::Host), "memory of a GPU was taken for the host's");
        (self.base + self.offset * self.dtype.size()) as *mut u8
    }

    /// A copy in another element type.
    ///
    /// # Errors
    /// Not enough memory.
    ///
    /// ```
    /// let data = nnrs_kernels::NdArray::from_slice(&[1i32, -2], [2].into())?.read(nnrs_kernels::DType::I32)?;
    /// assert_eq!(data.converted(nnrs_kernels::DType::F64)?.as_slice::<f64>(), [1.0, -2.0]);
    /// # Ok::<(), nnrs_kernels::Error>(())
    /// ```
    #[inline]
    pub fn converted(&self, dtype: DType) -> Result<Data> {
        let data = Data::new_at(self.place, dtype, self.len)?;
        if self.place != Place::Host {
            data.take(self)?;
            return Ok(data);
        }
        for from in (0..self.len).step_by(PIECE) {
            pool::check();
            let n = PIECE.min(self.len - from);
            let (to, source) =
                (data.ptr().wrapping_add(from * dtype.size()), self.ptr().wrapping_add(from * self.dtype.size()));
            convert(to, dtype, source, self.dtype, n);
        }
        Ok(data)
    }

    /// Copies (and converts) the elements of `src`, which has as many; they may overlap.
    ///
    /// # Panics
    /// If `src` has another number of elements, or one of the two is on a GPU.
    ///
    /// ```
    /// use nnrs_kernels::{array::Data, DType};
    /// let (a, b) = (Data::new(DType::F32, 2)?, Data::new(DType::U8, 2)?);
    /// unsafe { a.slice_mut::<f32>().copy_from_slice(&[1.0, 2.0]) }; // SAFETY: no other owner
    /// b.copy_from(&a);
    /// assert_eq!(b.as_slice::<u8>(), [1, 2]);
    /// # Ok::<(), nnrs_kernels::Error>(())
    /// ```
    pub fn copy_from(&self, src: &Data) {
        assert_eq!(self.len, src.len, "copy between arrays of one size");
        if self.dtype != src.dtype && meet((self.ptr() as usize, self.bytes()), (src.ptr() as usize, src.bytes())) {
            let apart = src.bytes_mut().to_vec();
            return convert(self.ptr(), self.dtype, apart.as_ptr(), src.dtype, self.len);
        }
        convert(self.ptr(), self.dtype, src.ptr(), src.dtype, self.len);
    }

    /// The elements for reading.
    ///
    /// # Panics
    /// If `T` is not their type, or they are on a GPU.
    ///
    /// ```
    /// let data = nnrs_kernels::NdArray::from_slice(&[1.5f32, 2.0], [2].into())?.read(nnrs_kernels::DType::F32)?;
    /// assert_eq!(data.as_slice::<f32>(), [1.5, 2.0]);
    /// # Ok::<(), nnrs_kernels::Error>(())
    /// ```
    #[inline]
    pub fn as_slice<T: Element>(&self) -> &[T] {
        assert_eq!(T::DTYPE, self.dtype);
        // SAFETY: type checked; memory lives as long as self, is aligned, and any bytes are a value
        // (bools are only ever written as 0 or 1).
        unsafe { std::slice::from_raw_parts(self.ptr() as *const T, self.len) }
    }

    /// The elements for writing, for a caller outside of the engine. [`NdArray::write`](super::NdArray::write) needs no
    /// `unsafe`.
    ///
    /// # Safety
    /// While the slice lives, nothing else reads or writes this memory: no run, no other `Data` of the array.
    ///
    /// # Panics
    /// If `T` is not their type, or they are on a GPU.
    ///
    /// ```
    /// let a = nnrs_kernels::NdArray::from_slice(&[1.0f32, 2.0], [2].into())?;
    /// // SAFETY: there is no other handle of the array.
    /// unsafe { a.modify(nnrs_kernels::DType::F32)?.slice_mut::<f32>()[0] = 0.5 };
    /// assert_eq!(a.to_vec::<f32>()?, [0.5, 2.0]);
    /// # Ok::<(), nnrs_kernels::Error>(())
    /// ```
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn slice_mut<T: Element>(&self) -> &mut [T] {
        self.as_mut_slice()
    }
}

/// For the engine.
#[doc(hidden)]
impl Data {
    /// Fresh memory, content undefined.
    pub fn new_at(place: Place, dtype: DType, len: usize) -> Result<Data> {
        let bytes = len.saturating_mul(dtype.size());
        let block = match place {
            Place::Host => Block::new(bytes)?,
            Place::Gpu(gpu) => Block::on_gpu(gpu, bytes)?,
        };
        Ok(Data::over(Arc::new(block), dtype, place, Access::Overwrite)?.whole(len))
    }

    /// A block's memory at `place`; which elements of it is to be said.
    #[inline]
    pub(super) fn over(block: Arc<Block>, dtype: DType, place: Place, access: Access) -> Result<Data> {
        if access != Access::Read {
            block.kept.forget();
        }
        let (base, memory) = block.at(place, access)?;
        Ok(Data { block, dtype, offset: 0, len: 0, place, base, _memory: memory })
    }

    /// All `len` elements of a storage.
    #[inline]
    pub(super) fn whole(self, len: usize) -> Data {
        self.part(0, len)
    }

    /// `len` elements of a storage, from number `offset` on.
    #[inline]
    pub fn part(self, offset: usize, len: usize) -> Data {
        assert!((offset + len) * self.dtype.size() <= self.block.asked(), "elements of the block");
        Data { offset, len, ..self }
    }

    /// Where its elements are among those of the block.
    #[inline]
    pub(super) fn elements(&self) -> Range<usize> {
        self.offset..self.offset + self.len
    }

    #[inline]
    pub(super) fn block(&self) -> &Arc<Block> {
        &self.block
    }

    /// Memory with what a lazy content stands for.
    #[inline]
    pub(super) fn constant(content: &Content, place: Place, dtype: DType, len: usize) -> Result<Data> {
        let data = Data::new_at(place, dtype, len)?;
        data.fill_with(content)?;
        Ok(data)
    }

    /// Writes what a lazy content stands for.
    pub(super) fn fill_with(&self, content: &Content) -> Result<()> {
        match (self.place, content) {
            (Place::Gpu(device), _) => {
                let value = content.number().unwrap_or(0.0);
                // SAFETY: the memory there has the elements.
                unsafe { device.fill(self.address(), self.dtype, self.len, value)? }
            }
            (Place::Host, Content::Fill(v)) => {
                with_dtype!(self.dtype, T => simd::fill(self.as_mut_slice::<T>(), T::from_f64(*v)))
            }
            (Place::Host, _) => self.bytes_mut().fill(0),
        }
        Ok(())
    }

    /// Where the memory is.
    #[inline]
    pub fn place(&self) -> Place {
        self.place
    }

    /// Address of the first element on the GPU.
    #[inline]
    pub fn address(&self) -> u64 {
        (self.base + self.offset * self.dtype.size()) as u64
    }

    /// A kernel has written it. On a GPU another thread may have looked between the call for the memory and the launch.
    #[inline]
    pub fn note_written(&self) {
        if let Place::Gpu(_) = self.place {
            self.block.note_written_at(self.base);
        }
    }

    /// Views of other libraries over this memory.
    #[inline]
    pub(super) fn views(&self) -> &super::views::Views {
        &self.block.views
    }

    /// A number that another content will hardly have.
    pub(super) fn sum(&self) -> u64 {
        let mut lanes = [0x9e37_79b9_7f4a_7c15_u64; 4];
        let (chunks, rest) = self.bytes_mut().as_chunks::<32>();
        for chunk in chunks {
            for (lane, part) in lanes.iter_mut().zip(chunk.as_chunks::<8>().0) {
                let v = *lane ^ u64::from_le_bytes(*part);
                *lane = (v ^ (v >> 32)).wrapping_mul(0xff51_afd7_ed55_8ccd).rotate_left(29);
            }
        }
        let mix = |sum: u64, part: u64| {
            let v = sum ^ part;
            (v ^ (v >> 32)).wrapping_mul(0xc4ce_b9fe_1a85_ec53).rotate_left(31)
        };
        rest.iter().map(|&b| b as u64).chain(lanes).fold(self.bytes() as u64, mix)
    }

    /// The same memory, if it still has `n` elements: another thread, or user code in the middle of a run, may have given
    /// its array another size.
    #[inline(always)]
    pub fn of(self, n: usize) -> Result<Data> {
        match self.len == n {
            true => Ok(self),
            false => Err(shape_changed(format!("it has {} elements now instead of {n}", self.len))),
        }
    }

    /// The `n` elements from number `first` on.
    #[inline]
    pub fn within(&self, first: usize, n: usize) -> Data {
        Data { len: n, ..self.after(first) }
    }

    /// The elements from number `n` on.
    #[inline]
    pub fn after(&self, n: usize) -> Data {
        assert!(n <= self.len, "an element of the array");
        Data { offset: self.offset + n, len: self.len - n, ..self.clone() }
    }

    /// What the elements take.
    pub fn bytes(&self) -> usize {
        self.len * self.dtype.size()
    }

    /// Copies (and converts) the elements of `src`, which has as many and is at the same place.
    #[inline]
    pub fn take(&self, src: &Data) -> Result<()> {
        match self.place {
            Place::Host => self.copy_from(src),
            Place::Gpu(device) => {
                assert!(self.len == src.len && self.place == src.place, "copy between arrays of one size at one place");
                let (to, from) = ((self.address(), self.dtype), (src.address(), src.dtype));
                // SAFETY: both have as many elements, on the device.
                unsafe { device.convert(to, from, self.len)? }
                self.note_written();
            }
        }
        Ok(())
    }

    #[inline]
    pub(super) fn copy_bytes(&self, src: &Data) {
        // SAFETY: same type and length; the ranges may overlap, which `copy` allows.
        unsafe { std::ptr::copy(src.ptr(), self.ptr(), self.bytes()) }
    }

    /// True if it is part of the same memory as one of `others`, and not the same part: parts (`narrow`) may overlap.
    #[inline]
    pub fn overlaps_shifted(&self, others: &[Data]) -> bool {
        let (begin, end) = (self.address(), self.address() + self.bytes() as u64);
        let meets = |o: &Data| o.address() < end && begin < o.address() + o.bytes() as u64;
        others.iter().any(|o| (o.address(), o.bytes()) != (begin, self.bytes()) && meets(o))
    }

    /// Makes 0 or 1 of each byte: booleans that other code wrote may be any, which would be undefined behaviour in a `bool`.
    #[inline]
    pub fn settle_booleans(&self) {
        self.bytes_mut().iter_mut().for_each(|b| *b = (*b != 0) as u8);
    }

    /// The memory as bytes, for writing; see `as_mut_slice` on sharing.
    #[allow(clippy::mut_from_ref)]
    #[inline]
    pub fn bytes_mut(&self) -> &mut [u8] {
        // SAFETY: the block has that many bytes; see `as_mut_slice` on sharing.
        unsafe { std::slice::from_raw_parts_mut(self.ptr(), self.bytes()) }
    }

    /// The elements for writing. The caller is the only one who works on this memory now: by the engine's plan.
    #[allow(clippy::mut_from_ref)]
    #[inline]
    pub fn as_mut_slice<T: Element>(&self) -> &mut [T] {
        assert_eq!(T::DTYPE, self.dtype);
        // SAFETY: as in `as_slice`, and exclusive by the contract above.
        unsafe { std::slice::from_raw_parts_mut(self.ptr() as *mut T, self.len) }
    }
}
