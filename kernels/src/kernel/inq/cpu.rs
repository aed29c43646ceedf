//! On the host, in double precision.

use super::{Inq, InqSelection, InqStep, Passes};
use crate::call::{Run, View};
use crate::dtype::Element;
use crate::error::Result;
use crate::kernel::random::next_or_last;
use crate::random::philox;

/// Bits of the number of levels that make a difference: beyond, levels are 0 in any type.
const MOST_BITS: u32 = 12;

/// The number of levels.
pub(super) fn count(bits: u32) -> usize {
    1 << (bits - 2).min(MOST_BITS)
}

/// `2^exponent`
fn power(exponent: i32) -> f64 {
    f64::from(exponent).exp2()
}

/// log2(3/2)
const LOG_HALFWAY: f32 = 0.584_962_5;

/// The exponent of the power of two that is 2/3 to 4/3 of a positive number, by its logarithm in single precision, as NNabla
/// compares: a number at 3/2 of a power, or a few roundings from it, may belong to either side. `up` where it counts as above.
fn exponent(size: f64, up: bool) -> i32 {
    let log = size.log2() as f32;
    let part = log - log.floor();
    log.floor() as i32 + (part > LOG_HALFWAY || up && part == LOG_HALFWAY) as i32
}

/// The powers of two that weights become: those of exponents from `least` to `most`.
struct Levels {
    least: i32,
    most: i32,
}

impl Levels {
    /// For weights of which the largest magnitude is `largest`; none for zeros.
    fn new(largest: f64, bits: u32) -> Option<Levels> {
        let most = exponent(largest, false);
        (largest > 0.0).then(|| Levels { least: most + 1 - count(bits) as i32, most })
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
        let e = exponent(size.min(power(self.most)), true);
        power(e.clamp(self.least, self.most)).copysign(w)
    }
}

/// The first of the weights of the largest magnitude.
fn first_largest(w: &[f64]) -> Option<usize> {
    (0..w.len()).rev().max_by(|&a, &b| w[a].abs().total_cmp(&w[b].abs()))
}

impl Inq {
    /// Which of the weights that are not fixed yet are fixed in this pass.
    fn select(&self, pass: i64, w: &[f64], fixed: &[bool], run: &Run) -> Result<Vec<usize>> {
        let mut free: Vec<usize> = (0..w.len()).filter(|&i| !fixed[i]).collect();
        match self.step(pass) {
            InqStep::None => free.clear(),
            InqStep::All => {}
            InqStep::Half => self.take_half(w, &mut free, run)?,
        }
        Ok(free)
    }

    fn take_half(&self, w: &[f64], free: &mut Vec<usize>, run: &Run) -> Result<()> {
        match &self.selection {
            InqSelection::Largest => {
                free.sort_by(|&a, &b| w[b].abs().total_cmp(&w[a].abs()));
                // Of one weight half is none, but as in NNabla the largest of all is fixed.
                let is_largest = |&i: &usize| free.len() == 1 && first_largest(w) == Some(i);
                let half = if free.first().is_some_and(is_largest) { 1 } else { free.len() / 2 };
                free.truncate(half);
            }
            InqSelection::Random(seed) => {
                let mut numbers = vec![0.0f64; free.len()];
                philox::uniform(next_or_last(seed, run, false)?.known()?, &mut numbers, 0.0, 1.0);
                let mut numbers = numbers.into_iter();
                free.retain(|_| numbers.next().is_some_and(|u| u < 0.5));
            }
        }
        Ok(())
    }

    /// Fixes what this pass fixes, of weights `w`; what is `given` is fixed already.
    fn fix(&self, pass: i64, run: &Run, mut w: Vec<f64>, mut fixed: Vec<bool>, passes: &mut Passes) -> Result<()> {
        for ((w, fixed), kept) in w.iter_mut().zip(&mut fixed).zip(&passes.kept).filter(|(_, kept)| !kept.is_nan()) {
            (*w, *fixed) = (*kept, true);
        }
        for i in self.select(pass, &w, &fixed, run)? {
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
    pub(super) fn advance<T: Element>(&self, run: &Run, x: &[View], passes: &mut Passes) -> Result<Option<Vec<T>>> {
        let (w, given) = (x[1].slice::<T>(), x[2].slice::<T>());
        let pass = passes.next(run.call);
        passes.begin(w.len());
        let is_given = |g: &T| g.to_f64().abs() >= 1.0;
        let is_new = given.iter().zip(&passes.kept).any(|(g, kept)| is_given(g) && kept.is_nan());
        if is_new || !matches!(self.step(pass), InqStep::None) {
            let wide = w.iter().map(|v| v.to_f64()).collect();
            self.fix(pass, run, wide, given.iter().map(is_given).collect(), passes)?;
        }
        let fixed = |kept: &f64, own: i32| if kept.is_nan() { own } else { 1 };
        run.update_whole_input(2, w.len(), |to| to.iter_mut().zip(&passes.kept).for_each(|(v, k)| *v = fixed(k, *v)))?;
        if !passes.any {
            return Ok(None);
        }
        let or = |kept: &f64, own: T, fixed: T| if kept.is_nan() { own } else { fixed };
        let weights: Vec<T> = w.iter().zip(&passes.kept).map(|(&w, kept)| or(kept, w, T::from_f64(*kept))).collect();
        run.update_input::<T>(1, weights.len(), |to| to.copy_from_slice(&weights))?;
        Ok(Some(weights))
    }
}

#[cfg(feature = "emulate")]
mod tests {
    use super::*;

    unit_test!(levels_are_powers_of_two_around_the_largest_weight);
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
