//! Incremental network quantization: weights become powers of two by and by, and stay so.

mod cpu;
mod cuda;

use crate::array::{Data, Place};
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::dtype::DType;
use crate::error::Result;
use crate::random::{LastDraw, RandomSeed};
use crate::with_real;
use std::sync::{Arc, Mutex, PoisonError};

/// After how many forward passes weights are fixed, and what the passes of the function have fixed. A clone is another function's,
/// without passes.
#[derive(Default)]
pub struct InqIterations {
    at: Vec<i64>,
    passes: Arc<Mutex<Passes>>,
}

/// What the function's forward passes have done.
#[derive(Default)]
struct Passes {
    /// Of how many there were, and over which shapes.
    count: i64,
    call: u64,
    /// The values of the weights that are fixed, NaN for others.
    kept: Vec<f64>,
    /// Whether any is fixed.
    any: bool,
    /// The same values on the GPU that the function runs on, which alone knows whether any is fixed.
    on_gpu: Option<Data>,
}

impl Passes {
    /// Counts a pass over shapes of number `call`; gives its number.
    fn next(&mut self, call: u64) -> i64 {
        if self.call != call {
            (self.call, self.count) = (call, 0);
        }
        self.count += 1;
        self.count - 1
    }

    /// Before a pass over `n` weights.
    fn begin(&mut self, n: usize) {
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

impl std::fmt::Debug for InqIterations {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("InqIterations").field(&self.at).finish()
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

/// What a pass fixes.
enum InqStep {
    None,
    Half,
    All,
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

impl Inq {
    fn step(&self, pass: i64) -> InqStep {
        let at = self.iterations.value();
        match at.contains(&pass) {
            true if at.last() == Some(&pass) => InqStep::All,
            true => InqStep::Half,
            false => InqStep::None,
        }
    }

    /// Moves what is fixed; the weights that the layer works with.
    fn weight(&self, run: &Run, x: &[View]) -> Result<Data> {
        if run.again {
            return Ok(x[1].data.clone());
        }
        let mut passes = self.iterations.passes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Place::Gpu(_) = x[1].data.place() {
            return cuda::advance(self, run, [&x[1].data, &x[2].data], &mut passes);
        }
        with_real!(run.dtype, T => self.advance::<T>(run, x, &mut passes)?.map_or_else(
            || Ok(x[1].data.clone()),
            |fixed| {
                let weight = Data::new(run.dtype, fixed.len())?;
                weight.as_mut_slice().copy_from_slice(&fixed);
                Ok(weight)
            },
        ))
    }
}

impl Call for Inq {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let weight = self.weight(run, x)?;
        let bias = x.get(3).map(|b| View::new(b.shape, b.data.clone()));
        let own = [View::new(x[0].shape, x[0].data.clone()), View::new(x[1].shape, weight)];
        self.layer.forward(run, &own.into_iter().chain(bias).collect::<Vec<View>>(), y)
    }

    fn last_draw(&self) -> Option<LastDraw> {
        match &self.selection {
            InqSelection::Random(seed) => Some(seed.last()),
            InqSelection::Largest => None,
        }
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
