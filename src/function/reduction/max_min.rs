//! `max` and `min` over axes, with the place of the winner: the first of equal elements. NaN is left out.

use super::winner_mask::{WinnerMask, winner_mask};
use super::{Mask, mask, reduced};
use crate::function::{Function, Grad, GradMut, Needs, Output, Run, Shapes, View, ViewMut};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::array::{Data, Place};
use nnrs_kernels::cpu::extreme::{Index, Order, spread, winners};
use nnrs_kernels::cpu::simd::SimdReal;
use nnrs_kernels::cpu::tasks::Shared;
use nnrs_kernels::cuda::extreme as gpu_kernel;
use nnrs_kernels::dtype::DType;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::ops;
use nnrs_kernels::shape::Shape;
use nnrs_kernels::with_real;
use smallvec::smallvec;

macro_rules! extreme {
    ($(#[doc = $doc:literal] $name:ident $snake:ident $order:ident $index_doc:literal;)*) => {$(
        function! {
            #[doc = $doc]
            /// NaN is left out, unless there is nothing else. Of equal elements the first one counts, and gets all the gradient.
            $name $snake in Reduction, any_device
            inputs { x: "N-D array." }
            args {
                axis: Option<Vec<i64>> = None, "Axes to look over; None: all. They may count from the end.";
                keepdims: bool = false, "Whether the reduced axes stay, with size 1.";
                with_index: bool = false, "Also give the index of the element.";
                only_index: bool = false, "Give the index alone."
            }
            outputs { y [variadic]: $index_doc }
        }

        impl Function for $name {
            fn infer(&self, x: &[Shape]) -> Result<Shapes> {
                let mask = mask(&x[0], &self.axis)?;
                let y = reduced(&x[0], &mask, self.keepdims);
                if x[0].size() == 0 && y.size() > 0 {
                    return Err(Error::shape("x", "one element at least along the reduced axes").actual(&x[0]));
                }
                let both = self.with_index && !self.only_index;
                Ok(if both { smallvec![y.clone(), y] } else { smallvec![y] })
            }

            fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
                forward(run, x, y, &mask(x[0].shape, &self.axis)?, Order::$order, self.only_index)
            }

            fn saves(&self, x: &[&Shape], _dtype: DType) -> Option<usize> {
                let mask = mask(x[0], &self.axis).ok()?;
                Some(reduced(x[0], &mask, false).size() * index_type(x[0], &mask).size())
            }

            fn output_dtype(&self, i: usize) -> Option<DType> {
                (i == 1 || self.only_index).then_some(DType::U64)
            }

            fn needs(&self, _want: &[bool]) -> Option<Needs> {
                Some(Needs::NONE)
            }

            fn backward(
                &self,
                run: &Run,
                x: &[Option<View>],
                _y: &[Option<View>],
                gy: &[Option<View>],
                gx: &mut [Option<GradMut>],
            ) -> Result<()> {
                let Some(gx) = &mut gx[0] else { return Ok(()) };
                if let (Some(x), Place::Gpu(_)) = (&x[0], gx.data.place()) {
                    let gy = gy[0].as_ref().filter(|_| !self.only_index);
                    return backward_on_gpu(x, gy, gx, &mask(gx.shape, &self.axis)?, Order::$order);
                }
                backward(run, gy[0].as_ref().filter(|_| !self.only_index), gx, &mask(gx.shape, &self.axis)?)
            }

            fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
                let smallest = Order::$order == Order::Smallest;
                Ok(vec![Some(grad(g, &self.axis, smallest)?)])
            }
        }
    )*};
}

extreme! {
    #[doc = "Largest element over axes."]
    Max max Largest
        "Largest elements, or [largest elements, indices], or indices: flat over the reduced axes in their order.";
    #[doc = "Smallest element over axes."]
    Min min Smallest
        "Smallest elements, or [smallest elements, indices], or indices: flat over the reduced axes in their order.";
}

/// The winners of a forward pass.
struct Winners {
    shape: Shape,
    mask: Mask,
    /// Numbers among the reduced elements, as [`index_type`].
    index: Data,
}

/// The type that counts the reduced elements.
fn index_type(x: &Shape, mask: &[bool]) -> DType {
    let count = x.iter().zip(mask).filter(|(_, m)| **m).fold(1, |n: usize, (&m, _)| n.saturating_mul(m));
    if count <= u32::MAX as usize { DType::U32 } else { DType::U64 }
}

