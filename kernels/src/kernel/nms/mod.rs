//! Boxes that overlap better ones suppressed: non-maximum suppression.

mod cuda;
mod detection;
mod select;

pub use detection::NmsDetection2d;
pub use select::OnnxNms;

/// A box: least and largest x and y.
#[derive(Clone, Copy)]
struct Rectangle {
    low: [f64; 2],
    high: [f64; 2],
}

impl Rectangle {
    fn around(center: [f64; 2], size: [f64; 2]) -> Rectangle {
        let [low, high] = [-0.5, 0.5].map(|half| [0, 1].map(|axis| center[axis] + half * size[axis]));
        Rectangle { low, high }
    }

    fn area(&self) -> f64 {
        (self.high[0] - self.low[0]) * (self.high[1] - self.low[1])
    }

    /// The area of both together over that of either; NaN for boxes without one.
    fn overlap(&self, o: &Rectangle) -> f64 {
        let side = |axis: usize| (self.high[axis].min(o.high[axis]) - self.low[axis].max(o.low[axis])).max(0.0);
        let common = side(0) * side(1);
        common / (self.area() + o.area() - common)
    }
}

/// The numbers of `n` boxes, from the highest score on; equal ones in their order, NaN last.
fn by_score(n: usize, score: impl Fn(usize) -> f64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    let rank = |i: usize| if score(i).is_nan() { f64::NEG_INFINITY } else { score(i) };
    order.sort_by(|&a, &b| rank(b).total_cmp(&rank(a)));
    order
}

#[cfg(feature = "emulate")]
mod tests {
    use super::*;

    unit_test!(overlaps);
    fn overlaps() {
        let unit = Rectangle::around([0.5, 0.5], [1.0, 1.0]);
        let half = Rectangle::around([0.25, 0.5], [0.5, 1.0]);
        assert_eq!((unit.overlap(&half), unit.overlap(&unit)), (0.5, 1.0));
        assert_eq!(unit.overlap(&Rectangle::around([5.0, 5.0], [1.0, 1.0])), 0.0);
        assert!(Rectangle::around([0.0; 2], [0.0; 2]).overlap(&Rectangle::around([0.0; 2], [0.0; 2])).is_nan());
        assert_eq!(by_score(5, |i| [1.0, f64::NAN, 3.0, 1.0, -2.0][i]), [2, 0, 3, 4, 1]);
    }
}
