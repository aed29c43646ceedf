//! Memory of other libraries as the memory of arrays: nothing is copied, and what one writes the other reads.

use super::NdArray;
use super::alloc::Block;
use crate::dtype::DType;
use std::ptr::NonNull;

impl NdArray {
    /// Takes `ptr` for the memory of the array, in place of its own. False, and nothing happens, where this cannot be: the
    /// memory is not aligned for its type, this is a part of an array, it has another size, or a view shows what it has.
    ///
    /// ```
    /// use nnrs_kernels::{DType, NdArray};
    /// use std::ptr::NonNull;
    /// let mut numbers = vec![1.0f32, 2.0];
    /// let ptr = NonNull::from(&mut numbers[0]);
    /// let a = NdArray::new([2].into());
    /// // SAFETY: the vector's memory stays where it is as long as the vector does, and that is the array's.
    /// assert!(unsafe { a.adopt_memory(ptr.cast(), 2, DType::F32, Box::new(numbers)) });
    /// a.modify(DType::F32)?.as_mut_slice::<f32>()[0] = 5.0;
    /// assert_eq!(unsafe { *ptr.as_ptr() }, 5.0);
    /// assert_eq!(a.to_vec::<f64>()?, [5.0, 2.0]);
    /// # Ok::<(), nnrs_kernels::Error>(())
    /// ```
    ///
    /// # Safety
    /// From `ptr` on there are `len` elements of `dtype` that can be read and written, at any time and by any thread, as long
    /// as `owner` is there; none is a `bool`.
    pub unsafe fn adopt_memory(&self, ptr: NonNull<u8>, len: usize, dtype: DType, owner: Box<dyn Send + Sync>) -> bool {
        let (storage, _, size) = self.located();
        let fits = size == len && size == storage.size() && ptr.addr().get().is_multiple_of(dtype.size());
        if !fits || dtype == DType::Bool || storage.is_exported() {
            return false;
        }
        // SAFETY: by the caller's promise.
        storage.adopt_foreign(dtype, unsafe { Block::foreign(ptr, len * dtype.size(), owner) });
        true
    }
}
