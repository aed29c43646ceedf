//! Many short rows, each with statistics of its own: turned, they are channels that lie apart, which vectors run across.

// Loops run over many arrays side by side.
#![allow(clippy::needless_range_loop)]

use super::{
    ChannelPair, Channels, InputGradient, LayerBackward, LayerRows, Moments, Scale, Sums, columns, wide_moments,
};
use crate::array::Output;
use crate::array::scratch::{self, list};
use crate::dtype::Real;
use crate::expr::op::Binary;
use crate::kernel::short_rows::{MOST, RowGroup, are_short, each_group};
use crate::pool::tasks::SendPtr;
use crate::simd::lanes::{Lanes, WithLanes, enter};
use crate::simd::{self, CacheLines, SimdReal};

impl Channels {
    /// Whether each channel is a short row.
    pub(super) fn are_short(&self) -> bool {
        self.outer == 1 && are_short(self.channels, self.inner)
    }

    /// As `normalize`; `after` changes a group's results while they are turned.
    pub(super) fn normalize_turned<T: Real>(
        &self,
        x: &[T],
        y: &mut [T],
        scale: Scale<T>,
        after: impl Fn(&RowGroup, &mut [T]) + Sync,
    ) -> Moments {
        let mut m = Moments { mean: list(self.channels, 0.0), variance: list(self.channels, 0.0) };
        let (y, mean, variance) =
            (SendPtr(y.as_mut_ptr()), SendPtr(m.mean.as_mut_ptr()), SendPtr(m.variance.as_mut_ptr()));
        each_group(self.channels, self.inner, |g| {
            let scale = Scale { gamma: of(&g, scale.gamma), beta: of(&g, scale.beta), ..scale };
            // SAFETY: each group has rows of its own.
            let (y, mean, variance) = unsafe {
                (y.slice(g.range().start, g.size()), mean.slice(g.first, g.rows), variance.slice(g.first, g.rows))
            };
            g.through(&x[g.range()], y, Output::Write, |x, y| {
                // SAFETY: the slices are as long as the job says.
                unsafe { enter(TurnedForward { x, y: &mut *y, scale, mean, variance }) };
                after(&g, y);
            });
        });
        m
    }

    /// As `backward`; `before` sees a group's gy and x turned, and may change gy.
    pub(super) fn backward_turned<T: Real>(
        &self,
        b: InputGradient<T>,
        gx: Option<(&mut [T], Output)>,
        before: impl Fn(&RowGroup, &mut [T], &[T]) + Sync,
    ) -> Sums {
        let mut sums = Sums { gy: list(self.channels, 0.0), product: list(self.channels, 0.0) };
        let (sum, product) = (SendPtr(sums.gy.as_mut_ptr()), SendPtr(sums.product.as_mut_ptr()));
        let gx = gx.map(|(gx, output)| (SendPtr(gx.as_mut_ptr()), output));
        each_group(self.channels, self.inner, |g| {
            // SAFETY: each group has rows of its own.
            let (mut gx, sum, product) = unsafe {
                let gx = gx.map(|(gx, output)| (gx.slice(g.range().start, g.size()), output));
                (gx, sum.slice(g.first, g.rows), product.slice(g.first, g.rows))
            };
            scratch::with(if b.x.is_some() { 2 } else { 1 } * g.size(), |room| {
                let (gy, x) = room.split_at_mut(g.size());
                match (b.gy, &gx) {
                    (Some(all), _) => g.turn(&all[g.range()], gy),
                    (None, Some((place, _))) => g.turn(place, gy),
                    (None, None) => panic!("there is no gradient of y"),
                }
                if let Some(all) = b.x {
                    g.turn(&all[g.range()], x);
                }
                before(&g, gy, x);
                let turned = InputGradient {
                    gy: None,
                    x: b.x.map(|_| &*x),
                    mean: &b.mean[g.numbers()],
                    inverse: &b.inverse[g.numbers()],
                    gamma: of(&g, b.gamma),
                    gmean: of(&g, b.gmean),
                    gvariance: of(&g, b.gvariance),
                    own: b.own,
                };
                let is_wanted = gx.is_some();
                // SAFETY: the slices are as long as the job says.
                unsafe { enter(TurnedBackward { b: turned, gy: &mut *gy, is_wanted, sum, product }) };
                if let Some((gx, output)) = &mut gx {
                    g.turn_back(gy, gx, *output);
                }
            });
        });
        sums
    }
}

