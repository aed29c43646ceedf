//! The one inner loop of every convolution: a tile of sums of products, scalars times vectors.
//!
//! `out[j][..] = init[j][..] + sum over i of x[off[i] + lane[j]] * w[i][..]`. Forward and the data gradient put points of
//! the output in `j` and the window in `i`; the weight gradient swaps the two. Channels are in the vectors. The sum is one of its own, to which
//! `init` is added in the end: a long sum in parts rounds less than one chain.

use crate::dtype::Real;
use crate::simd;
use crate::simd::lanes::{Lanes, WithLanes};

/// Operands of a run of tiles. `off` and `lane` are distances in elements from `x`.
#[derive(Clone, Copy)]
pub struct Tiles<'a, T> {
    pub x: *const T,
    pub off: &'a [isize],
    pub lane: &'a [isize],
    /// Rows of `vectors * N` numbers, one for each `off`, `w_stride` apart.
    pub w: *const T,
    pub w_stride: usize,
    pub vectors: usize,
    /// The first row of what is added to the sums; 0 as the stride adds the same row to all.
    pub init: *const T,
    pub init_stride: usize,
    /// Rows of `vectors * N` numbers, one for each `lane`.
    pub out: *mut T,
    pub out_stride: usize,
}

/// What tiles bring into the cache meanwhile, for what comes after them: `fetch` asks for the next of it.
trait Ahead: Copy {
    fn fetch(&mut self);
}

/// Nothing.
impl Ahead for () {
    #[inline(always)]
    fn fetch(&mut self) {}
}

impl Ahead for [NextRows; 2] {
    #[inline(always)]
    fn fetch(&mut self) {
        self[0].fetch();
        self[1].fetch();
    }
}

/// Rows that are far apart, which the processor does not foresee: the first two cache lines of each of them, then the next ones.
#[derive(Clone, Copy)]
pub struct NextRows {
    at: *const u8,
    stride: usize,
    rows: usize,
    left: usize,
    pairs: usize,
}

impl NextRows {
    /// `rows` rows of `n` numbers, `stride` numbers apart; any addresses are allowed.
    pub fn new<T>(first: *const T, stride: usize, rows: usize, n: usize) -> NextRows {
        // A row that does not begin with a line reaches into one more.
        let bytes = n * size_of::<T>() + first.addr() % simd::CACHE_LINE;
        let (stride, pairs) = (stride * size_of::<T>(), bytes.div_ceil(2 * simd::CACHE_LINE));
        NextRows { at: first.cast(), stride, rows, left: rows, pairs }
    }

    /// No rows: the line that is there again and again.
    pub fn nothing(at: *const u8) -> NextRows {
        NextRows { at, stride: 0, rows: 0, left: usize::MAX, pairs: 0 }
    }

    /// Asks for the next two lines.
    #[inline(always)]
    pub(super) fn fetch(&mut self) {
        if self.is_end() {
            self.turn();
        }
    }

    /// The same; after the last rows come others.
    #[inline(always)]
    pub(super) fn fetch_then(&mut self, later: &NextRows) {
        if self.is_end() {
            if self.pairs > 1 { self.turn() } else { *self = *later }
        }
    }

    /// Asks for two lines and goes to the next row; whether it was the last one.
    #[inline(always)]
    fn is_end(&mut self) -> bool {
        simd::prefetch(self.at);
        simd::prefetch(self.at.wrapping_add(simd::CACHE_LINE));
        self.at = self.at.wrapping_add(self.stride);
        self.left = self.left.wrapping_sub(1);
        self.left == 0
    }

    /// From the last row to the first one, two lines further; to no more than the last ones again where those were all.
    #[inline(always)]
    fn turn(&mut self) {
        self.pairs = self.pairs.saturating_sub(1);
        if self.pairs == 0 {
            (self.left, self.stride) = (usize::MAX, 0);
        } else {
            self.at = self.at.wrapping_sub(self.rows * self.stride).wrapping_add(2 * simd::CACHE_LINE);
            self.left = self.rows;
        }
    }
}

/// Tiles, and what they bring into the cache.
pub struct TilesAhead<'a, T>(pub Tiles<'a, T>, pub &'a mut [NextRows; 2]);

impl<T: Real> WithLanes<T> for TilesAhead<'_, T> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(self) {
        // SAFETY: the caller's promise.
        unsafe { self.0.call_with::<L, _>(self.1) }
    }
}

impl<T: Real> WithLanes<T> for Tiles<'_, T> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(self) {
        // SAFETY: the caller's promise.
        unsafe {
            if written_out::<T, L>() {
                return self.call_with::<L, ()>(&mut ());
            }
            // Doubles and portable code have one set of loops: they ask for a line that is there.
            let nothing = NextRows::new(self.w, 0, 1, 0);
            L::enter(TilesAhead(self, &mut [nothing; 2]))
        }
    }
}

