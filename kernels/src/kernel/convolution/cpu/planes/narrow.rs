//! Planes whose rows are few vectors long: read where they lie, what is outside by masks, without a copy.

mod rolling;
mod strided;

use super::ChannelPlanes;
use super::loops::{every_second, with_zeros};
use crate::array::Output;
use crate::dtype::Real;
use crate::kernel::convolution::cpu::Conv;
use crate::kernel::convolution::cpu::depthwise::Pass;
use crate::pool::Pace;
use crate::simd::lanes::{Lanes, WithLanes};
use rolling::Rolling;
use strided::{StridedCorrelation, StridedRows};

/// Vectors of a row that are made together, at most.
const VECTORS: usize = 4;
/// Bytes of a row, at most.
const ROW_BYTES: usize = 512;
/// Columns of the kernels that there are loops for: those that networks have.
const COLUMNS: [usize; 2] = [3, 5];

/// What each row of results reads, and how its columns lie in it.
pub(super) struct NarrowRows<M> {
    /// Rows of the source and of the kernel, those of result `i` from `starts[i]` to `starts[i + 1]`.
    reads: Vec<(usize, usize)>,
    starts: Vec<usize>,
    /// Columns of a row of the source, with the zeros that are put between its numbers.
    width: usize,
    /// Rows and columns of the source as it lies in memory.
    source: [usize; 2],
    /// Columns of results, of which every `pick`th is a place.
    columns: usize,
    pick: usize,
    /// Where each row of the source can be read once for all rows of results: see [`Rolling`].
    rolling: Option<Rolling>,
    /// What a forward pass with a stride of 2 along rows reads.
    strided: Option<StridedRows<M>>,
    /// For each column of the kernel how far its numbers are from the results'.
    shifts: Vec<isize>,
    blocks: Vec<ResultColumns<M>>,
}

/// Some columns of all rows, whose results are in registers together.
struct ResultColumns<M> {
    first: usize,
    columns: usize,
    vectors: usize,
    /// Where each vector begins: the last one may begin within the one before, where what both make is written twice.
    places: Vec<usize>,
    /// For each column of the kernel and each vector the lanes that are inside; those that there are results of.
    masks: Vec<M>,
    ends: Vec<M>,
}

/// Whether the rows of a pass are read where they lie: of longer ones, and where the sums of a pass do not fit the registers, copied
/// planes are faster. `lanes` of a vector.
pub(super) fn suits<T>(c: &Conv, pass: Pass, lanes: usize) -> bool {
    let (stride, columns) = (c.stride[2], c.kernel[2]);
    let (width, longest) = match pass {
        Pass::Data(_) => (c.input[2], ROW_BYTES / size_of::<T>()),
        Pass::Forward if stride == 2 && c.dilation[2] == 1 => (0, 0), // one row after another
        Pass::Weight(_) if columns == 5 => ((c.output()[2] - 1) * stride + 1, VECTORS * lanes),
        _ => ((c.output()[2] - 1) * stride + 1, ROW_BYTES / size_of::<T>()),
    };
    stride <= 2 && COLUMNS.contains(&columns) && width <= longest
}

impl<M: Copy> NarrowRows<M> {
    pub(super) fn new<T: Real, L: Lanes<T, M = M>>(c: &Conv, pass: Pass) -> NarrowRows<M> {
        let [_, height, width] = c.output();
        let (stride, is_data) = ([c.stride[1], c.stride[2]], matches!(pass, Pass::Data(_)));
        let wide = (width - 1) * stride[1] + 1;
        let place = |k: usize, axis: usize| (k * c.dilation[axis]) as isize - c.pad[axis] as isize;
        // The row of the source that a row of results reads by a row of the kernel.
        let row = |i: usize, k: usize| match is_data {
            false => usize::try_from((i * stride[0]) as isize + place(k, 1)).ok().filter(|&r| r < c.input[1]),
            true => {
                let at = usize::try_from(i as isize - place(k, 1)).ok()?;
                (at.is_multiple_of(stride[0]) && at / stride[0] < height).then_some(at / stride[0])
            }
        };
        let rows = if is_data { c.input[1] } else { height };
        let (mut reads, mut starts) = (Vec::new(), vec![0]);
        for i in 0..rows {
            reads.extend((0..c.kernel[1]).filter_map(|k| Some((row(i, k)?, k))));
            starts.push(reads.len());
        }
        let (source, inside, columns) = match is_data {
            false => ([c.input[1], c.input[2]], c.input[2], wide),
            true => ([height, width], wide, c.input[2]),
        };
        let shifts: Vec<isize> = (0..c.kernel[2]).map(|k| place(k, 2) * if is_data { -1 } else { 1 }).collect();
        let most = if c.kernel[2] == 5 && L::ROWS < 8 { VECTORS / 2 } else { VECTORS }; // the sums of each row of the kernel
        let (vectors, count) = (columns.div_ceil(L::N), columns.div_ceil(L::N * most));
        let cuts: Vec<usize> = (0..=count).map(|i| (vectors * i / count) * L::N).collect();
        let pick = if is_data { 1 } else { stride[1] };
        let maps = c.out_channels / c.group;
        let is_written = matches!(pass, Pass::Forward) || matches!(pass, Pass::Data(Output::Write)) && maps == 1;
        let may_overlap = pick == 1 && is_written;
        let block = |cut: &[usize]| {
            ResultColumns::new::<T, L>(cut[0], columns.min(cut[1]) - cut[0], &shifts, inside, may_overlap)
        };
        let blocks = cuts.windows(2).map(block).collect();
        let rolling = Rolling::new(c, is_data);
        let strided = if matches!(pass, Pass::Forward) { StridedRows::new::<T, L>(c) } else { None };
        NarrowRows { reads, starts, width: inside, source, columns, pick, rolling, strided, shifts, blocks }
    }

