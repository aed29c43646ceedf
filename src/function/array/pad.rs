//! `pad`: an array with a border: a constant, its reflection, or its edge; and the reverse, the derivative.

use super::List;
use crate::function::{Function, Grad, Resolved};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::pad::{self as kernel, Borders, Mode, PadAxes, PadAxis};
use nnrs_kernels::shape::Shape;

function! {
    /// Puts a border around an array. With mode 'reflect' the array is mirrored at its first and last elements, which are not repeated;
    /// with 'repeat' they are the border.
    Pad pad in Array, any_device
    inputs { x: "N-D array." }
    args {
        pad_width: List, "Widths before and after each of the last axes: (before, after, before, after, ..).";
        mode: String = "constant".to_string(), "'constant', 'reflect' or 'repeat'.";
        constant_value: f64 = 0.0, "The border's value for mode 'constant'."
    }
    outputs { y: "N-D array." }
}

impl Pad {
    fn axes(&self, x: &Shape) -> Result<PadAxes> {
        let widths = &self.pad_width;
        if !widths.len().is_multiple_of(2) || widths.len() > 2 * x.ndim() || widths.iter().any(|w| *w < 0) {
            let expected = format!("pairs of widths, 0 or more, for at most the {} axes of x {x}", x.ndim());
            return Err(Error::arg("pad_width", expected).actual(format!("{:?}", widths.0)));
        }
        let lead = x.ndim() - widths.len() / 2;
        let width = |a: usize, side: usize| if a < lead { 0 } else { widths[2 * (a - lead) + side] as usize };
        Ok(x.iter().enumerate().map(|(a, &n)| (n, width(a, 0), width(a, 1))).collect())
    }

    fn mode(&self) -> Mode {
        match &*self.mode {
            "constant" => Mode::Constant,
            "reflect" => Mode::Reflect,
            _ => Mode::Repeat,
        }
    }
}

/// The shape with the borders.
fn padded(axes: &[PadAxis]) -> Shape {
    axes.iter().map(|(n, before, after)| n.saturating_add(*before).saturating_add(*after)).collect()
}

impl Function for Pad {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        if !["constant", "reflect", "repeat"].contains(&&*self.mode) {
            return Err(Error::arg("mode", "'constant', 'reflect' or 'repeat'").actual(format!("'{}'", self.mode)));
        }
        let borders = Borders::new(&x[0], self.axes(&x[0])?, self.mode());
        let hollow = |&(n, before, after): &PadAxis| n == 0 && before + after > 0;
        if !borders.is_constant() && borders.axes.iter().any(hollow) {
            return Err(Error::shape("x", "elements to fill the border with").actual(&x[0]));
        }
        let y = padded(&borders.axes).checked()?;
        let call = kernel::Pad::new(borders, &x[0], &y, self.constant_value);
        Ok(Resolved::one(y, call))
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let borders = &g.call::<kernel::Pad>().borders;
        if !borders.is_constant() {
            let shape = g.x[0].shape()[..].into();
            let back = Unpad { shape, pad_width: self.pad_width.clone(), mode: self.mode.clone() };
            return Ok(vec![Some(unpad(&g.gy[0], back)?)]);
        }
        let axes = &borders.axes;
        let start = Some(axes.iter().map(|a| a.1 as i64).collect::<Vec<_>>().into());
        let stop = Some(axes.iter().map(|a| (a.1 + a.0) as i64).collect::<Vec<_>>().into());
        Ok(vec![Some(f::slice(&g.gy[0], f::Slice { start, stop, step: None })?)])
    }
}

function! {
    /// Sums the border that `pad` made of x's elements onto them: the reverse of `pad`, its derivative.
    Unpad unpad in Special, any_device
    inputs { x: "N-D array with a border." }
    args {
        shape: List, "Shape without the border.";
        pad_width: List, "As of `pad`.";
        mode: String = "reflect".to_string(), "'reflect' or 'repeat'."
    }
    outputs { y: "N-D array of the given shape." }
}

impl Unpad {
    fn pad(&self) -> Pad {
        Pad { pad_width: self.pad_width.clone(), mode: self.mode.clone(), constant_value: 0.0 }
    }

    fn whole(&self) -> Shape {
        self.shape.iter().map(|&d| d.max(0) as usize).collect()
    }
}

impl Function for Unpad {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let (pad, y) = (self.pad(), self.whole());
        let axes = pad.axes(&y)?;
        let padded = padded(&axes);
        if padded != x[0] {
            return Err(Error::shape("x", format!("shape {padded}")).actual(&x[0]));
        }
        let call = kernel::Unpad(Borders::new(&y, axes, pad.mode()));
        Ok(Resolved::one(y, call))
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![Some(pad(&g.gy[0], self.pad())?)])
    }
}
