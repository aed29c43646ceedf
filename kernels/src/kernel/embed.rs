//! Rows of a table by their numbers, and the gradient of the table.

use super::gather::{Picks, outside};
use crate::array::scratch::Scratch;
use crate::array::{Data, Output, Place};
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::error::{Error, Result};
use crate::kernel::gather::cuda::{self as gather, OutOfRange};
use crate::pool::tasks;
use crate::simd::{self, SimdReal};
use crate::with_real;

/// Looks up rows.
pub struct Embed(pub Picks);

impl Call for Embed {
    /// A number that is no row's is an error on the host. A GPU gives NaN, since looking for one would make the host
    /// wait.
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let (rows, width) = (self.0.n, self.0.inner);
        if let Place::Gpu(_) = y[0].data.place() {
            return gather::gather(&self.0, &x[0].data, &x[1].data, &y[0].data, OutOfRange::Nan);
        }
        let indices = x[0].slice::<i64>();
        if let Some(bad) = outside(indices, rows) {
            let expected = format!("row numbers of 0 or more and below {rows}, the rows of w");
            return Err(Error::arg("x0", expected).actual_index(bad));
        }
        with_real!(run.dtype, T => gather(indices, x[1].slice::<T>(), width, y[0].slice()));
        Ok(())
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs { x: 1, y: 0 })
    }

    fn backward(&self, _run: &Run, Gradients { x, gy, gx, .. }: Gradients) -> Result<()> {
        let (Some(x), Some(gy), Some(gw)) = (&x[0], &gy[0], &gx[1]) else { return Ok(()) };
        scatter(&self.0, &x.data, &gy.data, &gw.data, gw.output)
    }
}

/// The gradient of the table as a function of its own.
pub struct EmbedBackward(pub Picks);

impl Call for EmbedBackward {
    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        scatter(&self.0, &x[0].data, &x[1].data, &y[0].data, Output::Write)
    }
}

/// Numbers that are worth a task.
const TASK: usize = 1 << 14;

/// Copies rows; the indices have been checked.
fn gather<T: SimdReal>(indices: &[i64], w: &[T], width: usize, y: &mut [T]) {
    if y.is_empty() {
        return;
    }
    let each = (TASK / width).max(1);
    tasks::parts(y, each * width, |p, part| {
        for (row, &i) in part.chunks_exact_mut(width).zip(&indices[p * each..]) {
            row.copy_from_slice(&w[i as usize * width..][..width]);
        }
    });
}

/// Adds rows to those they came from.
fn scatter(picks: &Picks, x: &Data, gy: &Data, gw: &Data, output: Output) -> Result<()> {
    match gw.place() {
        Place::Gpu(_) => gather::scatter(picks, x, gy, gw, output)?,
        Place::Host => with_real!(gw.dtype(), T => {
            scatter_on_host(x.as_slice(), gy.as_slice::<T>(), picks.inner, gw.as_mut_slice(), output)
        }),
    }
    Ok(())
}

/// Each task has some rows of the table and takes their parts in the order of the
/// indices, so the sums do not depend on the threads.
fn scatter_on_host<T: SimdReal>(indices: &[i64], gy: &[T], width: usize, gw: &mut [T], output: Output) {
    if gw.is_empty() {
        return;
    }
    let rows = gw.len() / width;
    if width <= NARROW && gw.len() <= SMALL && gw.len() * COPIES * 4 <= gy.len() {
        return scatter_to_copies(indices, gy, width, gw, output);
    }
    let tasks = ((gw.len() + gy.len()) / TASK).clamp(1, MOST);
    let each = rows.div_ceil(tasks).next_power_of_two();
    let parts = SortedIndices::new(indices, rows, each);
    tasks::parts(gw, each * width, |p, part| {
        if output == Output::Write {
            part.fill(T::ZERO);
        }
        for &k in parts.of(p) {
            let row = &mut part[(indices[k] as usize - p * each) * width..][..width];
            let gy = &gy[k * width..][..width];
            match width <= NARROW {
                // Less than a call.
                true => row.iter_mut().zip(gy).for_each(|(y, &g)| *y += g),
                false => simd::add_assign(row, gy),
            }
        }
    });
}

/// Numbers of a row, and of a table, that is added to in copies; and copies.
const NARROW: usize = 16;
const SMALL: usize = 1 << 12;
const COPIES: usize = 8;