/// Runs `$body` with `$I` = the type of the indices.
macro_rules! with_index {
    ($dtype:expr, $I:ident => $body:expr) => {
        if $dtype == DType::U32 {
            type $I = u32;
            $body
        } else {
            type $I = u64;
            $body
        }
    };
}

/// Writes the values, or the values and the indices, or the indices.
fn forward(run: &Run, x: &[View], y: &mut [ViewMut], mask: &Mask, order: Order, only_index: bool) -> Result<()> {
    if let Place::Gpu(_) = y[0].data.place() {
        let mut outs = y.iter().map(|y| &y.data);
        let values = if only_index { None } else { outs.next() };
        let to = gpu_kernel::Winners { values, indices: outs.next() };
        return gpu_kernel::search(order, &x[0].data, x[0].shape, mask, to);
    }
    let index = index_type(x[0].shape, mask);
    let saved = if run.keep { Some(Data::new(index, y[0].shape.size())?) } else { None };
    with_real!(run.dtype, T => with_index!(index, I => {
        let saved = saved.as_ref().map(|s| s.as_mut_slice::<I>());
        write::<T, I>(&x[0], y, saved, mask, order, only_index);
    }));
    if let Some(index) = saved {
        run.save(Winners { shape: x[0].shape.clone(), mask: mask.clone(), index });
    }
    Ok(())
}

fn write<T: SimdReal, I: Index>(
    x: &View,
    y: &mut [ViewMut],
    saved: Option<&mut [I]>,
    mask: &[bool],
    order: Order,
    only_index: bool,
) {
    let mut outs = y.iter_mut();
    let value = if only_index { None } else { outs.next().map(|y| Shared(y.slice::<T>().as_mut_ptr())) };
    let index = outs.next().map(|y| Shared(y.slice::<u64>().as_mut_ptr()));
    let saved = saved.map(|s| Shared(s.as_mut_ptr()));
    let (value, index, saved) = (&value, &index, &saved);
    winners(x.slice::<T>(), x.shape, mask, order, move |r, v, k| {
        // SAFETY: r is one of the results, and each is written once.
        unsafe {
            if let Some(y) = value {
                y.0.add(r).write(v);
            }
            if let Some(y) = index {
                y.0.add(r).write(k as u64);
            }
            if let Some(y) = saved {
                y.0.add(r).write(I::new(k));
            }
        }
    });
}

/// The gradient of the first output, at the winners.
fn backward(run: &Run, gy: Option<&View>, gx: &mut GradMut, mask: &Mask) -> Result<()> {
    let output = gx.output;
    if gx.shape.size() == 0 {
        return Ok(());
    }
    let winners = run.saved::<Winners>().filter(|w| w.shape == *gx.shape && w.mask == *mask);
    let winners = winners.ok_or_else(no_forward)?;
    let shape = gx.shape.clone();
    with_real!(run.dtype, T => with_index!(winners.index.dtype(), I => match gy {
        Some(gy) => spread::<T, I>(winners.index.as_slice(), &shape, mask, gy.slice(), gx.slice(), output),
        None if output == Output::Write => gx.slice::<T>().fill(0.0),
        None => {}
    }));
    Ok(())
}

/// The same on a GPU, where the winners are found again.
fn backward_on_gpu(x: &View, gy: Option<&View>, gx: &GradMut, mask: &Mask, order: Order) -> Result<()> {
    match gy {
        Some(gy) => gpu_kernel::spread(order, &x.data, x.shape, mask, Some(&gy.data), &gx.data, gx.output),
        None if gx.output == Output::Write => ops::fill(&gx.data, 0.0),
        None => Ok(()),
    }
}

fn no_forward() -> Error {
    Error::graph("the indices of the forward pass are missing").hint("call forward() before backward()")
}

fn grad(g: &Grad, axis: &Option<Vec<i64>>, smallest: bool) -> Result<Variable> {
    let x = g.x[0].shape();
    let kept = reduced(&x, &mask(&x, axis)?, true);
    let mask = winner_mask(&g.x[0], WinnerMask { axis: axis.clone(), smallest })?;
    f::mul2(&mask, &f::reshape(&g.gy[0], f::Reshape::to(&kept))?, f::Mul2::default())
}
