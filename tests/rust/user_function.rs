//! Functions written in another crate, which this file is: an element-wise one that fuses, one with a structure of its
//! own, one over whole variables. With gradients of any order, in all types; no Python.

use nnrs::array::{Place, Strided, alloc};
use nnrs::dtype::Element;
use nnrs::expr::Expr;
use nnrs::function::{Call, Elementwise, Function, Grad, Gradients, Needs, OnVariables, Output};
use nnrs::function::{Resolved, Run, Shapes, View, ViewMut};
use nnrs::graph::{self, mode};
use nnrs::{Context, DType, Error, Result, Shape, Variable, function, functions as f, with_real};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

function! {
    /// `x` exp(-`rate` `x`²).
    Ripple ripple in Special, elementwise
    inputs { x: "N-D array." }
    args { rate: f64 = 0.5, "How fast it fades." }
    outputs { y: "N-D array of x's shape." }
}

impl Elementwise for Ripple {
    fn formula(&self, x: &[Expr]) -> Expr {
        &x[0] * (x[0].square() * -self.rate).exp()
    }
}

function! {
    /// Scalar products of rows: `y[i] = scale sum_j a[i, j] b[i, j]`.
    RowDot row_dot in Special
    inputs { a: "Matrix (n, m).", b: "Matrix (n, m)." }
    args { scale: f64 = 1.0, "Factor." }
    outputs { y: "Vector (n)." }
}

/// `RowDot` of rows of `m` elements.
struct Rows {
    m: usize,
    scale: f64,
}

/// Inputs that `Rows` has read with strides.
static VIEWS: AtomicUsize = AtomicUsize::new(0);

impl Function for RowDot {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        if x[0].ndim() != 2 {
            return Err(Error::shape("a", "a matrix").actual(&x[0]).hint("reshape makes one"));
        }
        if x[1] != x[0] {
            return Err(Error::shape("b", format!("shape {}", x[0])).actual(&x[1]));
        }
        Ok(Resolved::one([x[0][0]], Rows { m: x[0][1], scale: self.scale }))
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let (n, m) = (g.x[0].shape()[0], g.call::<Rows>().m);
        let column = f::reshape(&g.gy[0], f::Reshape { shape: vec![n as i64, 1], inplace: true })?;
        let column = f::mul_scalar(&column, f::MulScalar { val: self.scale, inplace: false })?;
        let column = f::broadcast(&column, f::Broadcast { shape: vec![n as i64, m as i64] })?;
        let part = |other: &Variable| f::mul2(&column, other, f::Mul2::default()).map(Some);
        Ok(vec![part(&g.x[1])?, part(&g.x[0])?])
    }
}

impl Call for Rows {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        VIEWS.fetch_add(x.iter().filter(|x| x.strides().is_some()).count(), Relaxed);
        with_real!(run.dtype, T => {
            let (a, b, mut y) = (x[0].view::<T>(), x[1].view::<T>(), y[0].view::<T>());
            for ((a, b), y) in a.outer_iter().zip(b.outer_iter()).zip(&mut y) {
                let products = a.iter().zip(&b).map(|(a, b)| a.to_f64() * b.to_f64());
                *y = T::from_f64(self.scale * products.sum::<f64>());
            }
        });
        Ok(())
    }

    fn takes_strides(&self, _i: usize, _x: &Strided, place: Place) -> bool {
        place == Place::Host
    }

    fn needs(&self, want: &[bool]) -> Option<Needs> {
        Some(Needs { x: want[1] as u32 | (want[0] as u32) << 1, y: 0 })
    }

    fn backward(&self, run: &Run, Gradients { x, gy, gx, .. }: Gradients) -> Result<()> {
        for (i, gx) in gx.iter_mut().enumerate() {
            let (Some(gx), Some(gy), Some(other)) = (gx, &gy[0], &x[1 - i]) else { continue };
            let output = gx.output;
            with_real!(run.dtype, T => {
                let other = other.view::<T>();
                for (k, (g, other)) in gx.slice::<T>().iter_mut().zip(&other).enumerate() {
                    let part = T::from_f64(self.scale) * gy.slice::<T>()[k / self.m] * *other;
                    *g = if output == Output::Write { part } else { *g + part };
                }
            });
        }
        Ok(())
    }
}

function! {
    /// The largest element, by code that looks at whole arrays.
    Peak peak in Special
    inputs { x: "N-D array." }
    args {}
    outputs { y: "0-D array." }
}

impl Function for Peak {
    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let is_peak = f::equal(&g.x[0], &f::broadcast(&g.y[0], f::Broadcast::to(&g.x[0].shape()))?)?;
        f::mul2(&is_peak, &g.gy[0], f::Mul2::default()).map(|part| vec![Some(part)])
    }

    fn on_variables(&self) -> Option<&dyn OnVariables> {
        Some(self)
    }
}

