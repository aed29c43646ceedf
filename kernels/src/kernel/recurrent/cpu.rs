//! Steps on the host. The states' weights are packed once for all steps, in panels of as many columns as a tile of the matrix product
//! has; a task does the columns of a panel, and then the gates of these hidden units while they are in the cache. Tasks depend on
//! sizes alone.

mod gates;

use super::backward::BackwardSteps;
use super::forward::ForwardSteps;
use super::{Cell, LayerWeight, Recurrent};
use crate::array::{Data, scratch};
use crate::dtype::Real;
use crate::error::Result;
use crate::gemm::tile::{NextRows, Tiles, TilesAhead};
use crate::pool;
use crate::pool::tasks::{self, SendPtr};
use crate::simd::SimdReal;
use crate::simd::lanes::{Choose, Lanes, dispatch};
use crate::with_real;
use gates::{CellBackward, CellForward, GatesBackward, GatesForward, HiddenUnits, Rows};
use std::ops::Range;

/// Multiplications in a step from which it is shared out.
const SHARED: usize = 1 << 17;

/// Columns of a panel: two vectors, or one where there are no more.
fn panel_width<T: Real, L: Lanes<T>>(hidden: usize) -> usize {
    if hidden <= L::N { L::N } else { 2 * L::N }
}

/// The width of panels for this machine.
struct Width {
    hidden: usize,
    width: usize,
}

impl<T: Real> Choose<T> for &mut Width {
    fn with<L: Lanes<T>>(self) {
        self.width = panel_width::<T, L>(self.hidden);
    }
}

fn width<T: Real>(hidden: usize) -> usize {
    let mut found = Width { hidden, width: 0 };
    dispatch::<T, _>(&mut found);
    found.width
}

/// For each piece of hidden units and each gate the weights of the state, a row for each unit of the state.
pub(super) fn forward_panels(c: &Recurrent, weight: &LayerWeight) -> Result<Data> {
    let (hidden, gates, stride) = (c.hidden, c.cell.gates(), weight.width + c.hidden);
    with_real!(weight.h.dtype(), T => {
        let (width, w) = (width::<T>(hidden), weight.h.as_slice::<T>());
        let panels = Data::new(weight.h.dtype(), hidden.div_ceil(width) * gates * hidden * width)?;
        tasks::parts(panels.as_mut_slice::<T>(), hidden * width, |number, panel| {
            let (first, gate) = (number / gates * width, number % gates);
            panel.fill(T::ZERO);
            for i in 0..width.min(hidden - first) {
                let row = &w[(gate * hidden + first + i) * stride..][..hidden];
                row.iter().zip(panel[i..].iter_mut().step_by(width)).for_each(|(&v, to)| *to = v);
            }
        });
        Ok(panels)
    })
}

/// For each piece of the state the weights of all gates, a row for each row of the weight.
pub(super) fn backward_panels(c: &Recurrent, weight: &LayerWeight) -> Result<Data> {
    let (hidden, rows, stride) = (c.hidden, c.gate_rows(), weight.width + c.hidden);
    with_real!(weight.h.dtype(), T => {
        let (width, w) = (width::<T>(hidden), weight.h.as_slice::<T>());
        let panels = Data::new(weight.h.dtype(), hidden.div_ceil(width) * rows * width)?;
        tasks::parts(panels.as_mut_slice::<T>(), rows * width, |number, panel| {
            let first = number * width;
            let n = width.min(hidden - first);
            for (row, to) in panel.chunks_exact_mut(width).enumerate() {
                to[..n].copy_from_slice(&w[row * stride + first..][..n]);
                to[n..].fill(T::ZERO);
            }
        });
        Ok(panels)
    })
}

/// Does the tasks of a step.
fn share(tasks: usize, multiplications: usize, f: &(dyn Fn(usize) + Sync)) {
    if multiplications < SHARED { (0..tasks).for_each(f) } else { pool::run(tasks, f) }
}

/// Steps number `range` of a layer and direction.
pub(super) fn forward<T: SimdReal>(s: &ForwardSteps, panels: &Data, range: Range<usize>) {
    dispatch::<T, _>(ForwardLoop { s, panels: panels.as_slice(), range });
}

struct ForwardLoop<'a, T> {
    s: &'a ForwardSteps<'a>,
    panels: &'a [T],
    range: Range<usize>,
}

/// Distances of `n` neighbours, `stride` apart.
fn distances(n: usize, stride: usize) -> scratch::Scratch<isize> {
    scratch::Scratch::each(n, |i| (i * stride) as isize)
}

