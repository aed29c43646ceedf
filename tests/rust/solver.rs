//! Solvers against their formulas in double precision, and the whole interface from Rust.

use nnrs::solver::{Adam, AdamW, Hooks, Keep, Momentum, Nesterov, SOLVERS, Sgd, Solver, State, create, hooks};
use nnrs::{DType, NdArray, Variable};
use std::cell::Cell;
use std::sync::Arc;

/// One weight with its states, as the papers (and NNabla) write the rules.
#[derive(Clone, Default)]
struct Reference {
    w: f64,
    m: f64,
    var: f64,
}

fn held(v: f64) -> f64 {
    v as f32 as f64
}

impl Reference {
    fn sgd(&mut self, g: f64, _t: f64) {
        self.w -= held(0.1) * g;
    }

    fn momentum(&mut self, g: f64, _t: f64) {
        self.m = held(0.8) * self.m + held(0.1) * g;
        self.w -= self.m;
    }

    fn nesterov(&mut self, g: f64, _t: f64) {
        let past = self.m;
        self.m = held(0.8) * past - held(0.1) * g;
        self.w += (1.0 + held(0.8)) * self.m - held(0.8) * past;
    }

    fn adam_step(&mut self, g: f64, t: f64) -> f64 {
        let (b1, b2) = (held(0.8), held(0.95));
        self.m = b1 * self.m + (1.0 - b1) * g;
        self.var = b2 * self.var + (1.0 - b2) * g * g;
        held(0.1) * (1.0 - b2.powf(t)).sqrt() / (1.0 - b1.powf(t)) * self.m / (self.var.sqrt() + held(1e-4))
    }

    fn adam(&mut self, g: f64, t: f64) {
        self.w -= self.adam_step(g, t);
    }

    fn adamw(&mut self, g: f64, t: f64) {
        self.w -= self.adam_step(g, t) + held(0.01) * self.w;
    }
}

fn gradient(i: usize, step: usize) -> f32 {
    ((37 * i + 101 * step) % 64) as f32 / 32.0 - 1.0
}

fn weights(n: usize) -> Vec<f32> {
    (0..n).map(|i| gradient(i, 7)).collect()
}

fn param(values: &[f32]) -> Variable {
    Variable::from_slice(values, [values.len()].into()).unwrap().with_need_grad(true)
}

fn named(params: &[(&str, &Variable)]) -> Vec<(String, Variable)> {
    params.iter().map(|(n, v)| (n.to_string(), (*v).clone())).collect()
}

fn with(solver: impl Into<Solver>, params: &[(&str, &Variable)]) -> Solver {
    let solver = solver.into();
    solver.set_parameters(&named(params), Keep::Nothing).unwrap();
    solver
}

fn close(got: &[f32], want: impl Iterator<Item = f64>, tolerance: f64, what: &str) {
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        assert!((*g as f64 - w).abs() <= tolerance * w.abs().max(1.0), "{what} [{i}]: {g} != {w}");
    }
}

/// Sizes on both sides of tiles and chunks; the largest is done in parallel.
const SIZES: [usize; 6] = [0, 1, 5, 1000, 32768, 70001];

fn follows(solver: Solver, rule: impl Fn(&mut Reference, f64, f64)) {
    let params: Vec<Variable> = SIZES.iter().map(|&n| param(&weights(n))).collect();
    let names: Vec<String> = SIZES.iter().map(|n| format!("p{n}")).collect();
    let list: Vec<(&str, &Variable)> = names.iter().map(String::as_str).zip(&params).collect();
    solver.set_parameters(&named(&list), Keep::Nothing).unwrap();
    let mut want: Vec<Vec<Reference>> = SIZES
        .iter()
        .map(|&n| weights(n).into_iter().map(|w| Reference { w: w as f64, ..Default::default() }).collect())
        .collect();
    for step in 1..=20 {
        for (v, want) in params.iter().zip(&mut want) {
            let g: Vec<f32> = (0..v.size()).map(|i| gradient(i, step)).collect();
            v.grad().write(&g).unwrap();
            want.iter_mut().zip(&g).for_each(|(r, g)| rule(r, *g as f64, step as f64));
        }
        solver.update().unwrap();
    }
    for (v, want) in params.iter().zip(&want) {
        close(&v.to_vec::<f32>().unwrap(), want.iter().map(|r| r.w), 3e-6, solver.name());
    }
    assert!(solver.get_states().iter().all(|(_, s)| s.t == 20));
}

#[test]
fn rules_match_their_formulas() {
    follows(Sgd { lr: 0.1 }.into(), Reference::sgd);
    follows(Momentum { lr: 0.1, momentum: 0.8 }.into(), Reference::momentum);
    follows(Nesterov { lr: 0.1, momentum: 0.8 }.into(), Reference::nesterov);
    follows(Adam { alpha: 0.1, beta1: 0.8, beta2: 0.95, eps: 1e-4 }.into(), Reference::adam);
    follows(AdamW { alpha: 0.1, beta1: 0.8, beta2: 0.95, eps: 1e-4, wd: 0.01 }.into(), Reference::adamw);
}

