//! Lines of a few numbers in order.

use super::cpu::Keyed;

/// Numbers of a line that are sorted by counting, for each, those before it: that takes no branch that is hard to foretell.
pub(super) const FEW: usize = 8;

/// The entries of a short line, in order.
#[inline(always)]
pub(super) fn in_order<T: Keyed>(n: usize, entry: impl Fn(usize) -> T::Entry, to: &mut [T::Entry; FEW]) -> &[T::Entry] {
    match n {
        2 => by_counts::<T, 2>(entry, to),
        3 => by_counts::<T, 3>(entry, to),
        4 => by_counts::<T, 4>(entry, to),
        5 => by_counts::<T, 5>(entry, to),
        6 => by_counts::<T, 6>(entry, to),
        7 => by_counts::<T, 7>(entry, to),
        8 => by_counts::<T, 8>(entry, to),
        _ => (0..n).for_each(|i| to[i] = entry(i)), // one or none
    }
    &to[..n]
}

#[inline(always)]
fn by_counts<T: Keyed, const N: usize>(entry: impl Fn(usize) -> T::Entry, to: &mut [T::Entry; FEW]) {
    let (entries, mut before): ([T::Entry; N], _) = (std::array::from_fn(entry), [0; N]);
    for i in 0..N {
        for j in 0..i {
            // No two are equal: they have their places.
            let first = entries[j] < entries[i];
            before[i] += first as usize;
            before[j] += !first as usize;
        }
    }
    for i in 0..N {
        to[before[i] % FEW] = entries[i];
    }
}

#[cfg(feature = "emulate")]
mod tests {
    use super::super::Order;
    use super::*;

    unit_test!(short_lines_are_in_order);
    /// Ties keep their order, NaN comes last.
    fn short_lines_are_in_order() {
        let order = Order { reverse: false, magnitudes: false };
        let numbers = [2.0, f64::NAN, -1.0, 2.0, 0.0, -0.0, -1.0, f64::INFINITY, f64::NEG_INFINITY, 2.0, f64::NAN];
        for n in 0..=FEW {
            for x in numbers.windows(n.max(1)) {
                let mut to = [f64::joined(u64::MAX, 0); FEW];
                let got = in_order::<f64>(n, |i| x[i].entry(order, i as u32), &mut to);
                let mut want: Vec<usize> = (0..n).collect();
                want.sort_by(|&a, &b| x[a].partial_cmp(&x[b]).unwrap_or_else(|| x[a].is_nan().cmp(&x[b].is_nan())));
                assert_eq!(got.iter().map(|e| f64::place(*e)).collect::<Vec<_>>(), want, "{x:?}");
            }
        }
    }
}
