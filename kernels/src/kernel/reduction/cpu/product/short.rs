//! Products of short rows, and their gradients: the rows are turned, and multiplied side by side.

use super::multiply_by;
use crate::array::{Output, scratch};
use crate::expr::op::Binary;
use crate::kernel::short_rows::RowGroup;
use crate::simd::{self, SimdReal};

/// The products of short rows, side by side, in the order of [`Product`](super::Product).
pub(super) fn products<T: SimdReal>(g: &RowGroup, x: &[T], y: &mut [T]) {
    scratch::with(g.size(), |columns| {
        g.turn(x, columns);
        let mut n = g.width;
        while n > 1 {
            let half = n.next_power_of_two() / 2;
            let (to, from) = columns.split_at_mut(half * g.rows);
            let rest = (n - half) * g.rows;
            multiply_by(&mut to[..rest], &from[..rest]);
            n = half;
        }
        y.copy_from_slice(&columns[..g.rows]);
    });
}

/// The gradients of short rows, side by side.
pub(super) fn gradients<T: SimdReal>(g: &RowGroup, x: &[T], gy: &[T], gx: &mut [T], output: Output) {
    scratch::with(2 * g.size() + g.rows, |room| {
        let (columns, rest) = room.split_at_mut(g.size());
        let (products, right) = rest.split_at_mut(g.size());
        g.turn(x, columns);
        let (last, n) = (g.size() - g.rows, g.rows);
        // Those of the elements before, from the second on; then times the gradient and the elements behind.
        products[n..(2 * n).min(last + n)].copy_from_slice(&columns[..n.min(last)]);
        for at in (2 * n..=last).step_by(n) {
            let (before, own) = products.split_at_mut(at);
            multiply(own, &before[at - n..], &columns[at - n..at]);
        }
        right.copy_from_slice(gy);
        for at in (n..=last).rev().step_by(n) {
            multiply_by(&mut products[at..at + n], right);
            multiply_by(right, &columns[at..at + n]);
        }
        products[..n].copy_from_slice(right);
        g.turn_back(products, gx, output);
    });
}

/// `y = a * b`, of the length of b.
fn multiply<T: SimdReal>(y: &mut [T], a: &[T], b: &[T]) {
    assert!(y.len() >= b.len() && a.len() >= b.len(), "sizes do not fit");
    // SAFETY: so many numbers are there.
    unsafe { simd::binary(Binary::Mul, y.as_mut_ptr(), a.as_ptr(), b.as_ptr(), b.len()) };
}
