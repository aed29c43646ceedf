//! `softmax_cross_entropy`: minus the log softmax of x at the label.

use super::labels::{LabelMask, around, checked, infer, label_mask};
use crate::function::activation::chosen_axis;
use crate::function::{Function, Grad, GradMut, Needs, OnGpu, Run, Shapes, View, ViewMut};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::array::{Data, Place};
use nnrs_kernels::cpu::softmax as kernel;
use nnrs_kernels::cuda::softmax as gpu_kernel;
use nnrs_kernels::dtype::DType;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::shape::Shape;
use nnrs_kernels::with_real;
use std::sync::Arc;

function! {
    /// Cross entropy of softmax(x) and labels, `y = -log(softmax(x)[target])` along an axis, without overflow. Where the
    /// label is negative, loss and gradient are 0. A label that is NaN or beyond the classes is an error on the CPU; a GPU, which
    /// would have to wait for the check, gives NaN.
    SoftmaxCrossEntropy softmax_cross_entropy in Loss
    inputs {
        x: "N-D array of scores, N > 0.",
        target [index]: "Labels from 0 on; N-D array of x's shape, but 1 at the axis.",
    }
    args { axis: Option<i64> = None, "Axis of the classes; None: the last one. May count from the end." }
    outputs { y: "N-D array of target's shape." }
}

/// Of a forward pass: `exp(x - max)` of x's shape, and after it the sums of that along the axis.
struct Exponentials {
    shape: Shape,
    numbers: Data,
}

impl Function for SoftmaxCrossEntropy {
    fn infer(&self, x: &[Shape]) -> Result<Shapes> {
        infer(&x[0], &x[1], self.axis)
    }

    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        if let Place::Gpu(_) = y[0].data.place() {
            let a = around(x[0].shape, self.axis)?;
            return gpu_kernel::cross_entropy(a, &x[0].data, &x[1].data, &y[0].data);
        }
        let labels = x[1].slice::<i64>();
        let a = checked(x[0].shape, labels, self.axis)?;
        let size = x[0].shape.size();
        if !run.keep {
            with_real!(run.dtype, T => kernel::cross_entropy(a, x[0].slice::<T>(), labels, y[0].slice()));
            return Ok(());
        }
        let numbers = Data::new(run.dtype, size + labels.len())?;
        with_real!(run.dtype, T => {
            let (terms, sums) = numbers.as_mut_slice::<T>().split_at_mut(size);
            kernel::cross_entropy_keeping(a, x[0].slice::<T>(), labels, y[0].slice(), terms, sums);
        });
        run.save(Exponentials { shape: x[0].shape.clone(), numbers });
        Ok(())
    }

    fn on_gpu(&self) -> OnGpu {
        OnGpu::Both
    }

    fn saves(&self, x: &[&Shape], dtype: DType) -> Option<usize> {
        Some((x[0].size() + x[1].size()) * dtype.size())
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs { x: 0b10, y: 0 })
    }

    fn backward(
        &self,
        run: &Run,
        x: &[Option<View>],
        _y: &[Option<View>],
        gy: &[Option<View>],
        gx: &mut [Option<GradMut>],
    ) -> Result<()> {
        let (Some(labels), Some(gy), Some(gx)) = (&x[1], &gy[0], &mut gx[0]) else { return Ok(()) };
        if let (Some(x), Place::Gpu(_)) = (&x[0], gx.data.place()) {
            let a = around(x.shape, self.axis)?;
            return gpu_kernel::cross_entropy_backward(a, &x.data, &labels.data, &gy.data, &gx.data, gx.output);
        }
        let (labels, output, size) = (labels.slice::<i64>(), gx.output, gx.shape.size());
        let a = checked(gx.shape, labels, self.axis)?;
        let fits = |e: &Arc<Exponentials>| e.shape == *gx.shape && e.numbers.dtype() == run.dtype;
        let saved = run.saved::<Exponentials>().filter(fits).ok_or_else(no_forward)?;
        with_real!(run.dtype, T => {
            let (terms, sums) = saved.numbers.as_slice::<T>().split_at(size);
            kernel::cross_entropy_backward(a, terms, sums, labels, gy.slice(), gx.slice(), output);
        });
        Ok(())
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![Some(self.rule(&g.x[0], &g.x[1], &g.gy[0])?), None])
    }
}

fn no_forward() -> Error {
    Error::graph("what the forward pass saved is missing").hint("call forward() before backward()")
}

impl SoftmaxCrossEntropy {
    fn rule(&self, x: &Variable, labels: &Variable, gy: &Variable) -> Result<Variable> {
        let axis = chosen_axis(&x.shape(), self.axis)? as i64;
        let hits = label_mask(labels, LabelMask::like(&x.shape(), self.axis)?)?;
        // 0 where the label is left out.
        let counts = f::sum(&hits, f::Sum { axis: Some(vec![axis]), keepdims: true })?;
        let mul = |a: &Variable, b: &Variable| f::mul2(a, b, f::Mul2::default());
        let p = mul(&f::softmax(x, f::Softmax { axis: Some(axis) })?, &counts)?;
        mul(&f::sub2(&p, &hits, f::Sub2::default())?, gy)
    }
}
