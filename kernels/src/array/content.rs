//! What is in an array: reading, writing, copying and converting it.

use super::mirror::Access;
use super::storage::note_clear;
use super::{Content, Data, Export, Maker, NdArray, Place, Storage};
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use std::sync::{Arc, Weak};

/// What an array has to read.
pub enum ReadContent {
    Nothing,
    /// All elements are this number.
    Constant(f64),
    Data(Data),
}

impl NdArray {
    /// Sets all elements to `value`, lazily.
    ///
    /// # Errors
    /// Not enough memory, which only a part of another array needs.
    ///
    /// ```
    /// let a = nnrs_kernels::NdArray::new([2].into());
    /// a.fill(1.5)?;
    /// assert_eq!(a.to_vec::<f32>()?, [1.5, 1.5]);
    /// # Ok::<(), nnrs_kernels::Error>(())
    /// ```
    #[inline]
    pub fn fill(&self, value: f64) -> Result<()> {
        self.set_number(value, Content::Fill(value))
    }

    /// Sets all elements to 0, lazily.
    ///
    /// # Errors
    /// As [`NdArray::fill`].
    ///
    /// ```
    /// let a = nnrs_kernels::NdArray::from_slice(&[1.0f32, 2.0], [2].into())?;
    /// a.zero()?;
    /// assert!(a.to_vec::<f32>()? == [0.0, 0.0] && a.storage().bytes() > 0);
    /// # Ok::<(), nnrs_kernels::Error>(())
    /// ```
    #[inline]
    pub fn zero(&self) -> Result<()> {
        self.set_number(0.0, Content::Zero)?;
        if !self.is_whole() {
            self.storage().note_zeroed(self.offset(), self.size());
        }
        Ok(())
    }

    /// Drops the content; the next reading finds zeros, or what the function makes again whose output it is.
    ///
    /// ```
    /// let a = nnrs_kernels::NdArray::from_slice(&[1.0f32], [1].into())?;
    /// a.clear();
    /// assert!(a.storage().is_cleared() && a.to_vec::<f32>()? == [0.0]);
    /// # Ok::<(), nnrs_kernels::Error>(())
    /// ```
    #[inline]
    pub fn clear(&self) {
        note_clear();
        self.storage().clear();
    }

    /// The content as memory of type `dtype` for reading: no copy if it is so already; otherwise converted beside it.
    ///
    /// # Errors
    /// Not enough memory.
    ///
    /// ```
    /// let a = nnrs_kernels::NdArray::from_slice(&[1.5f32], [1].into())?;
    /// assert_eq!(a.read(nnrs_kernels::DType::F64)?.as_slice::<f64>(), [1.5]);
    /// assert_eq!(a.dtype(), nnrs_kernels::DType::F32);
    /// # Ok::<(), nnrs_kernels::Error>(())
    /// ```
    #[inline]
    pub fn read(&self, dtype: DType) -> Result<Data> {
        self.read_at(Place::Host, dtype)
    }

    /// The memory of the array for reading and writing, converted to `dtype` for good.
    ///
    /// # Errors
    /// Not enough memory.
    ///
    /// ```
    /// let a = nnrs_kernels::NdArray::from_slice(&[1i32, 2], [2].into())?;
    /// // SAFETY: there is no other handle of the array.
    /// unsafe { a.modify(nnrs_kernels::DType::F32)?.slice_mut::<f32>()[0] = 0.5 };
    /// assert_eq!(a.to_vec::<f32>()?, [0.5, 2.0]);
    /// # Ok::<(), nnrs_kernels::Error>(())
    /// ```
    #[inline]
    pub fn modify(&self, dtype: DType) -> Result<Data> {
        self.modify_at(Place::Host, dtype)
    }

    /// The memory for writing all of it as `dtype`; its content is undefined until then.
    ///
    /// # Errors
    /// Not enough memory.
    ///
    /// ```
    /// let a = nnrs_kernels::NdArray::new([2].into());
    /// // SAFETY: there is no other handle of the array.
    /// unsafe { a.overwrite(nnrs_kernels::DType::I64)?.slice_mut::<i64>().copy_from_slice(&[3, 4]) };
    /// assert_eq!(a.to_vec::<i64>()?, [3, 4]);
    /// # Ok::<(), nnrs_kernels::Error>(())
    /// ```
    #[inline]
    pub fn overwrite(&self, dtype: DType) -> Result<Data> {
        self.overwrite_at(Place::Host, dtype)
    }

