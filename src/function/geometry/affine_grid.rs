//! `affine_grid`: coordinates of an image's elements, mapped by affine maps.

use crate::function::array::List;
use crate::function::{Function, Grad, Resolved};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::affine_grid as kernel;
use nnrs_kernels::shape::Shape;

/// Sizes at most: twice as much is a whole number in double, and their product is checked.
const MOST: i64 = 1 << 31;

function! {
    /// For each image the places that an affine map sends its elements' places to, for `warp_by_grid` (Jaderberg et al., 2015). Along an axis places go from -1
    /// to 1, which are the image's edges, or, with align_corners, its first and its last element.
    AffineGrid affine_grid in Geometry, any_device
    inputs { theta: "Maps of shape (B, 2, 3) for images, (B, 3, 4) for volumes." }
    args {
        size: List, "Height and width, or depth, height and width.";
        align_corners: bool = false, "Whether -1 and 1 are the first and the last element."
    }
    outputs { grid: "Places of shape (B, H, W, 2) as (x, y), or (B, D, H, W, 3) as (x, y, z)." }
}

impl AffineGrid {
    fn sizes(&self) -> Result<[usize; 3]> {
        let fits = |n: &i64| (1..=MOST).contains(n);
        match *self.size.0.as_slice() {
            [h, w] if self.size.iter().all(fits) => Ok([1, h as usize, w as usize]),
            [d, h, w] if self.size.iter().all(fits) => Ok([d as usize, h as usize, w as usize]),
            _ => {
                let expected = format!("2 or 3 sizes from 1 to {MOST}");
                Err(Error::arg("size", expected).actual(format!("{:?}", self.size.0)))
            }
        }
    }
}

impl Function for AffineGrid {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let (size, d) = (self.sizes()?, self.size.len());
        if x[0].ndim() != 3 || x[0][1..] != [d, d + 1] {
            return Err(Error::shape("theta", format!("shape (B, {d}, {})", d + 1)).actual(&x[0]));
        }
        let y: Shape = [x[0][0]].iter().chain(&size[3 - d..]).chain(&[d]).copied().collect();
        Ok(Resolved::one(y.checked()?, kernel::AffineGrid { size, dims: d, corners: self.align_corners }))
    }

    /// A map's gradient is a product of matrices: of the gradients of the places, and of what they are mapped from.
    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let (theta, d) = (g.x[0].shape(), self.size.len());
        let places = self.sizes()?.iter().product::<usize>();
        let rows: Vec<f32> = (0..d * (d + 1)).map(|i| if i / (d + 1) == i % (d + 1) { 1.0 } else { 0.0 }).collect();
        let same = Variable::from_slice(&rows, [1, d, d + 1].into())?;
        let reshaped = |v: &Variable, s: &[usize]| f::reshape(v, f::Reshape::to(&s.into()));
        let base = reshaped(&affine_grid(&same, self.clone())?, &[places, d])?;
        let ones = f::constant(f::Constant { val: 1.0, shape: vec![places as i64, 1] })?;
        let base = f::concatenate(&[&base, &ones], f::Concatenate { axis: Some(1) })?;
        let gy = f::transpose(&reshaped(&g.gy[0], &[theta[0], places, d])?, f::Transpose::by(&[0, 2, 1]))?;
        let product = f::affine(&reshaped(&gy, &[theta[0] * d, places])?, &base, None, f::Affine::default())?;
        Ok(vec![Some(reshaped(&product, &theta)?)])
    }
}