impl<T: Real> Tiles<'_, T> {
    /// # Safety
    /// As [`WithLanes::call`].
    #[inline(always)]
    unsafe fn call_with<L: Lanes<T>, A: Ahead>(self, ahead: &mut A) {
        // SAFETY: the caller's promise.
        unsafe { if self.vectors == 2 { self.split::<L, A, 2>(ahead) } else { self.split::<L, A, 1>(ahead) } }
    }

    /// Tiles of nearly equal height.
    #[inline(always)]
    unsafe fn split<L: Lanes<T>, A: Ahead, const V: usize>(self, ahead: &mut A) {
        let mut from = 0;
        let mut tiles = self.lane.len().div_ceil(L::ROWS);
        while tiles > 0 {
            let rows = (self.lane.len() - from).div_ceil(tiles);
            // SAFETY: rows from..from + rows are in the tables and in `out`.
            unsafe { self.rows::<L, A, V>(from, rows, ahead) }
            from += rows;
            tiles -= 1;
        }
    }

    #[inline(always)]
    unsafe fn rows<L: Lanes<T>, A: Ahead, const V: usize>(&self, from: usize, rows: usize, ahead: &mut A) {
        let step = even_step(&self.lane[from..from + rows]);
        macro_rules! choose {
            ($($p:literal)*) => {
                match (rows, step) {
                    // SAFETY: the caller's promise.
                    $(($p, Some(1)) if is_long::<T, L>($p, V) => unsafe {
                        self.tile::<L, A, $p, V, 1>(from, 1, ahead)
                    }
                    // SAFETY: as above.
                    ($p, Some(2)) if is_long::<T, L>($p, V) => unsafe {
                        self.tile::<L, A, $p, V, 2>(from, 2, ahead)
                    }
                    // SAFETY: as above.
                    ($p, Some(step)) if is_long::<T, L>($p, V) => unsafe {
                        self.tile::<L, A, $p, V, EVEN>(from, step, ahead)
                    }
                    // SAFETY: as above.
                    ($p, _) if $p <= L::ROWS => unsafe { self.tile::<L, A, $p, V, TABLE>(from, 0, ahead) },)*
                    _ => unreachable!("a tile has at most L::ROWS rows"),
                }
            };
        }
        choose!(1 2 3 4 5 6 7 8 9 10 11 12 13 14)
    }

    /// `STEP`: how far the rows of x are apart, or [`EVEN`]: so far as `step` says, or [`TABLE`]. Those that are known need no turns of the
    /// ports that multiply.
    // Indices, not iterators: the sums must stay arrays that the compiler keeps in registers.
    #[allow(clippy::needless_range_loop)]
    #[inline(always)]
    unsafe fn tile<L: Lanes<T>, A: Ahead, const P: usize, const V: usize, const STEP: isize>(
        &self,
        from: usize,
        step: isize,
        ahead: &mut A,
    ) {
        // SAFETY: the tables say where operands lie, and the caller promised that they are valid.
        unsafe {
            let lane: &[isize; P] = &*self.lane.as_ptr().add(from).cast();
            let first = self.x.wrapping_offset(if STEP == TABLE { 0 } else { lane[0] });
            let mut acc = [[L::splat(T::ZERO); V]; P];
            let mut w = self.w;
            let mut next = *ahead;
            macro_rules! step {
                ($off:expr) => {
                    let mut x = first.wrapping_offset($off);
                    let mut row = [L::splat(T::ZERO); V];
                    for v in 0..V {
                        row[v] = L::load(w.add(v * L::N));
                    }
                    for p in 0..P {
                        let place = match STEP {
                            TABLE => lane[p],
                            EVEN => (p % TOGETHER) as isize * step,
                            _ => p as isize * STEP,
                        };
                        let s = L::splat(*x.wrapping_offset(place));
                        for v in 0..V {
                            acc[p][v] = L::fma(s, row[v], acc[p][v]);
                        }
                        if V > 1 {
                            for v in 0..V {
                                x = L::after(x, acc[p][v]);
                            }
                        }
                        if STEP == EVEN && p % TOGETHER == TOGETHER - 1 {
                            x = x.wrapping_offset(TOGETHER as isize * step);
                        }
                    }
                    // Without it the next row would come too early, for which there is no register.
                    for v in 0..V {
                        w = L::after(w, acc[P - 1][v]);
                    }
                    w = w.add(self.w_stride);
                };
            }
            let mut off = self.off;
            let is_long = is_long::<T, L>(P, V);
            while let (true, [a, b, c, d, rest @ ..]) = (is_long && STEP != TABLE, off) {
                next.fetch();
                step!(*a);
                step!(*b);
                step!(*c);
                step!(*d);
                off = rest;
            }
            while let (true, [a, b, rest @ ..]) = (is_long && STEP == TABLE, off) {
                next.fetch();
                step!(*a);
                step!(*b);
                off = rest;
            }
            for &off in off {
                // Smaller tiles have no time for it, and are few.
                if !is_long && 2 * P >= L::ROWS {
                    next.fetch();
                }
                step!(off);
            }
            *ahead = next;
            let (init, out) = (self.init.add(from * self.init_stride), self.out.add(from * self.out_stride));
            for p in 0..P {
                for v in 0..V {
                    let start = L::load(init.add(p * self.init_stride + v * L::N));
                    L::store(out.add(p * self.out_stride + v * L::N), L::fma(start, L::splat(T::ONE), acc[p][v]));
                }
            }
        }
    }
}

/// Rows of x that are apart by a step, or as the table says.
const EVEN: isize = -1;
const TABLE: isize = 0;
/// Rows whose distances from the first of them stay in registers.
const TOGETHER: usize = 4;

/// Whether the loops of whole tiles are written out some times: counting takes turns that the multipliers could have. No more code than
/// where most of the time is.
#[inline(always)]
pub(super) const fn written_out<T: Real, L: Lanes<T>>() -> bool {
    size_of::<T>() == 4 && L::ROWS > 4
}

/// Whether a tile's steps are written out.
#[inline(always)]
const fn is_long<T: Real, L: Lanes<T>>(rows: usize, vectors: usize) -> bool {
    vectors > 1 && written_out::<T, L>() && rows <= L::ROWS && 4 * rows >= 3 * L::ROWS
}

/// The distance of places that are equally far apart.
#[inline(always)]
fn even_step(lane: &[isize]) -> Option<isize> {
    let step = lane.get(1)? - lane[0];
    lane.windows(2).all(|l| l[1] - l[0] == step).then_some(step)
}
