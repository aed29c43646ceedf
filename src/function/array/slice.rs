//! `slice`: a part of an array, by Python's rules for start, stop and step; and its reverse, the derivative.

use super::List;
use crate::function::{Function, Grad, GradMut, Needs, Output, Run, Shapes, View, ViewMut};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::array::Data;
use nnrs_kernels::cpu::moves::Moves;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::ops;
use nnrs_kernels::shape::Shape;
use smallvec::{SmallVec, smallvec};

function! {
    /// A part of an array, as `x[start:stop:step]` in Python for each axis.
    ///
    /// Lists that are shorter than x has axes are about the last axes. The number -2^63 stands for Python's None.
    Slice slice in Array, any_device
    inputs { x: "N-D array." }
    args {
        start: Option<List> = None, "First position of each axis; None: the first one (with a negative step the last one).";
        stop: Option<List> = None, "Position before which each axis ends; None: none is left out.";
        step: Option<List> = None, "Distance of the positions, may be negative; None: 1."
    }
    outputs { y: "The part." }
}

/// Python's None in a list of positions.
pub const OPEN: i64 = i64::MIN;

/// The positions taken from one axis.
#[derive(Clone, Copy)]
struct Range {
    start: usize,
    step: isize,
    n: usize,
}

impl Slice {
    /// Positions `start .. stop` of the last axis.
    pub fn last(start: i64, stop: i64) -> Slice {
        Slice { start: Some(vec![start].into()), stop: Some(vec![stop].into()), step: None }
    }

    /// Positions `start .. stop` of axis number `axis`.
    pub fn along(shape: &Shape, axis: usize, start: usize, stop: usize) -> Slice {
        let rest = shape.ndim() - axis - 1;
        let list = |first: usize, others: i64| {
            Some(List(std::iter::once(first as i64).chain(std::iter::repeat_n(others, rest)).collect()))
        };
        Slice { start: list(start, OPEN), stop: list(stop, OPEN), step: None }
    }

    /// The positions of each axis of x.
    fn ranges(&self, x: &Shape) -> Result<SmallVec<[Range; 6]>> {
        let lists = [("start", &self.start), ("stop", &self.stop), ("step", &self.step)];
        let given = lists.iter().filter_map(|(name, l)| Some((*name, l.as_ref()?.len())));
        let n = given.clone().next().map_or(x.ndim(), |(_, n)| n);
        if let Some((name, m)) = given.clone().find(|(_, m)| *m != n || n > x.ndim()) {
            let expected = format!("lists of one length, at most the {} axes of x {x}", x.ndim());
            return Err(Error::arg(name, expected).actual(format!("{m} numbers")));
        }
        let lead = x.ndim() - n;
        let at = |list: &Option<List>, a: usize| list.as_ref().filter(|_| a >= lead).map_or(OPEN, |l| l[a - lead]);
        x.iter().enumerate().map(|(a, &n)| range(n, at(&self.start, a), at(&self.stop, a), at(&self.step, a))).collect()
    }

    /// The copy from the part to the whole, or the other way.
    fn moves(&self, x: &Shape, to_part: bool) -> Result<Moves> {
        let ranges = self.ranges(x)?;
        let y: Shape = ranges.iter().map(|r| r.n).collect();
        let (xs, ys) = (x.strides(), y.strides());
        let first = ranges.iter().zip(&xs).map(|(r, s)| r.start * s).sum();
        let whole = |r: &Range, s: usize| if r.n > 1 { r.step * s as isize } else { 1 };
        let mut moves = if to_part { Moves::new(0, first) } else { Moves::new(first, 0) };
        for (a, r) in ranges.iter().enumerate() {
            let (part, whole) = (ys[a] as isize, whole(r, xs[a]));
            moves = if to_part { moves.axis(r.n, part, whole) } else { moves.axis(r.n, whole, part) };
        }
        Ok(moves)
    }

    fn inferred(&self, x: &Shape) -> Result<Shape> {
        Ok(self.ranges(x)?.iter().map(|r| r.n).collect())
    }
}

/// Python's rule: positions are cut to the axis, which has size `n`.
fn range(n: usize, start: i64, stop: i64, step: i64) -> Result<Range> {
    let step = if step == OPEN { 1 } else { step };
    if step == 0 {
        return Err(Error::arg("step", "numbers other than 0").actual(0));
    }
    let n = n as i64;
    let (low, high) = if step > 0 { (0, n) } else { (-1, n - 1) };
    let cut = |at: i64, open: i64| match at {
        OPEN => open,
        at if at < 0 => at.saturating_add(n).max(low),
        at => at.min(high),
    };
    let (start, stop) = if step > 0 { (cut(start, low), cut(stop, high)) } else { (cut(start, high), cut(stop, low)) };
    let length = if step > 0 { stop - start } else { start - stop };
    let count = if length <= 0 { 0 } else { (length as u64).div_ceil(step.unsigned_abs()) as usize };
    Ok(Range { start: start.max(0) as usize, step: step as isize, n: count })
}

impl Function for Slice {
    fn infer(&self, x: &[Shape]) -> Result<Shapes> {
        Ok(smallvec![self.inferred(&x[0])?])
    }

    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let moves = self.moves(x[0].shape, true)?;
        ops::moves(moves, &y[0].data, &x[0].data, Output::Write)
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs::NONE)
    }

    fn backward(
        &self,
        _run: &Run,
        _x: &[Option<View>],
        _y: &[Option<View>],
        gy: &[Option<View>],
        gx: &mut [Option<GradMut>],
    ) -> Result<()> {
        let (Some(gy), Some(gx)) = (&gy[0], &mut gx[0]) else { return Ok(()) };
        let (moves, output) = (self.moves(gx.shape, false)?, gx.output);
        put_back(moves, &gy.data, &gx.data, output)
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let (start, stop, step) = (self.start.clone(), self.stop.clone(), self.step.clone());
        let shape = g.x[0].shape()[..].into();
        Ok(vec![Some(unslice(&g.gy[0], Unslice { shape, start, stop, step })?)])
    }
}

/// Zeros, or what was there before, and the part.
fn put_back(moves: Moves, part: &Data, whole: &Data, output: Output) -> Result<()> {
    if output == Output::Write && part.len() < whole.len() {
        ops::fill(whole, 0.0)?;
    }
    ops::moves(moves, whole, part, output)
}

function! {
    /// Zeros of a shape with x as a part of them: the reverse of `slice`, its derivative.
    Unslice unslice in Special, any_device
    inputs { x: "The part." }
    args {
        shape: List, "Shape of the whole.";
        start: Option<List> = None, "As of `slice`.";
        stop: Option<List> = None, "As of `slice`.";
        step: Option<List> = None, "As of `slice`."
    }
    outputs { y: "N-D array of the given shape." }
}

impl Unslice {
    fn slice(&self) -> Slice {
        Slice { start: self.start.clone(), stop: self.stop.clone(), step: self.step.clone() }
    }

    fn whole(&self) -> Shape {
        self.shape.iter().map(|&d| d.max(0) as usize).collect()
    }
}

impl Function for Unslice {
    fn infer(&self, x: &[Shape]) -> Result<Shapes> {
        let part = self.slice().inferred(&self.whole())?;
        if part != x[0] {
            return Err(Error::shape("x", format!("shape {part}")).actual(&x[0]));
        }
        Ok(smallvec![self.whole()])
    }

    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let moves = self.slice().moves(y[0].shape, false)?;
        put_back(moves, &x[0].data, &y[0].data, Output::Write)
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![Some(f::slice(&g.gy[0], self.slice())?)])
    }
}
