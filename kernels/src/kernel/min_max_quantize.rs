//! Numbers of a range as levels, with a range that follows the data.

use super::ops;
use super::reduction::{AxisMask, Extreme, Extremum, Reduced};
use crate::array::{Data, Output, Place, Walk};
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::error::Result;
use crate::expr::{Expr, Formula};
use crate::shape::Shape;
use crate::with_real;

/// `y = round((clip(x) - low) / scale) scale + low`. Inputs: x, least and largest number of the range, least and largest level;
/// outputs: y, low, high.
pub struct MinMaxQuantize {
    pub x: Shape,
    /// The shape of a range, with as many axes as x.
    pub range: Shape,
    /// The range is that of x.
    pub from_x: bool,
    /// It is a moving average.
    pub average: bool,
    pub decay: f64,
    /// x beyond the range has no gradient.
    pub fine: bool,
    /// The least size of a range.
    pub eps: f64,
}

/// The range that the last pass has used, for when it is to run again.
struct UsedRange([Data; 2]);

/// `y = f(x..)` for arrays of one shape.
fn formula<const N: usize>(x: [&Data; N], y: &Data, f: impl Fn(&[Expr]) -> Expr) -> Result<()> {
    let inputs = x.map(|x| (x, Walk::Dense));
    ops::formula(&Formula::new(N, |v| vec![Some(f(v))]), &inputs, y, Output::Write)
}

impl MinMaxQuantize {
    /// An array of a range.
    fn empty(&self, place: Place, run: &Run) -> Result<Data> {
        Data::new_at(place, run.dtype, self.range.size())
    }

    /// The least or largest x of each range.
    fn extreme(&self, run: &Run, x: &View, order: Extremum) -> Result<Data> {
        let mask: AxisMask = self.range.iter().map(|&n| n == 1).collect();
        let found = Data::new_at(x.data.place(), x.data.dtype(), self.range.size())?;
        // It would keep the winners' places, and here they are of no use.
        let alone = Run { keep: false, ..*run };
        let over = Reduced::new(&self.x, mask);
        let input = [View::new(&self.x, x.data.clone())];
        let mut output = [ViewMut { shape: &self.range, data: found.clone() }];
        Extreme { over, order, only_index: false }.forward(&alone, &input, &mut output)?;
        Ok(found)
    }

    /// An end of the range after this pass; the input holds it where the pass runs again.
    fn moved(&self, run: &Run, x: &View, old: &Data, order: Extremum) -> Result<Data> {
        let new = self.empty(old.place(), run)?;
        if !self.from_x || run.again {
            ops::put(&new, old, Output::Write)?;
            return Ok(new);
        }
        let keep = if self.average { self.decay } else { 0.0 };
        let average = |v: &[Expr]| if keep == 0.0 { v[1].clone() } else { &v[0] * keep + &v[1] * (1.0 - keep) };
        formula([old, &self.extreme(run, x, order)?], &new, average)?;
        Ok(new)
    }

    /// The range after this pass.
    fn used(&self, run: &Run, x: &[View]) -> Result<[Data; 2]> {
        if let Some(used) = run.saved::<UsedRange>().filter(|_| run.again) {
            return Ok(used.0.clone());
        }
        let least = self.moved(run, &x[0], &x[1].data, Extremum::Smallest)?;
        let most = self.moved(run, &x[0], &x[2].data, Extremum::Largest)?;
        let wide = self.empty(least.place(), run)?;
        formula([&least, &most], &wide, |v| (&v[1] - &v[0]).lt(self.eps).select(&v[0] + self.eps, &v[1]))?;
        Ok([least, wide])
    }

    /// Writes the range to the inputs that hold it.
    fn give(&self, run: &Run, [least, most]: &[Data; 2]) -> Result<()> {
        let give = |i: usize, x: &Data| match x.place() {
            Place::Gpu(_) => ops::put(&run.input_to_update(i, x.place(), x.len())?, x, Output::Write),
            Place::Host => {
                with_real!(x.dtype(), T => run.update_input::<T>(i, x.len(), |to| to.copy_from_slice(x.as_slice())))
            }
        };
        if self.from_x {
            give(1, least)?;
        }
        give(2, most)
    }