    /// Converts the content to `dtype` for good.
    ///
    /// # Errors
    /// Not enough memory.
    ///
    /// ```
    /// use nnrs_kernels::{DType, NdArray};
    /// let a = NdArray::from_slice(&[1.5f32, -2.5], [2].into())?;
    /// a.cast(DType::I32)?;
    /// assert_eq!((a.dtype(), a.to_vec::<f64>()?), (DType::I32, vec![1.0, -2.0]));
    /// # Ok::<(), nnrs_kernels::Error>(())
    /// ```
    #[inline]
    pub fn cast(&self, dtype: DType) -> Result<()> {
        self.storage().lay_out(dtype)
    }

    /// Copies the elements of `other`, with its element type.
    ///
    /// # Errors
    /// Another shape; not enough memory.
    ///
    /// ```
    /// let (a, b) = (nnrs_kernels::NdArray::new([1].into()), nnrs_kernels::NdArray::from_slice(&[7u8], [1].into())?);
    /// a.copy_from(&b)?;
    /// assert!(a.to_vec::<u8>()? == [7] && a.copy_from(&nnrs_kernels::NdArray::new([2].into())).is_err());
    /// # Ok::<(), nnrs_kernels::Error>(())
    /// ```
    pub fn copy_from(&self, other: &NdArray) -> Result<()> {
        let (shape, from) = (self.shape(), other.shape());
        if shape != from {
            return Err(Error::shape("arr", format!("shape {shape}")).actual(from));
        }
        let src = other.content()?.of(shape.size())?;
        let dst = self.overwrite(src.dtype())?.of(shape.size())?;
        dst.copy_bytes(&src);
        Ok(())
    }

    /// A new array with a copy of the content.
    ///
    /// # Errors
    /// Not enough memory.
    ///
    /// ```
    /// let a = nnrs_kernels::NdArray::from_slice(&[1.0f32], [1].into())?;
    /// let copy = a.deep_copy()?;
    /// a.fill(0.0)?;
    /// assert_eq!(copy.to_vec::<f32>()?, [1.0]);
    /// # Ok::<(), nnrs_kernels::Error>(())
    /// ```
    #[inline]
    pub fn deep_copy(&self) -> Result<NdArray> {
        let a = NdArray::new(self.shape());
        a.copy_from(self)?;
        Ok(a)
    }

    /// The elements, row by row, converted to `T`.
    ///
    /// # Errors
    /// Not enough memory.
    ///
    /// ```
    /// assert_eq!(nnrs_kernels::NdArray::from_slice(&[1.5f32], [1].into())?.to_vec::<i32>()?, [1]);
    /// # Ok::<(), nnrs_kernels::Error>(())
    /// ```
    #[inline]
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        Ok(self.read(T::DTYPE)?.as_slice::<T>().to_vec())
    }

    /// Copies `values` over the elements, row by row, converted to the array's type (an array without content takes theirs).
    ///
    /// # Errors
    /// Another number of values than the array has elements; not enough memory.
    ///
    /// ```
    /// let a = nnrs_kernels::NdArray::from_slice(&[1.0f32, 2.0], [2].into())?;
    /// a.write(&[3i32, 4])?;
    /// assert!(a.to_vec::<f32>()? == [3.0, 4.0] && a.write(&[1i32]).is_err());
    /// # Ok::<(), nnrs_kernels::Error>(())
    /// ```
    #[inline]
    pub fn write<T: Element>(&self, values: &[T]) -> Result<()> {
        let (storage, offset, n) = self.located();
        if values.len() != n {
            return Err(Error::shape("values", format!("{n} values")).actual(values.len()));
        }
        storage.write_from(offset, values)
    }
}

/// For the engine.
#[doc(hidden)]
impl NdArray {
    /// Sets all elements to a number, which is `content` for a whole storage.
    fn set_number(&self, value: f64, content: Content) -> Result<()> {
        let (storage, offset, n) = self.located();
        if n == storage.size() {
            storage.set_content(content);
            return Ok(());
        }
        storage.fill_part(offset, n, value)
    }

    /// True if it was set to 0 by [`NdArray::zero`], and it was not taken for writing since.
    #[inline]
    pub fn is_zeroed(&self) -> bool {
        let storage = self.storage();
        self.is_whole() && storage.is_zero() || storage.is_part_zeroed(self.offset(), self.size())
    }

    /// The content in memory in the type that it has, where a reader sees what comes later. It counts as set to 0 as before.
    ///
    /// # Errors
    /// Not enough memory.
    pub fn lay_out(&self) -> Result<Data> {
        let (is_zeroed, dtype) = (self.is_zeroed(), self.dtype());
        self.cast(dtype)?;
        if is_zeroed && !self.is_zeroed() {
            self.storage().note_zeroed(self.offset(), self.size());
        }
        self.read(dtype)
    }

