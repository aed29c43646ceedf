//! A patch, made of random numbers.

use super::Erasure;

/// Rows and columns of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Patch {
    pub rows: [usize; 2],
    pub columns: [usize; 2],
}

impl Patch {
    pub(super) fn new(e: &Erasure, u: &[f64]) -> Patch {
        if u[0] >= e.prob {
            return Patch { rows: [0; 2], columns: [0; 2] };
        }
        let between = |[low, high]: [f64; 2], u: f64| low + u * (high - low);
        let area = between(e.area, u[1]) * (e.size[0] as f64 * e.size[1] as f64);
        let aspect = between(e.aspect, u[2]);
        let [h, w] = e.size;
        Patch { rows: side((area * aspect).sqrt(), h, u[3]), columns: side((area / aspect).sqrt(), w, u[4]) }
    }
}

/// From where to where a side of this length lies among `n` places; it begins in one place and ends in another, so it has one
/// more than its length says, as in NNabla.
fn side(length: f64, n: usize, u: f64) -> [usize; 2] {
    let length = (length as usize).min(n); // NaN is 0
    let choices = n - length + 1;
    let first = ((u * choices as f64) as usize).min(choices - 1);
    [first, (first + length + 1).min(n)]
}

#[cfg(feature = "emulate")]
mod tests {
    use super::side;

    unit_test!(sides_lie_within);
    fn sides_lie_within() {
        assert_eq!(side(6.3, 20, 0.0), [0, 7]);
        assert_eq!(side(6.3, 20, 0.999), [14, 20]);
        assert_eq!(side(99.0, 20, 0.999), [0, 20]);
        assert_eq!(side(f64::NAN, 20, 0.5), [10, 11]);
        assert_eq!(side(f64::INFINITY, 3, 0.5), [0, 3]);
    }
}