impl<T: SimdReal> Choose<T> for ForwardLoop<'_, T> {
    fn with<L: Lanes<T>>(self) {
        let (s, c) = (self.s, self.s.c);
        let (batch, hidden, gates) = (c.batch, c.hidden, c.cell.gates());
        let width = panel_width::<T, L>(hidden);
        let wide = c.directions * hidden;
        let data = |data: &Data| SendPtr::of(data.as_slice::<T>());
        let (h0, out, all) = (data(&s.h), data(&s.out).add(s.direction * hidden), data(&s.gates));
        let (c0, extra) = (s.c0.as_ref().map(data), s.extra.as_ref().map(data));
        let [bias, state_bias] = [&s.bias, &s.state_bias].map(|b| b.as_ref().map(data));
        let tables = [distances(hidden, 1), distances(batch, hidden), distances(batch, wide)];
        let [off, lane0, lane]: [&[isize]; 3] = tables.each_ref().map(|t| &**t);
        for i in self.range {
            let time = c.time(s.direction, i);
            let before = i.checked_sub(1).map(|i| c.time(s.direction, i));
            let h = before.map_or(Rows(h0, hidden), |t| Rows(out.add(t * batch * wide), wide));
            let extra_at = |t: usize| extra.map(|e| Rows(e.add(t * s.extra_step), hidden));
            let step = CellForward {
                gates: Rows(all.add((time - s.first_time) * batch * gates * hidden), gates * hidden),
                h,
                c: before.map_or(c0.map(|c0| Rows(c0, hidden)), extra_at),
                extra: extra_at(time),
                bias: bias.map(|b| Rows(b, 0)),
                state_bias: state_bias.map(|b| Rows(b, 0)),
                out: Rows(out.add(time * batch * wide), wide),
            };
            let lane = if before.is_some() { lane } else { lane0 };
            share(hidden.div_ceil(width), batch * gates * hidden * hidden, &|task| {
                let first = task * width;
                let chunk = HiddenUnits { cell: c.cell, batch, hidden, first, n: width.min(hidden - first), width };
                let size = batch * width;
                scratch::with((gates + 1) * size + width, |block: &mut [T]| {
                    let (block, begin) = block.split_at_mut((gates + 1) * size);
                    for gate in 0..gates {
                        // SAFETY: there is a bias for each unit.
                        unsafe { chunk.begin(begin, step.bias, gate) }
                        let panel = &self.panels[(task * gates + gate) * hidden * width..][..hidden * width];
                        let tiles = Tiles {
                            x: step.h.0.0,
                            off,
                            lane,
                            w: panel.as_ptr(),
                            w_stride: width,
                            vectors: width / L::N,
                            init: begin.as_ptr(),
                            init_stride: 0,
                            out: block[gate * size..].as_mut_ptr(),
                            out_stride: width,
                        };
                        let products = step.gates.ahead(gate * hidden + first, batch, width);
                        let states = step.c.unwrap_or(step.h).ahead(first, batch, width);
                        // SAFETY: the tables reach the state's elements, which no task of this step writes; the panel has a row for
                        // each of them, and the block one for each sample.
                        unsafe { L::enter(TilesAhead(tiles, &mut [products, states])) }
                    }
                    // SAFETY: the arrays have the sizes of the layer; each task has columns of its own.
                    unsafe { L::enter(GatesForward { units: &chunk, block, step: &step }) }
                });
            });
        }
    }
}

/// All steps of a layer and direction, from the last one to the first.
pub(super) fn backward<T: SimdReal>(s: &BackwardSteps, panels: &Data) {
    dispatch::<T, _>(BackwardLoop { s, panels: panels.as_slice() });
}

struct BackwardLoop<'a, T> {
    s: &'a BackwardSteps<'a>,
    panels: &'a [T],
}

/// Where the gradients that the state's part of a step gets lie in a row of gradients, for each row of the weight.
fn gradient_columns(cell: Cell, hidden: usize) -> scratch::Scratch<isize> {
    let column = |row: usize| {
        let gate = row / hidden;
        let range = cell.state_gates().iter().find(|r| (r.row..r.row + r.n).contains(&gate));
        let moved = range.map_or(0, |r| r.column - r.row);
        (row + moved * hidden) as isize
    };
    scratch::Scratch::each(cell.gates() * hidden, column)
}

