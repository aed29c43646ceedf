//! Initial values of parameters. Random ones come from the stream of [`crate::random`], so `set_function_seed` makes them repeat.

use crate::graph::Variable;
use nnrs_kernels::array::{Data, NdArray};
use nnrs_kernels::dtype::DType;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::random::next_draw;
use nnrs_kernels::random::philox;
use nnrs_kernels::shape::Shape;
use nnrs_kernels::simd;
use std::sync::Arc;

/// Something that makes initial values. Closures `|shape: &Shape| -> Result<NdArray>` are initializers too.
///
/// ```
/// use nnrs::initializer::{Constant, Initializer};
/// use nnrs::{NdArray, Shape};
/// let ramp = |shape: &Shape| NdArray::from_slice(&(0..shape.size() as i32).collect::<Vec<_>>(), shape.clone());
/// assert_eq!(ramp.make(&[2, 2].into())?.to_vec::<f32>()?, [0.0, 1.0, 2.0, 3.0]);
/// assert_eq!(Constant(0.5).make(&[2].into())?.to_vec::<f32>()?, [0.5, 0.5]);
/// # Ok::<(), nnrs::Error>(())
/// ```
pub trait Initializer: Send + Sync {
    /// New values of this shape.
    ///
    /// # Errors
    /// A shape that does not fit into memory, or that the initializer cannot fill.
    fn make(&self, shape: &Shape) -> Result<NdArray>;

    /// The argument that it was given as, for errors.
    #[doc(hidden)]
    fn argument(&self) -> &str {
        "initializer"
    }

    /// Told the parameter that has its values.
    #[doc(hidden)]
    fn made(&self, _parameter: &Variable) {}
}

impl<F: Fn(&Shape) -> Result<NdArray> + Send + Sync> Initializer for F {
    fn make(&self, shape: &Shape) -> Result<NdArray> {
        self(shape)
    }
}

/// The initial values that layers use where no others are given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Usual {
    /// The same number everywhere.
    Constant(f64),
    /// Uniform between two limits.
    Uniform(f64, f64),
    /// Normal of mean 0 and this standard deviation.
    Normal(f64),
}

/// Makes the initializers that layers use where no others are given.
pub trait Generator: Send + Sync {
    /// The initializer of such values.
    fn initializer(&self, usual: Usual) -> Arc<dyn Initializer>;

    /// The norms of a weight over all axes but `dim`, `sqrt(sum w^2 + eps)`, by its values at that time.
    fn norms(&self, w: &Variable, dim: i64, eps: f64) -> Arc<dyn Initializer> {
        Arc::new(Norms { w: w.clone(), dim, eps })
    }
}

/// The generator of Rust programs: the stream of [`crate::random`].
pub(crate) struct Stream;

impl Generator for Stream {
    fn initializer(&self, usual: Usual) -> Arc<dyn Initializer> {
        match usual {
            Usual::Constant(v) => Arc::new(Constant(v)),
            Usual::Uniform(low, high) => Arc::new(Uniform(low, high)),
            Usual::Normal(sigma) => Arc::new(Normal(sigma)),
        }
    }
}

/// The norms of a weight.
struct Norms {
    w: Variable,
    dim: i64,
    eps: f64,
}

/// The same number everywhere.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Constant(pub f64);

/// Uniform numbers, at least the first and less than the second.
///
/// ```
/// use nnrs::initializer::{Initializer, Uniform};
/// let values: Vec<f32> = Uniform(1.0, 2.0).make(&[100].into())?.to_vec()?;
/// assert!(values.iter().all(|v| (1.0..2.0).contains(v)));
/// # Ok::<(), nnrs::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Uniform(pub f64, pub f64);

/// Normal numbers of mean 0 and the given standard deviation.
///
/// ```
/// use nnrs::initializer::{Initializer, Normal};
/// let values: Vec<f64> = Normal(2.0).make(&[10_000].into())?.to_vec()?;
/// let variance = values.iter().map(|v| v * v).sum::<f64>() / 1e4;
/// assert!((3.0..5.0).contains(&variance));
/// # Ok::<(), nnrs::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Normal(pub f64);

