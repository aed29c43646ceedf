//! `crelu` and `celu`: an activation of x and of -x, concatenated along an axis. Both are formulas over the axes
//! (outer, 2, inner), where x repeats along the middle one and the signs 1, -1 along the others.

use super::rectified::{elu_formula, keeps_sign, not_positive};
use crate::function::elementwise::FormulaFunction;
use crate::function::{Function, Grad, GradMut, Needs, Output, Run, Shapes, View, ViewMut, call_one};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::array::{Data, Place};
use nnrs_kernels::cuda;
use nnrs_kernels::dtype::DType;
use nnrs_kernels::error::Result;
use nnrs_kernels::expr::{Expr, Formula};
use nnrs_kernels::kernel::ops;
use nnrs_kernels::shape::Shape;
use nnrs_kernels::tile::Walk;
use nnrs_kernels::with_real;
use smallvec::smallvec;

function! {
    /// Concatenated rectified linear units, `relu(x)` and `relu(-x)` along an axis (Shang et al., 2016).
    CReLU crelu in Activation, any_device
    inputs { x: "N-D array." }
    args { axis: i64 = 1, "Axis of the concatenation; may count from the end." }
    outputs { y: "N-D array, twice as long as x on the axis." }
}

function! {
    /// Concatenated exponential linear units, `elu(x)` and `elu(-x)` along an axis.
    CELU celu in Activation, any_device
    inputs { x: "N-D array." }
    args {
        alpha: f64 = 1.0, "Minus the limit of each half.";
        axis: i64 = 1, "Axis of the concatenation; may count from the end."
    }
    outputs { y: "N-D array, twice as long as x on the axis." }
}

/// What the two have in common.
trait Halves {
    fn axis(&self) -> i64;
    /// The output for `z`, which is x in the first half and -x in the second.
    fn half(&self, z: &Expr) -> Expr;
    /// The part of x's gradient that comes from one half; `sign` is the half's.
    fn part(&self, x: &Expr, sign: &Expr, gy: &Expr) -> Expr;
    /// The whole gradient of x, from both halves of y and gy.
    fn whole(&self, y: [&Expr; 2], gy: [&Expr; 2]) -> Expr;

    fn sizes(&self, x: &Shape) -> Result<Sizes> {
        let axis = x.axis(self.axis(), "axis")?;
        Ok(Sizes { outer: x.size_to(axis), inner: x.size_from(axis) })
    }

    fn shape(&self, x: &Shape) -> Result<Shapes> {
        let axis = x.axis(self.axis(), "axis")?;
        Ok(smallvec![x.iter().enumerate().map(|(i, &n)| if i == axis { n.saturating_mul(2) } else { n }).collect()])
    }

    fn compute(&self, s: &Sizes, dtype: DType, x: &Data, y: &Data) -> Result<()> {
        let over = s.all(2);
        let formula = Formula::new(2, |v| vec![Some(self.half(&(&v[0] * &v[1])))]);
        let signs = signs(y.place(), dtype)?;
        let inputs = [(x, Walk::new(&s.all(1), &over)), (&signs, Walk::new(&Shape::from(SIGNS), &over))];
        ops::formula(&formula, &inputs, y, Output::Write)
    }

    fn differentiate(&self, s: &Sizes, y: &Data, gy: &Data, gx: &Data, output: Output) -> Result<()> {
        if gx.is_empty() {
            return Ok(());
        }
        let formula = Formula::new(4, |v| vec![Some(self.whole([&v[0], &v[1]], [&v[2], &v[3]]))]);
        let walk = || Walk::Strided(smallvec![(s.outer, 2 * s.inner), (s.inner, 1)]);
        let second = [y.after(s.inner), gy.after(s.inner)];
        let inputs = [(y, walk()), (&second[0], walk()), (gy, walk()), (&second[1], walk())];
        ops::formula(&formula, &inputs, gx, output)
    }