    /// The content as memory in the type that it has; what was given up is made again first.
    #[inline]
    pub fn content(&self) -> Result<Data> {
        self.fetch()?;
        self.read(self.dtype())
    }

    /// A view to read and write by: as [`NdArray::modify`], for a caller that will rather read the elements than write them.
    /// `shown`: in which type, for the array's own.
    #[inline]
    pub fn show(&self, shown: impl Fn(DType) -> DType) -> Result<Export> {
        let (storage, offset, n) = self.located();
        storage.show(shown, offset, n)
    }

    /// As [`NdArray::read`], in the memory of `place`.
    pub fn read_at(&self, place: Place, dtype: DType) -> Result<Data> {
        match self.find(place)? {
            ReadContent::Data(data) if data.dtype() == dtype => Ok(data),
            ReadContent::Data(data) => data.converted(dtype),
            ReadContent::Nothing | ReadContent::Constant(_) => {
                let (storage, offset, n) = self.located();
                storage.read(place, dtype, offset, n)
            }
        }
    }

    /// What there is to read, in the array's own type.
    pub fn find(&self, place: Place) -> Result<ReadContent> {
        let (mut content, mut dtype, offset, n) = self.look();
        if matches!(content, Content::Empty) {
            self.storage().fetch()?;
            (content, dtype, ..) = self.look();
        }
        match content {
            Content::Empty => Ok(ReadContent::Nothing),
            Content::Zero => Ok(ReadContent::Constant(0.0)),
            Content::Fill(value) => Ok(ReadContent::Constant(value)),
            Content::Bytes(block) => {
                Ok(ReadContent::Data(Data::over(block, dtype, place, Access::Read)?.part(offset, n)))
            }
        }
    }

    /// The content, its type, and where in it the array begins and how many elements it has.
    fn look(&self) -> (Content, DType, usize, usize) {
        let layout = self.layout();
        let (content, dtype) = layout.storage.look();
        (content, dtype, layout.offset, layout.shape.size())
    }

    /// Gives the content up: no reader wants it. Not a modification.
    #[inline]
    pub fn release(&self) -> Content {
        self.layout().storage.release()
    }

    /// As [`NdArray::release`]; a later reader has it made again. `clear`: the array says that it was cleared.
    /// A part of another array stays: the whole is not the maker's.
    #[inline]
    pub fn lose(&self, maker: &Weak<dyn Maker>, clear: bool) {
        let layout = self.layout();
        let old = layout.is_whole().then(|| layout.storage.lose(maker, clear));
        drop(layout);
        drop(old);
    }

    /// As [`NdArray::modify`], in the memory of `place`.
    #[inline]
    pub fn modify_at(&self, place: Place, dtype: DType) -> Result<Data> {
        let (storage, offset, n) = self.located();
        storage.modify(place, dtype, offset, n)
    }

    /// As [`NdArray::overwrite`], in the memory of `place`.
    #[inline]
    pub fn overwrite_at(&self, place: Place, dtype: DType) -> Result<Data> {
        let (storage, offset, n) = self.located();
        storage.overwrite(place, dtype, offset, n)
    }

    #[inline(always)]
    pub(super) fn located(&self) -> (Arc<Storage>, usize, usize) {
        let place = self.layout();
        (place.storage.clone(), place.offset, place.shape.size())
    }

    /// Takes the content of `other`, of the same size, without a copy: both read the same bytes until one is written.
    pub fn share_content(&self, other: &NdArray) -> Result<()> {
        let ((storage, _, n), (from, _, m)) = (self.located(), other.located());
        let can_share = n == m && m == from.size() && !storage.is_exported(); // a view is to see what comes
        if Arc::ptr_eq(&storage, &from) || (can_share && storage.adopt_shared(&from)) {
            return Ok(());
        }
        from.fetch()?;
        if let Some(value) = from.constant() {
            return self.fill(value);
        }
        let place = from.place();
        let data = other.read_at(place, other.dtype())?.of(n)?;
        self.overwrite_at(place, data.dtype())?.of(n)?.take(&data)
    }

    /// As [`NdArray::copy_from`]; a number that fills `other` and lies in no memory yet comes as float32, as in NNabla.
    #[inline]
    pub fn copy_or_fill(&self, other: &NdArray) -> Result<()> {
        match other.storage().constant().filter(|_| self.is_whole()) {
            Some(value) => self.storage().adopt(DType::F32, Content::Fill(value)),
            None => self.copy_from(other)?,
        }
        Ok(())
    }
}
