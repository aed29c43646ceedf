//! A layer that works with the signs of its weight: the signs are written to an array beside it, and given to the layer's call.

use super::ops;
use crate::array::{Data, Output, Place, Walk};
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::dtype::DType;
use crate::error::Result;
use crate::expr::{Expr, Formula};
use crate::shape::Shape;
use crate::with_real;

/// Signs times a factor for each output of the layer: the mean magnitude of its weights, input 3 of the function.
pub struct OutputScale {
    /// The weight as a matrix.
    pub matrix: [usize; 2],
    /// The axis of the matrix that is over the outputs.
    pub axis: usize,
}

/// A layer over inputs x, weight, array of the signs, maybe array of the scales, maybe bias.
pub struct BinaryWeights {
    /// The layer over x, weight, maybe bias.
    pub layer: Box<dyn Call>,
    pub weight: Shape,
    /// The sign of 0.
    pub zero: f64,
    pub scale: Option<OutputScale>,
}

/// Writes `x` to input `i`.
fn give(run: &Run, i: usize, x: &Data) -> Result<()> {
    match x.place() {
        Place::Gpu(_) => ops::put(&run.input_to_update(i, x.place(), x.len())?, x, Output::Write),
        Place::Host => {
            with_real!(x.dtype(), T => run.update_input::<T>(i, x.len(), |to| to.copy_from_slice(x.as_slice())))
        }
    }
}

impl BinaryWeights {
    /// Number of the input bias.
    fn bias(&self) -> usize {
        3 + self.scale.is_some() as usize
    }

    fn signs(&self, w: &Data) -> Result<Data> {
        let signs = Data::new_at(w.place(), w.dtype(), w.len())?;
        let sign = |w: &Expr| w.gt(0.0).select(1.0, w.lt(0.0).select(w.constant(-1.0), self.zero));
        ops::formula(&Formula::new(1, |v| vec![Some(sign(&v[0]))]), &[(w, Walk::Dense)], &signs, Output::Write)?;
        Ok(signs)
    }

    /// What the layer works with: the signs, or the signs times the scales, which are given, too.
    fn effective(&self, w: &Data, signs: &Data) -> Result<(Data, Option<Data>)> {
        let Some(s) = &self.scale else { return Ok((signs.clone(), None)) };
        let new = |n: usize| Data::new_at(w.place(), w.dtype(), n);
        let (magnitudes, scales, product) = (new(w.len())?, new(s.matrix[s.axis])?, new(w.len())?);
        let share = 1.0 / s.matrix[1 - s.axis] as f64;
        let magnitude = Formula::new(1, |v| vec![Some(v[0].abs() * share)]);
        ops::formula(&magnitude, &[(w, Walk::Dense)], &magnitudes, Output::Write)?;
        let (matrix, mask) = (Shape::from(s.matrix), [s.axis != 0, s.axis != 1]);
        ops::sum(&View::new(&matrix, magnitudes), &mask, &scales, Output::Write)?;
        let mut each = [1, 1];
        each[s.axis] = s.matrix[s.axis];
        let inputs = [(signs, Walk::Dense), (&scales, Walk::new(&each.into(), &matrix))];
        ops::formula(&Formula::new(2, |v| vec![Some(&v[0] * &v[1])]), &inputs, &product, Output::Write)?;
        Ok((product, Some(scales)))
    }
}

impl Call for BinaryWeights {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let w = &x[1].data;
        let signs = self.signs(w)?;
        let (effective, scales) = self.effective(w, &signs)?;
        let bias = x.get(self.bias()).map(|b| View::new(b.shape, b.data.clone()));
        let own = [View::new(x[0].shape, x[0].data.clone()), View::new(&self.weight, effective)];
        let inputs: Vec<View> = own.into_iter().chain(bias).collect();
        self.layer.forward(run, &inputs, y)?;
        if run.again {
            return Ok(());
        }
        give(run, 2, &signs)?;
        scales.map_or(Ok(()), |scales| give(run, 3, &scales))
    }

    fn needs(&self, want: &[bool]) -> Option<Needs> {
        let own: Vec<bool> = want[..2].iter().chain(want.get(self.bias())).copied().collect();
        self.layer.needs(&own)
    }

    /// The gradient passes straight through the signs and their scales.
    fn backward(&self, run: &Run, Gradients { x, y, gy, gx }: Gradients) -> Result<()> {
        let input = x[0].as_ref().map(|x| View::new(x.shape, x.data.clone()));
        let weight = match &x[1] {
            Some(w) => Some(View::new(&self.weight, self.effective(&w.data, &self.signs(&w.data)?)?.0)),
            None => None,
        };
        let bias = gx.get_mut(self.bias()).map(Option::take);
        let mut own: Vec<_> = [gx[0].take(), gx[1].take()].into_iter().chain(bias).collect();
        self.layer.backward(run, Gradients { x: &[input, weight, None], y, gy, gx: &mut own })
    }

    fn multiplications(&self) -> f64 {
        self.layer.multiplications()
    }

    fn scratch(&self, dtype: DType) -> [usize; 2] {
        let own =
            self.weight.size().saturating_mul(dtype.size()).saturating_mul(if self.scale.is_some() { 3 } else { 1 });
        self.layer.scratch(dtype).map(|n| n.saturating_add(own))
    }

    fn grad_over(&self, i: usize) -> Option<usize> {
        if i == 0 { self.layer.grad_over(0) } else { None }
    }
}
