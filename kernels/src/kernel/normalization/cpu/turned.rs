//! Many short rows, each with statistics of its own: turned, they are channels that lie apart, which vectors run across.

use super::{Channels, InputGradient, LayerBackward, LayerRows, Moments, Scale, Sums};
use crate::array::Output;
use crate::array::scratch::{self, list};
use crate::dtype::Real;
use crate::expr::op::Binary;
use crate::kernel::short_rows::{RowGroup, are_short, each_group};
use crate::pool::tasks::SendPtr;
use crate::simd::{self, SimdReal};

impl Channels {
    /// Whether each channel is a short row.
    pub(super) fn are_short(&self) -> bool {
        self.outer == 1 && self.inner > 1 && are_short(self.channels, self.inner)
    }

    /// The rows of a group when they are turned.
    fn turned(g: &RowGroup) -> Channels {
        Channels { outer: g.width, channels: g.rows, inner: 1 }
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
                let found = Channels::turned(&g).normalize(x, y, scale);
                mean.copy_from_slice(&found.mean);
                variance.copy_from_slice(&found.variance);
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
            let mut gx = gx.map(|(gx, output)| (unsafe { gx.slice(g.range().start, g.size()) }, output));
            scratch::with(3 * g.size(), |room| {
                let (gy, rest) = room.split_at_mut(g.size());
                let (x, slope) = rest.split_at_mut(g.size());
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
                    gy: Some(&*gy),
                    x: b.x.map(|_| &*x),
                    mean: &b.mean[g.numbers()],
                    inverse: &b.inverse[g.numbers()],
                    gamma: of(&g, b.gamma),
                    gmean: of(&g, b.gmean),
                    gvariance: of(&g, b.gvariance),
                    own: b.own,
                };
                let found = Channels::turned(&g).backward(turned, gx.is_some().then_some((&mut *slope, Output::Write)));
                // SAFETY: as above.
                unsafe {
                    sum.slice(g.first, g.rows).copy_from_slice(&found.gy);
                    product.slice(g.first, g.rows).copy_from_slice(&found.product);
                }
                if let Some((gx, output)) = &mut gx {
                    g.turn_back(slope, gx, *output);
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
            (by[i], by[g.rows + i], by[2 * g.rows + i]) = b.row(row);
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
