//! `patch_correlation`: products of patches of two images, summed.

use crate::function;
use crate::function::array::List;
use crate::function::{Function, Grad, Resolved};
use crate::graph::Variable;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::patch_correlation::{Correlation, CorrelationGradient, PatchProducts};
use nnrs_kernels::shape::Shape;

/// Sizes at most: sums of a few stay far from overflow.
const MOST: i64 = i32::MAX as i64;

function! {
    /// Compares patches of two images by the sums of their products, at each place and for each shift of the second one (Fischer et al.,
    /// FlowNet, 2015).
    PatchCorrelation patch_correlation in Special, any_device
    inputs { x1: "Images of shape (N, H, W, C).", x2: "Images of x1's shape." }
    args {
        patch: List = vec![1, 1].into(), "Height and width of a patch.";
        shift: List = vec![0, 0].into(), "The largest shifts, to both sides.";
        patch_step: List = vec![1, 1].into(), "Distances of patches.";
        shift_step: List = vec![1, 1].into(), "Distances of shifts.";
        padding: List = vec![0, 0, 0, 0].into(), "Zeros above, below, before and after the images."
    }
    outputs { y: "Sums of shape (N, H', W', vertical shifts, horizontal shifts)." }
}

function! {
    /// The gradient of one image of `patch_correlation`, from that of the sums and the other image.
    PatchCorrelationBackward patch_correlation_backward in Special, any_device
    inputs { gy: "Gradient of the sums.", x: "The other image." }
    args {
        second: bool, "Whether it is that of the second image.";
        patch: List, "As of `patch_correlation`.";
        shift: List, "As of `patch_correlation`.";
        patch_step: List, "As of `patch_correlation`.";
        shift_step: List, "As of `patch_correlation`.";
        padding: List, "As of `patch_correlation`."
    }
    outputs { gx: "Gradient of the image." }
}

/// Numbers of argument `name`, none below `least`.
fn numbers<const N: usize>(name: &str, given: &List, least: i64) -> Result<[usize; N]> {
    let fits = given.iter().all(|v| (least..=MOST).contains(v));
    let values: Option<[i64; N]> = given.0.as_slice().try_into().ok().filter(|_| fits);
    values
        .map(|v| v.map(|n| n as usize))
        .ok_or_else(|| Error::arg(name, format!("{N} numbers from {least} to {MOST}")).actual(format!("{:?}", given.0)))
}

impl PatchCorrelation {
    /// All sizes, and the shape of the sums.
    fn sizes(&self, x: &Shape) -> Result<(Correlation, Shape)> {
        if x.ndim() != 4 || x[1] > MOST as usize || x[2] > MOST as usize {
            return Err(Error::shape("x1", "shape (N, H, W, C)").actual(x));
        }
        let [top, bottom, left, right] = numbers("padding", &self.padding, 0)?;
        let patch: [usize; 2] = numbers("patch", &self.patch, 1)?;
        let shift: [usize; 2] = numbers("shift", &self.shift, 0)?;
        let patch_step: [usize; 2] = numbers("patch_step", &self.patch_step, 1)?;
        let shift_step: [usize; 2] = numbers("shift_step", &self.shift_step, 1)?;
        let padded = [x[1] + top + bottom, x[2] + left + right];
        let places = |a: usize| padded[a].checked_sub(patch[a]).map_or(0, |room| room / patch_step[a] + 1);
        let (out, shifts) = ([places(0), places(1)], [0, 1].map(|a| 2 * shift[a] / shift_step[a] + 1));
        let y: Shape = [x[0]].into_iter().chain(out).chain(shifts).collect();
        let (batch, channels, size, pad) = (x[0], x[3], [x[1], x[2]], [top, left]);
        let call = Correlation { batch, channels, size, out, shifts, patch, shift, patch_step, shift_step, pad };
        Ok((call, y.checked()?))
    }

    fn backward(&self, second: bool) -> PatchCorrelationBackward {
        let PatchCorrelation { patch, shift, patch_step, shift_step, padding } = self.clone();
        PatchCorrelationBackward { second, patch, shift, patch_step, shift_step, padding }
    }
}

impl Function for PatchCorrelation {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let (call, y) = self.sizes(&x[0])?;
        match x[0] == x[1] {
            true => Ok(Resolved::one(y, PatchProducts(call))),
            false => Err(Error::shape("x2", format!("shape {}, as x1", x[0])).actual(&x[1])),
        }
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let (x, gy) = (&g.x, &g.gy[0]);
        let of = |i: usize| patch_correlation_backward(gy, &x[1 - i], self.backward(i == 1));
        (0..2).map(|i| g.want[i].then(|| of(i)).transpose()).collect()
    }
}

impl PatchCorrelationBackward {
    fn correlation(&self) -> PatchCorrelation {
        let PatchCorrelationBackward { patch, shift, patch_step, shift_step, padding, .. } = self.clone();
        PatchCorrelation { patch, shift, patch_step, shift_step, padding }
    }
}

impl Function for PatchCorrelationBackward {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let (correlation, y) = self.correlation().sizes(&x[1])?;
        match y == x[0] {
            true => Ok(Resolved::one(x[1].clone(), CorrelationGradient { correlation, second: self.second })),
            false => Err(Error::shape("gy", format!("shape {y}")).actual(&x[0])),
        }
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let (gy, x, back) = (&g.x[0], &g.x[1], &g.gy[0]);
        let correlation = self.correlation();
        let by_gy = || match self.second {
            false => patch_correlation(back, x, correlation.clone()),
            true => patch_correlation(x, back, correlation.clone()),
        };
        let by_x = || patch_correlation_backward(gy, back, correlation.backward(!self.second));
        Ok(vec![g.want[0].then(by_gy).transpose()?, g.want[1].then(by_x).transpose()?])
    }
}