impl OnVariables for Peak {
    fn setup(&self, _: &[Variable]) -> Result<Shapes> {
        Ok([Shape::default()].into_iter().collect())
    }

    fn forward(&self, x: &[Variable], y: &[Variable]) -> Result<()> {
        let peak = x[0].to_vec::<f64>()?.into_iter().fold(f64::NEG_INFINITY, f64::max);
        y[0].raw_data().fill(peak)
    }

    fn backward(&self, x: &[Variable], y: &[Variable], want: &[bool], accumulate: &[bool]) -> Result<()> {
        assert_eq!(want, [true]);
        let (peak, gy) = (y[0].to_vec::<f64>()?[0], y[0].grad().to_vec::<f64>()?[0]);
        let old: Vec<f64> = if accumulate[0] { x[0].grad().to_vec()? } else { vec![0.0; x[0].size()] };
        let data = x[0].to_vec::<f64>()?;
        let new: Vec<f64> = data.iter().zip(old).map(|(v, old)| old + if *v == peak { gy } else { 0.0 }).collect();
        x[0].grad().write(&new)
    }
}

fn leaf(values: &[f64], shape: &[usize]) -> Variable {
    Variable::from_slice(values, shape.into()).unwrap().with_need_grad(true)
}

fn in_type<R>(dtype: DType, body: impl FnOnce() -> R) -> R {
    let old = mode::set_context(Arc::new(Context::cpu(dtype).unwrap()));
    let made = body();
    mode::set_context(old);
    made
}

fn close(got: &[f64], want: &[f64], eps: f64) {
    assert_eq!(got.len(), want.len());
    got.iter().zip(want).for_each(|(g, w)| assert!((g - w).abs() <= eps * w.abs().max(1.0), "{got:?} for {want:?}"));
}

fn derivative(y: &Variable, x: &Variable) -> Variable {
    graph::grad(&[y], &[x], &[]).unwrap()[0].clone().unwrap()
}

fn values(v: &Variable) -> Vec<f64> {
    v.forward().unwrap();
    v.to_vec().unwrap()
}

const X: [f64; 4] = [0.5, -1.0, 2.0, -0.25];

#[test]
fn an_element_wise_function_has_all_derivatives() {
    in_type(DType::F64, || {
        let x = leaf(&X, &[4]);
        let y = ripple(&x, Ripple::default()).unwrap();
        let e = |x: f64| (-0.5 * x * x).exp();
        let (y1, y2, y3);
        y1 = derivative(&y, &x);
        y2 = derivative(&y1, &x);
        y3 = derivative(&y2, &x);
        close(&values(&y), &X.map(|x| x * e(x)), 1e-12);
        close(&values(&y1), &X.map(|x| (1.0 - x * x) * e(x)), 1e-12);
        close(&values(&y2), &X.map(|x| (x * x * x - 3.0 * x) * e(x)), 1e-12);
        close(&values(&y3), &X.map(|x| (-x.powi(4) + 6.0 * x * x - 3.0) * e(x)), 1e-12);
        y.backward().unwrap();
        close(&x.grad().to_vec::<f64>().unwrap(), &X.map(|x| (1.0 - x * x) * e(x)), 1e-12);
    });
}

/// Bytes that a forward run needs at most beside what is there before, in arrays of x's size.
fn arrays_at_most(x: &Variable) -> usize {
    let (a, b) = (ripple(x, Ripple { rate: 0.1 }).unwrap(), f::sin(x).unwrap());
    let mut h = f::mul2(&a, &b, f::Mul2::default()).unwrap();
    h = f::add2(&h, &ripple(&b, Ripple { rate: 0.2 }).unwrap(), f::Add2::default()).unwrap();
    drop((a, b));
    let before = alloc::stats().live;
    alloc::reset_peak();
    h.forward().unwrap();
    (alloc::stats().peak - before) / (4 * x.size())
}

#[test]
fn it_is_fused_with_its_neighbours() {
    let x = Variable::from_slice(&vec![0.5f32; 1 << 20], [1 << 20].into()).unwrap();
    assert_eq!(arrays_at_most(&x), 1, "five functions and no array between them");
    let old = graph::set_fusion(false);
    assert!(arrays_at_most(&x) >= 2);
    graph::set_fusion(old);
}