/// Orthonormal rows (or columns, where there are fewer) times the given gain; the axes after the first count as one
/// (Saxe et al., 2014).
///
/// ```
/// use nnrs::initializer::{Initializer, Orthogonal};
/// let w: Vec<f32> = Orthogonal(1.0).make(&[2, 3].into())?.to_vec()?;
/// let dot = |i: usize, j: usize| (0..3).map(|k| w[3 * i + k] * w[3 * j + k]).sum::<f32>();
/// assert!((dot(0, 0) - 1.0).abs() < 1e-5 && dot(0, 1).abs() < 1e-5);
/// # Ok::<(), nnrs::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Orthogonal(pub f64);

impl Initializer for Norms {
    fn make(&self, shape: &Shape) -> Result<NdArray> {
        let (values, of) = (self.w.to_vec::<f64>()?, self.w.shape());
        let dim = of.axis(self.dim, "dim")?;
        let (n, inner) = (of[dim], of.size_from(dim + 1).max(1));
        let mut sums = vec![0.0; n];
        for (i, row) in values.chunks(inner).enumerate() {
            sums[i % n] += row.iter().map(|v| v * v).sum::<f64>();
        }
        let norms: Vec<f32> = sums.iter().map(|sum| (sum + self.eps).sqrt() as f32).collect();
        NdArray::from_slice(&norms, shape.clone())
    }
}

impl Initializer for Constant {
    fn make(&self, shape: &Shape) -> Result<NdArray> {
        let a = NdArray::new(shape.clone().checked()?);
        a.fill(self.0)?;
        Ok(a)
    }
}

impl Initializer for Uniform {
    fn make(&self, shape: &Shape) -> Result<NdArray> {
        filled(shape, |y| philox::uniform(next_draw(), y, self.0, self.1))
    }
}

impl Initializer for Normal {
    fn make(&self, shape: &Shape) -> Result<NdArray> {
        filled(shape, |y| philox::normal(next_draw(), y, 0.0, self.0))
    }
}

impl Initializer for Orthogonal {
    fn make(&self, shape: &Shape) -> Result<NdArray> {
        if shape.ndim() == 0 {
            return Err(Error::shape("shape", "at least one axis").actual(shape).function("Orthogonal"));
        }
        shape.check()?;
        let (rows, cols) = (shape[0], shape.size_from(1));
        let (few, many) = (rows.min(cols), rows.max(cols));
        let data = Data::new(DType::F64, few * many)?;
        let q = data.as_mut_slice::<f64>();
        philox::normal(next_draw(), q, 0.0, 1.0);
        orthonormalize(q, many);
        let element = |i: usize, j: usize| if rows <= cols { q[i * cols + j] } else { q[j * rows + i] };
        filled(shape, |y| {
            for (k, y) in y.iter_mut().enumerate() {
                *y = (self.0 * element(k / cols, k % cols)) as f32;
            }
        })
    }
}

fn filled(shape: &Shape, fill: impl FnOnce(&mut [f32])) -> Result<NdArray> {
    let a = NdArray::new(shape.clone().checked()?);
    fill(a.overwrite(DType::F32)?.as_mut_slice());
    Ok(a)
}

/// Gram and Schmidt's method on rows of length `n`, done twice, which is as exact as can be.
fn orthonormalize(q: &mut [f64], n: usize) {
    for end in (n..=q.len()).step_by(n.max(1)) {
        let (done, row) = q[..end].split_at_mut(end - n);
        for _ in 0..2 {
            done.chunks(n).for_each(|other| simd::axpy(row, -simd::dot(row, other), other));
            simd::scale(row, 1.0 / simd::sum_squares(row).sqrt());
        }
    }
}

fn product(kernel: &[usize]) -> f64 {
    kernel.iter().map(|&k| k as f64).product()
}

/// Standard deviation that keeps the scale of activations through a ReLU layer, `sqrt(2 / (inmaps kernel))` (He et al., 2015).
pub fn calc_normal_std_he_forward(inmaps: usize, _outmaps: usize, kernel: &[usize]) -> f64 {
    (2.0 / (product(kernel) * inmaps as f64)).sqrt()
}

/// Standard deviation that keeps the scale of gradients through a ReLU layer, `sqrt(2 / (outmaps kernel))` (He et al., 2015).
pub fn calc_normal_std_he_backward(_inmaps: usize, outmaps: usize, kernel: &[usize]) -> f64 {
    (2.0 / (product(kernel) * outmaps as f64)).sqrt()
}

