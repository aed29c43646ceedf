//! Small things that tests of graphs share. Checks of a function against a formula: values in f64 and f32, the fast
//! gradient against differences and against the graph rule, the rule's own gradients against differences of the fast one.

use nnrs::function::Grad;
use nnrs::graph::mode;
use nnrs::{Context, DType, NdArray, Shape, Variable, functions as f};
use std::sync::Arc;

/// Numbers that look random, between -1 and 1, none of them close to another in short arrays.
pub fn noise(n: usize, seed: u64) -> Vec<f64> {
    let mut s = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        s ^= s << 13;
        s ^= s >> 7;
        s ^= s << 17;
        (s >> 40) as f64 / (1u64 << 23) as f64 - 1.0
    };
    (0..n).map(|_| next()).collect()
}

/// One input: its shape, its numbers, and whether its gradient is checked.
#[derive(Clone)]
pub struct Input {
    pub shape: Vec<usize>,
    pub data: Vec<f64>,
    pub differentiable: bool,
}

pub fn input(shape: &[usize], seed: u64) -> Input {
    Input { shape: shape.to_vec(), data: noise(shape.iter().product(), seed), differentiable: true }
}

/// An input without gradient.
pub fn given(shape: &[usize], data: Vec<f64>) -> Input {
    Input { shape: shape.to_vec(), data, differentiable: false }
}

type Numbers = Vec<Vec<f64>>;

pub struct Check<'a> {
    pub name: &'a str,
    pub inputs: Vec<Input>,
    pub build: &'a dyn Fn(&[Variable]) -> Vec<Variable>,
    pub reference: &'a dyn Fn(&[Vec<f64>]) -> Numbers,
    pub second: bool,
}

fn in_type<R>(dtype: DType, body: impl FnOnce() -> R) -> R {
    let old = mode::set_context(Arc::new(Context::cpu(dtype).unwrap()));
    let r = body();
    mode::set_context(old);
    r
}

fn close(what: &str, name: &str, got: &[f64], want: &[f64], eps: f64) {
    assert_eq!(got.len(), want.len(), "{what} of {name}: sizes");
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        let fine = (g - w).abs() <= eps * w.abs().max(1.0) || (g.is_nan() && w.is_nan()) || g == w;
        assert!(fine, "{what} of {name} at {i}: {g} for {w}");
    }
}

fn dot(a: &Numbers, b: &Numbers) -> f64 {
    a.iter().flatten().zip(b.iter().flatten()).map(|(a, b)| a * b).sum()
}