    /// Numbers that a task works in: rows with zeros between their numbers, and the sums of weights.
    pub(super) fn room(&self, products: usize) -> usize {
        (self.source[0] * self.width).max(self.rows() * self.columns) + products
    }
}

impl<T: Real> ChannelPlanes<'_, '_, T> {
    /// # Safety
    /// No other task writes these channels of the samples; `rows` are those of the pass.
    pub(super) unsafe fn run_narrow<L: Lanes<T>>(self, rows: &NarrowRows<L::M>, room: &mut [T], pace: &mut Pace) {
        let (a, taps) = (self.a, self.a.taps());
        let maps = self.channel * a.maps()..(self.channel + 1) * a.maps();
        if let Pass::Weight(_) = a.pass {
            room[rows.rows() * rows.columns..].fill(T::ZERO);
        }
        for n in self.samples.clone() {
            for map in maps.clone() {
                pace.step(rows.reads.len() * rows.columns);
                // SAFETY: the map's weights, and planes that this task alone writes.
                unsafe {
                    let (x, y) = (a.x.add(a.x_at(n, self.channel)), a.y.add(a.y_at(n, map)));
                    match a.pass {
                        Pass::Forward => {
                            let (w, start) = (a.w.read(map * taps, taps), a.bias.map_or(T::ZERO, |b| b[map]));
                            let (source, to, output) = (x.0.cast_const(), y.0, Output::Write);
                            if let Some(strided) = &rows.strided {
                                L::enter(StridedCorrelation { rows, strided, source, w, start, to });
                                continue;
                            }
                            for block in &rows.blocks {
                                L::enter(NarrowCorrelation { rows, block, source, w, start, to, output });
                            }
                        }
                        Pass::Data(output) => {
                            let (w, start, to) = (a.w.read(map * taps, taps), T::ZERO, x.0);
                            let source = with_gaps(y.0, rows.source, rows.width, room);
                            let output = if map == maps.start { output } else { Output::Accumulate };
                            for block in &rows.blocks {
                                L::enter(NarrowCorrelation { rows, block, source, w, start, to, output });
                            }
                        }
                        Pass::Weight(_) => {
                            let m = map - maps.start;
                            let (room, sums) = room.split_at_mut(rows.rows() * rows.columns);
                            let sums = &mut sums[m * taps * L::N..][..taps * L::N];
                            let places = [rows.rows(), rows.columns.div_ceil(rows.pick)];
                            let gradient = with_gaps(y.0, places, rows.columns, room);
                            let source = x.0.cast_const();
                            for block in &rows.blocks {
                                L::enter(NarrowProducts { rows, block, source, gradient, sums: &mut *sums });
                            }
                        }
                    }
                }
            }
        }
        if let Pass::Weight(output) = a.pass {
            let sums = &room[rows.rows() * rows.columns..][..a.maps() * taps * L::N];
            // SAFETY: no other task has these weights.
            unsafe { self.finish_weights::<L>(sums, output) }
        }
    }
}

impl<M: Copy> NarrowRows<M> {
    fn rows(&self) -> usize {
        self.starts.len() - 1
    }

    /// Shifts from the block's first column, its masks and ends, as arrays.
    #[inline(always)]
    fn lanes<T: Real, L: Lanes<T>, const V: usize, const K: usize>(
        &self,
        block: &ResultColumns<M>,
    ) -> RowLanes<L::M, V, K> {
        assert!(size_of::<M>() == size_of::<L::M>(), "the masks of L");
        assert!(
            self.shifts.len() == K && block.masks.len() == K * V && block.ends.len() == V,
            "a mask for each vector"
        );
        // SAFETY: there are as many; masks are those of L, which has one type for them.
        let (masks, ends) = unsafe { (*block.masks.as_ptr().cast(), *block.ends.as_ptr().cast()) };
        let shifts = std::array::from_fn(|k| self.shifts[k] + block.first as isize);
        RowLanes { shifts, places: std::array::from_fn(|j| block.places[j]), masks, ends }
    }
}