#[test]
fn one_with_a_structure_of_its_own() {
    let (a, b): (Vec<f64>, Vec<f64>) =
        ((0..6).map(|v| v as f64 * 0.5).collect(), (0..6).map(|v| 3.0 - v as f64).collect());
    for (dtype, eps) in [(DType::F64, 1e-12), (DType::F32, 1e-6), (DType::F16, 1e-2), (DType::BF16, 5e-2)] {
        in_type(dtype, || {
            let (x, w) = (leaf(&a, &[2, 3]), leaf(&b, &[2, 3]));
            let y = row_dot(&x, &w, RowDot { scale: 2.0 }).unwrap();
            close(&values(&y), &[4.0, -14.0], eps);
            (0..2).for_each(|_| y.backward().unwrap());
            close(&x.grad().to_vec::<f64>().unwrap(), &b.iter().map(|v| 4.0 * v).collect::<Vec<_>>(), eps);
            close(&w.grad().to_vec::<f64>().unwrap(), &a.iter().map(|v| 4.0 * v).collect::<Vec<_>>(), eps);
            let gx = derivative(&y, &x);
            close(&values(&gx), &b.iter().map(|v| 2.0 * v).collect::<Vec<_>>(), eps);
            close(&values(&derivative(&gx, &w)), &[2.0; 6], eps);
        });
    }
}

#[test]
fn its_kernel_reads_transposed_arrays_where_they_lie() {
    let (x, w) = (leaf(&[0.5, -1.0, 2.0, 0.25, 1.0, -0.5], &[3, 2]), leaf(&[1.0, 2.0, 3.0, -1.0, -2.0, -3.0], &[2, 3]));
    let turned = f::transpose(
        &f::add_scalar(&x, f::AddScalar { val: 0.0, inplace: false }).unwrap(),
        f::Transpose { axes: vec![1, 0].into() },
    )
    .unwrap();
    let y = row_dot(&turned, &w, RowDot { scale: 2.0 }).unwrap();
    drop(turned);
    assert_eq!(values(&y), [2.0 * (0.5 + 4.0 + 3.0), 2.0 * (1.0 - 0.5 + 1.5)]);
    assert_eq!(VIEWS.load(Relaxed), 1);
    x.grad().zero().unwrap();
    w.grad().zero().unwrap();
    y.backward().unwrap();
    assert_eq!(x.grad().to_vec::<f64>().unwrap(), [2.0, -2.0, 4.0, -4.0, 6.0, -6.0]);
    assert_eq!(w.grad().to_vec::<f64>().unwrap(), [1.0, 4.0, 2.0, -2.0, 0.5, -1.0]);
}

#[test]
fn its_errors_help_and_its_arguments_are_seen() {
    let (x, wrong) = (Variable::new([2, 3]), Variable::new([3, 2]));
    let e = row_dot(&x, &wrong, RowDot::default()).unwrap_err().to_string();
    assert!(e.starts_with("row_dot: argument 'b': expected shape (2, 3), got (3, 2)"), "{e}");
    let e = row_dot(&Variable::new([6]), &x, RowDot::default()).unwrap_err().to_string();
    assert!(e.contains("hint: reshape makes one"), "{e}");
    let y = nnrs::function::call_one(RowDot { scale: 3.0 }, &[&x, &x]).unwrap();
    let node = y.parent().unwrap();
    assert_eq!((node.class_name(), node.name()), ("RowDot", "row_dot"));
    assert_eq!(node.arguments(), [("scale", nnrs::function::ArgValue::Float(3.0))]);
    assert!(node.grad_reads_input(0, 1) && !node.grad_reads_input(0, 0) && !node.grad_reads_output(0, 0));
    assert!(node.rule_reads_input(1, 0) && !node.rule_reads_input(1, 1));
}

#[test]
fn one_over_whole_variables() {
    in_type(DType::F64, || {
        let x = leaf(&X, &[4]);
        let h = f::mul2(&x, &x, f::Mul2::default()).unwrap();
        let y = f::exp(&peak(&h).unwrap()).unwrap();
        let expected: Vec<f64> = X.iter().map(|v| if *v == 2.0 { 2.0 * v * 4f64.exp() } else { 0.0 }).collect();
        for _ in 0..2 {
            y.forward().unwrap();
            x.grad().zero().unwrap();
            y.backward().unwrap();
            close(&x.grad().to_vec::<f64>().unwrap(), &expected, 1e-12);
        }
        close(&values(&derivative(&y, &x)), &expected, 1e-12);
        x.reset_shape([2], true).unwrap();
        x.raw_data().write(&[3.0, 1.0]).unwrap();
        close(&values(&y), &[9f64.exp()], 1e-12);
    });
}

#[test]
fn called_directly() {
    let y = row_dot(&Variable::new([1, 1]), &Variable::new([1, 1]), RowDot { scale: 2.0 }).unwrap();
    let node = y.parent().unwrap();
    let (a, b, out) = (leaf(&X, &[2, 2]), leaf(&X, &[2, 2]), Variable::new([]));
    node.setup(&[&a, &b], &[&out]).unwrap();
    node.forward(&[&a, &b], &[&out]).unwrap();
    close(&out.to_vec::<f64>().unwrap(), &[2.5, 8.125], 1e-6);
    out.grad().fill(1.0).unwrap();
    (0..2).for_each(|_| node.backward(&[&a, &b], &[&out], &[true, false]).unwrap());
    close(&a.grad().to_vec::<f64>().unwrap(), &X.map(|x| 4.0 * x), 1e-6);
    close(&b.grad().to_vec::<f64>().unwrap(), &X.map(|x| 2.0 * x), 1e-6);
    assert!(node.forward(&[&a, &b], &[&Variable::new([7])]).unwrap_err().to_string().contains("setup"));
}