impl Check<'_> {
    pub fn run(&self) {
        in_type(DType::F32, || {
            let data = self.data().iter().map(|d| d.iter().map(|&v| v as f32 as f64).collect()).collect::<Numbers>();
            let got = self.outputs::<f32>(&data);
            let want = (self.reference)(&data);
            got.iter().zip(&want).for_each(|(g, w)| close("f32 value", self.name, g, w, 2e-5));
        });
        in_type(DType::F64, || self.run_f64());
    }

    fn data(&self) -> Numbers {
        self.inputs.iter().map(|i| i.data.clone()).collect()
    }

    fn variables<T: nnrs::dtype::Element>(&self, data: &Numbers) -> Vec<Variable> {
        let make = |(i, d): (&Input, &Vec<f64>)| {
            let d: Vec<T> = d.iter().map(|&v| T::from_f64(v)).collect();
            Variable::from_slice(&d, Shape::from(&i.shape[..])).unwrap().with_need_grad(i.differentiable)
        };
        self.inputs.iter().zip(data).map(make).collect()
    }

    fn outputs<T: nnrs::dtype::Element>(&self, data: &Numbers) -> Numbers {
        let y = (self.build)(&self.variables::<T>(data));
        y.iter().for_each(|y| y.forward().unwrap());
        y.iter().map(|y| y.to_vec().unwrap()).collect()
    }

    fn wanted(&self) -> Vec<usize> {
        (0..self.inputs.len()).filter(|&i| self.inputs[i].differentiable).collect()
    }

    /// The gradients of sum(w * y) by the fast path.
    fn gradients(&self, data: &Numbers, w: &Numbers, times: usize) -> Numbers {
        let x = self.variables::<f64>(data);
        let loss = weighted(&(self.build)(&x), &as_variables(&(self.build)(&x), w));
        loss.forward().unwrap();
        (0..times).for_each(|_| loss.backward().unwrap());
        self.wanted().iter().map(|&i| x[i].grad().to_vec().unwrap()).collect()
    }

    fn run_f64(&self) {
        let data = self.data();
        let want = (self.reference)(&data);
        let got = self.outputs::<f64>(&data);
        got.iter().zip(&want).for_each(|(g, w)| close("value", self.name, g, w, 1e-11));
        if self.wanted().is_empty() {
            return;
        }
        let w: Numbers = want.iter().enumerate().map(|(i, y)| noise(y.len(), 70 + i as u64)).collect();
        let grads = self.gradients(&data, &w, 1);
        let loss = |d: &Numbers| dot(&(self.reference)(d), &w);
        for (&i, g) in self.wanted().iter().zip(&grads) {
            close("gradient", self.name, g, &differences(&data, i, loss), 1e-7);
        }
        let twice = self.gradients(&data, &w, 2);
        for (g, t) in grads.iter().zip(&twice) {
            let doubled: Vec<f64> = g.iter().map(|g| 2.0 * g).collect();
            close("added gradient", self.name, t, &doubled, 1e-12);
        }
        self.run_rule(&data, &w, &grads);
    }

    fn run_rule(&self, data: &Numbers, w: &Numbers, grads: &Numbers) {
        let x = self.variables::<f64>(data);
        let y = (self.build)(&x);
        y[0].forward().unwrap();
        let gy: Vec<Variable> = as_variables(&y, w).into_iter().map(|v| v.with_need_grad(true)).collect();
        let node = y[0].parent().unwrap();
        let want = self.inputs.iter().map(|i| i.differentiable).collect();
        let grad = Grad::new(&node, x.clone(), y.clone(), gy.clone(), want).unwrap();
        let parts = node.function().grad(&grad).unwrap();
        let made: Vec<Variable> = self.wanted().iter().map(|&i| parts[i].clone().unwrap()).collect();
        for (m, g) in made.iter().zip(grads) {
            // A gradient may be gy itself.
            if m.has_parent() {
                m.forward().unwrap();
            }
            close("rule", self.name, &m.to_vec().unwrap(), g, 1e-10);
        }
        if !self.second {
            return;
        }
        let u: Numbers = grads.iter().enumerate().map(|(i, g)| noise(g.len(), 90 + i as u64)).collect();
        let loss = weighted(&made, &as_variables(&made, &u));
        loss.forward().unwrap();
        x.iter().chain(&gy).for_each(|v| v.grad().zero().unwrap());
        loss.backward().unwrap();
        let of_x = |d: &Numbers| dot(&self.gradients(d, w, 1), &u);
        for i in self.wanted() {
            close("second gradient", self.name, &x[i].grad().to_vec().unwrap(), &differences(data, i, of_x), 2e-6);
        }
        for (k, gy) in gy.iter().enumerate() {
            let of_w = |w: &Numbers| dot(&self.gradients(data, w, 1), &u);
            close("gradient by gy", self.name, &gy.grad().to_vec().unwrap(), &differences(w, k, of_w), 1e-7);
        }
    }
}

fn as_variables(like: &[Variable], data: &Numbers) -> Vec<Variable> {
    let make = |(v, d): (&Variable, &Vec<f64>)| Variable::from_slice(d, v.shape()).unwrap();
    like.iter().zip(data).map(make).collect()
}

/// The sum of all products of two lists.
fn weighted(y: &[Variable], w: &[Variable]) -> Variable {
    let product = |(y, w): (&Variable, &Variable)| {
        let p = f::mul2(y, w, f::Mul2::default()).unwrap();
        f::sum(&p, f::Sum::default()).unwrap()
    };
    let add = |a: Variable, b: Variable| f::add2(&a, &b, f::Add2::default()).unwrap();
    y.iter().zip(w).map(product).reduce(add).unwrap()
}

/// Derivatives by every number of `data[i]`, by differences of fourth order.
fn differences(data: &Numbers, i: usize, f: impl Fn(&Numbers) -> f64) -> Vec<f64> {
    let h = 1e-3;
    let at = |k: usize, t: f64| {
        let mut d = data.clone();
        d[i][k] += t;
        f(&d)
    };
    let slope = |k: usize| (8.0 * (at(k, h) - at(k, -h)) - (at(k, 2.0 * h) - at(k, -2.0 * h))) / (12.0 * h);
    (0..data[i].len()).map(slope).collect()
}

/// An array's numbers.
pub fn numbers(a: &NdArray) -> Vec<f64> {
    a.to_vec().unwrap()
}

/// A leaf that wants a gradient.
pub fn var(values: &[f32]) -> Variable {
    Variable::from_slice(values, [values.len()].into()).unwrap().with_need_grad(true)
}

pub fn values(v: &Variable) -> Vec<f32> {
    v.to_vec().unwrap()
}

pub fn gradient(v: &Variable) -> Vec<f32> {
    v.grad().to_vec().unwrap()
}

/// The error's text.
pub fn text<T>(r: nnrs::Result<T>) -> String {
    r.err().expect("an error").to_string()
}