    fn rule(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let shape = g.x[0].shape();
        let s = self.sizes(&shape)?;
        let x = f::reshape(&g.x[0], f::Reshape::to(&s.all(1)))?;
        let gy = f::reshape(&g.gy[0], f::Reshape::to(&s.all(2)))?;
        let signs = Variable::from_slice(&[1.0f32, -1.0], SIGNS.into())?;
        let formula = Formula::new(3, |v| vec![Some(self.part(&v[0], &v[1], &v[2]))]);
        let parts = call_one(FormulaFunction::new(formula), &[&x, &signs, &gy])?;
        let sum = f::sum(&parts, f::Sum { axis: Some(vec![1]), keepdims: false })?;
        Ok(vec![Some(f::reshape(&sum, f::Reshape::to(&shape))?)])
    }
}

/// Shape of the signs against (outer, 2, inner).
const SIGNS: [usize; 3] = [1, 2, 1];

/// 1 and -1, in the type to compute in.
fn signs(place: Place, dtype: DType) -> Result<Data> {
    let signs = Data::new_at(place, dtype, 2)?;
    match place {
        Place::Gpu(_) => cuda::range::range(&signs, 1.0, -2.0, -1.0)?,
        Place::Host => with_real!(dtype, T => signs.as_mut_slice::<T>().copy_from_slice(&[1.0, -1.0])),
    }
    Ok(signs)
}

/// Elements before the axis, and from it on.
struct Sizes {
    outer: usize,
    inner: usize,
}

impl Sizes {
    fn all(&self, halves: usize) -> Shape {
        Shape::from([self.outer, halves, self.inner])
    }
}

impl Halves for CReLU {
    fn axis(&self) -> i64 {
        self.axis
    }
    fn half(&self, z: &Expr) -> Expr {
        z.max(0.0)
    }
    // At 0 and NaN the second half has the slope.
    fn part(&self, x: &Expr, sign: &Expr, gy: &Expr) -> Expr {
        x.gt(0.0).equal(sign.gt(0.0)).select(gy * sign, 0.0)
    }
    fn whole(&self, y: [&Expr; 2], gy: [&Expr; 2]) -> Expr {
        y[0].gt(0.0).select(gy[0], -gy[1])
    }
}

impl Halves for CELU {
    fn axis(&self) -> i64 {
        self.axis
    }
    fn half(&self, z: &Expr) -> Expr {
        elu_formula(z, self.alpha)
    }
    fn part(&self, x: &Expr, sign: &Expr, gy: &Expr) -> Expr {
        let z = x * sign;
        gy * sign * z.ge(0.0).select(1.0, not_positive(&z).exp() * self.alpha)
    }
    fn whole(&self, y: [&Expr; 2], gy: [&Expr; 2]) -> Expr {
        let slope = |y: &Expr| y.ge(0.0).select(1.0, y + self.alpha);
        slope(y[0]) * gy[0] - slope(y[1]) * gy[1]
    }
}

macro_rules! halves {
    ($name:ident, |$f:ident| $fast:expr) => {
        impl Function for $name {
            fn infer(&self, x: &[Shape]) -> Result<Shapes> {
                self.shape(&x[0])
            }

            fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
                let s = self.sizes(x[0].shape)?;
                self.compute(&s, run.dtype, &x[0].data, &y[0].data)
            }

            fn needs(&self, _want: &[bool]) -> Option<Needs> {
                let $f = self;
                $fast.then_some(Needs { x: 0, y: 1 })
            }

            fn backward(
                &self,
                _run: &Run,
                _x: &[Option<View>],
                y: &[Option<View>],
                gy: &[Option<View>],
                gx: &mut [Option<GradMut>],
            ) -> Result<()> {
                let (Some(y), Some(gy), Some(gx)) = (&y[0], &gy[0], &gx[0]) else { return Ok(()) };
                self.differentiate(&self.sizes(gx.shape)?, &y.data, &gy.data, &gx.data, gx.output)
            }

            fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
                self.rule(g)
            }
        }
    };
}

halves!(CReLU, |_f| true);
// With other slopes y does not tell the sides apart.
halves!(CELU, |f| keeps_sign(f.alpha));