/// A small table of few columns: each of some equal parts of the indices adds to a copy, and the copies are summed in their order.
fn scatter_to_copies<T: SimdReal>(indices: &[i64], gy: &[T], width: usize, gw: &mut [T], output: Output) {
    let (size, each) = (gw.len(), indices.len().div_ceil(COPIES));
    let mut copies = Scratch::filled(size * COPIES, T::ZERO);
    // Two copies a task: their sums do not wait for each other, as those of one often do.
    tasks::parts(&mut copies, 2 * size, |task, part| {
        let (a, b) = part.split_at_mut(size);
        let of = |copy: usize| {
            let (from, to) = ((copy * each).min(indices.len()), ((copy + 1) * each).min(indices.len()));
            (&indices[from..to], &gy[from * width..to * width])
        };
        let (tables, rows) = ([a, b], [of(2 * task), of(2 * task + 1)]);
        match width {
            1 => add_rows::<T, 1>(tables, rows, 1),
            2 => add_rows::<T, 2>(tables, rows, 2),
            3 => add_rows::<T, 3>(tables, rows, 3),
            4 => add_rows::<T, 4>(tables, rows, 4),
            _ => add_rows::<T, 0>(tables, rows, width),
        }
    });
    if output == Output::Write {
        gw.fill(T::ZERO);
    }
    copies.chunks_exact(size).for_each(|copy| simd::add_assign(gw, copy));
}

/// Adds rows to two tables in turn. `N` is the width where that is known to the compiler, else 0. What is no row's number is left out.
fn add_rows<T: SimdReal, const N: usize>(
    [a, b]: [&mut [T]; 2],
    [(ia, ga), (ib, gb)]: [(&[i64], &[T]); 2],
    width: usize,
) {
    let width = if N > 0 { N } else { width };
    let rows = a.len() / width;
    let add = |to: &mut [T], i: i64, g: &[T]| {
        if (i as usize) < rows {
            to[i as usize * width..][..width].iter_mut().zip(g).for_each(|(y, &g)| *y += g);
        }
    };
    // The second part is no longer than the first.
    let (both, alone) = ia.split_at(ib.len());
    let pairs = both.iter().zip(ib).zip(ga.chunks_exact(width).zip(gb.chunks_exact(width)));
    for ((&i, &k), (g, h)) in pairs {
        add(a, i, g);
        add(b, k, h);
    }
    let rest = ga[both.len() * width..].chunks_exact(width);
    alone.iter().zip(rest).for_each(|(&i, g)| add(a, i, g));
}

/// Tasks of a scatter at most.
const MOST: usize = 16;

/// Positions of indices, sorted by the tasks that their rows belong to, in order for each.
struct SortedIndices {
    positions: Scratch<usize>,
    /// Where each task's begin, and where the last one's end.
    starts: [usize; MOST + 1],
}

impl SortedIndices {
    /// Tasks have `each` rows, a power of two. What is no row's number is left out.
    fn new(indices: &[i64], rows: usize, each: usize) -> SortedIndices {
        let shift = each.trailing_zeros();
        let valid = || indices.iter().enumerate().filter(|(_, i)| (0..rows as i64).contains(i));
        let mut starts = [0; MOST + 1];
        valid().for_each(|(_, &i)| starts[(i >> shift) as usize + 1] += 1);
        (0..MOST).for_each(|task| starts[task + 1] += starts[task]);
        let (mut next, mut positions) = (starts, Scratch::filled(indices.len(), 0));
        for (k, &i) in valid() {
            let at = &mut next[(i >> shift) as usize];
            positions[*at] = k;
            *at += 1;
        }
        SortedIndices { positions, starts }
    }

    fn of(&self, task: usize) -> &[usize] {
        &self.positions[self.starts[task]..self.starts[task + 1]]
    }
}

#[cfg(feature = "emulate")]
mod tests {
    use super::*;

    unit_test!(gradients_match_loops);
    /// Small tables and large ones, narrow and wide, with numbers that are no row's.
    fn gradients_match_loops() {
        for (rows, width, n) in
            [(50, 1, 2001), (7, 3, 5000), (9, 5, 4097), (300, 8, 40_000), (2000, 2, 999), (5, 40, 3000)]
        {
            let indices: Vec<i64> = (0..n).map(|k| (k * 7919 % (rows + 2)) as i64 - 1).collect();
            let gy: Vec<f64> = (0..n * width).map(|k| (k % 31) as f64 - 11.0).collect();
            for (output, old) in [(Output::Write, 0.0), (Output::Accumulate, 0.5)] {
                let (mut want, mut got) = (vec![old; rows * width], vec![0.5; rows * width]);
                for (k, &i) in indices.iter().enumerate().filter(|(_, i)| (0..rows as i64).contains(i)) {
                    (0..width).for_each(|j| want[i as usize * width + j] += gy[k * width + j]);
                }
                scatter_on_host(&indices, &gy, width, &mut got, output);
                assert_eq!(got, want, "{rows} {width} {n}");
            }
        }
    }
}
