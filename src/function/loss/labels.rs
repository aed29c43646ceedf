//! Labels along an axis: what the losses and errors of many classes share.

use crate::function;
use crate::function::activation::chosen_axis;
use crate::function::{Function, Grad, OnGpu, Run, Shapes, View, ViewMut};
use crate::graph::Variable;
use nnrs_kernels::array::Place;
use nnrs_kernels::cpu::softmax::Axis;
use nnrs_kernels::cuda;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::shape::Shape;
use nnrs_kernels::{dtype::Element, with_real};
use smallvec::smallvec;

/// The output's shape: x's with 1 at the axis, which the labels must have too.
pub(crate) fn infer(x: &Shape, target: &Shape, axis: Option<i64>) -> Result<Shapes> {
    let axis = chosen_axis(x, axis)?;
    let y = with_size(x, axis, 1);
    if *target != y {
        let hint = "the labels keep the axis of the classes, with size 1; axis is the last one by default";
        return Err(Error::shape("target", format!("shape {y}")).actual(target).hint(hint));
    }
    Ok(smallvec![y])
}

/// `x` with size `n` at the axis.
fn with_size(x: &Shape, axis: usize, n: usize) -> Shape {
    x.iter().enumerate().map(|(i, &own)| if i == axis { n } else { own }).collect()
}

/// What a label that is no number is read as.
const NOT_A_LABEL: i64 = i64::MIN;

/// The sizes around the axis, after a check that all labels are numbers less than that of classes.
pub(crate) fn checked(x: &Shape, labels: &[i64], axis: Option<i64>) -> Result<Axis> {
    let a = Axis::new(x, chosen_axis(x, axis)?);
    match labels.iter().find(|l| **l >= a.n as i64 || **l == NOT_A_LABEL) {
        Some(_) if a.n == 0 => Err(Error::shape("x", "one class at least along its axis").actual(x)),
        Some(l) => {
            let expected = format!("labels less than {}, the number of classes", a.n);
            Err(Error::arg("target", expected).actual_index(*l))
        }
        None => Ok(a),
    }
}

/// The sizes around the axis. On a GPU the labels are not looked at: what is made of wrong ones is NaN.
pub(crate) fn around(x: &Shape, axis: Option<i64>) -> Result<Axis> {
    let a = Axis::new(x, chosen_axis(x, axis)?);
    match a.n == 0 && a.outer * a.inner > 0 {
        true => Err(Error::shape("x", "one class at least along its axis").actual(x)),
        false => Ok(a),
    }
}

/// Index of the labelled element of row number `r`; none for a negative label.
pub(crate) fn position(a: Axis, r: usize, label: i64) -> Option<usize> {
    let k = usize::try_from(label).ok()?;
    Some((r / a.inner * a.n + k) * a.inner + r % a.inner)
}

/// The engine's side of a loss of labels along an axis with the kernels `$forward` and `$backward`, `$gpu_forward` and
/// `$gpu_backward`; the gradient is its `rule`.
macro_rules! loss_of_labels {
    ($name:ident, $forward:path, $backward:path, $gpu_forward:path, $gpu_backward:path) => {
        impl Function for $name {
            fn infer(&self, x: &[Shape]) -> Result<Shapes> {
                infer(&x[0], &x[1], self.axis)
            }

            fn on_gpu(&self) -> OnGpu {
                OnGpu::Both
            }

            fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
                if let Place::Gpu(_) = y[0].data.place() {
                    return $gpu_forward(around(x[0].shape, self.axis)?, &x[0].data, &x[1].data, &y[0].data);
                }
                let labels = x[1].slice::<i64>();
                let a = checked(x[0].shape, labels, self.axis)?;
                with_real!(run.dtype, T => $forward(a, x[0].slice::<T>(), labels, y[0].slice()));
                Ok(())
            }

            fn needs(&self, _want: &[bool]) -> Option<Needs> {
                Some(Needs { x: 0b11, y: 0 })
            }

            fn backward(
                &self,
                run: &Run,
                x: &[Option<View>],
                _y: &[Option<View>],
                gy: &[Option<View>],
                gx: &mut [Option<GradMut>],
            ) -> Result<()> {
                let (Some(x), Some(labels), Some(gy), Some(gx)) = (&x[0], &x[1], &gy[0], &mut gx[0]) else { return Ok(()) };
                if let Place::Gpu(_) = gx.data.place() {
                    let a = around(x.shape, self.axis)?;
                    return $gpu_backward(a, &x.data, &labels.data, &gy.data, &gx.data, gx.output);
                }
                let (labels, output) = (labels.slice::<i64>(), gx.output);
                let a = checked(x.shape, labels, self.axis)?;
                with_real!(run.dtype, T => $backward(a, x.slice::<T>(), labels, gy.slice(), gx.slice(), output));
                Ok(())
            }

            fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
                Ok(vec![Some(self.rule(&g.x[0], &g.x[1], &g.gy[0])?), None])
            }
        }
    };
}
pub(crate) use loss_of_labels;

function! {
    /// 1 at the labels along an axis, 0 elsewhere and for negative labels: internal, for gradients.
    LabelMask label_mask in Special
    inputs { target [index]: "Labels, with size 1 at the axis." }
    args {
        axis: i64, "The axis, from the start.";
        n: i64, "Number of classes."
    }
    outputs { y: "Array of the labels' shape, but n at the axis." }
}

impl LabelMask {
    /// As wide as `x` at the axis.
    pub(crate) fn like(x: &Shape, axis: Option<i64>) -> Result<LabelMask> {
        let axis = chosen_axis(x, axis)?;
        Ok(LabelMask { axis: axis as i64, n: x[axis] as i64 })
    }
}

impl Function for LabelMask {
    fn infer(&self, x: &[Shape]) -> Result<Shapes> {
        let axis = x[0].axis(self.axis, "axis")?;
        if x[0][axis] != 1 {
            return Err(Error::shape("target", format!("shape {}", with_size(&x[0], axis, 1))).actual(&x[0]));
        }
        Ok(smallvec![with_size(&x[0], axis, self.n as usize)])
    }

    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        if let Place::Gpu(_) = y[0].data.place() {
            return cuda::labels::mask(around(y[0].shape, Some(self.axis))?, &x[0].data, &y[0].data);
        }
        let labels = x[0].slice::<i64>();
        let a = checked(y[0].shape, labels, Some(self.axis))?;
        with_real!(run.dtype, T => {
            let y = y[0].slice::<T>();
            y.fill(T::from_f64(0.0));
            let hits = labels.iter().enumerate().filter_map(|(r, &l)| position(a, r, l));
            hits.for_each(|i| y[i] = T::from_f64(1.0));
        });
        Ok(())
    }

    fn on_gpu(&self) -> OnGpu {
        OnGpu::Forward
    }

    fn grad(&self, _g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![None])
    }
}
