//! Solvers' parameters, states and hooks, and how they are made by name.

use super::{held, named, param, with};
use nnrs::solver::{Adam, Hooks, Keep, Momentum, SOLVERS, Sgd, Solver, State, create, hooks};
use nnrs::{NdArray, Variable};
use std::cell::Cell;
use std::sync::Arc;

#[test]
fn parameters_come_and_go() {
    let (a, b) = (param(&[1.0]), param(&[1.0, 2.0]));
    let solver = with(Momentum { lr: 1.0, momentum: 0.5 }, &[("a", &a), ("b", &b)]);
    [&a, &b].iter().for_each(|v| v.grad().fill(1.0).unwrap());
    solver.update().unwrap();
    let steps = || solver.get_states().into_iter().map(|(n, s)| (n, s.t)).collect::<Vec<_>>();
    let set = |params: &[(&str, &Variable)], keep| solver.set_parameters(&named(params), keep);
    set(&[("a", &a)], Keep::Others).unwrap();
    assert_eq!(steps(), [("a".into(), 0), ("b".into(), 1)]);
    let other = param(&[5.0, 6.0]);
    set(&[("b", &other)], Keep::States).unwrap();
    assert_eq!(steps(), [("a".into(), 0), ("b".into(), 1)]);
    other.grad().fill(0.5).unwrap();
    solver.update().unwrap();
    assert_eq!(other.to_vec::<f32>().unwrap(), [4.0, 5.0]);
    let error = set(&[("new", &a), ("b", &a)], Keep::States).unwrap_err().to_string();
    assert!(error.contains("shape was (2,), now it is (1,)"), "{error}");
    assert_eq!(solver.get_parameters().len(), 2);
    solver.remove_parameters(&["a", "unknown"]);
    assert_eq!(steps(), [("b".into(), 2)]);
    set(&[("b", &other)], Keep::Nothing).unwrap();
    assert_eq!(steps(), [("b".into(), 0)]);
    solver.clear_parameters();
    solver.update().unwrap();
    assert!(solver.get_parameters().is_empty() && !solver.check_inf_grad().unwrap());
}

#[test]
fn states_are_given_and_taken() {
    let w = param(&[0.0, 0.0]);
    let solver = with(Momentum { lr: 0.5, momentum: 0.5 }, &[("w", &w)]);
    let ones = Variable::from_slice(&[1.0f32, 1.0], [2].into()).unwrap();
    let state =
        |name: &str, v: &Variable| vec![("w".to_string(), State { t: 5, arrays: vec![(name.into(), v.clone())] })];
    solver.set_states(&state("m", &ones)).unwrap();
    w.grad().fill(1.0).unwrap();
    solver.update().unwrap();
    assert_eq!(w.to_vec::<f32>().unwrap(), [-1.0, -1.0]);
    assert_eq!(solver.get_states()[0].1.t, 6);
    let bad = [
        (state("var", &ones), "states [m] of Momentum for parameter 'w', got [var]"),
        (state("m", &param(&[1.0])), "a state 'm' of shape (2,), as parameter 'w', got (1,)"),
        (vec![("x".to_string(), State::default())], "no parameter 'x'"),
    ];
    for (states, want) in bad {
        let error = solver.set_states(&states).unwrap_err().to_string();
        assert!(error.contains(want), "{error}");
    }
    assert_eq!(solver.get_states()[0].1.t, 6);
}

#[test]
fn a_misfit_changes_nothing() {
    let (a, b) = (param(&[1.0]), param(&[1.0, 2.0]));
    let solver = with(Adam::default(), &[("a", &a), ("b", &b)]);
    [&a, &b].iter().for_each(|v| v.grad().fill(1.0).unwrap());
    b.raw_data().reset_shape([3].into(), true).unwrap();
    let error = solver.update().unwrap_err().to_string();
    assert!(error.starts_with("Adam: expected its gradient of shape (3,), as parameter 'b', got (2,)"), "{error}");
    assert_eq!((a.to_vec::<f32>().unwrap()[0], solver.get_states()[0].1.t), (1.0, 0));
}

