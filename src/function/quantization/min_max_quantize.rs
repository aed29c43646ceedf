//! `min_max_quantize`: numbers of a range as levels, the range being given, learned or that of the data.

use crate::function;
use crate::function::array::sum_to;
use crate::function::{Function, Grad, Resolved};
use crate::functions as f;
use crate::graph::Variable;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::min_max_quantize as kernel;
use nnrs_kernels::shape::Shape;
use smallvec::smallvec;

function! {
    /// Quantizes a range linearly (Jacob et al., 2018), `y = round((clip(x) - low) / scale) scale + low` with
    /// `scale = (qr_max - qr_min) / (ql_max - ql_min)`. The range [low, high] that x is clipped to is that from qr_min to qr_max, moved so
    /// that 0 is a level: `low = (ql_min - zero) scale`, `high = (ql_max - zero) scale`, zero being `ql_min - qr_min / scale`
    /// rounded, and clipped to the levels. With x_min_max each forward pass sets qr_min and qr_max to the least and the largest x, with
    /// ema too to a moving average of them, `decay qr + (1 - decay) x`. Always qr_max becomes `qr_min + eps` where it is less. The
    /// gradient of x passes straight through; with ste_fine_grained only where x is in the range. That of qr_min is the
    /// sum where x is below the range, that of qr_max where it is above; with x_min_max or ema they have none.
    MinMaxQuantize min_max_quantize in Quantization, any_device
    inputs {
        x: "N-D array.",
        qr_min: "Least number of the range, of a shape that broadcasts to x's. Forward may write it.",
        qr_max: "Largest number of the range, of qr_min's shape. Forward may write it.",
        ql_min: "The least level, of qr_min's shape; 0, say.",
        ql_max: "The largest level, of qr_min's shape; 255, say.",
    }
    args {
        decay: f64 = 0.999, "How much of the range each forward pass keeps, with x_min_max and ema.";
        x_min_max: bool = false, "Take the range from x.";
        ema: bool = false, "The range is a moving average.";
        ste_fine_grained: bool = true, "Whether x beyond the range has gradient 0.";
        eps: f64 = 0.01, "The least size of the range."
    }
    outputs { y: "N-D array of x's shape.", range [variadic]: "Of the builder in Rust alone: low and high, of qr_min's shape." }
}

impl MinMaxQuantize {
    /// The range is a parameter that is trained.
    fn learns_range(&self) -> bool {
        !self.x_min_max && !self.ema
    }
}

impl Function for MinMaxQuantize {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        if x[0].broadcast(&x[1]).as_ref() != Some(&x[0]) {
            return Err(Error::shape("qr_min", format!("a shape that broadcasts to x's {}", x[0])).actual(&x[1]));
        }
        for (s, name) in x[2..].iter().zip(["qr_max", "ql_min", "ql_max"]) {
            if *s != x[1] {
                return Err(Error::shape(name, format!("shape {} as of qr_min", x[1])).actual(s));
            }
        }
        if self.x_min_max && x[0].size() == 0 {
            return Err(Error::shape("x", "at least one element for the range").actual(&x[0]));
        }
        let call = kernel::MinMaxQuantize {
            x: x[0].clone(),
            range: std::iter::repeat_n(1, x[0].ndim() - x[1].ndim()).chain(x[1].iter().copied()).collect(),
            from_x: self.x_min_max,
            average: self.ema,
            decay: self.decay,
            fine: self.ste_fine_grained,
            eps: self.eps,
        };
        Ok(Resolved::new(smallvec![x[0].clone(), x[1].clone(), x[1].clone()], call))
    }

    fn hidden_outputs(&self) -> usize {
        2
    }

    fn has_state(&self) -> bool {
        true
    }

    fn updates_input(&self, i: usize) -> bool {
        i == 2 || i == 1 && self.x_min_max
    }

    fn differentiable(&self, i: usize) -> bool {
        i == 0 || i < 3 && self.learns_range()
    }

    fn refuses_gradient(&self, i: usize) -> bool {
        i > 2
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let (x, gy, low, high) = (&g.x[0], &g.gy[0], &g.y[1], &g.y[2]);
        let only = |mask: Variable| f::mul2(gy, &mask, f::Mul2::default());
        let within = || only(f::mul2(&f::greater_equal(x, low)?, &f::less_equal(x, high)?, f::Mul2::default())?);
        let gx = || if self.ste_fine_grained { within() } else { Ok(gy.clone()) };
        let sum = |mask: Variable| sum_to(&only(mask)?, &g.x[1].shape());
        Ok(vec![
            g.want[0].then(gx).transpose()?,
            g.want[1].then(|| sum(f::less(x, low)?)).transpose()?,
            g.want[2].then(|| sum(f::greater(x, high)?)).transpose()?,
            None,
            None,
        ])
    }
}