#[test]
fn element_types_of_weights_are_kept() {
    for (dtype, tolerance) in [(DType::F16, 2e-3), (DType::BF16, 2e-2), (DType::F64, 1e-14)] {
        let w = param(&weights(100));
        w.raw_data().cast(dtype).unwrap();
        let solver = with(Momentum { lr: 0.1, momentum: 0.8 }, &[("w", &w)]);
        w.grad().fill(0.5).unwrap();
        solver.update().unwrap();
        solver.update().unwrap();
        assert_eq!(w.raw_data().dtype(), dtype);
        let state = solver.get_states()[0].1.arrays[0].1.raw_data().dtype();
        assert_eq!(state, if dtype == DType::F64 { DType::F64 } else { DType::F32 });
        let step = held(0.1) * 0.5 * (2.0 + held(0.8));
        let got: Vec<f64> = w.to_vec().unwrap();
        assert!(got.iter().zip(weights(100)).all(|(g, w)| (g - (w as f64 - step)).abs() < tolerance), "{dtype}");
    }
    let whole = Variable::from_slice(&[3i32, 4], [2].into()).unwrap();
    let solver = with(Sgd { lr: 0.5 }, &[("w", &whole)]);
    whole.grad().fill(1.0).unwrap();
    solver.update().unwrap();
    assert_eq!(whole.raw_data().dtype(), DType::F32);
    assert_eq!(whole.to_vec::<f32>().unwrap(), [2.5, 3.5]);
}

#[test]
fn zeroed_gradients_are_left_out() {
    let (a, b, c) = (param(&[1.0]), param(&[1.0]), param(&[1.0]));
    let solver = with(Momentum { lr: 1.0, momentum: 0.5 }, &[("a", &a), ("b", &b), ("c", &c)]);
    [&a, &b, &c].iter().for_each(|v| v.grad().fill(1.0).unwrap());
    solver.update().unwrap();
    solver.zero_grad().unwrap();
    b.grad().write(&[0.0f32]).unwrap();
    solver.weight_decay(0.0).unwrap();
    solver.update().unwrap();
    assert_eq!([&a, &b, &c].map(|v| v.to_vec::<f32>().unwrap()[0]), [0.0, -0.5, 0.0]);
    assert_eq!(solver.get_states().iter().map(|(_, s)| s.t).collect::<Vec<_>>(), [1, 2, 1]);
    let untouched = param(&[1.0]);
    let solver = with(Sgd::default(), &[("w", &untouched)]);
    solver.update().unwrap();
    assert_eq!((solver.get_states()[0].1.t, untouched.to_vec::<f32>().unwrap()[0]), (1, 1.0));
}

#[test]
fn gradients_are_decayed_scaled_and_clipped() {
    let (a, b) = (param(&[1.0, -2.0]), param(&vec![0.5; 100_000]));
    let solver = with(Sgd::default(), &[("a", &a), ("b", &b)]);
    a.grad().write(&[3.0f32, 4.0]).unwrap();
    b.grad().fill(0.25).unwrap();
    let grads = || (a.grad().to_vec::<f32>().unwrap(), b.grad().to_vec::<f32>().unwrap());
    solver.weight_decay(0.5).unwrap();
    assert_eq!(grads(), (vec![3.5, 3.0], vec![0.5; 100_000]));
    solver.scale_grad(2.0).unwrap();
    assert_eq!(grads(), (vec![7.0, 6.0], vec![1.0; 100_000]));
    solver.clip_grad_by_norm(20.0).unwrap();
    close(&grads().0, [7.0, 6.0].into_iter(), 0.0, "below the norm");
    close(&grads().1, std::iter::repeat(20.0 / 100_000f64.sqrt()), 1e-6, "clipped");
    a.grad().write(&[1e30f32, 0.0]).unwrap();
    solver.clip_grad_by_norm(1.0).unwrap();
    assert_eq!(grads().0, [1.0, 0.0]);
    a.grad().write(&[f32::NAN, 1.0]).unwrap();
    solver.clip_grad_by_norm(1.0).unwrap();
    assert_eq!(grads().0[1], 1.0);
    a.grad().write(&[3.0f32, 4.0]).unwrap();
    solver.clip_grad_by_norm(0.0).unwrap();
    assert_eq!(grads().0, [3.0, 4.0]);
    solver.clip_grad_by_norm(-5.0).unwrap();
    assert_eq!(grads().0, [-3.0, -4.0]);
}

