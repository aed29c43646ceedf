//! `random_choice`: elements of rows picked by weights.

use crate::function;
use crate::function::array::{List, Ungather};
use crate::function::{Function, Grad, Resolved, call_one};
use crate::functions as f;
use crate::graph::Variable;
use nnrs_kernels::dtype::DType;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::random_choice::{self as kernel, Choice};
use nnrs_kernels::random::{LastDraw, RandomSeed};
use nnrs_kernels::shape::Shape;

function! {
    /// Picks elements at random from the rows of an array, each with a probability that is its weight's part of the row's.
    ///
    /// The gradient of each pick goes to the element and, as in NNabla, to its weight.
    RandomChoice random_choice in Random, forward_on_any_device
    inputs { x: "N-D array; its last axis is what is picked from.", w: "Weights of 0 or more, of x's shape." }
    args {
        shape: List = List::default(), "Shape of the picks from each row; empty: one pick.";
        replace: bool = true, "Whether an element may be picked again.";
        seed: RandomSeed = RandomSeed::default(), "Seed of this function; -1: the global random stream."
    }
    outputs { y: "Array of shape x.shape[:-1] + shape." }
}

/// The picks of each row.
fn choice(w: &Shape, picks: &[i64], replace: bool) -> Result<Choice> {
    let Some(&n) = w.last() else {
        return Err(Error::shape("x", "one axis at least").actual(w));
    };
    let wrong = || Error::arg("shape", "sizes of 0 or more").actual(format!("{picks:?}"));
    let sizes = picks.iter().map(|&d| usize::try_from(d).map_err(|_| wrong()));
    let picks = Shape::from(sizes.collect::<Result<Vec<usize>>>()?).checked()?.size();
    if n == 0 && picks > 0 && w.size_to(w.ndim() - 1) > 0 {
        return Err(Error::shape("x", "elements along the last axis").actual(w));
    }
    if !replace && picks > n {
        let e = Error::arg("shape", format!("at most {n} picks, the size of the last axis of x {w}")).actual(picks);
        return Err(e.hint("without replacement, each element is picked once at most"));
    }
    Ok(Choice { rows: w.size_to(w.ndim() - 1), n, picks, replace })
}

impl RandomChoice {
    fn picks(&self) -> Vec<i64> {
        if self.shape.is_empty() { vec![1] } else { self.shape.to_vec() }
    }
}

impl Function for RandomChoice {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        if x[0] != x[1] {
            return Err(Error::shape("w", format!("shape {} as of x", x[0])).actual(&x[1]));
        }
        let picks = self.picks();
        let choice = choice(&x[1], &picks, self.replace)?;
        let lead = x[0][..x[0].ndim() - 1].iter().copied();
        let y: Shape = lead.chain(picks.iter().map(|&d| d as usize)).collect();
        Ok(Resolved::one(y.checked()?, kernel::RandomChoice { seed: self.seed.twin(), choice }))
    }

    fn has_state(&self) -> bool {
        true
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let (shape, choice) = (g.x[0].shape(), g.call::<kernel::RandomChoice>().choice);
        let again = ChosenIndices { picks: choice.picks as i64, replace: self.replace, draw: self.seed.last() };
        let indices = call_one(again, &[&g.x[1], &g.y[0]])?;
        let axis = shape.ndim() as i64 - 1;
        let rows: Shape = shape[..axis as usize].iter().copied().chain([choice.picks]).collect();
        let gy = f::reshape(&g.gy[0], f::Reshape::to(&rows))?;
        let back = Ungather { shape: shape[..].into(), axis: Some(axis), batch_dims: Some(axis) };
        let gx = call_one(back, &[&gy, &indices])?;
        Ok(g.want.iter().map(|want| want.then(|| gx.clone())).collect())
    }
}

function! {
    /// Which elements a function picked when it last ran. Internal: not in the registry.
    ChosenIndices chosen_indices in Special, forward_on_any_device
    inputs { w: "The weights.", after: "The function's output: it runs first." }
    args {
        picks: i64, "Picks from each row.";
        replace: bool, "As of `random_choice`.";
        draw: LastDraw, "The function's numbers."
    }
    outputs { y: "Indices of shape w.shape[:-1] + (picks,)." }
}

impl Function for ChosenIndices {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let choice = choice(&x[0], &[self.picks], self.replace)?;
        let y: Shape = x[0][..x[0].ndim() - 1].iter().copied().chain([choice.picks]).collect();
        Ok(Resolved::one(y, kernel::ChosenIndices { draw: self.draw.clone(), choice }))
    }

    fn output_dtype(&self, _i: usize) -> Option<DType> {
        Some(DType::I64)
    }

    fn differentiable(&self, _i: usize) -> bool {
        false
    }

    fn grad(&self, _g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![None, None])
    }
}
