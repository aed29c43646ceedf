//! An array over its p-norms, times a scale for each of them.

use super::ops;
use super::reduction::Norm;
use crate::array::{Data, Output, Walk};
use crate::call::{Call, Run, View, ViewMut};
use crate::dtype::DType;
use crate::error::Result;
use crate::expr::{Expr, Formula};

/// `y = g x / (norm^p + eps)^(1/p)`; for the infinite norm `y = g x / (norm + eps)`.
pub struct NormNormalization {
    pub norm: Norm,
    pub eps: f64,
    /// Whether there is a second input: g, a number for each norm.
    pub scaled: bool,
    /// What all is multiplied by.
    pub gain: f64,
}

impl NormNormalization {
    /// What x is multiplied by, from its norm.
    fn factor(&self, norm: &Expr) -> Expr {
        match self.norm.p {
            1.0 | f64::INFINITY => (norm + self.eps).pow(-1.0),
            2.0 => (norm.square() + self.eps).pow(-0.5),
            p => (norm.clone().pow(p) + self.eps).pow(-1.0 / p),
        }
    }

    /// One factor for each norm.
    fn factors(&self, dtype: DType, x: &[View]) -> Result<Data> {
        let new = || Data::new_at(x[0].data.place(), dtype, self.norm.over.kept.size());
        let (norms, factors) = (new()?, new()?);
        self.norm.of(dtype, &x[0].data, &norms)?;
        let formula = Formula::new(1 + self.scaled as usize, |v| {
            let factor = self.factor(&v[0]);
            let factor = if self.gain == 1.0 { factor } else { factor * self.gain };
            vec![Some(if self.scaled { &factor * &v[1] } else { factor })]
        });
        let given = [(&norms, Walk::Dense)].into_iter().chain(x.get(1).map(|g| (&g.data, Walk::Dense)));
        ops::formula(&formula, &given.collect::<Vec<_>>(), &factors, Output::Write)?;
        Ok(factors)
    }
}

impl Call for NormNormalization {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        if y[0].data.is_empty() {
            return Ok(());
        }
        let (factors, over) = (self.factors(run.dtype, x)?, &self.norm.over);
        let product = Formula::new(2, |v| vec![Some(&v[0] * &v[1])]);
        let given = [(&x[0].data, Walk::Dense), (&factors, Walk::new(&over.kept, &over.shape))];
        ops::formula(&product, &given, &y[0].data, Output::Write)
    }
}