/// A group's part of what each row has one of.
fn of<'a, T>(g: &RowGroup, all: Option<&'a [T]>) -> Option<&'a [T]> {
    all.map(|all| &all[g.numbers()])
}

/// Numbers of which each row has one, or the same ones where there are none; `R` is room for them.
#[inline(always)]
fn numbers<T: Real, const R: usize>(of_rows: Option<&[T]>, otherwise: T) -> [T; R] {
    let mut all = [otherwise; R];
    if let Some(of_rows) = of_rows {
        all[..of_rows.len()].copy_from_slice(of_rows);
    }
    all
}

/// A group of rows, turned, forward. Loops are functions of slices, so that they become vectors inside `enter`.
struct TurnedForward<'a, T> {
    x: &'a [T],
    y: &'a mut [T],
    scale: Scale<'a, T>,
    /// Results, of which each row has one.
    mean: &'a mut [f64],
    variance: &'a mut [f64],
}

impl<T: Real> WithLanes<T> for TurnedForward<'_, T> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(self) {
        let TurnedForward { x, y, scale, mean, variance } = self;
        let rows = mean.len();
        let n = (x.len() / rows) as f64;
        let mut room = CacheLines([[T::ZERO; MOST]; 5]);
        let [minus, rest, squares, times, plus] = room.0.each_mut().map(|each| &mut each[..rows]);
        for x in x.chunks_exact(rows) {
            columns::add(minus, x);
        }
        columns::scale(minus, T::from_f64(1.0 / n));
        for x in x.chunks_exact(rows) {
            columns::deviate(minus, x, rest, squares);
        }
        if !moments(n, minus, rest, squares, mean, variance) {
            widen(x, mean, variance);
        }
        forward_factors(scale, mean, variance, minus, times, plus);
        for (x, y) in x.chunks_exact(rows).zip(y.chunks_exact_mut(rows)) {
            apply(x, minus, times, plus, y);
        }
    }
}

/// Mean and variance from rounded means and what is left; whether all are finite.
#[inline(always)]
fn moments<T: Real>(n: f64, minus: &[T], rest: &[T], squares: &[T], mean: &mut [f64], variance: &mut [f64]) -> bool {
    let rows = mean.len();
    let (minus, rest, squares, variance) = (&minus[..rows], &rest[..rows], &squares[..rows], &mut variance[..rows]);
    let mut is_finite = true;
    for r in 0..rows {
        let rest = rest[r].to_f64() / n;
        mean[r] = minus[r].to_f64() + rest;
        variance[r] = squares[r].to_f64() / n - rest * rest;
        is_finite &= variance[r].abs() < f64::INFINITY;
    }
    is_finite
}

/// `y = (x - minus) * times + plus` normalizes and scales.
#[inline(always)]
fn forward_factors<T: Real>(
    scale: Scale<T>,
    mean: &[f64],
    variance: &[f64],
    minus: &mut [T],
    times: &mut [T],
    plus: &mut [T],
) {
    let rows = mean.len();
    let all: [[T; MOST]; 2] = [numbers(scale.gamma, T::ONE), numbers(scale.beta, T::ZERO)];
    let [gamma, beta] = all.each_ref().map(|each| &each[..rows]);
    let (variance, minus, times, plus) = (&variance[..rows], &mut minus[..rows], &mut times[..rows], &mut plus[..rows]);
    for r in 0..rows {
        let by = gamma[r].to_f64() / (variance[r] + scale.eps).sqrt();
        minus[r] = T::from_f64(mean[r]);
        times[r] = T::from_f64(by);
        // What rounding takes from the mean is added in the end.
        plus[r] = T::from_f64(beta[r].to_f64() - (mean[r] - minus[r].to_f64()) * by);
    }
}

#[inline(always)]
fn apply<T: Real>(x: &[T], minus: &[T], times: &[T], plus: &[T], y: &mut [T]) {
    let n = y.len();
    let (x, minus, times, plus) = (&x[..n], &minus[..n], &times[..n], &plus[..n]);
    for r in 0..n {
        y[r] = (x[r] - minus[r]) * times[r] + plus[r];
    }
}

