//! An array as one of the crate ndarray, without a copy.

use super::NdArray;
use super::data::Data;
use crate::dtype::Element;
use crate::error::Result;
use crate::shape::Shape;
use std::marker::PhantomData;

/// The elements that an array had when [`NdArray::view`] was called. They stay what they were: while this is alive, a write to
/// the array goes to other memory.
pub struct NdArrayView<T> {
    shape: Shape,
    data: Data,
    /// Has the memory too, so that it is shared and no writer's.
    _owner: NdArray,
    element: PhantomData<T>,
}

impl<T: Element> NdArrayView<T> {
    /// The elements with their shape.
    ///
    /// ```
    /// let a = nnrs_kernels::NdArray::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [2, 2].into())?;
    /// let seen = a.view::<f32>()?;
    /// assert_eq!(seen.array().sum_axis(ndarray::Axis(0)), ndarray::arr1(&[4.0, 6.0]).into_dyn());
    /// # Ok::<(), nnrs_kernels::Error>(())
    /// ```
    pub fn array(&self) -> ndarray::ArrayViewD<'_, T> {
        let shape = ndarray::IxDyn(&self.shape);
        ndarray::ArrayViewD::from_shape(shape, self.data.as_slice()).expect("as many elements as the shape has")
    }
}

impl NdArray {
    /// The elements for reading as an array of the crate ndarray, converted to `T`. It is the array's own memory if that has
    /// elements of `T`, is on the host, and neither is part of a larger array nor shown by NumPy; else it is a copy.
    ///
    /// # Errors
    /// As [`NdArray::to_vec`].
    ///
    /// ```
    /// let a = nnrs_kernels::NdArray::from_slice(&[1.0f32, 2.0], [2].into())?;
    /// let seen = a.view::<f32>()?;
    /// a.fill(5.0)?;
    /// assert_eq!(seen.array(), ndarray::arr1(&[1.0, 2.0]).into_dyn()); // what it was
    /// assert_eq!(a.view::<i32>()?.array(), ndarray::arr1(&[5, 5]).into_dyn());
    /// # Ok::<(), nnrs_kernels::Error>(())
    /// ```
    pub fn view<T: Element>(&self) -> Result<NdArrayView<T>> {
        let shape = self.shape();
        let owner = NdArray::of_engine(shape.clone());
        owner.share_content(self)?;
        let data = owner.read(T::DTYPE)?.of(shape.size())?;
        Ok(NdArrayView { shape, data, _owner: owner, element: PhantomData })
    }
}

#[cfg(feature = "emulate")]
mod tests {
    use super::*;
    use crate::dtype::DType;

    fn address(a: &NdArray) -> *const f32 {
        a.read(DType::F32).unwrap().as_slice::<f32>().as_ptr()
    }

    fn elements<T: Element>(seen: &NdArrayView<T>) -> Vec<T> {
        seen.array().iter().copied().collect()
    }

    unit_test!(a_view_is_the_array_until_that_is_written);
    fn a_view_is_the_array_until_that_is_written() {
        let a = NdArray::from_slice(&[1.0f32, 2.0, 3.0], [3].into()).unwrap();
        let seen = a.view::<f32>().unwrap();
        assert_eq!(seen.array().as_ptr(), address(&a));
        a.modify(DType::F32).unwrap().as_mut_slice::<f32>()[0] = 7.0;
        assert_eq!((a.to_vec::<f32>().unwrap(), elements(&seen)), (vec![7.0, 2.0, 3.0], vec![1.0, 2.0, 3.0]));
        let now = a.view::<f32>().unwrap();
        a.overwrite(DType::F32).unwrap().as_mut_slice::<f32>().fill(4.0);
        assert_eq!((a.to_vec::<f32>().unwrap(), elements(&now)), (vec![4.0; 3], vec![7.0, 2.0, 3.0]));
        drop((seen, now));
        let before = address(&a);
        a.modify(DType::F32).unwrap().as_mut_slice::<f32>()[0] = 1.0;
        assert_eq!(address(&a), before); // no view is left: written in place
    }

    unit_test!(views_of_zeros_parts_and_no_elements);
    fn views_of_zeros_parts_and_no_elements() {
        assert_eq!(elements(&NdArray::new([2].into()).view::<i64>().unwrap()), [0, 0]);
        assert!(NdArray::new([0, 3].into()).view::<f32>().unwrap().array().is_empty());
        let a = NdArray::from_slice(&[1, 2, 3, 4], [2, 2].into()).unwrap();
        assert_eq!(a.narrow(0, 1, 1).unwrap().view::<i32>().unwrap().array().shape(), [1, 2]);
        assert_eq!(a.narrow(0, 1, 1).unwrap().view::<i32>().unwrap().array()[[0, 1]], 4);
    }
}