    /// The size of a level; the ends of the range, moved so that 0 is a level, to `to`.
    fn nudge(&self, run: &Run, range: &[Data; 2], levels: [&Data; 2], to: [&Data; 2]) -> Result<Data> {
        let (scale, zero) = (self.empty(to[0].place(), run)?, self.empty(to[0].place(), run)?);
        let [least, most] = levels;
        formula([&range[0], &range[1], least, most], &scale, |v| (&v[1] - &v[0]) / (&v[3] - &v[2]))?;
        formula([&range[0], &scale, least, most], &zero, |v| {
            let zero = &v[2] - &v[0] / &v[1];
            zero.ge(&v[3]).select(&v[3], zero.le(&v[2]).select(&v[2], zero.round()))
        })?;
        for (level, to) in levels.into_iter().zip(to) {
            formula([level, &zero, &scale], to, |v| (&v[0] - &v[1]) * &v[2])?;
        }
        Ok(scale)
    }

    /// How an array of a range is read in a loop over x.
    fn walk(&self) -> Walk {
        Walk::new(&self.range, &self.x)
    }
}

impl Call for MinMaxQuantize {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let range = self.used(run, x)?;
        let (low, high) = (&y[1].data, &y[2].data);
        let scale = self.nudge(run, &range, [&x[3].data, &x[4].data], [low, high])?;
        let quantize = Formula::new(4, |v| {
            let [x, low, high, scale] = v else { unreachable!("four inputs") };
            let inside = x.lt(low).select(low, x.gt(high).select(high, x));
            vec![Some(((inside - low) / scale).round() * scale + low)]
        });
        let inputs = [(&x[0].data, Walk::Dense), (low, self.walk()), (high, self.walk()), (&scale, self.walk())];
        ops::formula(&quantize, &inputs, &y[0].data, Output::Write)?;
        if !run.again {
            self.give(run, &range)?;
        }
        run.save(UsedRange(range));
        Ok(())
    }

    fn needs(&self, want: &[bool]) -> Option<Needs> {
        let reads = self.fine && want[0] || want[1] || want[2];
        Some(if reads { Needs { x: 1, y: 0b110 } } else { Needs::NONE })
    }

    fn backward(&self, _run: &Run, Gradients { x, y, gy, gx, .. }: Gradients) -> Result<()> {
        let Some(gy) = &gy[0] else { return Ok(()) };
        let (Some(x), Some(low), Some(high)) = (&x[0], &y[1], &y[2]) else {
            let gx = gx[0].as_ref().map(|gx| ops::put(&gx.data, &gy.data, gx.output));
            return gx.unwrap_or(Ok(()));
        };
        let only = |within: &dyn Fn(&[Expr]) -> Expr, to: &Data, output| {
            let f = Formula::new(4, |v| vec![Some(within(&v[1..]).select(&v[0], 0.0))]);
            let dense = [(&gy.data, Walk::Dense), (&x.data, Walk::Dense)];
            let inputs = [dense, [(&low.data, self.walk()), (&high.data, self.walk())]].concat();
            ops::formula(&f, &inputs, to, output)
        };
        match &gx[0] {
            Some(gx) if self.fine => only(&|v| v[0].ge(&v[1]).and(v[0].le(&v[2])), &gx.data, gx.output)?,
            Some(gx) => ops::put(&gx.data, &gy.data, gx.output)?,
            None => {}
        }
        let beyond: [&dyn Fn(&[Expr]) -> Expr; 2] = [&|v| v[0].lt(&v[1]), &|v| v[0].gt(&v[2])];
        for (gx, beyond) in gx[1..3].iter().zip(beyond) {
            let Some(gx) = gx else { continue };
            let terms = Data::new_at(gy.data.place(), gy.data.dtype(), self.x.size())?;
            only(beyond, &terms, Output::Write)?;
            ops::sum_to(&terms, &self.x, &gx.data, &self.range, gx.output)?;
        }
        Ok(())
    }

    fn backward_scratch(&self, want: &[bool]) -> usize {
        if want[1] || want[2] { self.x.size() } else { 0 }
    }
}