/// Moments of turned rows whose squares were too large for their type.
#[cold]
#[inline(never)]
fn widen<T: Real>(x: &[T], mean: &mut [f64], variance: &mut [f64]) {
    let (rows, n) = (mean.len(), (x.len() / mean.len()) as f64);
    for (r, (mean, variance)) in mean.iter_mut().zip(variance).enumerate().filter(|(_, m)| !m.1.is_finite()) {
        let [found, squares]: ChannelPair = wide_moments(x.iter().skip(r).step_by(rows).copied());
        (*mean, *variance) = (found, squares / n);
    }
}

/// A group of rows, turned, backward: the gradient takes the place of gy, if it is wanted.
struct TurnedBackward<'a, T> {
    /// Without its gy.
    b: InputGradient<'a, T>,
    gy: &'a mut [T],
    is_wanted: bool,
    /// Results: see `Sums`.
    sum: &'a mut [f64],
    product: &'a mut [f64],
}

impl<T: Real> WithLanes<T> for TurnedBackward<'_, T> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(self) {
        let TurnedBackward { b, gy, is_wanted, sum, product } = self;
        let rows = sum.len();
        let n = (gy.len() / rows) as f64;
        let mut room = CacheLines([[T::ZERO; MOST]; 6]);
        let [minus, sums, products, times, by_x, plus] = room.0.each_mut().map(|each| &mut each[..rows]);
        minus.iter_mut().zip(b.mean).for_each(|(minus, &mean)| *minus = T::from_f64(mean));
        match b.x {
            Some(x) => {
                for (gy, x) in gy.chunks_exact(rows).zip(x.chunks_exact(rows)) {
                    columns::multiply(gy, x, minus, sums, products);
                }
            }
            None => {
                for gy in gy.chunks_exact(rows) {
                    columns::add(sums, gy);
                }
            }
        }
        exact_sums(sums, products, minus, b.mean, sum, product);
        if !is_wanted {
            return;
        }
        backward_factors::<T, MOST>(n, &b, minus, [sum, product], times, by_x, plus);
        match b.x.filter(|_| b.own) {
            Some(x) => {
                for (gy, x) in gy.chunks_exact_mut(rows).zip(x.chunks_exact(rows)) {
                    slope(x, minus, times, by_x, plus, gy);
                }
            }
            None => {
                for gy in gy.chunks_exact_mut(rows) {
                    stretch(times, plus, gy);
                }
            }
        }
    }
}

/// The sums, with what the rounding of the mean has left out.
#[inline(always)]
fn exact_sums<T: Real>(sums: &[T], products: &[T], minus: &[T], mean: &[f64], sum: &mut [f64], product: &mut [f64]) {
    let rows = sum.len();
    let (sums, products, minus) = (&sums[..rows], &products[..rows], &minus[..rows]);
    let (mean, product) = (&mean[..rows], &mut product[..rows]);
    for r in 0..rows {
        sum[r] = sums[r].to_f64();
        product[r] = products[r].to_f64() - (mean[r] - minus[r].to_f64()) * sum[r];
    }
}

/// The gradient is `gy * times + ((x - minus) * by_x + plus)`: see `InputGradient::by_slopes`.
#[inline(always)]
pub(super) fn backward_factors<T: Real, const R: usize>(
    n: f64,
    b: &InputGradient<T>,
    minus: &[T],
    [sum, product]: [&[f64]; 2],
    times: &mut [T],
    by_x: &mut [T],
    plus: &mut [T],
) {
    let rows = minus.len();
    let all: [[T; R]; 3] = [numbers(b.gamma, T::ONE), numbers(b.gmean, T::ZERO), numbers(b.gvariance, T::ZERO)];
    let [gamma, gmean, gvariance] = all.each_ref().map(|each| &each[..rows]);
    let (mean, inverse, sum, product) = (&b.mean[..rows], &b.inverse[..rows], &sum[..rows], &product[..rows]);
    let (times, by_x, plus) = (&mut times[..rows], &mut by_x[..rows], &mut plus[..rows]);
    if !b.own {
        for r in 0..rows {
            times[r] = T::from_f64(gamma[r].to_f64() * inverse[r]);
        }
        return;
    }
    let each = 1.0 / n;
    for r in 0..rows {
        let all = gamma[r].to_f64() * inverse[r];
        let slope = (2.0 * gvariance[r].to_f64() - all * inverse[r] * inverse[r] * product[r]) * each;
        let rest = mean[r] - minus[r].to_f64();
        times[r] = T::from_f64(all);
        by_x[r] = T::from_f64(slope);
        plus[r] = T::from_f64((gmean[r].to_f64() - all * sum[r]) * each - slope * rest);
    }
}

