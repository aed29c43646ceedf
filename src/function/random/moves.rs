//! `random_crop`, `random_flip` and `random_shift`: elements moved along axes, each sample otherwise.

use crate::function;
use crate::function::array::List;
use crate::function::{ArgKind, ArgType, ArgValue, Call, Described, Function, Grad, Resolved, call_of, call_one};
use crate::graph::Variable;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::random_moves::{self as kernel, MoveKind, RandomMoves};
use nnrs_kernels::random::{LastDraw, RandomSeed};
use nnrs_kernels::shape::Shape;

function! {
    /// Takes a part of an array, each sample from another place.
    RandomCrop random_crop in Random, forward_on_any_device
    inputs { x: "N-D array." }
    args {
        shape: Option<List> = None, "Sizes of the last axes of the result; None: x's shape.";
        base_axis: i64 = 1, "The axes before it number the samples; it may count from the end.";
        seed: RandomSeed = RandomSeed::default(), "Seed of this function; -1: the global random stream."
    }
    outputs { y: "N-D array of x's shape but for the last axes." }
}

function! {
    /// Reverses the order of elements along axes, or leaves it, with equal probability for each sample and axis.
    RandomFlip random_flip in Random, forward_on_any_device
    inputs { x: "N-D array." }
    args {
        axes: Option<List> = None, "Axes to reverse; None: the last one. They may count from the end.";
        base_axis: i64 = 1, "The axes before it number the samples; it may count from the end.";
        seed: RandomSeed = RandomSeed::default(), "Seed of this function; -1: the global random stream."
    }
    outputs { y: "N-D array of x's shape." }
}

function! {
    /// Moves the elements along axes, each sample by other distances.
    RandomShift random_shift in Random, forward_on_any_device
    inputs { x: "N-D array." }
    args {
        shifts: Option<List> = None, "The largest distances along the last axes, to both sides; None: 0.";
        border_mode: String = "nearest".to_string(), "Where there is no element: 'nearest' repeats the first or last one, 'reflect' mirrors the array at its ends, 'constant' puts constant_value.";
        constant_value: f64 = 0.0, "What comes in, for 'constant'.";
        base_axis: i64 = 1, "The axes before it number the samples; it may count from the end.";
        seed: RandomSeed = RandomSeed::default(), "Seed of this function; -1: the global random stream."
    }
    outputs { y: "N-D array of x's shape." }
}

/// What is done along which axes.
#[derive(Clone, Debug, PartialEq)]
enum Motion {
    Crop(Option<List>),
    Flip(Option<List>),
    Shift(Option<List>, String),
}

impl Default for Motion {
    fn default() -> Motion {
        Motion::Crop(None)
    }
}

/// How a function moves elements: not an argument that a caller can give, it links it with its derivative.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MotionArg {
    motion: Motion,
    base_axis: i64,
    constant: f64,
}

impl ArgType for MotionArg {
    const KIND: ArgKind = ArgKind::Int;
    fn from_value(_: ArgValue) -> Option<MotionArg> {
        None
    }
    fn to_value(&self) -> ArgValue {
        ArgValue::None
    }
}

/// The axes that the last arguments of a list are for, and the arguments.
fn last_axes<'a>(x: &Shape, name: &str, given: Option<&'a List>) -> Result<(usize, &'a [i64])> {
    let given = given.map_or(&[][..], |g| &g[..]);
    let lead = x.ndim().checked_sub(given.len());
    let expected = || format!("at most {} numbers, one for each axis of x {x}", x.ndim());
    Ok((lead.ok_or_else(|| Error::arg(name, expected()).actual(format!("{given:?}")))?, given))
}

impl MotionArg {
    /// The result's shape, and the moves.
    fn moves(&self, x: &Shape) -> Result<(Shape, RandomMoves)> {
        let base = x.axis(self.base_axis, "base_axis")?;
        let (mut kinds, mut y) = (vec![MoveKind::Stay; x.ndim()], x.clone());
        match &self.motion {
            Motion::Crop(shape) => crop(x, shape.as_ref(), &mut kinds, &mut y)?,
            Motion::Flip(axes) => {
                for &axis in axes.as_ref().map_or(&[-1][..], |a| a) {
                    kinds[x.axis(axis, "axes")?] = MoveKind::Flip;
                }
            }
            Motion::Shift(shifts, mode) => shift(x, shifts.as_ref(), mode, &mut kinds)?,
        }
        let moves = RandomMoves::new(x, &kinds, &y, base, self.constant);
        Ok((y, moves))
    }

    fn resolve(&self, x: &Shape, seed: &RandomSeed) -> Result<Resolved> {
        let (y, moves) = self.moves(x)?;
        Ok(Resolved::one(y, kernel::RandomMove { seed: seed.twin(), moves }))
    }

    fn grad(&self, g: &Grad, seed: &RandomSeed) -> Result<Vec<Option<Variable>>> {
        let motion = MotionArg { constant: 0.0, ..self.clone() };
        let back = MoveBack { motion, draw: seed.last() };
        Ok(vec![Some(call_one(back, &[&g.gy[0], &g.y[0], &g.x[0]])?)])
    }
}

fn crop(x: &Shape, shape: Option<&List>, kinds: &mut [MoveKind], y: &mut Shape) -> Result<()> {
    let (lead, sizes) = last_axes(x, "shape", shape)?;
    for (axis, &size) in sizes.iter().enumerate().map(|(k, size)| (lead + k, size)) {
        let expected = || format!("a size from 0 to {} along axis {axis} of x {x}", x[axis]);
        let to = usize::try_from(size).ok().filter(|to| *to <= x[axis]);
        let to = to.ok_or_else(|| Error::arg("shape", expected()).actual(size))?;
        if to != x[axis] {
            kinds[axis] = MoveKind::Crop;
            y.as_mut_slice()[axis] = to;
        }
    }
    Ok(())
}

