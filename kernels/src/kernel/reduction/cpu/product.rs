//! Products over axes, and their gradient, which is right where elements are zero: no division.

// Several arrays go by one index.
#![allow(clippy::needless_range_loop)]

use crate::array::Output;
use crate::array::scratch::Scratch;
use crate::expr::op::Binary;
use crate::kernel::reduction::axes::ReductionAxes;
use crate::kernel::short_rows::{FEW, are_short, each_group};
use crate::pool::tasks::{self, SendPtr, Shared, share};
use crate::shape::Shape;
use crate::simd::lanes::{Choose, Lanes, TransposeBlock, WithLanes, dispatch, enter};
use crate::simd::{self, CacheLines, SimdReal};

mod short;

/// Neighbouring elements that one task multiplies.
const PART: usize = 1 << 15;
/// Products side by side of neighbours: more than one vector, since each multiplication waits for the one before.
const LANES: usize = 64;
/// Rows of at most so many elements have their gradients side by side, where there are some.
const SHORT: usize = 128;
/// Neighbouring results that are made together.
const COLUMNS: usize = 1024;

/// The products of rows of neighbours, in lanes: row `r` begins at `starts(r)`.
struct ProductsOfRows<'a, T, F> {
    x: &'a [T],
    starts: F,
    n: usize,
    y: &'a mut [T],
}

impl<T: SimdReal, F: Fn(usize) -> usize> WithLanes<T> for ProductsOfRows<'_, T, F> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(self) {
        // The lanes of as many rows as a vector has numbers are turned, and multiplied together.
        let mut room = CacheLines([[T::ONE; SIDE * SIDE]; 2]);
        let [rows, turned] = &mut room.0;
        for (group, y) in self.y.chunks_mut(L::N).enumerate() {
            for r in 0..y.len() {
                let x = &self.x[(self.starts)(group * L::N + r)..][..self.n];
                // SAFETY: the caller is inside `enter`; there is room for a vector of each row.
                unsafe { L::store(rows.as_mut_ptr().add(r * L::N), lanes_product::<T, L>(x)) };
            }
            let (src, dst) = (rows.as_ptr(), turned.as_mut_ptr());
            let all = TransposeBlock { src, src_stride: L::N, rows: y.len(), cols: L::N, dst, dst_stride: L::N };
            // SAFETY: both have room for as many vectors.
            unsafe {
                L::transpose(all, false);
                let (mut n, zero) = (L::N, L::splat(T::ZERO));
                while n > 1 {
                    n /= 2;
                    for k in 0..n {
                        let (a, b) = (dst.add(k * L::N), dst.add((k + n) * L::N));
                        L::store(a, L::fma(L::load(a), L::load(b), zero));
                    }
                }
            }
            y.copy_from_slice(&turned[..y.len()]);
        }
    }
}

/// For each lane the product of its numbers.
///
/// # Safety
/// Inside `enter` of L.
#[inline(always)]
unsafe fn lanes_product<T: SimdReal, L: Lanes<T>>(x: &[T]) -> L::V {
    let (whole, rest) = x.split_at(x.len() / LANES * LANES);
    // SAFETY: all vectors lie in x, or in the lanes.
    unsafe {
        let zero = L::splat(T::ZERO);
        let mut products = [L::splat(T::ONE); LANES / 4];
        for x in whole.chunks_exact(LANES) {
            for i in 0..LANES / L::N {
                products[i] = L::fma(products[i], L::load(x.as_ptr().add(i * L::N)), zero);
            }
        }
        let mut n = LANES / L::N;
        for i in 0..n {
            let x = rest.as_ptr().wrapping_add(i * L::N);
            if (i + 1) * L::N <= rest.len() {
                products[i] = L::fma(products[i], L::load(x), zero);
            } else if i * L::N < rest.len() {
                // Only the lanes that there are numbers for.
                let (last, mut lanes) = (L::mask(0, rest.len() - i * L::N), CacheLines([T::ONE; SIDE]));
                L::store(lanes.0.as_mut_ptr(), products[i]);
                let v = L::fma(products[i], L::load_masked(x, last), zero);
                L::store_masked(lanes.0.as_mut_ptr(), last, v);
                products[i] = L::load(lanes.0.as_ptr());
            }
        }
        while n > 1 {
            n /= 2;
            for i in 0..n {
                products[i] = L::fma(products[i], products[i + n], zero);
            }
        }
        products[0]
    }
}

