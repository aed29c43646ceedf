//! On the host.

use super::Choice;
use crate::array::Output;
use crate::array::scratch::Scratch;
use crate::dtype::Real;
use crate::error::{Error, Result};
use crate::pool::tasks::{self, SendPtr};
use smallvec::SmallVec;

pub(super) fn indices<T: Real>(c: &Choice, table: &[f64], w: &[T], y: &mut [i64]) -> Result<()> {
    w.chunks(c.n).try_for_each(|w| check(c, w))?;
    let numbers = table.len() / c.rows;
    tasks::parts(y, c.picks, |row, y| {
        let (w, u) = (&w[row * c.n..][..c.n], &table[row * numbers..][..numbers]);
        if c.replace { with_replacement(w, u, y) } else { without(w, u, y) }
    });
    Ok(())
}

/// Adds each pick's gradient to its element's, in all of `to`.
pub(super) fn put_back<'a, T: Real>(
    c: &Choice,
    picked: &[i64],
    gy: &[T],
    to: impl Iterator<Item = (&'a mut [T], Output)>,
) {
    let to: SmallVec<[_; 2]> = to.map(|(to, output)| (SendPtr(to.as_mut_ptr()), output)).collect();
    tasks::share(c.rows, gy.len().max(c.rows * c.n), |row| {
        let picks = row * c.picks..(row + 1) * c.picks;
        // SAFETY: this row, which is this task's own; the gradients have memory of their own.
        let mut rows: SmallVec<[&mut [T]; 2]> = to.iter().map(|(to, _)| unsafe { to.slice(row * c.n, c.n) }).collect();
        let fresh = rows.iter_mut().zip(&to).filter(|(_, (_, output))| *output == Output::Write);
        fresh.for_each(|(row, _)| row.fill(T::ZERO));
        let picks = picked[picks.clone()].iter().zip(&gy[picks]);
        match &mut rows[..] {
            [a, b] => picks.for_each(|(&i, &g)| {
                a[i as usize] += g;
                b[i as usize] += g;
            }),
            rows => rows.iter_mut().for_each(|row| picks.clone().for_each(|(&i, &g)| row[i as usize] += g)),
        }
    });
}

fn check<T: Real>(c: &Choice, w: &[T]) -> Result<()> {
    if let Some(wrong) = w.iter().find(|w| !(w.to_f64() >= 0.0 && w.to_f64().is_finite())) {
        return Err(Error::arg("w", "finite weights of 0 or more").actual(wrong.to_f64()));
    }
    let positive = w.iter().filter(|w| w.to_f64() > 0.0).count();
    let needed = if c.replace { 1 } else { c.picks };
    if positive >= needed {
        return Ok(());
    }
    let e = Error::arg("w", format!("{needed} or more weights above 0 in each row")).actual(positive);
    Err(if c.replace { e } else { e.hint("without replacement, each element is picked once at most") })
}

/// The element whose part of the sum of weights a number falls into.
fn with_replacement<T: Real>(w: &[T], u: &[f64], y: &mut [i64]) {
    let mut sum = 0.0;
    let sums = Scratch::each(w.len(), |i| {
        sum += w[i].to_f64();
        sum
    });
    // A product may be rounded up to the whole sum.
    let last = w.iter().rposition(|w| w.to_f64() > 0.0).unwrap_or(0);
    for (y, u) in y.iter_mut().zip(u) {
        let at = u * sum;
        *y = sums.partition_point(|s| *s <= at).min(last) as i64;
    }
}

/// The elements with the least keys, from the least on.
fn without<T: Real>(w: &[T], u: &[f64], y: &mut [i64]) {
    let keys = Scratch::each(w.len(), |i| key(w[i].to_f64(), u[i]));
    let mut order: Scratch<i64> = Scratch::each(w.len(), |i| i as i64);
    let before = |a: &i64, b: &i64| keys[*a as usize].total_cmp(&keys[*b as usize]).then(a.cmp(b));
    if y.len() < order.len() {
        order.select_nth_unstable_by(y.len(), before);
    }
    let chosen = &mut order[..y.len()];
    chosen.sort_unstable_by(before);
    y.copy_from_slice(chosen);
}

/// Of an element of weight w: exponentially distributed, with the rate w.
fn key(w: f64, u: f64) -> f64 {
    if w > 0.0 { -(1.0 - u).ln() / w } else { f64::INFINITY }
}
