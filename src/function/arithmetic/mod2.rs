//! `mod2`: the rest of a division. `bit_shift`: whole numbers with their bits moved.

use crate::function::array::sum_to;
use crate::function::{Function, Grad, Resolved};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::dtype::DType;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::mod2 as kernel;
use nnrs_kernels::shape::Shape;

function! {
    /// The rest of a division, `y = x0 - x1 n` for a whole number n. It has the sign of x0; but if x0 holds whole numbers, and fmod is
    /// not set, that of x1. NaN where x1 is 0; of whole numbers, which stay what they are, 0.
    Mod2 mod2 in Special, forward_on_any_device
    inputs { x0: "N-D array of dividends.", x1: "N-D array of divisors." }
    args { fmod: bool = false, "Whether whole numbers too give the sign of x0." }
    outputs { y: "N-D array of the inputs' joint shape; of x0's type if that is one of whole numbers." }
}

function! {
    /// Moves the bits of whole numbers: to the left, with zeros from the right, or the other way. Bits that leave x's type (64 bits
    /// where that is not one of whole numbers) are lost. No gradient.
    BitShift bit_shift in Special, forward_on_any_device
    inputs { x [index]: "N-D array of whole numbers.", shift [index]: "N-D array of distances, 0 or more." }
    args { direction: String = "LEFT".to_string(), "'LEFT' or 'RIGHT'." }
    outputs { y: "N-D array of the inputs' joint shape, of whole numbers of x's type, or else of 64 bits." }
}

fn joint(x: &[Shape], name: &str) -> Result<Shape> {
    let fail = || Error::shape(name, format!("a shape that broadcasts with {}", x[0])).actual(&x[1]);
    x[0].broadcast(&x[1]).ok_or_else(fail)?.checked()
}

impl Function for Mod2 {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let y = joint(x, "x1")?;
        Ok(Resolved::one(y.clone(), kernel::Mod2(kernel::Pairs::new(x, y), self.fmod)))
    }

    fn sees_arrays(&self) -> bool {
        true
    }

    fn keeps_whole_types(&self) -> bool {
        true
    }

    /// The whole number of divisors in x0 does not change for small changes.
    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let (x0, x1, gy) = (&g.x[0], &g.x[1], &g.gy[0]);
        let gx1 = || {
            let (y, b) = (f::unlink(&g.y[0])?, f::unlink(x1)?);
            let whole = f::sub2(&f::unlink(x0)?, &y, f::Sub2::default())?;
            let times = f::round(&f::div2(&whole, &b, f::Div2::default())?)?;
            let part =
                f::mul2(gy, &f::mul_scalar(&times, f::MulScalar { val: -1.0, inplace: false })?, f::Mul2::default())?;
            sum_to(&part, &x1.shape())
        };
        let gx0 = || sum_to(gy, &x0.shape());
        Ok(vec![g.want[0].then(gx0).transpose()?, g.want[1].then(gx1).transpose()?])
    }
}

impl Function for BitShift {
    fn keeps_whole_types(&self) -> bool {
        true
    }

    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        if !["LEFT", "RIGHT"].contains(&&*self.direction) {
            return Err(Error::arg("direction", "'LEFT' or 'RIGHT'").actual(format!("'{}'", self.direction)));
        }
        let y = joint(x, "shift")?;
        Ok(Resolved::one(
            y.clone(),
            kernel::BitShift { pairs: kernel::Pairs::new(x, y), left: self.direction == "LEFT" },
        ))
    }

    fn output_dtype(&self, _i: usize) -> Option<DType> {
        Some(DType::I64)
    }

    fn differentiable(&self, _i: usize) -> bool {
        false
    }

    fn grad(&self, _g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![None, None])
    }
}
