//! `pow2_quantize`: powers of two.

use crate::function;
use crate::function::{Elementwise, Function, Resolved};
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::expr::Expr;
use nnrs_kernels::shape::Shape;
use smallvec::smallvec;

/// Bits of the exponent that make a difference: beyond, numbers are 0 in any type.
const MOST_BITS: i64 = 11;
/// The largest exponent of a factor that every type has.
const STEP: u32 = 64;

function! {
    /// The nearest power of two in logarithms, `y = sign(x) 2^round(log2 |x|)`, the exponent being one of the `2^b` from
    /// `m - 2^b + 1` to m, where b is n less a bit for the sign and a bit for zero. With a zero, magnitudes below
    /// `2^-0.5` of the least power become 0. Without a sign, negative numbers become the least one. NaN stays.
    /// The gradient passes straight through; with ste_fine_grained not where `|x|` is rounded to a power above `2^m`, nor,
    /// without a sign, where x is negative.
    Pow2Quantize pow2_quantize in Quantization
    inputs { x: "N-D array." }
    args {
        sign: bool = true, "Whether there are negative numbers; the sign is one of the bits.";
        with_zero: bool = true, "Whether 0 is one of the numbers, which takes a bit.";
        n: i64 = 8, "Number of bits.";
        m: i64 = 1, "The largest number is `2^m`.";
        ste_fine_grained: bool = true, "Whether x beyond the limits has gradient 0."
    }
    outputs { y: "N-D array of x's shape." }
}

impl Pow2Quantize {
    /// Bits of the exponent.
    fn bits(&self) -> i64 {
        self.n.saturating_sub(self.sign as i64 + self.with_zero as i64)
    }

    /// `2^(m + exponent)`
    fn power(&self, exponent: f64) -> f64 {
        (self.m as f64 + exponent).exp2()
    }

    /// The exponent of the least number, less m.
    fn least(&self) -> f64 {
        1.0 - (self.bits().min(MOST_BITS) as f64).exp2()
    }

    /// The power of two for a magnitude. Its exponent is found a bit at a time, by products with powers of two, which are exact;
    /// a logarithm would not be.
    fn nearest(&self, magnitude: &Expr) -> Expr {
        let (mut rest, mut power) = (magnitude.clone(), magnitude.constant(self.power(0.0)));
        for bit in (0..self.bits().min(MOST_BITS) as u32).rev() {
            let steps = 1 << bit;
            let below = rest.lt(self.power(0.5 - f64::from(steps)));
            rest = below.select(scaled(&rest, steps, 1.0), &rest);
            power = below.select(scaled(&power, steps, -1.0), &power);
        }
        power
    }
}

/// `x 2^(direction steps)`, by factors that are numbers in single precision.
fn scaled(x: &Expr, steps: u32, direction: f64) -> Expr {
    let factor = (direction * f64::from(steps.min(STEP))).exp2();
    (0..steps.div_ceil(STEP)).fold(x.clone(), |x, _| x * factor)
}

impl Function for Pow2Quantize {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        if self.bits() < 1 {
            let taken = self.sign as i64 + self.with_zero as i64;
            let e = Error::arg("n", format!("{} bits or more", taken + 1)).actual(self.n);
            return Err(e.hint("sign and with_zero take a bit each"));
        }
        if !(-126..=127).contains(&self.m) {
            return Err(Error::arg("m", "an exponent from -126 to 127").actual(self.m));
        }
        Ok(Resolved::without_call(smallvec![x[0].clone()]))
    }

    fn elementwise(&self) -> Option<&dyn Elementwise> {
        Some(self)
    }
}

impl Elementwise for Pow2Quantize {
    fn formula(&self, x: &[Expr]) -> Expr {
        let (x, magnitude) = (&x[0], x[0].abs());
        let mut y = self.nearest(&magnitude);
        if self.with_zero {
            y = magnitude.lt(self.power(self.least() - 0.5)).select(0.0, y);
        }
        let least = if self.with_zero { 0.0 } else { self.power(self.least()) };
        let negative = if self.sign { -&y } else { y.constant(least) };
        x.is_nan().select(x, x.lt(0.0).select(negative, y))
    }

    fn gradient(&self, x: &[Expr], _y: &Expr, gy: &Expr) -> Option<Vec<Option<Expr>>> {
        let large = || x[0].abs().ge(self.power(0.5));
        let beyond = || if self.sign { large() } else { large().or(x[0].lt(0.0)) };
        Some(vec![Some(if self.ste_fine_grained { beyond().select(0.0, gy) } else { gy.clone() })])
    }
}
