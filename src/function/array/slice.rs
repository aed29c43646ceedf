//! `slice`: a part of an array, by Python's rules for start, stop and step; and its reverse, the derivative.

use super::List;
use crate::function::{ArgValue, Call, Function, Grad, Resolved, call_of};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::slice::{self as kernel, Range};
use nnrs_kernels::shape::Shape;
use smallvec::SmallVec;

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
    outputs { y: "The part, an array of x's number of axes." }
}

/// Python's None in a list of positions.
pub const OPEN: i64 = i64::MIN;

impl Slice {
    /// Positions `start .. stop` of the last axis.
    pub fn last(start: i64, stop: i64) -> Slice {
        Slice { start: Some(vec![start].into()), stop: Some(vec![stop].into()), step: None }
    }

    /// Positions `start .. stop` of axis number `axis`.
    pub fn along(shape: &Shape, axis: usize, start: usize, stop: usize) -> Slice {
        let rest = shape.ndim().saturating_sub(axis + 1);
        let list = |first: usize, others: i64| {
            Some(List(std::iter::once(first as i64).chain(std::iter::repeat_n(others, rest)).collect()))
        };
        Slice { start: list(start, OPEN), stop: list(stop, OPEN), step: None }
    }

    /// The lists with a number for each axis of x that they are about; what was given stays as it is.
    fn spelled(&self, x: &Shape) -> Vec<(&'static str, ArgValue)> {
        let n = [&self.start, &self.stop, &self.step].into_iter().flatten().next().map_or(x.ndim(), |l| l.len());
        let steps: Vec<i64> = (0..n).map(|i| given(&self.step, i, 1)).collect();
        let sizes = &x[x.ndim() - n..];
        let start = |(i, &step): (usize, &i64)| given(&self.start, i, if step < 0 { -1 } else { 0 });
        let stop = |(i, &step): (usize, &i64)| {
            let size = sizes[i] as i64;
            given(&self.stop, i, if step < 0 { -1 - size } else { size })
        };
        let starts = steps.iter().enumerate().map(start).collect();
        let stops = steps.iter().enumerate().map(stop).collect();
        vec![("start", ArgValue::Ints(starts)), ("stop", ArgValue::Ints(stops)), ("step", ArgValue::Ints(steps))]
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
}

/// Number `i` of a list, or `open` where there is none.
fn given(list: &Option<List>, i: usize, open: i64) -> i64 {
    list.as_ref().map(|l| l[i]).filter(|v| *v != OPEN).unwrap_or(open)
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
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let ranges = self.ranges(&x[0])?;
        let y: Shape = ranges.iter().map(|r| r.n).collect();
        Ok(Resolved::one(y, kernel::Slice::new(&x[0], &ranges)))
    }

    fn used(&self, call: Option<&dyn Call>) -> Vec<(&'static str, ArgValue)> {
        self.spelled(&call_of::<kernel::Slice>(call).whole)
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let (start, stop, step) = (self.start.clone(), self.stop.clone(), self.step.clone());
        let shape = g.x[0].shape()[..].into();
        Ok(vec![Some(unslice(&g.gy[0], Unslice { shape, start, stop, step })?)])
    }
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
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let whole = self.whole();
        let ranges = self.slice().ranges(&whole)?;
        let part: Shape = ranges.iter().map(|r| r.n).collect();
        if part != x[0] {
            return Err(Error::shape("x", format!("shape {part}")).actual(&x[0]));
        }
        let whole = whole.checked()?;
        let call = kernel::Unslice(kernel::Slice::new(&whole, &ranges));
        Ok(Resolved::one(whole, call))
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![Some(f::slice(&g.gy[0], self.slice())?)])
    }
}
