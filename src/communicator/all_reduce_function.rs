//! What synchronized normalization does between ranks, as functions of a graph.

use super::arrays::described;
use super::membership::{GroupMember, Membership};
use super::reductions::{all_reduce_arrays, summing};
use crate::function::args::{ArgumentsKey, key};
use crate::function::{
    ArgValue, Def, Described, Function, Grad, Group, InputDef, InputKind, Needs, OnGpu, OnVariables,
};
use crate::function::{OutputDef, Shapes, call_one};
use crate::graph::{Variable, mode};
use nnrs_kernels::array::NdArray;
use nnrs_kernels::error::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

static NEXT: AtomicU64 = AtomicU64::new(0);

/// A number for each function that is made: none is another one's equal.
pub(super) fn next() -> u64 {
    NEXT.fetch_add(1, Relaxed)
}

pub(super) const fn input(name: &'static str) -> InputDef {
    InputDef { name, kind: InputKind::Required, doc: "N-D array." }
}

pub(super) const fn definition(name: &'static str, doc: &'static str, inputs: &'static [InputDef]) -> Def {
    Def {
        name,
        snake: name,
        group: Group::Special,
        doc,
        elementwise: false,
        on_gpu: OnGpu::Nothing,
        inputs,
        args: &[],
        outputs: &[OutputDef { name: "y", variadic: true, doc: "Arrays of the inputs' shapes." }],
        build: |_| Err(Error::unsupported("this function needs a communicator")),
    }
}

macro_rules! described {
    ($($name:ident $inputs:expr, $doc:literal;)*) => {$(
        impl Described for $name {
            fn def(&self) -> &'static Def {
                const DEF: &Def = &definition(stringify!($name), $doc, $inputs);
                DEF
            }
            fn arguments(&self) -> Vec<(&'static str, ArgValue)> {
                vec![]
            }
            fn key(&self) -> ArgumentsKey {
                key(|h| h(self.number))
            }
        }
    )*};
}
described! {
    AllReduceSum &[input("x")], "The sum of an array over all ranks.";
    ChannelCount &[input("x")], "How many elements each channel has.";
    MoveStatistics &[input("mean"), input("variance"), input("count")], "Moves running statistics.";
}

/// The sum of an array over all ranks of a group; its gradient is the sum of their gradients.
pub(super) struct AllReduceSum {
    members: Arc<Membership>,
    group: GroupMember,
    number: u64,
}

impl AllReduceSum {
    pub(super) fn new(members: &Arc<Membership>, group: &GroupMember) -> AllReduceSum {
        AllReduceSum { members: members.clone(), group: group.clone(), number: next() }
    }

    fn sum(&self, a: &NdArray) -> Result<()> {
        let arrays = [a.handle()];
        self.members
            .collective("sync_batch_normalization", &self.group, &described(&arrays), |t, memory| {
                all_reduce_arrays(t, &arrays, true, 1.0, memory, summing(t, false))
            })
            .map(drop)
    }
}

impl Function for AllReduceSum {
    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![Some(call_one(AllReduceSum::new(&self.members, &self.group), &[&g.gy[0]])?)])
    }

    fn on_variables(&self) -> Option<&dyn OnVariables> {
        Some(self)
    }
}

impl OnVariables for AllReduceSum {
    fn setup(&self, x: &[Variable]) -> Result<Shapes> {
        Ok([x[0].shape()].into_iter().collect())
    }

    fn forward(&self, x: &[Variable], y: &[Variable]) -> Result<()> {
        let sum = y[0].raw_data();
        sum.copy_from(&x[0].data()?)?;
        self.sum(&sum)
    }

    /// Also where this rank needs it not: the others wait for it.
    fn backward(&self, x: &[Variable], y: &[Variable], want: &[bool], accumulate: &[bool]) -> Result<()> {
        let gradient = y[0].grad().deep_copy()?;
        self.sum(&gradient)?;
        if want[0] { give(&x[0], &gradient, accumulate[0]) } else { Ok(()) }
    }

