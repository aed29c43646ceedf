//! `top_k_data`: the largest elements of each sample. `top_k_grad`: x itself; of the gradient the largest elements flow back.

use crate::function::{Function, Grad, Resolved};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::dtype::DType;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::sort as kernel;
use nnrs_kernels::shape::Shape;
use smallvec::smallvec;

function! {
    /// The k largest elements of each sample, from the largest down. Of equal ones the first count; NaN counts as the largest number.
    TopKData top_k_data in Random, forward_on_any_device
    inputs { x: "N-D array; the axes from base_axis on are a sample." }
    args {
        k: i64, "How many, from 1 to the size of a sample.";
        abs: bool = false, "Compare magnitudes.";
        reduce: bool = true, "Give the k elements; if not, an array of x's shape with 0 in place of the others.";
        base_axis: i64 = 1, "First axis of a sample; may count from the end.";
        largest: bool = true, "The largest ones; if not, the smallest, from the smallest up.";
        with_index: bool = false, "Also give where the elements were in their sample; wants `reduce`."
    }
    outputs { y [variadic]: "Array of shape x.shape[:base_axis] + (k,), or of x's shape; or [it, indices]." }
}

function! {
    /// x itself; of its gradient the k largest elements of each sample flow back, zeros in place of the others.
    TopKGrad top_k_grad in Random, forward_on_any_device
    inputs { x: "N-D array; the axes from base_axis on are a sample." }
    args {
        k: i64, "How many, from 1 to the size of a sample.";
        abs: bool = false, "Compare magnitudes.";
        base_axis: i64 = 1, "First axis of a sample; may count from the end."
    }
    outputs { y: "x itself, of its shape." }
}

/// The axis, where k fits.
fn checked(x: &Shape, k: i64, base_axis: i64) -> Result<usize> {
    let axis = x.axis(base_axis, "base_axis")?;
    let n = x.size_from(axis);
    if k < 1 || k as u64 > n as u64 {
        return Err(Error::arg("k", format!("a number from 1 to {n}, the size of a sample")).actual(k));
    }
    Ok(axis)
}

impl Function for TopKData {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let axis = checked(&x[0], self.k, self.base_axis)?;
        if self.with_index && !self.reduce {
            return Err(Error::arg("with_index", "False where reduce is False").actual("True"));
        }
        let order = kernel::Order { magnitudes: self.abs, reverse: self.largest };
        let call = kernel::TopK::new(&x[0], axis, self.k as usize, order, self.reduce)?;
        let short: Shape = x[0][..axis].iter().copied().chain([self.k as usize]).collect();
        let y = if self.reduce { short } else { x[0].clone() };
        Ok(Resolved::new(smallvec![y; 1 + self.with_index as usize], call))
    }

    fn output_dtype(&self, i: usize) -> Option<DType> {
        (i == 1).then_some(DType::U64)
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let (shape, gy) = (g.x[0].shape(), &g.gy[0]);
        let call = g.call::<kernel::TopK>();
        let rows: Shape = [call.rows, call.n].into();
        let found: Shape = [call.rows, call.k].into();
        let all = TopKData { reduce: true, with_index: true, ..self.clone() };
        let order = f::reshape(&top_k_data(&g.x[0], all)?.swap_remove(1), f::Reshape::to(&found))?;
        let gy = match self.reduce {
            true => f::reshape(gy, f::Reshape::to(&found))?,
            false => {
                let pick = f::ScatterPick { shape: found[..].into(), axis: Some(1) };
                f::scatter_pick(&f::reshape(gy, f::Reshape::to(&rows))?, &order, pick)?
            }
        };
        let zeros = Variable::from_array(crate::NdArray::new(rows)).with_need_grad(false);
        let gx = f::scatter_add(&zeros, &order, &gy, f::ScatterAdd { axis: Some(1) })?;
        Ok(vec![Some(f::reshape(&gx, f::Reshape::to(&shape))?)])
    }
}

impl Function for TopKGrad {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let axis = checked(&x[0], self.k, self.base_axis)?;
        let order = kernel::Order { magnitudes: self.abs, reverse: true };
        let top = kernel::TopK::new(&x[0], axis, self.k as usize, order, false)?;
        Ok(Resolved::one(x[0].clone(), kernel::TopKGrad(top)))
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let TopKGrad { k, abs, base_axis } = *self;
        let top = TopKData { k, abs, base_axis, reduce: false, largest: true, with_index: false };
        Ok(vec![Some(top_k_data(&g.gy[0], top)?.swap_remove(0))])
    }
}