#[inline(always)]
fn slope<T: Real>(x: &[T], minus: &[T], times: &[T], by_x: &[T], plus: &[T], gy: &mut [T]) {
    let n = gy.len();
    let (x, minus, times, by_x, plus) = (&x[..n], &minus[..n], &times[..n], &by_x[..n], &plus[..n]);
    for r in 0..n {
        gy[r] = gy[r] * times[r] + ((x[r] - minus[r]) * by_x[r] + plus[r]);
    }
}

#[inline(always)]
fn stretch<T: Real>(times: &[T], plus: &[T], gy: &mut [T]) {
    let n = gy.len();
    let (times, plus) = (&times[..n], &plus[..n]);
    for r in 0..n {
        gy[r] = gy[r] * times[r] + plus[r];
    }
}

impl LayerRows {
    pub(super) fn are_short(&self) -> bool {
        are_short(self.rows, self.width)
    }

    /// Each row as a channel.
    fn channels(&self) -> Channels {
        Channels { outer: 1, channels: self.rows, inner: self.width }
    }

    /// As `normalize`.
    pub(super) fn normalize_turned<T: SimdReal>(
        &self,
        x: &[T],
        y: &mut [T],
        gamma: Option<&[T]>,
        beta: Option<&[T]>,
        eps: f64,
    ) -> Moments {
        self.channels().normalize_turned(x, y, Scale { gamma: None, beta: None, eps }, |g, normal| {
            for (k, y) in normal.chunks_exact_mut(g.rows).enumerate() {
                gamma.into_iter().for_each(|gamma| simd::scale(y, gamma[k]));
                beta.into_iter().for_each(|beta| simd::add_scalar(y, beta[k]));
            }
        })
    }

    /// The gradient of x; `beta` and `gamma` get those sums of each group.
    pub(super) fn backward_turned<T: SimdReal>(
        &self,
        b: LayerBackward<T>,
        gx: Option<(&mut [T], Output)>,
        beta: Option<&mut [T]>,
        gamma: Option<&mut [T]>,
    ) {
        let place = |sums: Option<&mut [T]>| sums.map(|sums| SendPtr(sums.as_mut_ptr()));
        let (beta, gamma) = (place(beta), place(gamma));
        let LayerBackward { mean, inverse, gmean, gvariance, .. } = b;
        let by_x =
            InputGradient { gy: Some(b.gy), x: Some(b.x), mean, inverse, gamma: None, gmean, gvariance, own: true };
        self.channels().backward_turned(by_x, gx, |g, gy, x| {
            // SAFETY: each group has sums of its own.
            let sums =
                |all: Option<SendPtr<T>>| all.map(|all| unsafe { all.slice(g.number() * self.width, self.width) });
            if let Some(beta) = sums(beta) {
                beta.iter_mut().zip(gy.chunks_exact(g.rows)).for_each(|(beta, gy)| *beta = simd::sum(gy));
            }
            if let Some(gamma) = sums(gamma) {
                normal_products(&b, g, gy, x, gamma);
            }
            if let Some(gamma) = b.gamma {
                gy.chunks_exact_mut(g.rows).zip(gamma).for_each(|(gy, &gamma)| simd::scale(gy, gamma));
            }
        });
    }
}

/// For each element of a row: the sum of gy times the normalized numbers.
fn normal_products<T: SimdReal>(b: &LayerBackward<T>, g: &RowGroup, gy: &[T], x: &[T], sums: &mut [T]) {
    scratch::with(4 * g.rows, |room| {
        let (normal, by) = room.split_at_mut(g.rows);
        for (i, row) in g.numbers().enumerate() {
            [by[i], by[g.rows + i], by[2 * g.rows + i]] = b.row(row);
        }
        for ((x, gy), sum) in x.chunks_exact(g.rows).zip(gy.chunks_exact(g.rows)).zip(sums) {
            normal.copy_from_slice(x);
            let steps = [Binary::Sub, Binary::Mul, Binary::Add].into_iter().zip(by.chunks_exact(g.rows));
            for (op, by) in steps {
                let to = normal.as_mut_ptr();
                // SAFETY: both have a number for each row.
                unsafe { simd::binary(op, to, to, by.as_ptr(), g.rows) };
            }
            *sum = simd::dot(gy, normal);
        }
    });
}