    fn needs(&self, _want: &[bool]) -> Needs {
        Needs::NONE
    }
}

/// How many elements each of some channels has; no gradient.
pub(super) struct ChannelCount {
    channels: usize,
    number: u64,
}

impl ChannelCount {
    pub(super) fn new(channels: usize) -> ChannelCount {
        ChannelCount { channels, number: next() }
    }
}

impl Function for ChannelCount {
    fn differentiable(&self, _i: usize) -> bool {
        false
    }

    fn on_variables(&self) -> Option<&dyn OnVariables> {
        Some(self)
    }
}

impl OnVariables for ChannelCount {
    fn setup(&self, _x: &[Variable]) -> Result<Shapes> {
        Ok([[1usize].into()].into_iter().collect())
    }

    fn forward(&self, x: &[Variable], y: &[Variable]) -> Result<()> {
        y[0].raw_data().write(&[x[0].size() as f64 / self.channels as f64])
    }

    fn backward(&self, _: &[Variable], _: &[Variable], _: &[bool], _: &[bool]) -> Result<()> {
        Ok(())
    }
}

/// Gives mean and variance on, and moves the running ones; the third input is how many elements they are of.
pub(super) struct MoveStatistics {
    running: [Variable; 2],
    decay: f64,
    number: u64,
}

impl MoveStatistics {
    pub(super) fn new(mean: &Variable, variance: &Variable, decay: f64) -> MoveStatistics {
        MoveStatistics { running: [mean.clone(), variance.clone()], decay, number: next() }
    }

    fn move_by(&self, running: &Variable, batch: &Variable, times: f64) -> Result<()> {
        let old: Vec<f64> = running.to_vec()?;
        let moved = |(old, new): (f64, f64)| self.decay * old + (1.0 - self.decay) * times * new;
        let new: Vec<f64> = old.into_iter().zip(batch.to_vec::<f64>()?).map(moved).collect();
        running.raw_data().write(&new)
    }
}

impl Function for MoveStatistics {
    fn differentiable(&self, i: usize) -> bool {
        i < 2
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![Some(g.gy[0].clone()), Some(g.gy[1].clone()), None])
    }

    fn on_variables(&self) -> Option<&dyn OnVariables> {
        Some(self)
    }
}

impl OnVariables for MoveStatistics {
    fn setup(&self, x: &[Variable]) -> Result<Shapes> {
        Ok(x[..2].iter().map(Variable::shape).collect())
    }

    fn forward(&self, x: &[Variable], y: &[Variable]) -> Result<()> {
        let count = x[2].to_vec::<f64>()?[0];
        let unbiased = if count > 1.0 { count / (count - 1.0) } else { f64::NAN };
        for (i, times) in [(0, 1.0), (1, unbiased)] {
            y[i].raw_data().copy_from(&x[i].data()?)?;
            if !mode::in_recomputing() {
                self.move_by(&self.running[i], &x[i], times)?;
            }
        }
        Ok(())
    }

    fn backward(&self, x: &[Variable], y: &[Variable], want: &[bool], accumulate: &[bool]) -> Result<()> {
        (0..2).filter(|&i| want[i]).try_for_each(|i| give(&x[i], &y[i].grad(), accumulate[i]))
    }

    fn needs(&self, _want: &[bool]) -> Needs {
        Needs::NONE
    }
}

/// Writes the gradient of `x`, or adds to it.
fn give(x: &Variable, gradient: &NdArray, accumulate: bool) -> Result<()> {
    let own = x.grad();
    if !accumulate {
        return own.copy_from(gradient);
    }
    let more: Vec<f64> = gradient.to_vec()?;
    let sum: Vec<f64> = own.to_vec::<f64>()?.into_iter().zip(more).map(|(a, b)| a + b).collect();
    own.write(&sum)
}
