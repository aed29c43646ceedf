//! Cross entropy of softmax and labels, in one pass.

use super::{cpu, cuda};
use crate::array::{Data, Place};
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::labels::Labels;
use crate::with_real;

/// `-log(softmax(x)[label])` along an axis.
pub struct CrossEntropy {
    pub labels: Labels,
    /// Elements of x.
    pub size: usize,
}

/// Of a forward pass: `exp(x - max)` of x's shape, and after it the sums of that along the axis.
struct Exponentials(Data);

impl Call for CrossEntropy {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        if let Place::Gpu(_) = y[0].data.place() {
            let at = self.labels.unchecked()?;
            return cuda::cross_entropy(at, &x[0].data, &x[1].data, &y[0].data);
        }
        let (at, labels) = (self.labels.at, self.labels.checked(&x[1])?);
        if !run.keep {
            with_real!(run.dtype, T => cpu::cross_entropy(at, x[0].slice::<T>(), labels, y[0].slice()));
            return Ok(());
        }
        let numbers = Data::new(run.dtype, self.size + labels.len())?;
        with_real!(run.dtype, T => {
            let (terms, sums) = numbers.as_mut_slice::<T>().split_at_mut(self.size);
            cpu::cross_entropy_keeping(at, x[0].slice::<T>(), labels, y[0].slice(), terms, sums);
        });
        run.save(Exponentials(numbers));
        Ok(())
    }

    fn saves(&self, dtype: DType) -> Option<usize> {
        Some((self.size + self.labels.count()) * dtype.size())
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs { x: 0b10, y: 0 })
    }

    fn backward(&self, run: &Run, Gradients { x, gy, gx, .. }: Gradients) -> Result<()> {
        let (Some(labels), Some(gy), Some(gx)) = (&x[1], &gy[0], &mut gx[0]) else { return Ok(()) };
        let output = gx.output;
        if let (Some(x), Place::Gpu(_)) = (&x[0], gx.data.place()) {
            let at = self.labels.unchecked()?;
            return cuda::cross_entropy_backward(at, &x.data, &labels.data, &gy.data, &gx.data, output);
        }
        let (at, labels) = (self.labels.at, self.labels.checked(labels)?);
        let saved = run.saved::<Exponentials>().filter(|e| e.0.dtype() == run.dtype).ok_or_else(no_forward)?;
        with_real!(run.dtype, T => {
            let (terms, sums) = saved.0.as_slice::<T>().split_at(self.size);
            cpu::cross_entropy_backward(at, terms, sums, labels, gy.slice(), gx.slice(), output);
        });
        Ok(())
    }
}

fn no_forward() -> Error {
    Error::graph("what the forward pass saved is missing").hint("call forward() before backward()")
}
