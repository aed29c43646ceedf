//! Functions of your own in Rust, in a crate of your own: nothing of nnrs is built again or registered.
//!
//!     cargo run --release --example custom_function
//!
//! `Snake` works element by element, so it is a formula: derivatives and fusion follow. `SquaredDistance` has a structure
//! of its own, so it has a kernel, and its gradient is written in terms of other functions. Both have derivatives of any
//! order; a small network is trained with both.

use nnrs::array::alloc;
use nnrs::dtype::Element;
use nnrs::expr::Expr;
use nnrs::function::{Elementwise, Function, Grad, Resolved, Run, View, ViewMut};
use nnrs::parametric::{Affine, affine};
use nnrs::solver::{Adam, Keep, Solver};
use nnrs::{BackwardOptions, Error, ForwardOptions, Result, Shape, Variable};
use nnrs::{function, functions as f, graph, parameter, random, with_real};

function! {
    /// `x` + sin²(`a` `x`) / `a`: an activation for periodic data (Ziyin et al. 2020, arXiv:2006.08195).
    Snake snake in Special, elementwise
    inputs { x: "N-D array." }
    args { a: f64 = 1.0, "Frequency." }
    outputs { y: "N-D array of x's shape." }
}

impl Elementwise for Snake {
    fn formula(&self, x: &[Expr]) -> Expr {
        &x[0] + (&x[0] * self.a).sin().square() / self.a
    }
}

function! {
    /// Squared distances of the rows of two matrices: `y[i] = sum_j (a[i, j] - b[i, j])²`.
    SquaredDistance squared_distance in Special
    inputs { a: "Matrix (n, m).", b: "Matrix (n, m)." }
    args {}
    outputs { y: "Vector (n)." }
}

impl Function for SquaredDistance {
    /// Checks the shapes; gives that of the output, and the kernel, for f32 and f64: other types are converted by the engine.
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        if x[0].ndim() != 2 {
            return Err(Error::shape("a", "a matrix").actual(&x[0]));
        }
        if x[1] != x[0] {
            return Err(Error::shape("b", format!("shape {}", x[0])).actual(&x[1]));
        }
        let kernel = |run: &Run, x: &[View], y: &mut [ViewMut]| {
            with_real!(run.dtype, T => {
                let (a, b, mut y) = (x[0].view::<T>(), x[1].view::<T>(), y[0].view::<T>());
                for ((a, b), y) in a.outer_iter().zip(b.outer_iter()).zip(&mut y) {
                    *y = T::from_f64(a.iter().zip(&b).map(|(a, b)| (a.to_f64() - b.to_f64()).powi(2)).sum());
                }
            });
            Ok(())
        };
        Ok(Resolved::one([x[0][0]], kernel))
    }

    /// 2 gy (a - b), and the same with the other sign. `backward` uses this too, as there is no kernel for it.
    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let rows = g.x[0].shape()[0] as i64;
        let gy = f::reshape(&g.gy[0], f::Reshape { shape: vec![rows, 1], inplace: true })?;
        let ga = ((&gy * 2.0)? * (&g.x[0] - &g.x[1])?)?;
        let gb = (&ga * -1.0)?;
        Ok(vec![Some(ga), Some(gb)])
    }
}

fn derivative(y: &Variable, x: &Variable) -> Result<Variable> {
    graph::grad(&[y], &[x], &[])?.swap_remove(0).ok_or_else(|| Error::graph("y does not depend on x"))
}

fn check(what: &str, got: &Variable, expected: &[f64]) -> Result<()> {
    got.forward()?;
    let got: Vec<f64> = got.to_vec()?;
    println!("{what:<40} {got:8.4?}");
    assert!(got.iter().zip(expected).all(|(g, e)| (g - e).abs() < 1e-5), "{what}: expected {expected:?}");
    Ok(())
}

/// First and second derivatives beside their formulas.
fn derivatives() -> Result<()> {
    let (values, a) = ([0.5, -1.0, 2.0, 0.25], 1.5);
    let x = Variable::from_slice(&values, [2, 2].into())?.with_need_grad(true);
    let first = derivative(&snake(&x, Snake { a })?, &x)?;
    check("snake'  = 1 + sin 2ax", &first, &values.map(|x| 1.0 + (2.0 * a * x).sin()))?;
    check("snake'' = 2a cos 2ax", &derivative(&first, &x)?, &values.map(|x| 2.0 * a * (2.0 * a * x).cos()))?;

    // Of the fourth power of a distance to the origin: 4 (x·x) x, and the derivative of the sum of that.
    let y = squared_distance(&x, &Variable::new([2, 2]))?;
    let first = derivative(&(&y * &y)?, &x)?;
    let norm = |k: usize| values[k / 2 * 2].powi(2) + values[k / 2 * 2 + 1].powi(2);
    let sum = |k: usize| values[k / 2 * 2] + values[k / 2 * 2 + 1];
    let expected = [0, 1, 2, 3].map(|k| 4.0 * norm(k) * values[k]);
    check("distance^4, first derivative", &first, &expected)?;
    let expected = [0, 1, 2, 3].map(|k| 4.0 * norm(k) + 8.0 * sum(k) * values[k]);
    check("distance^4, second derivative", &derivative(&first, &x)?, &expected)
}

/// Bytes that a chain with `Snake` in it needs, and the bytes of its result: no array in between is made.
fn fusion() -> Result<()> {
    let x = Variable::from_slice(&vec![0.5f32; 1 << 16], [1 << 16].into())?;
    let y = f::tanh(&snake(&f::exp(&x)?, Snake::default())?)?;
    let before = alloc::stats().live;
    alloc::reset_peak();
    y.forward()?;
    let (used, result) = (alloc::stats().peak - before, 4 * y.size());
    println!("tanh(snake(exp(x))) needed {used} bytes, its result has {result}");
    assert_eq!(used, result, "nothing between them is stored");
    Ok(())
}

/// Trains a network to find the point of the circle for an angle; gives the first and the last loss.
fn train(steps: usize) -> Result<(f64, f64)> {
    random::set_function_seed(313);
    let angles: Vec<f32> = (0..64).map(|i| i as f32 / 32.0 - 1.0).collect();
    let points: Vec<f32> = angles.iter().flat_map(|a| [(4.0 * a).cos(), (4.0 * a).sin()]).collect();
    let (x, t) = (Variable::from_slice(&angles, [64, 1].into())?, Variable::from_slice(&points, [64, 2].into())?);
    let h = snake(&affine("hidden", &x, 32, Affine::default())?, Snake { a: 2.0 })?;
    let loss = f::mean(&squared_distance(&affine("point", &h, 2, Affine::default())?, &t)?, f::Mean::default())?;
    let solver = Solver::new(Adam { alpha: 0.01, ..Default::default() });
    solver.set_parameters(&parameter::get_parameters(), Keep::Nothing)?;
    let mut losses = vec![];
    for _ in 0..steps {
        loss.forward_with(ForwardOptions { clear_no_need_grad: true, ..Default::default() })?;
        solver.zero_grad()?;
        loss.backward_with(BackwardOptions { clear_buffer: true, ..Default::default() })?;
        solver.update()?;
        losses.push(loss.to_vec::<f64>()?[0]);
    }
    Ok((losses[0], losses[steps - 1]))
}

fn main() -> Result<()> {
    derivatives()?;
    fusion()?;
    let (first, last) = train(200)?;
    println!("loss {first:.4} -> {last:.4}");
    assert!(last < 0.05 * first, "the network did not learn");
    Ok(())
}

#[test]
fn it_runs() -> Result<()> {
    main()
}