impl<M> ResultColumns<M> {
    /// `inside`: columns of a row of the source.
    fn new<T: Real, L: Lanes<T, M = M>>(
        first: usize,
        columns: usize,
        shifts: &[isize],
        inside: usize,
        may_overlap: bool,
    ) -> ResultColumns<M> {
        let vectors = columns.div_ceil(L::N);
        let mut places: Vec<usize> = (0..vectors).map(|v| v * L::N).collect();
        if let (Some(last), true) = (places.last_mut(), may_overlap && columns >= L::N) {
            *last = columns - L::N;
        }
        let lane = |at: isize| at.clamp(0, L::N as isize) as usize;
        let mask = |shift: isize, v: usize| {
            let first = shift + (first + places[v]) as isize;
            let (from, to) = (lane(-first), lane(inside as isize - first));
            // SAFETY: L is what the machine has.
            unsafe { L::mask(from.min(to), to) }
        };
        let masks = shifts.iter().flat_map(|&s| (0..vectors).map(move |v| (s, v))).map(|(s, v)| mask(s, v)).collect();
        let count = |at: &usize| L::N.min(columns - at);
        // SAFETY: as above.
        let ends = places.iter().map(|at| unsafe { L::mask(0, count(at)) }).collect();
        ResultColumns { first, columns, vectors, places, masks, ends }
    }
}

/// See [`NarrowRows`].
struct RowLanes<M, const V: usize, const K: usize> {
    shifts: [isize; K],
    places: [usize; V],
    masks: [[M; V]; K],
    ends: [M; V],
}

/// Rows of `width` numbers as rows of `pitch`, with zeros between the numbers; the rows themselves where they have that length.
///
/// # Safety
/// There are so many rows.
unsafe fn with_gaps<T: Real>(from: *const T, [rows, width]: [usize; 2], pitch: usize, room: &mut [T]) -> *const T {
    if width == pitch {
        return from;
    }
    // SAFETY: the caller's promise.
    let from = unsafe { std::slice::from_raw_parts(from, rows * width) };
    from.chunks_exact(width).zip(room.chunks_exact_mut(pitch)).for_each(|(from, to)| with_zeros(to, from));
    room.as_ptr()
}

/// Calls `$f::<L, V, K>` for so many vectors and columns of the kernel.
macro_rules! sizes {
    ($self:ident, $f:ident, $vectors:expr, $columns:expr) => {
        sizes!(@v $self, $f, $vectors, $columns; 1 2 3 4)
    };
    (@v $self:ident, $f:ident, $vectors:expr, $columns:expr; $($v:literal)*) => {
        match $vectors {
            $($v => sizes!(@k $self, $f, $v, $columns; 3 5),)*
            _ => unreachable!("a block has at most VECTORS vectors"),
        }
    };
    (@k $self:ident, $f:ident, $v:literal, $columns:expr; $($k:literal)*) => {
        match $columns {
            // SAFETY: the caller's promise.
            $($k => unsafe { $self.$f::<L, $v, $k>() },)*
            _ => unreachable!("a kernel has one of COLUMNS"),
        }
    };
}

/// Results of all rows: `start` and the sum over the taps.
struct NarrowCorrelation<'a, T, M> {
    rows: &'a NarrowRows<M>,
    block: &'a ResultColumns<M>,
    source: *const T,
    w: &'a [T],
    start: T,
    to: *mut T,
    output: Output,
}

impl<T: Real, M: Copy> WithLanes<T> for NarrowCorrelation<'_, T, M> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(self) {
        sizes!(self, run, self.block.vectors, self.rows.shifts.len())
    }
}

