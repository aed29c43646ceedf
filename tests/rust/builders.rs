//! Every function of the registry has a builder, and variables have operators.

use nnrs::graph::{grad, mode};
use nnrs::{DType, ErrorKind, Result, Variable, function, functions as f};

/// Names of builders; does not compile where one is missing.
macro_rules! builders {
    ($($name:ident)*) => {
        const BUILDERS: &[&str] = &[$({
            let _ = f::$name;
            stringify!($name)
        }),*];
    };
}

include!("builders/list.rs");

#[test]
fn every_function_has_a_builder() {
    let names: Vec<&str> = function::registry().map(|def| def.snake).collect();
    let built: Vec<&str> = BUILDERS.iter().map(|name| name.trim_start_matches("r#")).collect();
    assert_eq!(names, built, "tests/rust/builders/list.rs is stale: run tools/generate.py");
}

#[test]
fn builders_take_what_the_registry_says() {
    let x = Variable::from_slice(&[-1.0f32, 2.0], [2].into()).unwrap();
    let y = f::elu(&x, f::ELU { alpha: 0.5 }).unwrap();
    let made = y.parent().unwrap();
    assert_eq!((made.name(), made.class_name()), ("elu", "ELU"));
    let def = function::find("elu").unwrap();
    assert_eq!(made.arguments(), [("alpha", function::ArgValue::Float(0.5))]);
    assert_eq!(def.args[0].name, "alpha");
    let (a, b) = (Variable::new([2, 3]), Variable::new([2, 3]));
    assert_eq!(f::concatenate(&[&a, &b], f::Concatenate { axis: Some(0) }).unwrap().shape(), [4, 3].into());
    assert_eq!(f::split(&a, f::Split { axis: 0 }).unwrap().len(), 2);
    let wrong = f::reshape(&a, f::Reshape { shape: vec![5], inplace: true }).unwrap_err();
    assert!(wrong.to_string().starts_with("reshape: "), "{wrong}");
}

const A: [f32; 3] = [1.0, -2.0, 4.0];
const B: [f32; 3] = [0.5, 8.0, -1.0];

fn var(values: &[f32]) -> Variable {
    Variable::from_slice(values, [values.len()].into()).unwrap().with_need_grad(true)
}

fn values(y: Result<Variable>) -> Vec<f32> {
    let y = y.unwrap();
    y.forward().unwrap();
    y.to_vec().unwrap()
}

#[test]
fn operators_of_variables_and_numbers() {
    let (a, b) = (var(&A), var(&B));
    let two = |op: fn(f32, f32) -> f32| A.into_iter().zip(B).map(|(a, b)| op(a, b)).collect::<Vec<f32>>();
    let one = |op: fn(f32) -> f32| A.map(op).to_vec();
    assert_eq!(values(&a + &b), two(|a, b| a + b));
    assert_eq!(values(&a - &b), two(|a, b| a - b));
    assert_eq!(values(&a * &b), two(|a, b| a * b));
    assert_eq!(values(&a / &b), two(|a, b| a / b));
    assert_eq!(values(&a + 2.0), one(|a| a + 2.0));
    assert_eq!(values(&a - 2.0), one(|a| a - 2.0));
    assert_eq!(values(&a * 2.0), one(|a| a * 2.0));
    assert_eq!(values(&a / 2.0), one(|a| a / 2.0));
    assert_eq!(values(2.0 + &a), one(|a| 2.0 + a));
    assert_eq!(values(2.0 - &a), one(|a| 2.0 - a));
    assert_eq!(values(2.0 * &a), one(|a| 2.0 * a));
    assert_eq!(values(2.0 / &a), one(|a| 2.0 / a));
    assert_eq!(values(-&a), one(|a| -a));
}

#[test]
fn operators_take_values_too() {
    let (a, b) = (var(&A), var(&B));
    let y = || -> Result<Variable> { (-((1.0 - (&a * &b)?)? / (2.0 * a.clone())?)?)? + b.clone() };
    let want: Vec<f32> = A.into_iter().zip(B).map(|(a, b)| -(1.0 - a * b) / (2.0 * a) + b).collect();
    assert_eq!(values(y()), want);
    assert_eq!(values((a.clone() + &b).unwrap() - (a.clone() - b.clone()).unwrap()), B.map(|b| 2.0 * b));
    assert_eq!(
        values((&a + b.clone()).unwrap() / 0.5),
        A.into_iter().zip(B).map(|(a, b)| (a + b) / 0.5).collect::<Vec<_>>()
    );
}

#[test]
fn operators_broadcast_or_say_why_not() {
    let (column, row) = (Variable::new([2, 1]), Variable::new([3]));
    assert_eq!((&column * &row).unwrap().shape(), [2, 3].into());
    let wrong = (&row - &Variable::new([4])).unwrap_err();
    assert_eq!(wrong.kind(), ErrorKind::Shape);
    let text = wrong.to_string();
    assert!(text.starts_with("sub2: ") && text.contains("(3,)") && text.contains("(4,)"), "{text}");
}

#[test]
fn operators_have_gradients_of_any_order() {
    let x = var(&[2.0]);
    let y = (1.0 / (&x * &x).unwrap()).unwrap(); // 1 / x^2
    let first = grad(&[&y], &[&x], &[]).unwrap().swap_remove(0).unwrap();
    let second = grad(&[&first], &[&x], &[]).unwrap().swap_remove(0).unwrap();
    assert_eq!(values(Ok(first)), [-0.25]);
    assert_eq!(values(Ok(second)), [0.375]);
}

#[test]
fn operators_compute_at_once_and_in_double() {
    mode::set_auto_forward(true);
    mode::set_context(nnrs::Context::cpu(DType::F64).unwrap().into());
    let x = Variable::from_slice(&[0.1f64], [1].into()).unwrap();
    let y = (&x / 3.0).unwrap();
    assert_eq!(y.data().unwrap().dtype(), DType::F64);
    assert!((y.to_vec::<f64>().unwrap()[0] - 0.1 / 3.0).abs() < 1e-17);
}
