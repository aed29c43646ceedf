//! Numbers of other distributions, by rejection: gamma, beta, binomial. Element i draws as many words as it takes, from counters of its
//! own, so the numbers are the same however the work is split. All is computed in double. `cuda/random_shaped.cu` does the same.

use super::{Draw, block};
use crate::pool::tasks::parts;
use crate::simd::SimdReal;
use std::f64::consts::TAU;

/// Elements of a task.
const TASK: usize = 4096;

/// A distribution.
#[derive(Clone, Copy, Debug)]
pub enum Distribution {
    /// With shape k, times a scale.
    Gamma {
        k: f64,
        theta: f64,
    },
    Beta {
        alpha: f64,
        beta: f64,
    },
    /// How many of n trials succeed.
    Binomial {
        n: f64,
        p: f64,
    },
}

/// Fills `y`.
pub fn shaped<T: SimdReal>(d: Draw, y: &mut [T], distribution: Distribution) {
    let start = distribution.start();
    parts(y, TASK, |task, y| {
        for (i, y) in y.iter_mut().enumerate() {
            let words = ElementWords::new(d, (task * TASK + i) as u64);
            *y = T::from_f64(distribution.sample(start, words));
        }
    });
}

/// The words of one element: blocks whose counters have the element in the lower 40 bits and count in the others.
struct ElementWords {
    d: Draw,
    element: u64,
    turn: u32,
}

impl ElementWords {
    fn new(d: Draw, element: u64) -> ElementWords {
        ElementWords { d, element, turn: 0 }
    }

    fn block(&mut self) -> [u32; 4] {
        let (d, e) = (self.d, self.element);
        let counter = [e as u32, (e >> 32) as u32 & 0xff | self.turn << 8, d.number as u32, (d.number >> 32) as u32];
        self.turn += 1;
        block([d.key as u32, (d.key >> 32) as u32], counter)
    }

    /// Two numbers above 0 and at most 1.
    fn pair(&mut self) -> [f64; 2] {
        let w = self.block();
        [0, 2].map(|k| ((((w[k] as u64) << 32 | w[k + 1] as u64) >> 11) as f64 + 1.0) * (1.0 / (1u64 << 53) as f64))
    }

    /// A gamma number with shape k (Marsaglia and Tsang, "A simple method for generating gamma variables", 2000): a number, and the
    /// logarithm of what it is to be multiplied by, which is not 0 for a shape below 1, made of one above (their section 6): the
    /// product may vanish.
    fn gamma(&mut self, k: f64) -> [f64; 2] {
        let d = if k < 1.0 { k + 1.0 } else { k } - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let [u, turn, accept, less] = self.block().map(|w| (w as f64 + 1.0) * (1.0 / (1u64 << 32) as f64));
            let z = (-2.0 * u.ln()).sqrt() * (TAU * turn).cos();
            let root = 1.0 + c * z;
            if root <= 0.0 {
                continue;
            }
            let (v, square) = (root * root * root, z * z);
            let surely = accept < 1.0 - 0.0331 * square * square;
            if surely || accept.ln() < 0.5 * square + d - d * v + d * v.ln() {
                return [d * v, if k < 1.0 { less.ln() / k } else { 0.0 }];
            }
        }
    }

    /// Through the probabilities of 0, of 1 and so on, from `start` on, for `n p` below 10. So many as are left out do not occur.
    fn by_search(&mut self, n: f64, p: f64, start: f64) -> f64 {
        let (ratio, most) = (p / (1.0 - p), n.min(110.0));
        loop {
            for mut u in self.pair() {
                let (mut part, mut k) = (start, 0.0);
                while u > part && k < most {
                    u -= part;
                    k += 1.0;
                    part *= (n + 1.0 - k) / k * ratio;
                }
                if u <= part {
                    return k;
                }
            }
        }
    }

    /// Transformed rejection (Hörmann, "The generation of binomial random variates", 1993, BTRS), for `n p` of 10 and more.
    fn by_rejection(&mut self, n: f64, p: f64) -> f64 {
        let spread = (n * p * (1.0 - p)).sqrt();
        let b = 1.15 + 2.53 * spread;
        let a = -0.0873 + 0.0248 * b + 0.01 * p;
        let (c, inside) = (n * p + 0.5, 0.92 - 4.2 / b);
        let (alpha, ratio, mode) = ((2.83 + 5.1 / b) * spread, p / (1.0 - p), ((n + 1.0) * p).floor());
        loop {
            let [u, v] = self.pair();
            let u = u - 0.5;
            let near = 0.5 - u.abs();
            let k = ((2.0 * a / near + b) * u + c).floor();
            if near >= 0.07 && v <= inside {
                return k;
            }
            if !(0.0..=n).contains(&k) {
                continue;
            }
            let bound = (mode + 0.5) * ((mode + 1.0) / (ratio * (n - mode + 1.0))).ln()
                + (n + 1.0) * ((n - mode + 1.0) / (n - k + 1.0)).ln()
                + (k + 0.5) * (ratio * (n - k + 1.0) / (k + 1.0)).ln()
                + (stirling(mode) + stirling(n - mode) - stirling(k) - stirling(n - k));
            if (v * alpha / (a / (near * near) + b)).ln() <= bound {
                return k;
            }
        }
    }
}

