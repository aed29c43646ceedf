//! `max` and `min` over axes, with the place of the winner: the first of equal elements. NaN is left out.

use super::winner_mask::{WinnerMask, winner_mask};
use super::{mask, reduced};
use crate::cpu::extreme::{Order, spread, winners};
use crate::cpu::tasks::Shared;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::function::{Function, Grad, GradMut, Needs, Run, Shapes, View, ViewMut};
use crate::graph::Variable;
use crate::shape::Shape;
use crate::{function, functions as f, with_real};
use smallvec::smallvec;

macro_rules! extreme {
    ($(#[doc = $doc:literal] $name:ident $snake:ident $order:ident $index_doc:literal;)*) => {$(
        function! {
            #[doc = $doc]
            /// NaN is left out, unless there is nothing else. Of equal elements the first one counts, and gets all the gradient.
            $name $snake in Reduction
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
                forward(run, x, y, &mask(x[0].shape, &self.axis)?, Order::$order, self.only_index);
                Ok(())
            }

            fn output_dtype(&self, i: usize) -> Option<DType> {
                (i == 1 || self.only_index).then_some(DType::U64)
            }

            fn needs(&self, _want: &[bool]) -> Option<Needs> {
                Some(Needs { x: 1, y: 0 })
            }

            fn backward(
                &self,
                run: &Run,
                x: &[Option<View>],
                _y: &[Option<View>],
                gy: &[Option<View>],
                gx: &mut [Option<GradMut>],
            ) -> Result<()> {
                let (Some(x), Some(gx)) = (&x[0], &mut gx[0]) else { return Ok(()) };
                backward(run, x, &gy[0], gx, &mask(x.shape, &self.axis)?, Order::$order);
                Ok(())
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

/// Writes the values, or the values and the indices, or the indices.
fn forward(run: &Run, x: &[View], y: &mut [ViewMut], mask: &[bool], order: Order, only_index: bool) {
    with_real!(run.dtype, T => {
        let mut outs = y.iter_mut();
        let value = if only_index { None } else { outs.next().map(|y| Shared(y.slice::<T>().as_mut_ptr())) };
        let index = outs.next().map(|y| Shared(y.slice::<u64>().as_mut_ptr()));
        let (value, index) = (&value, &index);
        winners(x[0].slice::<T>(), x[0].shape, mask, order, move |r, v, k| {
            // SAFETY: r is one of the results, and each is written once.
            unsafe {
                if let Some(y) = value {
                    y.0.add(r).write(v);
                }
                if let Some(y) = index {
                    y.0.add(r).write(k as u64);
                }
            }
        });
    });
}

/// The gradient of the first output, at the winners.
fn backward(run: &Run, x: &View, gy: &Option<View>, gx: &mut GradMut, mask: &[bool], order: Order) {
    let output = gx.output;
    with_real!(run.dtype, T => {
        let zeros = if gy.is_none() { vec![0.0 as T; x.shape.size()] } else { Vec::new() };
        let gy = gy.as_ref().map_or(&zeros[..], |gy| gy.slice::<T>());
        spread(x.slice::<T>(), x.shape, mask, order, gy, gx.slice(), output);
    });
}

fn grad(g: &Grad, axis: &Option<Vec<i64>>, smallest: bool) -> Result<Variable> {
    let x = g.x[0].shape();
    let kept = reduced(&x, &mask(&x, axis)?, true);
    let mask = winner_mask(&g.x[0], WinnerMask { axis: axis.clone(), smallest })?;
    f::mul2(&mask, &f::reshape(&g.gy[0], f::Reshape::to(&kept))?, f::Mul2::default())
}
