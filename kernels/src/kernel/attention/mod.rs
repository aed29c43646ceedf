//! Attention: for each query the mean of all values, weighted by how well their keys match it. The scores of all pairs never lie in
//! memory as a whole: they are made block by block, forward and again backward, so that memory grows with the length alone.

mod cpu;
#[cfg(feature = "emulate")]
mod tests;

use super::ops;
use crate::array::scratch::counted;
use crate::array::{Data, Output};
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::pool;
use crate::with_real;

/// What is added to the scores: where the mask of each head begins, and whether it has a row for each query.
pub struct ScoreMask {
    pub starts: Vec<usize>,
    pub has_rows: bool,
}

/// `softmax(scale q k' + mask) v` of each head.
pub struct ScaledDotProduct {
    pub heads: usize,
    /// Queries and keys of a head.
    pub queries: usize,
    pub keys: usize,
    /// Numbers of a query and of a value.
    pub size: usize,
    pub value_size: usize,
    pub scale: f64,
    /// A query sees the keys up to its own number alone.
    pub causal: bool,
    pub mask: Option<ScoreMask>,
}

/// Of a forward pass, for each query: the logarithm of the sum of the exponentials of its scores.
struct LogSums(Data);

impl ScaledDotProduct {
    /// Keys that some query below `end` sees.
    fn seen(&self, end: usize) -> usize {
        if self.causal { end.min(self.keys) } else { self.keys }
    }

    fn rows(&self) -> usize {
        self.heads.saturating_mul(self.queries)
    }
}

impl Call for ScaledDotProduct {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        if y[0].data.is_empty() {
            return Ok(());
        }
        let saved = if run.keep { Some(Data::new(run.dtype, self.rows())?) } else { None };
        with_real!(run.dtype, T => {
            let [q, k, v] = [0, 1, 2].map(|i| x[i].slice::<T>());
            let mask = x.get(3).map(|mask| mask.slice::<T>());
            cpu::forward(self, cpu::QueryKeyValue { q, k, v, mask }, y[0].slice(), saved.as_ref().map(Data::as_mut_slice))
        });
        if let Some(saved) = saved {
            run.save(LogSums(saved));
        }
        Ok(())
    }

    fn saves(&self, dtype: DType) -> Option<usize> {
        Some(self.rows().saturating_mul(dtype.size()))
    }

    fn scratch(&self, dtype: DType) -> [usize; 2] {
        let threads = pool::num_threads();
        let of = |numbers: usize| counted(numbers.saturating_mul(dtype.size()));
        [of(cpu::forward_numbers(self)) + threads * of(cpu::block_numbers(self)), of(cpu::backward_numbers(self))]
    }

    fn multiplications(&self) -> f64 {
        (self.rows() as f64) * (self.keys as f64) * (self.size + self.value_size) as f64
    }

    /// A mask's gradient is the business of the rule.
    fn needs(&self, want: &[bool]) -> Option<Needs> {
        let is_mask_wanted = want.get(3).is_some_and(|want| *want);
        (!is_mask_wanted).then_some(Needs { x: 0b1111, y: 1 })
    }

    fn backward(&self, run: &Run, Gradients { x, y, gy, gx }: Gradients) -> Result<()> {
        let (Some(y), Some(gy)) = (&y[0], &gy[0]) else { return Ok(()) };
        if y.data.is_empty() {
            let mut written = gx.iter().flatten().filter(|g| g.output == Output::Write);
            return written.try_for_each(|g| ops::fill(&g.data, 0.0));
        }
        let saved = run.saved::<LogSums>().filter(|s| s.0.dtype() == run.dtype).ok_or_else(|| {
            Error::graph("the sums of the forward pass are missing").hint("call forward() before backward()")
        })?;
        let given = |i: usize| x.get(i).and_then(Option::as_ref);
        let (Some(q), Some(k), Some(v)) = (given(0), given(1), given(2)) else { return Ok(()) };
        with_real!(run.dtype, T => {
            let mask = given(3).map(|mask| mask.slice::<T>());
            let inputs = cpu::QueryKeyValue { q: q.slice(), k: k.slice(), v: v.slice(), mask };
            let passed = cpu::Passed { y: y.slice(), gy: gy.slice(), log_sums: saved.0.as_slice() };
            let mut gradients = gx.iter_mut().map(|g| g.as_mut().map(|g| (g.output, g.slice::<T>())));
            let outputs = std::array::from_fn(|_| gradients.next().flatten());
            cpu::backward(self, inputs, passed, outputs)
        });
        Ok(())
    }
}
