//! Numbers of other distributions, by rejection: gamma, beta, binomial. Element i draws as many words as it takes, from counters of its
//! own, so the numbers are the same however the work is split. All is computed in double. `cuda/random_shaped.cu` does the same.

use super::numbers::map;
use super::{BLOCKS, Draw, GROUP, block};
use crate::expr::op::Unary;
use crate::pool::tasks::{Shared, parts};
use crate::simd::{self, Body, SimdReal, Vector};
use std::f64::consts::TAU;

/// Elements of a task.
const TASK: usize = 4096;
/// Turns of neighbours whose blocks are made together: nearly all elements take so many.
const TURNS: usize = 2;

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
    let sampler = distribution.sampler();
    parts(y, TASK, |task, y| {
        let mut made = [PairTurn { words: [0; GROUP], normal: [0.0; BLOCKS] }; TURNS];
        let made = &mut made[..sampler.turns()];
        for (k, y) in y.chunks_mut(BLOCKS).enumerate() {
            let first = (task * TASK + k * BLOCKS) as u64;
            for (t, made) in made.iter_mut().enumerate() {
                made.words = d.group(group(first, t as u32));
                if sampler.is_normal() {
                    made.find_normal();
                }
            }
            for (i, y) in y.iter_mut().enumerate() {
                let words = ElementWords { d, element: first + i as u64, turn: 0, made };
                *y = T::from_f64(sampler.sample(words));
            }
        }
    });
}

/// A turn of neighbours: the words of their blocks, and a normal number of the first two of each.
#[derive(Clone, Copy)]
struct PairTurn {
    words: [u32; GROUP],
    normal: [f64; BLOCKS],
}

impl PairTurn {
    fn find_normal(&mut self) {
        let (words, mut radius, mut turns) = (&self.words, [0.0; BLOCKS], [0.0; BLOCKS]);
        for i in 0..BLOCKS {
            radius[i] = part(words[i]);
            turns[i] = part(words[BLOCKS + i]);
        }
        map(Unary::Log, &mut radius);
        radius.iter_mut().for_each(|r| *r *= -2.0);
        map(Unary::Sqrt, &mut radius);
        // SAFETY: the numbers are this function's own.
        unsafe { simd::run::<f64>(&Cosines(Shared(turns.as_mut_ptr()))) };
        self.normal = std::array::from_fn(|i| radius[i] * turns[i]);
    }
}

/// The cosines of parts of a turn, in their place: a loop that the compiler makes vectors of.
struct Cosines(Shared<f64>);

impl Body<f64> for Cosines {
    #[inline(always)]
    unsafe fn run<V: Vector<E = f64>>(&self) {
        // SAFETY: the caller's promise.
        for t in unsafe { std::slice::from_raw_parts_mut(self.0.0, BLOCKS) } {
            *t = cosine(*t);
        }
    }
}

/// The coefficients of fdlibm for angles up to an eighth of a turn.
const COSINE: [f64; 6] = [
    4.166_666_666_666_66e-2,
    -1.388_888_888_887_411e-3,
    2.480_158_728_947_673e-5,
    -2.755_731_435_139_066_3e-7,
    2.087_572_321_298_175e-9,
    -1.135_964_755_778_819_5e-11,
];
const SINE: [f64; 6] = [
    -1.666_666_666_666_663_2e-1,
    8.333_333_333_322_49e-3,
    -1.984_126_982_985_795e-4,
    2.755_731_370_707_007e-6,
    -2.505_076_025_340_686_3e-8,
    1.589_690_995_211_55e-10,
];

/// The cosine of `t` turns, 0 <= t <= 1: from the next quarter on.
#[inline(always)]
fn cosine(t: f64) -> f64 {
    let quarter = (4.0 * t + 0.5).floor();
    let a = (4.0 * t - quarter) * (0.25 * TAU);
    let square = a * a;
    let poly =
        |c: [f64; 6]| c[0] + square * (c[1] + square * (c[2] + square * (c[3] + square * (c[4] + square * c[5]))));
    let cosine = 1.0 - 0.5 * square + square * square * poly(COSINE);
    let sine = a + a * square * poly(SINE);
    // cos, -sin, -cos, sin, and cos again.
    let size = if quarter == 1.0 || quarter == 3.0 { sine } else { cosine };
    if quarter == 1.0 || quarter == 2.0 { -size } else { size }
}

/// A number above 0 and at most 1.
fn part(word: u32) -> f64 {
    (word as f64 + 1.0) * (1.0 / (1u64 << 32) as f64)
}

/// The group that has the blocks of a turn, for the elements from `first` on.
fn group(first: u64, turn: u32) -> u64 {
    ((first & 0xff_ffff_ffff) | (turn as u64) << 40) / BLOCKS as u64
}

/// The words of one element: blocks whose counters have the element in the lower 40 bits and count in the others.
struct ElementWords<'a> {
    d: Draw,
    element: u64,
    turn: u32,
    /// The first turns of this element and its neighbours.
    made: &'a [PairTurn],
}