impl<T: Real, M: Copy> NarrowCorrelation<'_, T, M> {
    // Indices, not iterators: the sums must stay arrays that the compiler keeps in registers.
    #[allow(clippy::needless_range_loop)]
    #[inline(always)]
    unsafe fn run<L: Lanes<T>, const V: usize, const K: usize>(self) {
        let r = self.rows;
        debug_assert!(r.reads.iter().all(|(_, k)| (k + 1) * K <= self.w.len()), "a weight for each tap");
        if let Some(rolling) = r.rolling {
            // SAFETY: as here.
            return unsafe { self.roll::<L, V, K>(rolling) };
        }
        let RowLanes { shifts, places, masks, ends } = r.lanes::<T, L, V, K>(self.block);
        // SAFETY: what the masks cover lies in the rows.
        unsafe {
            for i in 0..r.rows() {
                let mut v = [L::splat(self.start); V];
                for &(row, k) in &r.reads[r.starts[i]..r.starts[i + 1]] {
                    let (from, w) = (self.source.wrapping_add(row * r.width), self.w.as_ptr().add(k * K));
                    for c in 0..K {
                        let (x, w) = (from.wrapping_offset(shifts[c]), L::splat(*w.add(c)));
                        for j in 0..V {
                            let x = L::load_masked(x.wrapping_add(places[j]), masks[c][j]);
                            v[j] = L::fma(x, w, v[j]);
                        }
                    }
                }
                if r.pick > 1 {
                    let mut all = [[T::ZERO; 16]; V];
                    for j in 0..V {
                        L::store(all.as_mut_ptr().cast::<T>().add(j * L::N), v[j]);
                    }
                    let (all, n) = (all.as_flattened(), self.block.columns.div_ceil(2));
                    let at = i * r.columns.div_ceil(2) + self.block.first / 2;
                    every_second(std::slice::from_raw_parts_mut(self.to.add(at), n), all);
                    continue;
                }
                self.store::<L, V>(i, v, places, ends);
            }
        }
    }

    /// The sums of row `i`.
    #[allow(clippy::needless_range_loop)] // as above
    #[inline(always)]
    unsafe fn store<L: Lanes<T>, const V: usize>(&self, i: usize, v: [L::V; V], places: [usize; V], ends: [L::M; V]) {
        let (r, is_alone) = (self.rows, self.rows.blocks.len() == 1);
        let (at, end) = (i * r.columns + self.block.first, r.rows() * r.columns);
        for j in 0..V {
            // SAFETY: the row's numbers, of which `ends` covers those that there are.
            unsafe {
                let (to, end_of_row) = (self.to.add(at + places[j]), ends[j]);
                if is_alone && matches!(self.output, Output::Write) && at + places[j] + L::N <= end {
                    L::store(to, v[j]); // what hangs over into the next row is written there afterwards
                    continue;
                }
                let sum = match self.output {
                    Output::Write => v[j],
                    Output::Accumulate => L::fma(v[j], L::splat(T::ONE), L::load_masked(to, end_of_row)),
                };
                L::store_masked(to, end_of_row, sum);
            }
        }
    }
}

/// Adds to the vector of sums of each tap the products of what it reads and the gradient's rows.
struct NarrowProducts<'a, T, M> {
    rows: &'a NarrowRows<M>,
    block: &'a ResultColumns<M>,
    source: *const T,
    gradient: *const T,
    sums: &'a mut [T],
}

impl<T: Real, M: Copy> WithLanes<T> for NarrowProducts<'_, T, M> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(self) {
        sizes!(self, run, self.block.vectors, self.rows.shifts.len())
    }
}

impl<T: Real, M: Copy> NarrowProducts<'_, T, M> {
    #[allow(clippy::needless_range_loop)] // as above
    #[inline(always)]
    unsafe fn run<L: Lanes<T>, const V: usize, const K: usize>(self) {
        let r = self.rows;
        if let Some(rolling) = r.rolling {
            // SAFETY: as here.
            return unsafe { self.roll::<L, V, K>(rolling.low) };
        }
        let RowLanes { shifts, places, masks, ends } = r.lanes::<T, L, V, K>(self.block);
        let kernel_rows = self.sums.len() / (K * L::N);
        // SAFETY: as above; there is a vector of sums for each tap.
        unsafe {
            for kernel_row in 0..kernel_rows {
                let sums = self.sums.as_mut_ptr().add(kernel_row * K * L::N);
                let mut v = [L::splat(T::ZERO); K];
                for c in 0..K {
                    v[c] = L::load(sums.add(c * L::N));
                }
                for i in 0..r.rows() {
                    let reads = &r.reads[r.starts[i]..r.starts[i + 1]];
                    let Some(&(row, _)) = reads.iter().find(|(_, k)| *k == kernel_row) else { continue };
                    let from = self.source.wrapping_add(row * r.width);
                    let g = self.gradient.add(i * r.columns + self.block.first);
                    for j in 0..V {
                        let g = L::load_masked(g.wrapping_add(places[j]), ends[j]);
                        for c in 0..K {
                            let x = from.wrapping_offset(shifts[c]).wrapping_add(places[j]);
                            v[c] = L::fma(L::load_masked(x, masks[c][j]), g, v[c]);
                        }
                    }
                }
                for c in 0..K {
                    L::store(sums.add(c * L::N), v[c]);
                }
            }
        }
    }
}
