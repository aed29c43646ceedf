//! How far one multinomial distribution is from another.

use super::ops;
use crate::array::{Data, Output};
use crate::call::{Call, Run, View, ViewMut};
use crate::dtype::DType;
use crate::error::Result;
use crate::expr::Formula;
use crate::shape::Shape;
use crate::tile::Walk;

/// What is added to probabilities before their logarithms are taken.
pub const EPSILON: f64 = 1e-8;

/// `sum p (log(p + e) - log(q + e))` over the axes from `axis` on.
pub struct KLMultinomial {
    pub shape: Shape,
    pub axis: usize,
}

impl Call for KLMultinomial {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let y = &y[0].data;
        let terms = Data::new_at(y.place(), run.dtype, self.shape.size())?;
        let term = Formula::new(2, |v| {
            let log = |v: &crate::expr::Expr| (v + EPSILON).log();
            vec![Some(&v[0] * (log(&v[0]) - log(&v[1])))]
        });
        ops::formula(&term, &[(&x[0].data, Walk::Dense), (&x[1].data, Walk::Dense)], &terms, Output::Write)?;
        let mask: Vec<bool> = (0..self.shape.ndim()).map(|a| a >= self.axis).collect();
        ops::sum(&View::new(&self.shape, terms), &mask, y, Output::Write)
    }

    fn scratch(&self, dtype: DType) -> [usize; 2] {
        [self.shape.size().saturating_mul(dtype.size()), 0]
    }
}
