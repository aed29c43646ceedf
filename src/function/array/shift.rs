//! `shift`: the elements moved along axes; and the reverse, the derivative.

use super::List;
use crate::function;
use crate::function::{ArgValue, Call, Function, Grad, Resolved, call_of, with_defaults};
use crate::graph::Variable;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::shift as kernel;
use nnrs_kernels::shape::Shape;

function! {
    /// Moves the elements along axes, `y[i] = x[i - shift]`. Where there is no element, mode 'nearest' repeats the first or last
    /// one; 'reflect' mirrors the array at its ends, so that these come twice.
    Shift shift in Array, any_device
    inputs { x: "N-D array." }
    args {
        shifts: Option<List> = None, "Distances along the last axes; None: 0.";
        border_mode: String = "nearest".to_string(), "'nearest' or 'reflect'."
    }
    outputs { y: "N-D array of x's shape." }
}

function! {
    /// Sums what `shift` made of each element: the reverse of `shift`, its derivative. Internal: not in the registry.
    Unshift unshift in Array, forward_on_any_device
    inputs { x: "N-D array." }
    args {
        shifts: Option<List> = None, "As of `shift`.";
        border_mode: String = "nearest".to_string(), "As of `shift`."
    }
    outputs { y: "N-D array of x's shape." }
}

fn call(x: &Shape, shifts: Option<&List>, mode: &str) -> Result<kernel::Shifts> {
    let mode = match mode {
        "nearest" => kernel::ShiftBorder::Nearest,
        "reflect" => kernel::ShiftBorder::Reflect,
        _ => return Err(Error::arg("border_mode", "'nearest' or 'reflect'").actual(format!("'{mode}'"))),
    };
    let given = shifts.map_or(&[][..], |s| &s[..]);
    let Some(lead) = x.ndim().checked_sub(given.len()) else {
        let expected = format!("at most {} distances, one for each axis of x {x}", x.ndim());
        return Err(Error::arg("shifts", expected).actual(format!("{given:?}")));
    };
    Ok(kernel::Shifts::new(x, lead, given, mode))
}

impl Function for Shift {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let shifts = call(&x[0], self.shifts.as_ref(), &self.border_mode)?;
        Ok(Resolved::one(x[0].clone(), kernel::Shift(shifts)))
    }

    fn used(&self, call: Option<&dyn Call>) -> Vec<(&'static str, ArgValue)> {
        with_defaults(self, &[("shifts", ArgValue::Ints(call_of::<kernel::Shift>(call).0.distances.clone()))])
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let back = Unshift { shifts: self.shifts.clone(), border_mode: self.border_mode.clone() };
        Ok(vec![Some(unshift(&g.gy[0], back)?)])
    }
}

impl Function for Unshift {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let shifts = call(&x[0], self.shifts.as_ref(), &self.border_mode)?;
        Ok(Resolved::one(x[0].clone(), kernel::Unshift(shifts)))
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let again = Shift { shifts: self.shifts.clone(), border_mode: self.border_mode.clone() };
        Ok(vec![Some(shift(&g.gy[0], again)?)])
    }
}
