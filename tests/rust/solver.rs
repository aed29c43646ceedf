//! Solvers against their formulas in double precision, and the whole interface from Rust.

mod interface;

use nnrs::graph::mode;
use nnrs::solver::{Adam, AdamW, Keep, Momentum, Nesterov, SOLVERS, Sgd, Solver, create};
use nnrs::{DType, Variable};

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

/// A constant gradient goes through the tile program, one in memory through the rule's own loop.
#[test]
fn both_ways_to_update_give_the_same_bits() {
    for def in SOLVERS {
        for dtype in [DType::F32, DType::F64] {
            let update = |fill: bool| {
                let w = param(&weights(1003));
                w.raw_data().cast(dtype).unwrap();
                let solver = create(def.name, vec![]).unwrap();
                solver.set_parameters(&named(&[("w", &w)]), Keep::Nothing).unwrap();
                for step in 1..=5 {
                    let g = gradient(step, step) as f64;
                    if fill {
                        w.grad().fill(g).unwrap()
                    } else {
                        w.grad().write(&[g; 1003]).unwrap()
                    }
                    if !fill {
                        w.grad().cast(dtype).unwrap();
                    }
                    solver.update().unwrap();
                }
                w.to_vec::<f64>().unwrap()
            };
            assert!(update(true) == update(false), "{} {dtype}", def.name);
        }
    }
}

/// Small steps would be lost in half precision: its weights become float, and doubles where the context has none.
#[test]
fn weights_become_float_but_doubles_stay_in_a_context_of_doubles() {
    use DType::{BF16, F16, F32, F64};
    for (dtype, context, tolerance) in [(F16, F32, 1e-6), (BF16, F32, 1e-6), (F64, F32, 1e-6), (F64, F64, 1e-14)] {
        let w = param(&weights(100)); // exact in all types
        w.raw_data().cast(dtype).unwrap();
        let momentum = || with(Momentum { lr: 0.1, momentum: 0.8 }, &[("w", &w)]);
        let solver = mode::inner(nnrs::Context::cpu(context).unwrap().into(), momentum);
        w.grad().fill(0.5).unwrap();
        solver.update().unwrap();
        solver.update().unwrap();
        assert_eq!(w.raw_data().dtype(), context);
        assert_eq!(solver.get_states()[0].1.arrays[0].1.raw_data().dtype(), context);
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
fn any_number_of_threads_gives_the_same_bits() {
    let run = |threads, kind| {
        nnrs::cpu::set_num_threads(threads);
        let params: Vec<Variable> = [300_001, 7, 0, 65_536].map(|n| param(&weights(n))).into();
        let names: Vec<String> = (0..params.len()).map(|i| i.to_string()).collect();
        let list: Vec<(&str, &Variable)> = names.iter().map(String::as_str).zip(&params).collect();
        let solver = with(create(kind, vec![]).unwrap(), &list);
        for step in 1..4 {
            for v in &params {
                v.grad().write(&(0..v.size()).map(|i| gradient(i, step)).collect::<Vec<f32>>()).unwrap();
            }
            solver.clip_grad_by_norm(1.0).unwrap();
            solver.update().unwrap();
        }
        params.iter().map(|v| v.to_vec::<f32>().unwrap()).collect::<Vec<_>>()
    };
    for kind in ["AdamW", "Lars", "Lamb"] {
        let one = run(1, kind);
        assert!(run(2, kind) == one && run(5, kind) == one, "{kind}");
    }
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
        nnrs::cpu::set_num_threads(threads);
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
