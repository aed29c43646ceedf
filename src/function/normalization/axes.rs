//! Axes as arguments, and the shapes of what belongs to them.

use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::shape::Shape;

/// The axes that argument `name` lists, counted from the start.
pub(super) fn axes(name: &str, given: &[i64], x: &Shape) -> Result<Vec<usize>> {
    let mut axes = Vec::with_capacity(given.len());
    for &a in given {
        let a = x.axis(a, name)?;
        if axes.contains(&a) {
            return Err(Error::arg(name, "each axis once").actual(format!("{given:?}")));
        }
        axes.push(a);
    }
    Ok(axes)
}

/// Which axes of x are among `axes`.
pub(super) fn mask(x: &Shape, axes: &[usize]) -> Vec<bool> {
    (0..x.ndim()).map(|i| axes.contains(&i)).collect()
}

/// The other axes of x, for a reduction.
pub(super) fn others(x: &Shape, axes: &[usize]) -> Vec<i64> {
    (0..x.ndim()).filter(|i| !axes.contains(i)).map(|i| i as i64).collect()
}

/// x's sizes where the mask says so, otherwise 1.
pub(super) fn sizes_at(x: &Shape, mask: &[bool], kept: bool) -> Shape {
    x.iter().zip(mask).map(|(&n, &m)| if m == kept { n } else { 1 }).collect()
}

/// Checks the shape of a statistic, a scale or a shift.
pub(super) fn check_shape(name: &str, got: &Shape, want: &Shape) -> Result<()> {
    match got == want {
        true => Ok(()),
        false => Err(Error::shape(name, format!("shape {want}")).actual(got)),
    }
}