impl<T: SimdReal> Choose<T> for BackwardLoop<'_, T> {
    fn with<L: Lanes<T>>(self) {
        let (s, c) = (self.s, self.s.c);
        let (batch, hidden, gates, columns) = (c.batch, c.hidden, c.cell.gates(), c.cell.biases() * c.hidden);
        let width = panel_width::<T, L>(hidden);
        let (size, tasks, wide) = (batch * width, hidden.div_ceil(width), c.directions * hidden);
        let data = |data: &Data| SendPtr::of(data.as_slice::<T>());
        let (h0, out, all) = (data(&s.h), data(s.out).add(s.direction * hidden), data(s.gates));
        let (c0, extra) = (s.c0.as_ref().map(data), s.extra.map(data));
        let (g_out, sums) = (s.g_out.map(|g| data(g).add(s.direction * hidden)), data(s.sums));
        let (gh, gc) = (Rows(data(&s.gh), hidden), s.gc.as_ref().map(|gc| Rows(data(gc), hidden)));
        let tables = [gradient_columns(c.cell, hidden), distances(batch, columns)];
        let [off, lane]: [&[isize]; 2] = tables.each_ref().map(|t| &**t);
        // For each task the gradients of h and c that come from the steps behind, and room for those of a step.
        let mut carried = scratch::Scratch::filled(tasks * 4 * size, T::ZERO);
        let own = SendPtr(carried.as_mut_ptr());
        let chunk = |task: usize| {
            let first = task * width;
            HiddenUnits { cell: c.cell, batch, hidden, first, n: width.min(hidden - first), width }
        };
        let work = batch * gates * hidden * hidden;
        // SAFETY: the pieces of different tasks do not overlap.
        let piece = |task: usize| unsafe { own.slice(task * 4 * size, 4 * size) };
        for task in 0..tasks {
            let (h, rest) = piece(task).split_at_mut(size);
            // SAFETY: the arrays have a row for each sample.
            unsafe {
                chunk(task).read(h, gh);
                gc.into_iter().for_each(|gc| chunk(task).read(&mut rest[..size], gc));
            }
        }
        // The gradient of the state before a step, by the gradients of the step's sums.
        let product = |task: usize, time: Option<usize>, gh: &mut [T], carried: &[T], mut next: [NextRows; 2]| {
            let Some(time) = time else { return gh.copy_from_slice(carried) };
            let tiles = Tiles {
                x: sums.add(time * batch * columns).0,
                off,
                lane,
                w: self.panels[task * gates * hidden * width..][..gates * hidden * width].as_ptr(),
                w_stride: width,
                vectors: width / L::N,
                init: carried.as_ptr(),
                init_stride: width,
                out: gh.as_mut_ptr(),
                out_stride: width,
            };
            // SAFETY: the tables reach the gradients of a step, which no task writes now; panel and pieces have their rows.
            unsafe { L::enter(TilesAhead(tiles, &mut next)) }
        };
        // What a task reads and writes in a step; rows of all gates lie side by side.
        let steps = |task: usize, time: usize| {
            let at = |rows: SendPtr<T>, gates: usize| {
                let first = rows.add(time * batch * gates * hidden + task * width).0.cast_const();
                NextRows::new(first, hidden, batch * gates, width.min(hidden))
            };
            [at(all, gates), at(sums, c.cell.biases())]
        };
        for i in (0..c.steps).rev() {
            let time = c.time(s.direction, i);
            let behind = (i + 1 < c.steps).then(|| c.time(s.direction, i + 1));
            let before = i.checked_sub(1).map(|i| c.time(s.direction, i));
            let extra_at = |t: usize| extra.map(|e| Rows(e.add(t * batch * hidden), hidden));
            let step = CellBackward {
                gates: Rows(all.add(time * batch * gates * hidden), gates * hidden),
                h: before.map_or(Rows(h0, hidden), |t| Rows(out.add(t * batch * wide), wide)),
                c: before.map_or(c0.map(|c0| Rows(c0, hidden)), extra_at),
                extra: extra_at(time),
                g_out: g_out.map(|g| Rows(g.add(time * batch * wide), wide)),
                sums: Rows(sums.add(time * batch * columns), columns),
            };
            share(tasks, work, &|task| {
                let (carried, rest) = piece(task).split_at_mut(size);
                let (gc, rest) = rest.split_at_mut(size);
                let (gh, room) = rest.split_at_mut(size);
                product(task, behind, gh, carried, steps(task, time));
                // SAFETY: as forward.
                unsafe { L::enter(GatesBackward { units: &chunk(task), step: &step, gh, carried, gc, room }) }
            });
        }
        let first = (c.steps > 0).then(|| c.time(s.direction, 0));
        share(tasks, work, &|task| {
            let (carried, rest) = piece(task).split_at_mut(size);
            let (gc_own, rest) = rest.split_at_mut(size);
            product(task, first, &mut rest[..size], carried, steps(task, first.unwrap_or(0)));
            // SAFETY: as above.
            unsafe {
                chunk(task).write(&rest[..size], gh);
                gc.into_iter().for_each(|gc| chunk(task).write(gc_own, gc));
            }
        });
    }
}
