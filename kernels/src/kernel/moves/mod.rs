//! Copies between strided boxes: what transposes, slices, joins, repeats, flips and diagonals have in common.
//!
//! The axes are put in the destination's order and merged as far as both sides allow; then runs of neighbours are copied whole, and where
//! the two sides run along different axes, the copy goes in tiles that fit the cache.

mod cuda;

use crate::array::{Data, Output, Strided};
use crate::error::Result;
use crate::pool;
use crate::pool::tasks::MIN_PARALLEL;
use crate::simd::{self, SimdReal};
use smallvec::SmallVec;

/// Most tasks that a copy is cut into.
const TASKS: usize = 64;
/// Elements of a task at least.
const PART: usize = 1 << 14;
/// Sides of the blocks that a transposition copies, and of the tiles that it goes through in blocks.
const BLOCK: usize = 8;
const TILE: usize = 64;
/// Runs below this length are copied by a plain loop.
const SHORT: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq)]
struct CopyAxis {
    n: usize,
    to: isize,
    from: isize,
}

/// A copy of a box of elements: axes with a stride on each side. Every element of the destination is written once.
#[derive(Clone, Debug)]
pub struct Moves {
    axes: SmallVec<[CopyAxis; 6]>,
    to: isize,
    from: isize,
}

impl Moves {
    /// A box whose first element is `from` in the source and `to` in the destination.
    pub fn new(to: usize, from: usize) -> Moves {
        Moves { axes: SmallVec::new(), to: to as isize, from: from as isize }
    }

    /// Adds an axis with its strides. A source's stride may be 0 (its elements repeat).
    pub fn axis(mut self, n: usize, to: isize, from: isize) -> Moves {
        self.axes.push(CopyAxis { n, to, from });
        self
    }

    /// The elements of a view, in order.
    pub fn gather(view: &Strided) -> Moves {
        let axes = view.shape.iter().zip(view.shape.strides()).zip(&view.strides);
        axes.fold(Moves::new(0, view.first), |m, ((&n, to), &from)| m.axis(n, to as isize, from))
    }

    /// The way back.
    pub fn reversed(mut self) -> Moves {
        self.axes.iter_mut().for_each(|a| (a.to, a.from) = (a.from, a.to));
        (self.to, self.from) = (self.from, self.to);
        self
    }

    /// Copies, or adds to what is there.
    ///
    /// # Panics
    /// If the box does not fit into the arrays.
    pub fn run<T: SimdReal>(mut self, y: &mut [T], x: &[T], output: Output) {
        if self.axes.iter().any(|a| a.n == 0) {
            return;
        }
        self.check(y.len(), x.len());
        self.arrange();
        let ends = Ends { y: y.as_mut_ptr(), x: x.as_ptr(), output };
        let ends = &ends;
        match self.split() {
            // SAFETY: the box was checked.
            None => unsafe { self.serial(ends) },
            // SAFETY: the parts are parts of the box, and do not overlap.
            Some((axis, step, tasks)) => pool::run(tasks, &|i| unsafe { self.part(axis, i * step, step).serial(ends) }),
        }
    }

    /// As [`Moves::run`], for arrays of a GPU.
    pub fn run_on_gpu(mut self, y: &Data, x: &Data, output: Output) -> Result<()> {
        if self.axes.iter().any(|a| a.n == 0) {
            return Ok(());
        }
        self.check(y.len(), x.len());
        self.arrange();
        let axes: SmallVec<[_; 6]> = self.axes.iter().map(|a| (a.n, a.to, a.from)).collect();
        // SAFETY: the box was checked.
        unsafe { cuda::run(&axes, self.to, self.from, y, x, output) }
    }

    fn check(&self, y: usize, x: usize) {
        let reach = |first: isize, stride: fn(&CopyAxis) -> isize| {
            let far = |a: &CopyAxis| (a.n - 1) as isize * stride(a);
            let (low, high) = self.axes.iter().map(far).fold((first, first), |(l, h), d| (l + d.min(0), h + d.max(0)));
            (low, high)
        };
        let fits = |(low, high): (isize, isize), n: usize| low >= 0 && high < n as isize;
        assert!(fits(reach(self.to, |a| a.to), y) && fits(reach(self.from, |a| a.from), x), "a copy outside an array");
    }

    /// Goes through the destination forwards, from its outermost axis, with as few axes as possible.
    fn arrange(&mut self) {
        self.axes.retain(|a| a.n != 1);
        for a in self.axes.iter_mut().filter(|a| a.to < 0) {
            let last = (a.n - 1) as isize;
            (self.to, self.from) = (self.to + last * a.to, self.from + last * a.from);
            (a.to, a.from) = (-a.to, -a.from);
        }
        self.axes.sort_by_key(|a| std::cmp::Reverse(a.to));
        let mut merged: SmallVec<[CopyAxis; 6]> = SmallVec::new();
        for a in &self.axes {
            let n = a.n as isize;
            match merged.last_mut() {
                Some(m) if m.to == a.to * n && m.from == a.from * n => *m = CopyAxis { n: m.n * a.n, ..*a },
                _ => merged.push(*a),
            }
        }
        self.axes = merged;
    }