/// What Stirling's formula for `ln k!` leaves out.
fn stirling(k: f64) -> f64 {
    const FIRST: [f64; 10] = [
        0.08106146679532726,
        0.04134069595540929,
        0.02767792568499834,
        0.02079067210376509,
        0.01664469118982119,
        0.01387612882307075,
        0.01189670994589177,
        0.01041126526197209,
        0.009255462182712733,
        0.00833056343336287,
    ];
    if k < 10.0 {
        return FIRST[k as usize];
    }
    let k = k + 1.0;
    (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / 1260.0 / (k * k)) / (k * k)) / k
}

impl Distribution {
    /// What all elements begin with: of few successes, the probability of none.
    fn start(self) -> f64 {
        match self {
            Distribution::Binomial { n, p } => (n * (-p.min(1.0 - p)).ln_1p()).exp(),
            _ => 0.0,
        }
    }

    fn sample(self, start: f64, mut words: ElementWords) -> f64 {
        match self {
            Distribution::Gamma { k, theta } => {
                let [x, log] = words.gamma(k);
                theta * if k < 1.0 { x * log.exp() } else { x }
            }
            Distribution::Beta { alpha, beta } => {
                let ([x, log_x], [y, log_y]) = (words.gamma(alpha), words.gamma(beta));
                1.0 / (1.0 + y / x * (log_y - log_x).exp())
            }
            Distribution::Binomial { n, p } => {
                let less = p.min(1.0 - p);
                let few = n * less < 10.0;
                let count = if few { words.by_search(n, less, start) } else { words.by_rejection(n, less) };
                if p > 0.5 { n - count } else { count }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(distribution: Distribution, n: usize) -> Vec<f64> {
        let mut y = vec![0.0; n];
        shaped(Draw { key: 7, number: 3 }, &mut y, distribution);
        y
    }

    fn check(distribution: Distribution, mean: f64, variance: f64) {
        let n = 40_000;
        let y = made(distribution, n);
        let found = y.iter().sum::<f64>() / n as f64;
        let spread = y.iter().map(|v| (v - found) * (v - found)).sum::<f64>() / n as f64;
        assert!((found - mean).abs() < 5.0 * (variance / n as f64).sqrt(), "{distribution:?}: mean {found}");
        assert!((spread / variance - 1.0).abs() < 0.1, "{distribution:?}: variance {spread}");
    }

    #[test]
    fn moments() {
        for (k, theta) in [(0.1, 1.0), (0.5, 2.0), (1.0, 1.0), (7.5, 0.5), (1e6, 1.0)] {
            check(Distribution::Gamma { k, theta }, k * theta, k * theta * theta);
        }
        for (a, b) in [(0.5, 0.5), (2.0, 5.0), (1e-3, 1e-3), (300.0, 2.0)] {
            let s: f64 = a + b;
            check(Distribution::Beta { alpha: a, beta: b }, a / s, a * b / (s * s * (s + 1.0)));
        }
        for (n, p) in [(1.0, 0.3), (10.0, 0.9), (100.0, 0.05), (100.0, 0.5), (1000.0, 0.98), (1e9, 0.4), (1e12, 1e-12)]
        {
            check(Distribution::Binomial { n, p }, n * p, n * p * (1.0 - p));
        }
    }

    #[test]
    fn a_part_does_not_depend_on_the_length() {
        let gamma = Distribution::Gamma { k: 2.0, theta: 1.0 };
        assert_eq!(made(gamma, 10_000)[..100], made(gamma, 100));
    }

    #[test]
    fn stirling_corrects_factorials() {
        let mut log_factorial = 0.0;
        for k in 0..30 {
            let k = k as f64;
            log_factorial += if k > 0.0 { k.ln() } else { 0.0 };
            let rough = (k + 0.5) * (k + 1.0).ln() - (k + 1.0) + 0.5 * TAU.ln();
            assert!((log_factorial - rough - stirling(k)).abs() < 1e-6, "{k}");
        }
    }
}
