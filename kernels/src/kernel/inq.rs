//! Incremental network quantization: weights become powers of two by and by, and stay so.

use crate::array::Data;
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::dtype::{DType, Element};
use crate::error::Result;
use crate::kernel::random::next_or_last;
use crate::random::{RandomSeed, philox};
use crate::with_real;
use std::sync::{Arc, Mutex, PoisonError};

/// Bits of the number of levels that make a difference: beyond, levels are 0 in any type.
const MOST_BITS: u32 = 12;

/// After how many forward passes weights are fixed, and what the passes of the function have fixed. A clone is another function's,
/// without passes.
#[derive(Debug, Default)]
pub struct InqIterations {
    at: Vec<i64>,
    passes: Arc<Mutex<Passes>>,
}

/// What the function's forward passes have done.
#[derive(Debug, Default)]
struct Passes {
    /// Of how many there were, and over which shapes.
    count: i64,
    call: u64,
    /// The values of the weights that are fixed, NaN for others.
    kept: Vec<f64>,
    /// Whether any is fixed.
    any: bool,
}

impl Passes {
    /// Before a pass over shapes of number `call`, with `n` weights.
    fn begin(&mut self, call: u64, n: usize) {
        if self.call != call {
            (self.call, self.count) = (call, 0);
        }
        if self.kept.len() != n {
            (self.kept, self.any) = (vec![f64::NAN; n], false);
        }
    }
}

impl InqIterations {
    /// The numbers as they were given.
    pub fn value(&self) -> &[i64] {
        &self.at
    }

    /// The same function's iterations. (A clone is another function's.)
    pub fn twin(&self) -> InqIterations {
        InqIterations { at: self.at.clone(), passes: self.passes.clone() }
    }
}

impl From<Vec<i64>> for InqIterations {
    fn from(at: Vec<i64>) -> InqIterations {
        InqIterations { at, passes: Arc::default() }
    }
}

impl Clone for InqIterations {
    fn clone(&self) -> InqIterations {
        self.at.clone().into()
    }
}

impl PartialEq for InqIterations {
    fn eq(&self, o: &InqIterations) -> bool {
        self.at == o.at
    }
}

/// Which weights are fixed next.
pub enum InqSelection {
    /// The half of largest magnitude.
    Largest,
    /// Each with probability 1/2, by the function's own seed, no clone.
    Random(RandomSeed),
}

/// A layer over inputs x, weight, indicators of what is fixed, maybe bias.
pub struct Inq {
    /// The layer over x, weight, maybe bias.
    pub layer: Box<dyn Call>,
    /// Bits of a weight: one for the sign, and one for zero.
    pub bits: u32,
    pub iterations: InqIterations,
    pub selection: InqSelection,
}

/// `2^exponent`
fn power(exponent: i32) -> f64 {
    f64::from(exponent).exp2()
}

/// The exponent of a finite number that is not 0.
fn exponent(v: f64) -> i32 {
    (v.to_bits() >> 52 & 0x7ff) as i32 - 1023
}

/// The powers of two that weights become: those of exponents from `least` to `most`.
struct Levels {
    least: i32,
    most: i32,
}

impl Levels {
    /// For weights of which the largest magnitude is `largest`; none for zeros.
    fn new(largest: f64, bits: u32) -> Option<Levels> {
        let e = exponent(largest);
        let most = if largest > 1.5 * power(e) { e + 1 } else { e };
        let count = 1 << (bits - 2).min(MOST_BITS);
        (largest > 0.0).then_some(Levels { least: most + 1 - count, most })
    }

    /// The level for a weight: a power of two, from 3/4 of it to below 3/2, or 0 below half the least one. NaN stays.
    fn nearest(&self, w: f64) -> f64 {
        let size = w.abs();
        if size.is_nan() {
            return w;
        }
        if size < power(self.least - 1) {
            return 0.0;
        }
        let e = exponent(size);
        let e = if size >= 1.5 * power(e) { e + 1 } else { e };
        power(e.clamp(self.least, self.most)).copysign(w)
    }
}

impl Inq {
    /// Which of the weights that are not fixed yet are fixed in this pass.
    fn select(&self, pass: i64, w: &[f64], fixed: &[bool], run: &Run) -> Result<Vec<usize>> {
        let mut free: Vec<usize> = (0..w.len()).filter(|&i| !fixed[i]).collect();
        let at = self.iterations.value();
        if at.last() == Some(&pass) || !at.contains(&pass) || free.is_empty() {
            free.truncate(if at.last() == Some(&pass) { free.len() } else { 0 });
            return Ok(free);
        }
        match &self.selection {
            InqSelection::Largest => {
                free.sort_by(|&a, &b| w[b].abs().total_cmp(&w[a].abs()));
                free.truncate((free.len() / 2).max(1));
            }
            InqSelection::Random(seed) => {
                let mut numbers = vec![0.0f64; free.len()];
                philox::uniform(next_or_last(seed, run, false)?.known()?, &mut numbers, 0.0, 1.0);
                let mut numbers = numbers.into_iter();
                free.retain(|_| numbers.next().is_some_and(|u| u < 0.5));
            }
        }
        Ok(free)
    }