/// The products of rows of `n` neighbours.
fn products<T: SimdReal>(x: &[T], starts: impl Fn(usize) -> usize, n: usize, y: &mut [T]) {
    // SAFETY: the slices are as long as the job says.
    unsafe { enter(ProductsOfRows { x, starts, n, y }) };
}

fn product<T: SimdReal>(x: &[T]) -> T {
    let mut y = [T::ONE];
    products(x, |_| 0, x.len(), &mut y);
    y[0]
}

/// Multiplies over the axes that are reduced.
pub fn prod_axes<T: SimdReal>(x: &[T], shape: &Shape, reduced: &[bool], y: &mut [T]) {
    if x.is_empty() {
        return y.fill(T::ONE);
    }
    let axes = ReductionAxes::new(shape, reduced);
    if let Some((rows, n)) = axes.rows().filter(|r| are_short(r.0, r.1)) {
        let y = SendPtr(y.as_mut_ptr());
        // SAFETY: each row has a result of its own.
        return each_group(rows, n, |g| short::products(&g, &x[g.range()], unsafe { y.slice(g.first, g.rows) }));
    }
    match axes.reduced_last() {
        Some(n) => rows(x, &axes, n, y),
        None => columns(x, &axes, y),
    }
}

/// Results over runs of `n` neighbours; the runs are multiplied in parts of a fixed size.
fn rows<T: SimdReal>(x: &[T], axes: &ReductionAxes, n: usize, y: &mut [T]) {
    let (runs, parts) = (axes.count(true) / n, n.div_ceil(PART));
    if runs * parts == 1 {
        let rows = (PART / n).max(1);
        return tasks::parts(y, rows, |task, y| products(x, |r| axes.row_offset(task * rows + r), n, y));
    }
    let mut products = Scratch::filled(y.len() * runs * parts, T::ONE);
    let shared = Shared(products.as_mut_ptr());
    let shared = &shared;
    share(products.len(), x.len(), move |i| {
        let (r, run, first) = (i / parts / runs, i / parts % runs, i % parts * PART);
        let run = &x[axes.row_offset(r) + axes.reduced_offset(run * n)..][..n];
        // SAFETY: task i alone writes element i.
        unsafe { shared.0.add(i).write(product(&run[first..n.min(first + PART)])) };
    });
    y.iter_mut().zip(products.chunks(runs * parts)).for_each(|(y, p)| *y = product(p));
}

/// Neighbouring results, some columns at a time.
fn columns<T: SimdReal>(x: &[T], axes: &ReductionAxes, y: &mut [T]) {
    let (inner, rows) = (axes.inner(), y.len() / axes.inner());
    let blocks = inner.div_ceil(COLUMNS);
    let shared = Shared(y.as_mut_ptr());
    let shared = &shared;
    share(rows * blocks, x.len(), move |task| {
        let (row, first) = (task / blocks, task % blocks * COLUMNS);
        let width = COLUMNS.min(inner - first);
        // SAFETY: tasks write disjoint parts of y.
        let y = unsafe { std::slice::from_raw_parts_mut(shared.0.add(row * inner + first), width) };
        let base = axes.row_offset(row) + first;
        y.copy_from_slice(&x[base..base + width]);
        for k in 1..axes.count(true) {
            let x = &x[base + axes.reduced_offset(k)..][..width];
            multiply_by(y, x);
        }
    });
}

/// Elements that the gradient goes over side by side.
const SIDE: usize = 16;

