//! Reductions over axes.

mod cumprod;
mod cumsum;
mod max_min;
mod mean;
mod norm;
mod prod;
mod reduce;
mod sum;
mod winner_mask;

use super::{ArgValue, Def, Function};
pub use cumprod::*;
pub use cumsum::*;
pub use max_min::*;
pub use mean::*;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::reduction::{AxisMask, Reduced};
use nnrs_kernels::shape::Shape;
pub use norm::*;
pub use prod::*;
pub use reduce::*;
pub use sum::*;

/// The functions of this group.
pub(super) const FUNCTIONS: &[&Def] = &[
    Sum::DEF,
    Mean::DEF,
    Max::DEF,
    Min::DEF,
    Norm::DEF,
    Prod::DEF,
    ReduceSum::DEF,
    ReduceMean::DEF,
    CumSum::DEF,
    CumProd::DEF,
];

/// The axes of `x` that `axis` names (`None`: all).
fn over(x: &Shape, axis: &Option<Vec<i64>>) -> Result<Reduced> {
    let mut mask = AxisMask::from_elem(axis.is_none(), x.ndim());
    for &a in axis.iter().flatten() {
        let i = x.axis(a, "axis")?;
        if std::mem::replace(&mut mask[i], true) {
            return Err(
                Error::arg("axis", "each axis once").actual(format!("{:?}", axis.as_deref().unwrap_or_default()))
            );
        }
    }
    Ok(Reduced::new(x, mask))
}

/// The arguments of a reduction by NNabla's names; all axes instead of `None`.
fn used(f: &impl Function, over: &Reduced) -> Vec<(&'static str, ArgValue)> {
    let all = || ArgValue::Ints((0..over.shape.ndim() as i64).collect());
    let renamed = |(name, v)| match (name, v) {
        ("axis", ArgValue::None) => ("axes", all()),
        ("axis", v) => ("axes", v),
        ("keepdims", v) => ("keep_dims", v),
        other => other,
    };
    f.arguments().into_iter().map(renamed).collect()
}