    /// How to share out a large copy: the axis, how much of it a task takes, and the number of tasks.
    fn split(&self) -> Option<(usize, usize, usize)> {
        let size: usize = self.axes.iter().map(|a| a.n).product();
        if size < MIN_PARALLEL {
            return None;
        }
        let longest = (0..self.axes.len()).rev().max_by_key(|&i| self.axes[i].n)?;
        let axis = self.axes.iter().position(|a| a.n >= 16).unwrap_or(longest);
        let n = self.axes[axis].n;
        // Whole blocks, so that a transposition stays one of blocks.
        let step = n.div_ceil((size / PART).clamp(1, TASKS));
        let step = step.next_multiple_of(if n >= TASKS * BLOCK { BLOCK } else { 1 });
        Some((axis, step, n.div_ceil(step)))
    }

    /// The part of the box that takes `step` positions from `first` on along an axis.
    fn part(&self, axis: usize, first: usize, step: usize) -> Moves {
        let mut part = self.clone();
        let a = &mut part.axes[axis];
        a.n = step.min(a.n - first);
        (part.to, part.from) = (part.to + first as isize * a.to, part.from + first as isize * a.from);
        part
    }

    /// # Safety
    /// The box must lie in the arrays, and no other thread may touch its part of the destination.
    unsafe fn serial<T: SimdReal>(&self, ends: &Ends<T>) {
        let mut axes = self.axes.clone();
        let inner = axes.pop().unwrap_or(CopyAxis { n: 1, to: 1, from: 1 });
        let across = axes.iter().position(|a| a.from == 1).filter(|_| inner.to == 1 && inner.from > 1);
        let across = across.map(|i| axes.remove(i));
        // SAFETY: the caller's promise.
        unsafe {
            let (y, x) = (ends.y.offset(self.to), ends.x.offset(self.from));
            match across {
                Some(a) => each(&axes, y, x, &mut |y, x| tiles(a, inner, y, x, ends.output)),
                None if inner.n < SHORT && inner.to == 1 && inner.from == 1 && !axes.is_empty() => {
                    let rows = axes.remove(axes.len() - 1);
                    each(&axes, y, x, &mut |y, x| short_rows(rows, inner.n, y, x, ends.output))
                }
                None => each(&axes, y, x, &mut |y, x| run(inner, y, x, ends.output)),
            }
        }
    }
}

/// Where a copy comes from and goes to.
struct Ends<T> {
    y: *mut T,
    x: *const T,
    output: Output,
}

// SAFETY: tasks write disjoint parts of the destination.
unsafe impl<T: Sync> Sync for Ends<T> {}

/// Calls `f` at each position of `axes`.
///
/// # Safety
/// All positions must lie in the arrays.
unsafe fn each<T>(axes: &[CopyAxis], y: *mut T, x: *const T, f: &mut impl FnMut(*mut T, *const T)) {
    let Some((a, rest)) = axes.split_first() else { return f(y, x) };
    for i in 0..a.n as isize {
        // SAFETY: the caller's promise.
        unsafe { each(rest, y.offset(i * a.to), x.offset(i * a.from), f) };
    }
}

/// One axis.
///
/// # Safety
/// The axis must lie in the arrays, which must be apart.
unsafe fn run<T: SimdReal>(a: CopyAxis, y: *mut T, x: *const T, output: Output) {
    if a.to == 1 && a.n >= SHORT && (a.from == 1 || a.from == 0) {
        // SAFETY: the caller's promise.
        let y = unsafe { std::slice::from_raw_parts_mut(y, a.n) };
        // SAFETY: as above.
        let x = unsafe { std::slice::from_raw_parts(x, if a.from == 1 { a.n } else { 1 }) };
        return match (output, a.from) {
            (Output::Write, 1) => y.copy_from_slice(x),
            (Output::Write, _) => y.fill(x[0]),
            (Output::Accumulate, 1) => simd::add_assign(y, x),
            (Output::Accumulate, _) => simd::add_scalar(y, x[0]),
        };
    }
    if a.to == 1 && a.n >= SHORT && a.from == -1 {
        // SAFETY: the caller's promise: the source goes down to its element n - 1 before `x`.
        let (y, x) =
            unsafe { (std::slice::from_raw_parts_mut(y, a.n), std::slice::from_raw_parts(x.sub(a.n - 1), a.n)) };
        return match output {
            Output::Write => simd::reverse(y, x),
            Output::Accumulate => simd::add_reversed(y, x),
        };
    }
    for i in 0..a.n as isize {
        // SAFETY: as above.
        unsafe { put(y.offset(i * a.to), *x.offset(i * a.from), output) };
    }
}