/// The gradient: of each element the product of all others, from the left and from the right.
pub fn prod_backward<T: SimdReal>(x: &[T], shape: &Shape, reduced: &[bool], gy: &[T], gx: &mut [T], output: Output) {
    if x.is_empty() {
        return;
    }
    let axes = ReductionAxes::new(shape, reduced);
    if let Some((rows, n)) = axes.rows().filter(|r| r.0 >= FEW && r.1 <= SHORT) {
        let gx = SendPtr(gx.as_mut_ptr());
        return each_group(rows, n, |g| {
            // SAFETY: the elements of these rows.
            let gx = unsafe { gx.slice(g.range().start, g.size()) };
            short::gradients(&g, &x[g.range()], &gy[g.numbers()], gx, output);
        });
    }
    let add = output == Output::Accumulate;
    dispatch(Others { x, gy, gx: SendPtr(gx.as_mut_ptr()), places: ProductPlaces::new(&axes), axes: &axes, add });
}

/// `y *= b`
fn multiply_by<T: SimdReal>(y: &mut [T], b: &[T]) {
    assert!(y.len() == b.len(), "sizes do not fit");
    let to = y.as_mut_ptr();
    // SAFETY: both are of this length.
    unsafe { simd::binary(Binary::Mul, to, to, b.as_ptr(), b.len()) };
}

/// Groups of neighbours that a result, or some results side by side, are made of, from an offset of theirs on.
struct ProductPlaces {
    /// Offset and neighbours of each.
    groups: Scratch<[usize; 2]>,
    /// Neighbours that belong to one result: groups are full but for each run's last one. Else 1, and neighbours are of
    /// neighbouring results.
    run: usize,
}

impl ProductPlaces {
    fn new(axes: &ReductionAxes) -> ProductPlaces {
        let run = axes.reduced_last().unwrap_or(1);
        let groups = run.div_ceil(SIDE);
        let at = |i: usize| {
            let first = i % groups * SIDE;
            [axes.reduced_offset(i / groups * run) + first, SIDE.min(run - first)]
        };
        ProductPlaces { groups: Scratch::each(axes.count(true) / run * groups, at), run }
    }
}

/// The gradients of all elements.
struct Others<'a, T> {
    x: &'a [T],
    gy: &'a [T],
    gx: SendPtr<T>,
    places: ProductPlaces,
    axes: &'a ReductionAxes,
    add: bool,
}

impl<T: SimdReal> Choose<T> for Others<'_, T> {
    fn with<L: Lanes<T>>(self) {
        let inner = self.axes.inner();
        let blocks = inner.div_ceil(SIDE);
        share(self.axes.count(false) / inner * blocks, self.x.len(), |task| {
            let (row, first) = (task / blocks, task % blocks * SIDE);
            let base = self.axes.row_offset(row) + first;
            let gy = &self.gy[row * inner + first..][..SIDE.min(inner - first)];
            // SAFETY: L is what the machine has; a task has the elements of its own results.
            unsafe { L::enter(ProductGroup { all: &self, base, gy }) };
        });
    }
}

/// The elements of one result, or of some side by side.
struct ProductGroup<'a, 'b, T> {
    all: &'a Others<'b, T>,
    base: usize,
    gy: &'a [T],
}

impl<T: SimdReal> ProductGroup<'_, '_, T> {
    /// Elements of a group of so many neighbours.
    #[inline(always)]
    fn width(&self, neighbours: usize) -> usize {
        if self.all.places.run == 1 { self.gy.len() } else { neighbours }
    }

    /// What each lane begins with: its result's gradient, times the products of the other lanes if they are one result's.
    #[inline(always)]
    fn begin(&self, lanes: &[T; SIDE]) -> [T; SIDE] {
        let mut from = [T::ONE; SIDE];
        if self.all.places.run == 1 {
            from[..self.gy.len()].copy_from_slice(self.gy);
            return from;
        }
        let (mut left, mut right) = (self.gy[0], T::ONE);
        for (f, &l) in from.iter_mut().zip(lanes) {
            *f = left;
            left = left * l;
        }
        for (f, &l) in from.iter_mut().zip(lanes).rev() {
            *f = *f * right;
            right = right * l;
        }
        from
    }
}