#[test]
fn one_array_under_two_names_is_updated_twice() {
    let w = param(&vec![1.0; 200_000]);
    let solver = with(Sgd { lr: 0.5 }, &[("a", &w), ("b", &w)]);
    w.grad().fill(0.5).unwrap();
    solver.update().unwrap();
    assert!(w.to_vec::<f32>().unwrap().iter().all(|&v| v == 0.5));
}

#[test]
fn parameters_may_be_parts_of_one_array() {
    let all = NdArray::from_slice(&[1.0f32; 10], [10].into()).unwrap();
    let part = |from, n| Variable::from_array(all.narrow(0, from, n).unwrap());
    let (a, b) = (part(0, 4), part(4, 6));
    let solver = with(Sgd { lr: 1.0 }, &[("a", &a), ("b", &b)]);
    a.grad().fill(1.0).unwrap();
    b.grad().fill(2.0).unwrap();
    solver.update().unwrap();
    assert_eq!(all.to_vec::<f32>().unwrap(), [0., 0., 0., 0., -1., -1., -1., -1., -1., -1.]);
}

#[test]
fn hooks_surround_each_parameter() {
    let (a, b, idle) = (param(&[1.0]), param(&[1.0]), param(&[1.0]));
    let solver = with(Sgd { lr: 1.0 }, &[("a", &a), ("b", &b), ("idle", &idle)]);
    [&a, &b].iter().for_each(|v| v.grad().fill(1.0).unwrap());
    idle.grad().zero().unwrap();
    let (before, after) = (Cell::new(0), Cell::new(0));
    let pre = || {
        before.set(before.get() + 1);
        solver.set_learning_rate(before.get() as f64);
        Ok(())
    };
    let post = || {
        after.set(after.get() + 1);
        Ok(())
    };
    solver.update_hooked(Hooks { pre: Some(&pre), post: Some(&post) }).unwrap();
    assert_eq!((before.get(), after.get()), (2, 2));
    assert_eq!([&a, &b].map(|v| v.to_vec::<f32>().unwrap()[0]), [0.0, -1.0]);
    let fail = || Err(nnrs::Error::graph("stop"));
    let error = solver.scale_grad_hooked(2.0, Hooks { pre: Some(&fail), post: None }).unwrap_err();
    assert_eq!(error.to_string(), "stop");
    // Other tests run meanwhile: the hook is for this thread.
    let here = std::thread::current().id();
    let global = move || match std::thread::current().id() == here {
        true => Err(nnrs::Error::graph("global")),
        false => Ok(()),
    };
    hooks::set(hooks::When::Before, "test", Arc::new(global));
    let alone = with(Sgd::default(), &[("a", &a)]);
    let error = alone.check_nan_grad().unwrap_err();
    hooks::unset(hooks::When::Before, "test");
    assert_eq!(error.to_string(), "global");
}

#[test]
fn solvers_are_made_by_name() {
    use nnrs::function::ArgValue::Float;
    assert!(SOLVERS.len() == 18 && SOLVERS.iter().all(|d| create(d.name, vec![]).unwrap().name() == d.name));
    let solver = create("Adam", vec![("alpha", Float(0.5)), ("beta1", Float(0.1))]).unwrap();
    assert_eq!((solver.name(), solver.learning_rate()), ("Adam", 0.5));
    solver.set_learning_rate(0.1);
    assert_eq!(solver.learning_rate(), held(0.1));
    assert_eq!(solver.arguments()[1], ("beta1", Float(held(0.1))));
    let error = |r: nnrs::Result<Solver>| r.err().unwrap().to_string();
    assert!(error(create("Adagrid", vec![])).contains("expected one of Sgd, SgdW, Momentum"));
    assert_eq!(error(create("Sgd", vec![("rate", Float(1.0))])), "Sgd: no argument 'rate'");
}