/// Rows of so few elements that a copy is one of a known size.
///
/// # Safety
/// The rows of `n` elements must lie in the arrays, which must be apart.
unsafe fn short_rows<T: SimdReal>(rows: CopyAxis, n: usize, y: *mut T, x: *const T, output: Output) {
    macro_rules! of {
        ($($n:literal)*) => {
            match n {
                // SAFETY: the caller's promise.
                $($n => unsafe { rows_of::<T, $n>(rows, y, x, output) },)*
                _ => unreachable!("rows of fewer than SHORT elements"),
            }
        };
    }
    of!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)
}

/// # Safety
/// As for `short_rows`.
unsafe fn rows_of<T: SimdReal, const N: usize>(rows: CopyAxis, y: *mut T, x: *const T, output: Output) {
    for i in 0..rows.n as isize {
        // SAFETY: the caller's promise; an array asks for no more than its elements' alignment.
        unsafe {
            let (y, x) = (y.offset(i * rows.to).cast::<[T; N]>(), x.offset(i * rows.from).cast::<[T; N]>().read());
            let old = if output == Output::Write { [T::ZERO; N] } else { y.read() };
            y.write(if output == Output::Write { x } else { std::array::from_fn(|k| old[k] + x[k]) });
        }
    }
}

/// # Safety
/// `y` must be an element.
#[inline(always)]
unsafe fn put<T: SimdReal>(y: *mut T, v: T, output: Output) {
    // SAFETY: the caller's promise.
    unsafe { *y = if output == Output::Write { v } else { *y + v } };
}

/// Two axes, neighbours in the source along `a` and in the destination along `b`, tile by tile.
///
/// # Safety
/// Both axes must lie in the arrays.
unsafe fn tiles<T: SimdReal>(a: CopyAxis, b: CopyAxis, y: *mut T, x: *const T, output: Output) {
    for i in (0..a.n).step_by(TILE) {
        for j in (0..b.n).step_by(TILE) {
            let (h, w) = (TILE.min(a.n - i), TILE.min(b.n - j));
            // SAFETY: the caller's promise.
            unsafe {
                let (y, x) = (y.offset(i as isize * a.to).add(j), x.add(i).offset(j as isize * b.from));
                tile(CopyAxis { n: h, ..a }, CopyAxis { n: w, ..b }, y, x, output);
            }
        }
    }
}

/// # Safety
/// Both axes must lie in the arrays.
unsafe fn tile<T: SimdReal>(a: CopyAxis, b: CopyAxis, y: *mut T, x: *const T, output: Output) {
    for i in (0..a.n).step_by(BLOCK) {
        for j in (0..b.n).step_by(BLOCK) {
            let (h, w) = (BLOCK.min(a.n - i), BLOCK.min(b.n - j));
            // SAFETY: the caller's promise.
            unsafe {
                let (y, x) = (y.offset(i as isize * a.to).add(j), x.add(i).offset(j as isize * b.from));
                if h == BLOCK && w == BLOCK && output == Output::Write {
                    block(a.to, b.from, y, x);
                } else {
                    edge(CopyAxis { n: h, ..a }, CopyAxis { n: w, ..b }, y, x, output);
                }
            }
        }
    }
}

/// # Safety
/// A whole block must lie in the arrays.
#[inline(always)]
unsafe fn block<T: SimdReal>(to: isize, from: isize, y: *mut T, x: *const T) {
    let mut t = [[T::ZERO; BLOCK]; BLOCK];
    for (j, row) in t.iter_mut().enumerate() {
        // SAFETY: the caller's promise.
        *row = unsafe { x.offset(j as isize * from).cast::<[T; BLOCK]>().read() };
    }
    // By positions: columns of t become rows of y.
    for i in 0..BLOCK as isize {
        let column: [T; BLOCK] = std::array::from_fn(|j| t[j][i as usize]);
        // SAFETY: the caller's promise.
        unsafe { y.offset(i * to).cast::<[T; BLOCK]>().write(column) };
    }
}

/// # Safety
/// Both axes must lie in the arrays.
unsafe fn edge<T: SimdReal>(a: CopyAxis, b: CopyAxis, y: *mut T, x: *const T, output: Output) {
    for i in 0..a.n as isize {
        for j in 0..b.n as isize {
            // SAFETY: the caller's promise.
            unsafe { put(y.offset(i * a.to + j), *x.offset(i + j * b.from), output) };
        }
    }
}

#[cfg(feature = "emulate")]
mod tests {
    use super::*;