impl ElementWords<'_> {
    #[inline]
    fn block(&mut self) -> [u32; 4] {
        let Some(made) = self.made.get(self.turn as usize) else { return self.later_block() };
        self.turn += 1;
        let at = self.element as usize % BLOCKS;
        std::array::from_fn(|w| made.words[w * BLOCKS + at])
    }

    /// A normal number, and two numbers above 0 and at most 1.
    #[inline]
    fn normal(&mut self) -> [f64; 3] {
        let made = self.made.get(self.turn as usize);
        let [u, turn, accept, less] = self.block();
        let z = match made {
            Some(made) => made.normal[self.element as usize % BLOCKS],
            None => (-2.0 * part(u).ln()).sqrt() * (TAU * part(turn)).cos(),
        };
        [z, part(accept), part(less)]
    }

    fn later_block(&mut self) -> [u32; 4] {
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
    fn gamma(&mut self, GammaShape { k, d, c }: GammaShape) -> [f64; 2] {
        loop {
            let [z, accept, less] = self.normal();
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

/// A gamma distribution's shape, and what all its numbers are made with.
#[derive(Clone, Copy)]
struct GammaShape {
    k: f64,
    d: f64,
    c: f64,
}

impl GammaShape {
    fn new(k: f64) -> GammaShape {
        let d = if k < 1.0 { k + 1.0 } else { k } - 1.0 / 3.0;
        GammaShape { k, d, c: 1.0 / (9.0 * d).sqrt() }
    }
}

/// A distribution with what is the same for all elements.
#[derive(Clone, Copy)]
enum Sampler {
    Gamma {
        shape: GammaShape,
        theta: f64,
    },
    Beta {
        alpha: GammaShape,
        beta: GammaShape,
    },
    /// Of few successes, through the probabilities, with that of none.
    Few {
        n: f64,
        p: f64,
        none: f64,
    },
    Many {
        n: f64,
        p: f64,
    },
}

impl Distribution {
    fn sampler(self) -> Sampler {
        match self {
            Distribution::Gamma { k, theta } => Sampler::Gamma { shape: GammaShape::new(k), theta },
            Distribution::Beta { alpha, beta } => {
                Sampler::Beta { alpha: GammaShape::new(alpha), beta: GammaShape::new(beta) }
            }
            Distribution::Binomial { n, p } if n * p.min(1.0 - p) < 10.0 => {
                Sampler::Few { n, p, none: (n * (-p.min(1.0 - p)).ln_1p()).exp() }
            }
            Distribution::Binomial { n, p } => Sampler::Many { n, p },
        }
    }
}

impl Sampler {
    /// Blocks that nearly every element takes.
    fn turns(&self) -> usize {
        if let Sampler::Beta { .. } = self { TURNS } else { 1 }
    }

    /// Whether the blocks are normal numbers, and what decides on them.
    fn is_normal(&self) -> bool {
        matches!(self, Sampler::Gamma { .. } | Sampler::Beta { .. })
    }

    #[inline(always)]
    fn sample(&self, mut words: ElementWords) -> f64 {
        let side = |p: f64, n: f64, count: f64| if p > 0.5 { n - count } else { count };
        match *self {
            Sampler::Gamma { shape, theta } => {
                let [x, log] = words.gamma(shape);
                theta * if shape.k < 1.0 { x * log.exp() } else { x }
            }
            Sampler::Beta { alpha, beta } => {
                let ([x, log_x], [y, log_y]) = (words.gamma(alpha), words.gamma(beta));
                1.0 / (1.0 + y / x * (log_y - log_x).exp())
            }
            Sampler::Few { n, p, none } => side(p, n, words.by_search(n, p.min(1.0 - p), none)),
            Sampler::Many { n, p } => side(p, n, words.by_rejection(n, p.min(1.0 - p))),
        }
    }
}

#[cfg(feature = "emulate")]
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

    unit_test!(cosines_of_turns);
    fn cosines_of_turns() {
        for t in (0..=4000).map(|i| i as f64 / 4000.0) {
            assert!((cosine(t) - (TAU * t).cos()).abs() < 1e-15, "{t}: {}", cosine(t));
        }
    }

    unit_test!(moments);
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

    unit_test!(made_blocks_are_the_elements_own);
    fn made_blocks_are_the_elements_own() {
        let d = Draw { key: 9, number: 5 };
        for (first, turn) in [(0, 0), (64, 1), (1 << 33, 1), ((1 << 40) + 32, 0)] {
            let words = d.group(group(first, turn));
            for i in [0, 7, 31] {
                let mut own = ElementWords { d, element: first + i, turn, made: &[] };
                let at = i as usize;
                assert_eq!(own.block(), [words[at], words[32 + at], words[64 + at], words[96 + at]]);
            }
        }
    }

    unit_test!(a_part_does_not_depend_on_the_length);
    fn a_part_does_not_depend_on_the_length() {
        let gamma = Distribution::Gamma { k: 2.0, theta: 1.0 };
        assert_eq!(made(gamma, 10_000)[..100], made(gamma, 100));
    }

    unit_test!(stirling_corrects_factorials);
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