/// Standard deviation that keeps both scales, `sqrt(2 / (kernel (inmaps + outmaps)))` (Glorot and Bengio, 2010).
pub fn calc_normal_std_glorot(inmaps: usize, outmaps: usize, kernel: &[usize]) -> f64 {
    (2.0 / (product(kernel) * (inmaps + outmaps) as f64)).sqrt()
}

/// Limits of the uniform distribution that keeps both scales, `sqrt(6 / (kernel (inmaps + outmaps)))` (Glorot and Bengio, 2010).
pub fn calc_uniform_lim_glorot(inmaps: usize, outmaps: usize, kernel: &[usize]) -> (f64, f64) {
    let limit = (6.0 / (product(kernel) * (inmaps + outmaps) as f64)).sqrt();
    (-limit, limit)
}

#[cfg(feature = "emulate")]
mod tests {
    use super::*;

    nnrs_kernels::unit_test!(random_values_have_their_moments);
    fn random_values_have_their_moments() {
        let moments = |i: &dyn Initializer| {
            let v: Vec<f64> = i.make(&[100, 1000].into()).unwrap().to_vec().unwrap();
            let mean = v.iter().sum::<f64>() / 1e5;
            (mean, v.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 1e5)
        };
        let (mean, variance) = moments(&Uniform(-1.0, 2.0));
        assert!((mean - 0.5).abs() < 0.02 && (variance - 0.75).abs() < 0.02, "{mean} {variance}");
        let (mean, variance) = moments(&Normal(3.0));
        assert!(mean.abs() < 0.06 && (variance - 9.0).abs() < 0.25, "{mean} {variance}");
        assert_eq!(moments(&Constant(0.5)), (0.5, 0.0));
        let twos = |s: &Shape| Constant(2.0).make(s);
        assert_eq!(twos.make(&[2].into()).unwrap().to_vec::<f32>().unwrap(), [2.0, 2.0]);
    }

    nnrs_kernels::unit_test!(orthogonal_rows_or_columns);
    fn orthogonal_rows_or_columns() {
        for shape in [[3, 5], [5, 3], [4, 4], [1, 7], [7, 1], [0, 3], [3, 0]] {
            let (r, c) = (shape[0], shape[1]);
            let w: Vec<f64> = Orthogonal(2.0).make(&shape.into()).unwrap().to_vec().unwrap();
            let (few, many) = (r.min(c), r.max(c));
            let at = |i: usize, k: usize| if r <= c { w[i * c + k] } else { w[k * c + i] };
            for (i, j) in (0..few).flat_map(|i| (0..few).map(move |j| (i, j))) {
                let dot: f64 = (0..many).map(|k| at(i, k) * at(j, k)).sum();
                assert!((dot - if i == j { 4.0 } else { 0.0 }).abs() < 1e-6, "{shape:?} {i} {j}: {dot}");
            }
        }
        assert!(Orthogonal(1.0).make(&Shape::default()).is_err());
    }

    nnrs_kernels::unit_test!(norms_over_all_axes_but_one);
    fn norms_over_all_axes_but_one() {
        let w = Variable::from_slice(&[3.0f32, 0.0, 1.0, 4.0, 2.0, 2.0], [2, 3, 1].into()).unwrap();
        let norms =
            |dim, shape: &[usize]| Stream.norms(&w, dim, 0.0).make(&shape.into()).unwrap().to_vec::<f64>().unwrap();
        assert_eq!(norms(1, &[3]).iter().map(|n| (n * n).round()).collect::<Vec<_>>(), [25.0, 4.0, 5.0]);
        assert_eq!(norms(-3, &[2]).iter().map(|n| (n * n).round()).collect::<Vec<_>>(), [10.0, 24.0]);
        assert!(Stream.norms(&w, 3, 0.0).make(&[1].into()).is_err());
    }

    nnrs_kernels::unit_test!(scales_by_their_formulas);
    fn scales_by_their_formulas() {
        assert_eq!(calc_normal_std_he_forward(8, 4, &[2, 2]), 0.25);
        assert_eq!(calc_normal_std_he_backward(4, 8, &[2, 2]), 0.25);
        assert_eq!(calc_normal_std_glorot(5, 3, &[1, 1]), 0.5);
        assert_eq!(calc_uniform_lim_glorot(4, 2, &[]), (-1.0, 1.0));
    }
}