impl<T: SimdReal> WithLanes<T> for ProductGroup<'_, '_, T> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(self) {
        let Others { x, gx, places, add, .. } = self.all;
        let mut left = Scratch::<[T; SIDE]>::any(places.groups.len());
        // SAFETY: L's features are on.
        unsafe {
            let mut product = ProductLanes::<T, L>::load(&[]);
            for (left, &[at, n]) in left.iter_mut().zip(places.groups.iter()) {
                product.store(left);
                product = product.times(ProductLanes::load(&x[self.base + at..][..self.width(n)]));
            }
            let mut lanes = [T::ONE; SIDE];
            product.store(&mut lanes);
            let mut right = ProductLanes::<T, L>::load(&self.begin(&lanes));
            for (left, &[at, n]) in left.iter().zip(places.groups.iter()).rev() {
                let n = self.width(n);
                // SAFETY: inside the gradient; each result has elements of its own.
                let gx = gx.slice(self.base + at, n);
                let gradient = ProductLanes::load(left).times(right);
                let gradient = if *add { gradient.plus(ProductLanes::load(gx)) } else { gradient };
                gradient.store(gx);
                right = right.times(ProductLanes::load(&x[self.base + at..][..n]));
            }
        }
    }
}

/// Numbers side by side, in vectors.
struct ProductLanes<T: SimdReal, L: Lanes<T>>([L::V; SIDE / 4]);

impl<T: SimdReal, L: Lanes<T>> Clone for ProductLanes<T, L> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: SimdReal, L: Lanes<T>> Copy for ProductLanes<T, L> {}

/// # Safety (of all)
/// Inside `enter` of L.
impl<T: SimdReal, L: Lanes<T>> ProductLanes<T, L> {
    /// Some numbers, and 1 in the other lanes.
    #[inline(always)]
    unsafe fn load(x: &[T]) -> Self {
        let mut ones = [T::ONE; SIDE];
        let x = match x.first_chunk::<SIDE>() {
            Some(x) => x,
            None => {
                ones[..x.len()].copy_from_slice(x);
                &ones
            }
        };
        // SAFETY: a whole group; the caller's promise.
        unsafe {
            let mut v = [L::splat(T::ONE); SIDE / 4];
            for i in 0..SIDE / L::N {
                v[i] = L::load(x.as_ptr().add(i * L::N));
            }
            ProductLanes(v)
        }
    }

    /// Writes as many as there is room for.
    #[inline(always)]
    unsafe fn store(self, to: &mut [T]) {
        let mut all = [T::ONE; SIDE];
        let (to, rest) = match to.first_chunk_mut::<SIDE>() {
            Some(to) => (to, None),
            None => (&mut all, Some(to)),
        };
        for i in 0..SIDE / L::N {
            // SAFETY: a whole group; the caller's promise.
            unsafe { L::store(to.as_mut_ptr().add(i * L::N), self.0[i]) };
        }
        if let Some(rest) = rest {
            rest.copy_from_slice(&to[..rest.len()]);
        }
    }

    #[inline(always)]
    unsafe fn times(mut self, o: Self) -> Self {
        for i in 0..SIDE / L::N {
            // SAFETY: the caller's promise.
            self.0[i] = unsafe { L::fma(self.0[i], o.0[i], L::splat(T::ZERO)) };
        }
        self
    }

    #[inline(always)]
    unsafe fn plus(mut self, o: Self) -> Self {
        for i in 0..SIDE / L::N {
            // SAFETY: the caller's promise.
            self.0[i] = unsafe { L::fma(self.0[i], L::splat(T::ONE), o.0[i]) };
        }
        self
    }
}

#[cfg(feature = "emulate")]
mod tests;
