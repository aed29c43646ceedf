//! `quantize_linear`, `dequantize_linear`: numbers as whole multiples of a scale, and back.

use crate::function;
use crate::function::{Elementwise, Function, Resolved};
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::expr::Expr;
use nnrs_kernels::shape::Shape;
use smallvec::smallvec;

function! {
    /// Quantizes linearly, `y = saturate(round(x / scale) + round(saturate(zero_point)))`: whole numbers of the range of `dtype`, held in
    /// the context's floating-point type. The gradient of x passes through the rounding and the limits; scale and zero_point
    /// have none.
    QuantizeLinear quantize_linear in Quantization
    inputs {
        x: "N-D array.",
        scale: "Array that broadcasts to x's shape: one scale for all, or one a channel.",
        zero_point: "Array that broadcasts to x's shape: what 0 becomes."
    }
    args {
        round_mode: String = "HALF_AWAY_FROM_ZERO".to_string(), "'HALF_AWAY_FROM_ZERO' or 'HALF_TO_EVEN'.";
        narrow_range: bool = false, "Leave out the least number of the range.";
        dtype: i64 = 1, "NumPy's number of the type whose range is used: 1 for int8, 2 for uint8."
    }
    outputs { y: "N-D array of x's shape." }
}

function! {
    /// Undoes `quantize_linear`, `y = (x - zero_point) scale`. Only x has a gradient.
    DequantizeLinear dequantize_linear in Quantization
    inputs {
        x: "N-D array of quantized numbers.",
        scale: "Array that broadcasts to x's shape.",
        zero_point: "Array that broadcasts to x's shape."
    }
    args {}
    outputs { y: "N-D array of x's shape." }
}

/// The inputs beside x broadcast to its shape.
fn resolve(x: &[Shape]) -> Result<Resolved> {
    for (s, name) in x[1..].iter().zip(["scale", "zero_point"]) {
        if x[0].broadcast(s).as_ref() != Some(&x[0]) {
            return Err(Error::shape(name, format!("a shape that broadcasts to x's {}", x[0])).actual(s));
        }
    }
    Ok(Resolved::without_call(smallvec![x[0].clone()]))
}

impl QuantizeLinear {
    /// The least and the largest number of the range.
    fn range(&self) -> (f64, f64) {
        let (least, most) = if self.dtype == 1 { (-128.0, 127.0) } else { (0.0, 255.0) };
        (least + self.narrow_range as u8 as f64, most)
    }

    fn round(&self, v: &Expr) -> Expr {
        if self.round_mode == "HALF_AWAY_FROM_ZERO" {
            return v.round();
        }
        (v - v.floor()).equal(0.5).select((v * 0.5).round() * 2.0, v.round())
    }
}

/// NaN stays.
fn saturate(v: &Expr, (least, most): (f64, f64)) -> Expr {
    v.lt(least).select(least, v.gt(most).select(most, v))
}

impl Function for QuantizeLinear {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        if !["HALF_AWAY_FROM_ZERO", "HALF_TO_EVEN"].contains(&&*self.round_mode) {
            let e = Error::arg("round_mode", "'HALF_AWAY_FROM_ZERO' or 'HALF_TO_EVEN'");
            return Err(e.actual(format!("'{}'", self.round_mode)));
        }
        if ![1, 2].contains(&self.dtype) {
            return Err(Error::arg("dtype", "numpy.int8 or numpy.uint8").actual(self.dtype));
        }
        resolve(x)
    }

    fn elementwise(&self) -> Option<&dyn Elementwise> {
        Some(self)
    }

    fn differentiable(&self, i: usize) -> bool {
        i == 0
    }
}

impl Elementwise for QuantizeLinear {
    fn formula(&self, x: &[Expr]) -> Expr {
        let zero = self.round(&saturate(&x[2], self.range()));
        saturate(&(self.round(&(&x[0] / &x[1])) + zero), self.range())
    }

    fn gradient(&self, x: &[Expr], _y: &Expr, gy: &Expr) -> Option<Vec<Option<Expr>>> {
        Some(vec![Some(gy / &x[1]), None, None])
    }
}

impl Function for DequantizeLinear {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        resolve(x)
    }

    fn elementwise(&self) -> Option<&dyn Elementwise> {
        Some(self)
    }

    fn differentiable(&self, i: usize) -> bool {
        i == 0
    }
}

impl Elementwise for DequantizeLinear {
    fn formula(&self, x: &[Expr]) -> Expr {
        (&x[0] - &x[2]) * &x[1]
    }

    fn gradient(&self, x: &[Expr], _y: &Expr, gy: &Expr) -> Option<Vec<Option<Expr>>> {
        Some(vec![Some(gy * &x[1]), None, None])
    }
}