fn shift(x: &Shape, shifts: Option<&List>, mode: &str, kinds: &mut [MoveKind]) -> Result<()> {
    let kind = match mode {
        "nearest" => MoveKind::ShiftNearest,
        "reflect" => MoveKind::ShiftReflect,
        "constant" => MoveKind::ShiftConstant,
        _ => {
            let expected = "'nearest', 'reflect' or 'constant'";
            return Err(Error::arg("border_mode", expected).actual(format!("'{mode}'")));
        }
    };
    let (lead, shifts) = last_axes(x, "shifts", shifts)?;
    for (k, &most) in shifts.iter().enumerate().filter(|(_, most)| **most != 0) {
        let most = u32::try_from(most).ok().filter(|most| i32::try_from(*most).is_ok());
        let most = most.ok_or_else(|| Error::arg("shifts", "distances of 0 or more, below 2^31").actual(shifts[k]))?;
        kinds[lead + k] = kind(most);
    }
    Ok(())
}

impl RandomCrop {
    fn motion(&self) -> MotionArg {
        MotionArg { motion: Motion::Crop(self.shape.clone()), base_axis: self.base_axis, constant: 0.0 }
    }
}

impl RandomFlip {
    fn motion(&self) -> MotionArg {
        MotionArg { motion: Motion::Flip(self.axes.clone()), base_axis: self.base_axis, constant: 0.0 }
    }
}

impl RandomShift {
    fn motion(&self) -> MotionArg {
        let motion = Motion::Shift(self.shifts.clone(), self.border_mode.clone());
        MotionArg { motion, base_axis: self.base_axis, constant: self.constant_value }
    }
}

/// Arguments with whole numbers for `name` where it was not given.
fn filled(f: &impl Described, name: &str, default: Vec<i64>) -> Vec<(&'static str, ArgValue)> {
    let fill = |(n, v)| if n == name && v == ArgValue::None { (n, ArgValue::Ints(default.clone())) } else { (n, v) };
    f.arguments().into_iter().map(fill).collect()
}

impl Function for RandomCrop {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        self.motion().resolve(&x[0], &self.seed)
    }

    fn used(&self, call: Option<&dyn Call>) -> Vec<(&'static str, ArgValue)> {
        filled(self, "shape", call_of::<kernel::RandomMove>(call).moves.x.iter().map(|d| *d as i64).collect())
    }

    fn has_state(&self) -> bool {
        true
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        self.motion().grad(g, &self.seed)
    }
}

impl Function for RandomFlip {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        self.motion().resolve(&x[0], &self.seed)
    }

    fn used(&self, call: Option<&dyn Call>) -> Vec<(&'static str, ArgValue)> {
        filled(self, "axes", vec![call_of::<kernel::RandomMove>(call).moves.x.ndim() as i64 - 1])
    }

    fn has_state(&self) -> bool {
        true
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        self.motion().grad(g, &self.seed)
    }
}

impl Function for RandomShift {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        self.motion().resolve(&x[0], &self.seed)
    }

    fn used(&self, call: Option<&dyn Call>) -> Vec<(&'static str, ArgValue)> {
        filled(self, "shifts", vec![0; call_of::<kernel::RandomMove>(call).moves.x.ndim()])
    }

    fn has_state(&self) -> bool {
        true
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        self.motion().grad(g, &self.seed)
    }
}

function! {
    /// Moves elements as a function did when it last ran, with zeros where a constant came in. Internal: not in the registry.
    MoveAgain move_again in Special, forward_on_any_device
    inputs { x: "N-D array.", after: "The function's output: it runs first." }
    args { motion: MotionArg, "What the function does."; draw: LastDraw, "Its numbers." }
    outputs { y: "N-D array." }
}

function! {
    /// Sums what was moved from each place, the derivative. Internal: not in the registry.
    MoveBack move_back in Special, forward_on_any_device
    inputs { gy: "N-D array.", after: "The function's output: it runs first.", like: "An array of its input's shape." }
    args { motion: MotionArg, "What the function does."; draw: LastDraw, "Its numbers." }
    outputs { gx: "N-D array of the shape of the function's input." }
}

impl Function for MoveAgain {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let (y, moves) = self.motion.moves(&x[0])?;
        Ok(Resolved::one(y, kernel::MoveAgain { draw: self.draw.clone(), moves, back: false }))
    }

    fn differentiable(&self, i: usize) -> bool {
        i == 0
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let back = MoveBack { motion: self.motion.clone(), draw: self.draw.clone() };
        Ok(vec![Some(call_one(back, &[&g.gy[0], &g.x[1], &g.x[0]])?), None])
    }
}

impl Function for MoveBack {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let (y, moves) = self.motion.moves(&x[2])?;
        if x[0] != y {
            return Err(Error::shape("gy", format!("shape {y}")).actual(&x[0]));
        }
        Ok(Resolved::one(x[2].clone(), kernel::MoveAgain { draw: self.draw.clone(), moves, back: true }))
    }

    fn differentiable(&self, i: usize) -> bool {
        i == 0
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let again = MoveAgain { motion: self.motion.clone(), draw: self.draw.clone() };
        Ok(vec![Some(call_one(again, &[&g.gy[0], &g.x[1]])?), None, None])
    }
}