#[test]
fn infinities_and_nan_are_found() {
    let (a, b) = (param(&[1.0]), param(&vec![0.5; 100_000]));
    let solver = with(Sgd::default(), &[("a", &a), ("b", &b)]);
    let check = || {
        let s = &solver;
        [s.check_inf_grad(), s.check_nan_grad(), s.check_inf_or_nan_grad()].map(|r| r.unwrap())
    };
    assert_eq!(check(), [false; 3]);
    let mut g = vec![f32::MAX; 100_000];
    for (odd, want) in [
        (1.0, [false, false, false]),
        (f32::NAN, [false, true, true]),
        (f32::INFINITY, [true, false, true]),
        (f32::NEG_INFINITY, [true, false, true]),
    ] {
        g[77_777] = odd;
        b.grad().write(&g).unwrap();
        assert_eq!(check(), want, "{odd}");
    }
    solver.zero_grad().unwrap();
    assert_eq!(check(), [false; 3]);
}

#[test]
fn fused_weight_decay_lasts_for_one_update() {
    let w = param(&[1.0]);
    let solver = with(AdamW { wd: 0.5, ..Default::default() }, &[("w", &w)]);
    w.grad().write(&[0.0f32]).unwrap();
    solver.weight_decay(0.25).unwrap();
    solver.weight_decay(0.0).unwrap();
    solver.update().unwrap();
    assert_eq!(w.to_vec::<f32>().unwrap(), [1.0]);
    solver.set_learning_rate(0.0005);
    solver.update().unwrap();
    close(&w.to_vec::<f32>().unwrap(), [0.75].into_iter(), 1e-6, "half of wd at half of the first rate");
    assert_eq!(w.grad().to_vec::<f32>().unwrap(), [0.0]);
}

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
fn any_number_of_threads_gives_the_same_bits() {
    let run = |threads| {
        nnrs::cpu::pool::set_num_threads(threads);
        let params: Vec<Variable> = [300_001, 7, 0, 65_536].map(|n| param(&weights(n))).into();
        let names: Vec<String> = (0..params.len()).map(|i| i.to_string()).collect();
        let list: Vec<(&str, &Variable)> = names.iter().map(String::as_str).zip(&params).collect();
        let solver = with(AdamW::default(), &list);
        for step in 1..4 {
            for v in &params {
                v.grad().write(&(0..v.size()).map(|i| gradient(i, step)).collect::<Vec<f32>>()).unwrap();
            }
            solver.clip_grad_by_norm(1.0).unwrap();
            solver.update().unwrap();
        }
        params.iter().map(|v| v.to_vec::<f32>().unwrap()).collect::<Vec<_>>()
    };
    let one = run(1);
    assert!(run(2) == one && run(5) == one);
}

#[test]
fn solvers_are_made_by_name() {
    use nnrs::function::ArgValue::Float;
    assert_eq!(SOLVERS.iter().map(|d| d.name).collect::<Vec<_>>(), ["Sgd", "Momentum", "Nesterov", "Adam", "AdamW"]);
    let solver = create("Adam", vec![("alpha", Float(0.5)), ("beta1", Float(0.1))]).unwrap();
    assert_eq!((solver.name(), solver.learning_rate()), ("Adam", 0.5));
    solver.set_learning_rate(0.1);
    assert_eq!(solver.learning_rate(), held(0.1));
    assert_eq!(solver.arguments()[1], ("beta1", Float(held(0.1))));
    let error = |r: nnrs::Result<Solver>| r.err().unwrap().to_string();
    assert!(error(create("Adagrid", vec![])).contains("expected one of Sgd, Momentum"));
    assert_eq!(error(create("Sgd", vec![("rate", Float(1.0))])), "Sgd: no argument 'rate'");
}

/// Not a test of a bound: `cargo test --release --test solver -- --ignored --nocapture`.
#[test]
#[ignore = "prints a measurement"]
fn adam_over_resnet_sized_parameters() {
    let sizes: Vec<usize> = (0..161).map(|i| if i % 3 == 0 { 25_600_000 / 54 } else { 64 + i }).collect();
    let params: Vec<Variable> = sizes.iter().map(|&n| param(&weights(n))).collect();
    params.iter().for_each(|v| v.grad().write(&weights(v.size())).unwrap());
    let names: Vec<String> = (0..161).map(|i| i.to_string()).collect();
    let list: Vec<(&str, &Variable)> = names.iter().map(String::as_str).zip(&params).collect();
    let solver = with(Adam::default(), &list);
    for threads in [1, 2] {
        nnrs::cpu::pool::set_num_threads(threads);
        let mut times: Vec<_> = (0..20)
            .map(|_| {
                let start = std::time::Instant::now();
                solver.update().unwrap();
                start.elapsed().as_secs_f64() * 1e3
            })
            .collect();
        times.sort_by(f64::total_cmp);
        let bytes = sizes.iter().sum::<usize>() as f64 * 28.0;
        println!("{threads} threads: {:.1} ms, {:.1} GB/s", times[10], bytes / times[10] / 1e6);
    }
}