#[test]
fn a_registered_rule_takes_the_place_of_the_own_one() {
    function! {
        /// 2 x.
        Twice twice in Special, elementwise
        inputs { x: "N-D array." }
        args {}
        outputs { y: "N-D array." }
    }
    impl Elementwise for Twice {
        fn formula(&self, x: &[Expr]) -> Expr {
            &x[0] * 2.0
        }
    }
    let x = leaf(&X, &[4]);
    let rule: graph::GradientRule = Arc::new(|f, g| {
        assert_eq!(f.class_name(), "Twice");
        Ok(vec![Some(f::mul_scalar(&g.gy[0], f::MulScalar { val: 7.0, inplace: false })?)])
    });
    assert!(graph::register_gradient("Twice", rule).is_none());
    close(&values(&derivative(&twice(&x).unwrap(), &x)), &[7.0; 4], 0.0);
    assert!(graph::unregister_gradient("Twice").is_some());
    let g = derivative(&twice(&x).unwrap(), &x);
    g.forward().ok();
    close(&g.to_vec::<f64>().unwrap(), &[2.0; 4], 0.0);
    graph::register_gradient("Twice", Arc::new(|_, _| Ok(vec![])));
    let e = graph::grad(&[&twice(&x).unwrap()], &[&x], &[]).unwrap_err().to_string();
    graph::unregister_gradient("Twice");
    assert!(e.contains("1 gradients, one for each input, got 0"), "{e}");
}

#[test]
fn an_active_input_mask() {
    let x: Vec<Variable> = (1..4).map(|k| leaf(&[k as f64], &[1])).collect();
    let y = f::add_n(&x.iter().collect::<Vec<_>>()).unwrap();
    close(&values(&y), &[6.0], 0.0);
    y.parent().unwrap().set_active_inputs(&[true, false, true]).unwrap();
    close(&values(&y), &[4.0], 0.0);
    assert_eq!(y.parent().unwrap().inputs().len(), 3);
    assert!(y.parent().unwrap().set_active_inputs(&[false; 3]).is_err());
}

/// What [`Unruly`] gives where a function has to give something for each output and input.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Wrong {
    NoShapes,
    NoGradients,
    TooMany,
    AnotherShape,
}

struct Unruly(Wrong);

impl nnrs::function::Described for Unruly {
    fn def(&self) -> &'static nnrs::function::Def {
        Peak::DEF
    }
    fn arguments(&self) -> Vec<(&'static str, nnrs::function::ArgValue)> {
        vec![]
    }
    fn key(&self) -> nnrs::function::args::ArgumentsKey {
        nnrs::function::args::key(|h| h(self.0 as u64))
    }
}

impl Function for Unruly {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let n = if self.0 == Wrong::NoShapes { 0 } else { 1 };
        let copy = |_: &Run, x: &[View], y: &mut [ViewMut]| {
            y[0].slice::<f32>().copy_from_slice(x[0].slice());
            Ok(())
        };
        Ok(Resolved::new(x[..n].iter().cloned().collect(), copy))
    }
    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let one = Some(g.gy[0].clone());
        Ok(match self.0 {
            Wrong::TooMany => vec![None, None, one],
            Wrong::AnotherShape => vec![Some(Variable::new([7]))],
            Wrong::NoShapes | Wrong::NoGradients => vec![],
        })
    }
}

#[test]
fn what_is_missing_or_too_much_is_an_error() {
    let x = Variable::from_slice(&[1.0f32, 2.0], [2].into()).unwrap().with_need_grad(true);
    let e = nnrs::function::call_one(Unruly(Wrong::NoShapes), &[&x]).unwrap_err();
    assert!(e.to_string().contains("at least one output"), "{e}");
    let cases = [
        (Wrong::NoGradients, "1", "0"),
        (Wrong::TooMany, "1", "3"),
        (Wrong::AnotherShape, "a gradient of shape (2,)", "(7,)"),
    ];
    for (wrong, want, got) in cases {
        let y = nnrs::function::call_one(Unruly(wrong), &[&x]).unwrap();
        y.forward().unwrap();
        for e in [y.backward().unwrap_err(), graph::grad(&[&y], &[&x], &[]).unwrap_err()] {
            let text = e.to_string();
            assert!(text.contains(&format!("`grad` to give {want}")) && text.contains(&format!("got {got}")), "{text}");
        }
    }
}