    /// Fixes what this pass fixes, of weights `w`; what is `given` is fixed already.
    fn fix(&self, run: &Run, mut w: Vec<f64>, mut fixed: Vec<bool>, passes: &mut Passes) -> Result<()> {
        for ((w, fixed), kept) in w.iter_mut().zip(&mut fixed).zip(&passes.kept).filter(|(_, kept)| !kept.is_nan()) {
            (*w, *fixed) = (*kept, true);
        }
        for i in self.select(passes.count, &w, &fixed, run)? {
            fixed[i] = true;
        }
        let largest = w.iter().filter(|w| w.is_finite()).fold(0.0, |m: f64, w| m.max(w.abs()));
        let levels = Levels::new(largest, self.bits);
        let free = passes.kept.iter_mut().zip(&w).zip(&fixed).filter(|((kept, _), fixed)| **fixed && kept.is_nan());
        for ((kept, &w), _) in free {
            *kept = levels.as_ref().map_or(0.0, |levels| levels.nearest(w));
        }
        passes.any = fixed.contains(&true);
        Ok(())
    }

    /// Moves what is fixed, and writes weights and indicators; gives the weights, if any is fixed.
    fn advance<T: Element>(&self, run: &Run, x: &[View]) -> Result<Option<Vec<T>>> {
        let (w, given) = (x[1].slice::<T>(), x[2].slice::<T>());
        let mut passes = self.iterations.passes.lock().unwrap_or_else(PoisonError::into_inner);
        passes.begin(run.call, w.len());
        let is_given = |g: &T| g.to_f64().abs() >= 1.0;
        let is_new = given.iter().zip(&passes.kept).any(|(g, kept)| is_given(g) && kept.is_nan());
        if is_new || self.iterations.value().contains(&passes.count) {
            let wide = w.iter().map(|v| v.to_f64()).collect();
            self.fix(run, wide, given.iter().map(is_given).collect(), &mut passes)?;
        }
        passes.count += 1;
        if !passes.any {
            return Ok(None);
        }
        let or = |kept: &f64, own: T, fixed: T| if kept.is_nan() { own } else { fixed };
        let weights: Vec<T> = w.iter().zip(&passes.kept).map(|(&w, kept)| or(kept, w, T::from_f64(*kept))).collect();
        let one = T::from_f64(1.0);
        let indicators: Vec<T> = given.iter().zip(&passes.kept).map(|(&g, kept)| or(kept, g, one)).collect();
        run.update_input::<T>(1, weights.len(), |to| to.copy_from_slice(&weights))?;
        run.update_input::<T>(2, weights.len(), |to| to.copy_from_slice(&indicators))?;
        Ok(Some(weights))
    }
}

impl Call for Inq {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let mut weight = x[1].data.clone();
        if !run.again {
            with_real!(run.dtype, T => if let Some(w) = self.advance::<T>(run, x)? {
                weight = Data::new(run.dtype, w.len())?;
                weight.as_mut_slice().copy_from_slice(&w);
            });
        }
        let bias = x.get(3).map(|b| View::new(b.shape, b.data.clone()));
        let own = [View::new(x[0].shape, x[0].data.clone()), View::new(x[1].shape, weight)];
        self.layer.forward(run, &own.into_iter().chain(bias).collect::<Vec<View>>(), y)
    }

    fn needs(&self, want: &[bool]) -> Option<Needs> {
        let own: Vec<bool> = want[..2].iter().chain(want.get(3)).copied().collect();
        self.layer.needs(&own)
    }

    fn backward(&self, run: &Run, Gradients { x, y, gy, gx }: Gradients) -> Result<()> {
        let own = |i: usize| x[i].as_ref().map(|x| View::new(x.shape, x.data.clone()));
        let bias = gx.get_mut(3).map(Option::take);
        let mut gradients: Vec<_> = [gx[0].take(), gx[1].take()].into_iter().chain(bias).collect();
        self.layer.backward(run, Gradients { x: &[own(0), own(1), None], y, gy, gx: &mut gradients })
    }

    fn multiplications(&self) -> f64 {
        self.layer.multiplications()
    }

    fn scratch(&self, dtype: DType) -> [usize; 2] {
        self.layer.scratch(dtype)
    }

    fn grad_over(&self, i: usize) -> Option<usize> {
        if i == 0 { self.layer.grad_over(0) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_powers_of_two_around_the_largest_weight() {
        let levels = Levels::new(3.0, 4).unwrap();
        assert_eq!((levels.least, levels.most), (-2, 1));
        let numbers = [3.0, 2.99, 1.5, -1.49, 0.75, 0.74, 0.125, -0.124, 0.0, f64::INFINITY];
        let nearest = [2.0, 2.0, 2.0, -1.0, 1.0, 0.5, 0.25, 0.0, 0.0, 2.0];
        assert_eq!(numbers.map(|w| levels.nearest(w)), nearest);
        assert!(levels.nearest(f64::NAN).is_nan());
        assert_eq!(Levels::new(3.01, 2).map(|l| (l.least, l.most)), Some((2, 2)));
        assert_eq!(Levels::new(1.5, 3).map(|l| (l.least, l.most)), Some((-1, 0)));
        assert!(Levels::new(0.0, 4).is_none());
    }
}