    /// By the definition: element by element.
    fn slow(m: &Moves, y: &mut [f32], x: &[f32], add: bool) {
        let size: usize = m.axes.iter().map(|a| a.n).product();
        for k in 0..size {
            let (mut rest, mut to, mut from) = (k, m.to, m.from);
            for a in m.axes.iter().rev() {
                let i = (rest % a.n) as isize;
                rest /= a.n;
                (to, from) = (to + i * a.to, from + i * a.from);
            }
            y[to as usize] = x[from as usize] + if add { y[to as usize] } else { 0.0 };
        }
    }

    fn check(m: Moves, y: usize, x: usize) {
        let x: Vec<f32> = (0..x).map(|i| i as f32).collect();
        for output in [Output::Write, Output::Accumulate] {
            let (mut got, mut want) = (vec![0.5; y], vec![0.5; y]);
            slow(&m, &mut want, &x, output == Output::Accumulate);
            m.clone().run(&mut got, &x, output);
            assert_eq!(got, want, "{m:?}");
        }
    }

    unit_test!(boxes_match_loops);
    fn boxes_match_loops() {
        check(Moves::new(0, 0), 1, 1);
        check(Moves::new(2, 3).axis(5, 1, 1), 8, 9);
        check(Moves::new(0, 4).axis(5, 1, -1), 5, 5);
        check(Moves::new(4, 0).axis(5, -1, 1), 5, 5);
        check(Moves::new(0, 36).axis(3, 37, 37).axis(37, 1, -1), 111, 111);
        check(Moves::new(0, 0).axis(4, 20, 0).axis(20, 1, 1), 80, 20);
        check(Moves::new(0, 0).axis(20, 5, 1).axis(5, 1, 0), 100, 20);
        check(Moves::new(0, 0).axis(7, 8, 1), 49, 7);
        for n in 1..20 {
            check(Moves::new(1, 2).axis(3, 200, 150).axis(7, 20, 21).axis(n, 1, 1), 600, 500);
        }
        check(Moves::new(1, 2).axis(3, 40, 50).axis(6, 4, 7).axis(2, 1, 3), 150, 150);
        check(Moves::new(0, 0).axis(0, 1, 1), 1, 1);
    }

    unit_test!(transpositions_match_loops);
    fn transpositions_match_loops() {
        for (h, w) in [(1, 9), (8, 8), (9, 70), (33, 65), (130, 71), (300, 301)] {
            check(Moves::new(0, 0).axis(h, w as isize, 1).axis(w, 1, h as isize), h * w, h * w);
        }
        check(Moves::new(0, 0).axis(5, 3 * 40, 40).axis(3, 40, 200).axis(40, 1, 1), 600, 600);
        check(Moves::new(0, 0).axis(40, 15, 1).axis(5, 3, 120).axis(3, 1, 40), 600, 600);
    }

    unit_test!(large_ones_are_shared_out);
    fn large_ones_are_shared_out() {
        check(Moves::new(0, 0).axis(3, 30_000, 1).axis(30_000, 1, 3), 90_000, 90_000);
        check(Moves::new(0, 0).axis(2, 50_000, 50_000).axis(50_000, 1, 1), 100_000, 100_000);
        check(Moves::new(0, 99_999).axis(100_000, 1, -1), 100_000, 100_000);
    }

    unit_test!(boxes_outside_are_refused, panics = "outside");
    fn boxes_outside_are_refused() {
        Moves::new(0, 1).axis(5, 1, 1).run(&mut [0f32; 5], &[0f32; 5], Output::Write);
    }

    unit_test!(speed_of_moves, ignore = "prints a measurement");
    /// `cargo test --release --features emulate -- --ignored --nocapture speed_of_moves`
    fn speed_of_moves() {
        let n = 1024;
        let (x, mut y) = (vec![1f32; n * n], vec![0f32; n * n]);
        let s = n as isize;
        let cases: [(&str, Moves); 4] = [
            ("copy", Moves::new(0, 0).axis(n * n, 1, 1)),
            ("transpose", Moves::new(0, 0).axis(n, s, 1).axis(n, 1, s)),
            (
                "swap middle axes",
                Moves::new(0, 0).axis(16, 65536, 65536).axis(32, 2048, 64).axis(32, 64, 2048).axis(64, 1, 1),
            ),
            ("channels last", Moves::new(0, 0).axis(16, 65536, 65536).axis(1024, 64, 1).axis(64, 1, 1024)),
        ];
        for (what, m) in cases {
            m.clone().run(&mut y, &x, Output::Write);
            let best =
                (0..50).map(|_| (std::time::Instant::now(), m.clone().run(&mut y, &x, Output::Write)).0.elapsed());
            println!("{what}: {:.3} ns an element", best.min().unwrap().as_secs_f64() * 1e9 / (n * n) as f64);
        }
    }
}
