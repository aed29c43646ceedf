//! Forward and backward with all they can be told: what to clear, closed functions, hooks, callbacks, seeds.

use crate::common::{gradient, text, values, var};
use nnrs::graph::hooks::{self, When};
use nnrs::graph::{BackwardRun, Closed, CommunicatorBackwardCallback, ForwardRun, FunctionRef};
use nnrs::{BackwardOptions, Error, ForwardOptions, NdArray, Result, Seed, Variable, forward_all, functions as f};
use std::cell::RefCell;
use std::sync::Arc;

/// What was called, in order.
#[derive(Default)]
struct Log(RefCell<Vec<String>>);

impl Log {
    fn note(&self, what: &str, f: &FunctionRef) -> Result<()> {
        self.0.borrow_mut().push(format!("{what} {}", f.name()));
        Ok(())
    }

    fn take(&self) -> Vec<String> {
        self.0.take()
    }
}

impl CommunicatorBackwardCallback for Log {
    fn on_finish_function_backward(&self, f: &FunctionRef) -> Result<()> {
        self.note("done", f)
    }

    fn on_finish_backward(&self) -> Result<()> {
        self.0.borrow_mut().push("end".into());
        Ok(())
    }
}

/// Runs `y` forward with hooks that count; gives the names.
fn counted(y: &Variable, closed: Option<&mut Closed>) -> Vec<String> {
    let log = Log::default();
    let (pre, post) = (|f: &FunctionRef| log.note("pre", f), |f: &FunctionRef| log.note("post", f));
    let options = ForwardOptions::default();
    y.forward_with(ForwardRun { options, closed, pre: Some(&pre), post: Some(&post) }).unwrap();
    log.take()
}

#[test]
fn closed_functions_run_once() {
    let x = var(&[0.5]);
    let h = f::exp(&x).unwrap();
    let (a, b) = (f::sin(&h).unwrap(), f::cos(&h).unwrap());
    let mut closed = Closed::default();
    assert_eq!(counted(&a, Some(&mut closed)), ["pre exp", "post exp", "pre sin", "post sin"]);
    assert_eq!(counted(&b, Some(&mut closed)), ["pre cos", "post cos"]);
    assert!(counted(&b, Some(&mut closed)).is_empty() && closed.len() == 3);
    assert_eq!(counted(&b, None), ["pre exp", "post exp", "pre cos", "post cos"]);
    assert_eq!((values(&a), values(&b)), (vec![0.5f32.exp().sin()], vec![0.5f32.exp().cos()]));
    // What is closed does not see new data.
    x.raw_data().fill(0.0).unwrap();
    let mut closed = Closed::default();
    closed.insert(h.parent().unwrap().id());
    assert_eq!(counted(&a, Some(&mut closed)), ["pre sin", "post sin"]);
    assert_eq!(values(&a), [0.5f32.exp().sin()]);
}

#[test]
fn closed_functions_may_have_been_fused() {
    let x = var(&[0.5, 2.0]);
    let h = f::exp(&f::abs(&x).unwrap()).unwrap();
    let (a, b) = (f::sin(&f::log(&h).unwrap()).unwrap(), f::cos(&h).unwrap());
    drop(h); // not observed: the first run is one pass
    let mut closed = Closed::default();
    a.forward_with(ForwardRun { closed: Some(&mut closed), ..Default::default() }).unwrap();
    b.forward_with(ForwardRun { closed: Some(&mut closed), ..Default::default() }).unwrap();
    assert_eq!(closed.len(), 5);
    for (i, x) in [0.5f64, 2.0].into_iter().enumerate() {
        assert!((values(&a)[i] as f64 - x.sin()).abs() < 1e-6);
        assert!((values(&b)[i] as f64 - x.exp().cos()).abs() < 1e-5);
    }
    b.backward().unwrap();
    for (g, x) in gradient(&x).into_iter().zip([0.5f64, 2.0]) {
        assert!((g as f64 + x.exp().sin() * x.exp()).abs() < 1e-4);
    }
}

#[test]
fn closed_and_clear_buffer() {
    let x = var(&[0.5]);
    let h = f::exp(&x).unwrap();
    let (a, b) = (f::sin(&h).unwrap(), f::cos(&h).unwrap());
    let options = ForwardOptions { clear_buffer: true, ..Default::default() };
    let mut closed = Closed::default();
    a.forward_with(ForwardRun { options, closed: Some(&mut closed), ..Default::default() }).unwrap();
    assert!(h.raw_data().storage().is_empty());
    // The data that the first run cleared is computed again, or this is an error: never a wrong number.
    match b.forward_with(ForwardRun { options, closed: Some(&mut closed), ..Default::default() }) {
        Ok(()) => assert_eq!(values(&b), [0.5f32.exp().cos()]),
        Err(e) => assert!(e.to_string().contains("clear"), "{e}"),
    }
}

#[test]
fn forward_all_runs_shared_parts_once() {
    let x = var(&[0.5]);
    let h = f::exp(&x).unwrap();
    let (a, b) = (f::sin(&h).unwrap(), f::cos(&h).unwrap());
    let log = Log::default();
    let post = |f: &FunctionRef| log.note("post", f);
    let options = ForwardOptions { clear_buffer: true, ..Default::default() };
    let run = ForwardRun { options, post: Some(&post), ..Default::default() };
    forward_all(&[&a, &b], run).unwrap();
    assert_eq!(log.take(), ["post exp", "post sin", "post cos"]);
    assert!(h.raw_data().storage().is_empty() && !a.raw_data().storage().is_empty());
    assert_eq!((values(&a), values(&b)), (vec![0.5f32.exp().sin()], vec![0.5f32.exp().cos()]));
}

#[test]
fn clear_no_need_grad_keeps_what_backward_reads() {
    let x = var(&[0.5]);
    let (h, leaf) = (f::exp(&x).unwrap(), Variable::from_slice(&[1.0f32], [1].into()).unwrap());
    let unneeded = f::abs(&leaf).unwrap();
    let y = (f::sin(&h).unwrap() + &unneeded).unwrap();
    let options = ForwardOptions { clear_no_need_grad: true, ..Default::default() };
    y.forward_with(options).unwrap();
    assert!(unneeded.raw_data().storage().is_empty(), "unneeded");
    assert_eq!(values(&h), [0.5f32.exp()]);
    y.backward().unwrap();
    assert!((gradient(&x)[0] as f64 - 0.5f64.exp().cos() * 0.5f64.exp()).abs() < 1e-5);
}

#[test]
fn seeds() {
    let x = var(&[1.0, 2.0]);
    let y = (&x * 3.0).unwrap();
    let run = |seed| {
        x.grad().zero().unwrap();
        y.forward().unwrap();
        y.backward_with(BackwardOptions { seed, ..Default::default() }).unwrap();
        gradient(&x)
    };
    let array = NdArray::from_slice(&[1.0f32, -1.0], [2].into()).unwrap();
    y.grad().write(&[5.0f32, 7.0]).unwrap();
    assert_eq!(run(Seed::Value(2.0)), [6.0, 6.0]);
    assert_eq!(run(Seed::Array(array.clone())), [3.0, -3.0]);
    assert_eq!(run(Seed::Own), [15.0, 21.0]);
    assert_eq!((gradient(&y), array.to_vec::<f32>().unwrap()), (vec![5.0, 7.0], vec![1.0, -1.0]));
    let small = Seed::Array(NdArray::new([3].into()));
    let wrong = text(y.backward_with(BackwardOptions { seed: small, ..Default::default() }));
    assert_eq!(wrong, "backward: argument 'grad': expected shape (2,), got (3,)");
}

#[test]
fn clear_initial_grad_drops_the_seed() {
    let x = var(&[1.0]);
    let y = f::sin(&f::exp(&x).unwrap()).unwrap();
    for (clear_initial_grad, clear_buffer, persistent) in
        [(true, true, false), (true, true, true), (true, false, false), (false, true, false)]
    {
        let seed = NdArray::from_slice(&[2.0f32], [1].into()).unwrap();
        let options = BackwardOptions { seed: Seed::Array(seed.clone()), clear_buffer, clear_initial_grad };
        x.grad().zero().unwrap();
        y.set_persistent(persistent);
        y.forward().unwrap();
        y.backward_with(options.clone()).unwrap();
        let is_dropped = clear_initial_grad && clear_buffer && !persistent;
        assert_eq!((seed.storage().is_empty(), seed.to_vec::<f32>().is_err()), (is_dropped, is_dropped));
        if is_dropped {
            let before = gradient(&x);
            assert!(y.backward_with(options).is_err(), "it is no zero");
            assert_eq!(gradient(&x), before);
        }
        assert!((gradient(&x)[0] as f64 - 2.0 * 1f64.exp().cos() * 1f64.exp()).abs() < 1e-4);
    }
}

/// x -> exp -> h -> sin, cos -> add2
fn diamond() -> (Variable, Variable) {
    let x = var(&[0.5]);
    let h = f::exp(&x).unwrap();
    let y = (f::sin(&h).unwrap() + f::cos(&h).unwrap()).unwrap();
    (x, y)
}

#[test]
fn callbacks_come_after_each_function_and_at_the_end() {
    let (x, y) = diamond();
    y.forward().unwrap();
    let log = Log::default();
    let (pre, post) = (|f: &FunctionRef| log.note("pre", f), |f: &FunctionRef| log.note("post", f));
    let options = BackwardOptions::default();
    let names = ["add2", "cos", "sin", "exp"];
    let lines = |kinds: &[&str], end: &[&str]| -> Vec<String> {
        let each = names.iter().flat_map(|n| kinds.iter().map(move |k| format!("{k} {n}")));
        each.chain(end.iter().map(|e| e.to_string())).collect()
    };
    let run = BackwardRun { options, callbacks: &[&log, &log], pre: Some(&pre), post: Some(&post) };
    y.backward_with(run).unwrap();
    assert_eq!(log.take(), lines(&["pre", "post", "done", "done"], &["end", "end"]));
    y.backward_with(BackwardRun { callbacks: &[&log], ..Default::default() }).unwrap();
    assert_eq!(log.take(), lines(&["done"], &["end"]));
    y.visit_function_backward(&y.parent().unwrap(), |f| log.note("visit", f), &[&log]).unwrap();
    assert_eq!(log.take(), lines(&["visit", "done"], &["end"]));
    x.set_need_grad(false);
    y.visit_function_backward(&y.parent().unwrap(), |f| log.note("visit", f), &[&log]).unwrap();
    assert_eq!(log.take(), ["end"]);
}

/// What a data-parallel program does: adds up the gradient of a parameter as soon as it is final.
struct Double<'a>(&'a Variable);

impl CommunicatorBackwardCallback for Double<'_> {
    fn on_finish_function_backward(&self, f: &FunctionRef) -> Result<()> {
        match f.inputs().iter().any(|x| x.is(self.0)) {
            true => self.0.grad().write(&[2.0 * gradient(self.0)[0]]),
            false => Ok(()),
        }
    }
}

#[test]
fn gradients_are_final_when_a_callback_is_told() {
    let (a, b) = (var(&[3.0]), var(&[4.0]));
    let inner = f::exp(&b).unwrap();
    let y = (&a * &inner).unwrap();
    y.forward().unwrap();
    y.backward_with(BackwardRun { callbacks: &[&Double(&a), &Double(&b)], ..Default::default() }).unwrap();
    assert!((gradient(&a)[0] / (2.0 * 4f32.exp()) - 1.0).abs() < 1e-6);
    assert!((gradient(&b)[0] / (6.0 * 4f32.exp()) - 1.0).abs() < 1e-6);
}

struct Refuse;

impl CommunicatorBackwardCallback for Refuse {
    fn on_finish_function_backward(&self, f: &FunctionRef) -> Result<()> {
        Err(Error::graph(format!("no more after {}", f.name())))
    }
}

#[test]
fn hooks_and_callbacks_end_a_run() {
    let (_x, y) = diamond();
    let stop = |f: &FunctionRef| Err(Error::graph(format!("at {}", f.name())));
    assert_eq!(text(y.forward_with(ForwardRun { pre: Some(&stop), ..Default::default() })), "at exp");
    y.forward().unwrap();
    assert_eq!(text(y.backward_with(BackwardRun { post: Some(&stop), ..Default::default() })), "at add2");
    assert_eq!(text(y.visit_function_backward(&y.parent().unwrap(), stop, &[])), "at add2");
    let log = Log::default();
    let run = BackwardRun { callbacks: &[&Refuse, &log], ..Default::default() };
    assert_eq!(text(y.backward_with(run)), "no more after add2");
    assert!(log.take().is_empty());
    y.backward().unwrap();
}

#[test]
fn hooks_see_true_data() {
    let (x, y) = diamond();
    let seen = RefCell::new(Vec::new());
    let look = |f: &FunctionRef| {
        seen.borrow_mut().push((f.name(), values(&f.inputs()[0])[0], values(&f.outputs()[0])[0]));
        Ok(())
    };
    let options = ForwardOptions { clear_buffer: true, ..Default::default() };
    y.forward_with(ForwardRun { options, post: Some(&look), ..Default::default() }).unwrap();
    let (h, s, c) = (0.5f32.exp(), 0.5f32.exp().sin(), 0.5f32.exp().cos());
    assert_eq!(seen.take(), [("exp", 0.5, h), ("sin", h, s), ("cos", h, c), ("add2", s, s + c)]);
    y.forward().unwrap();
    let check = |f: &FunctionRef| {
        let of_h = |v: &Variable| (gradient(v)[0] - (c - s)).abs() < 1e-6;
        assert!(f.name() != "exp" || of_h(&f.outputs()[0]));
        Ok(())
    };
    y.backward_with(BackwardRun { pre: Some(&check), ..Default::default() }).unwrap();
    assert!((gradient(&x)[0] - (c - s) * h).abs() < 1e-5);
}

#[test]
fn global_hooks_have_names() {
    // Other tests run meanwhile: these hooks are for this thread.
    let here = std::thread::current().id();
    let log = Arc::new(std::sync::Mutex::new(Vec::new()));
    let hook = |name: &'static str| -> hooks::FunctionHook {
        let log = log.clone();
        Arc::new(move |f: &FunctionRef| {
            if std::thread::current().id() == here {
                log.lock().unwrap().push(format!("{name} {}", f.name()));
            }
            Ok(())
        })
    };
    let y = f::exp(&var(&[0.5])).unwrap();
    let run = || {
        log.lock().unwrap().clear();
        counted(&y, None);
        log.lock().unwrap().clone()
    };
    hooks::set(When::Before, "runs.a", hook("a"));
    hooks::set(When::Before, "runs.b", hook("b"));
    hooks::set(When::After, "runs.a", hook("after"));
    assert_eq!(run(), ["a exp", "b exp", "after exp"]);
    hooks::set(When::Before, "runs.a", hook("new"));
    assert_eq!(run(), ["new exp", "b exp", "after exp"]);
    hooks::unset(When::Before, "runs.a");
    hooks::unset(When::Before, "runs.b");
    assert_eq!(run(), ["after exp"]);
    hooks::unset(When::After, "runs.a");
    assert!(run().is_empty());
}

#[test]
fn a_graph_does_not_run_within_itself() {
    let y = f::exp(&var(&[0.5])).unwrap();
    let again = |_: &FunctionRef| y.forward();
    let error = text(y.forward_with(ForwardRun { post: Some(&again), ..Default::default() }));
    assert!(error.contains("this graph is running"), "{error}");
    y.forward().unwrap();
    assert_eq!(values(&y), [0.5f32.exp()]);
}

/// x -> exp -> abs -> sin -> k, and y = cos(k): with `k` held alone.
fn trunk() -> [Variable; 3] {
    let x = var(&[0.5]);
    let k = f::sin(&f::abs(&f::exp(&x).unwrap()).unwrap()).unwrap();
    let y = f::cos(&k).unwrap();
    [x, k, y]
}

fn trunk_slope(x: f64) -> f64 {
    -x.exp().sin().sin() * x.exp().cos() * x.exp()
}

#[test]
fn a_side_graph_may_run_and_go_before_backward() {
    let [x, k, y] = trunk();
    for _ in 0..3 {
        x.grad().zero().unwrap();
        y.forward().unwrap();
        let mut side = (&k + 1.0).unwrap();
        side.forward().unwrap();
        side = (&k + 2.0).unwrap(); // the first one goes while the second one is there
        side.forward().unwrap();
        assert_eq!(values(&side), [0.5f32.exp().sin() + 2.0]);
        drop(side);
        y.backward().unwrap();
        assert!((gradient(&x)[0] as f64 - trunk_slope(0.5)).abs() < 1e-5);
    }
}

#[test]
fn what_a_side_graph_changed_is_not_passed_off_as_the_old() {
    let [x, k, y] = trunk();
    y.forward().unwrap();
    x.raw_data().fill(0.25).unwrap();
    let side = (&k + 1.0).unwrap();
    side.forward().unwrap();
    drop(side);
    match y.backward() {
        Ok(()) => assert!((gradient(&x)[0] as f64 - trunk_slope(0.25)).abs() < 1e-5),
        Err(e) => assert!(e.to_string().contains("an input of the graph has changed"), "{e}"),
    }
    let [x, k, y] = trunk();
    y.forward().unwrap();
    let inner = k.parent().unwrap().inputs()[0].clone();
    let other = f::abs(&var(&[0.1])).unwrap();
    inner.rewire_on(&other).unwrap(); // sin reads |0.1| now
    let side = (&k + 1.0).unwrap();
    side.forward().unwrap();
    drop((side, inner));
    assert!((values(&k)[0] - 0.1f32.sin()).abs() < 1e-6);
    y.backward().unwrap();
    assert_eq!(gradient(&x), [0.0]);
}

#[test]
fn only_a_gradient_that_was_given_is_cleared() {
    let given = NdArray::from_slice(&[2.0f32], [1].into()).unwrap();
    for (seed, cleared) in [(Seed::Own, false), (Seed::Array(given.clone()), true)] {
        let x = var(&[1.0]);
        let y = (&x * 3.0).unwrap();
        y.forward().unwrap();
        y.grad().fill(2.0).unwrap();
        let options = BackwardOptions { seed, clear_buffer: true, clear_initial_grad: true };
        y.backward_with(options).unwrap();
        assert_eq!((gradient(&x), gradient(&y)), (vec![6.0], vec![2.0]));
        assert_eq!(given.storage().is_empty(), cleared);
    }
}

/// Numbers as they are, or an error; the graph computes what it did once the shape is back.
fn survives(make: impl Fn(&Variable) -> Variable, run: impl Fn(&Variable, &dyn Fn(&FunctionRef) -> Result<()>)) {
    let x = Variable::from_slice(&[0.1f32; 24], [4, 6].into()).unwrap().with_need_grad(true);
    let y = make(&x);
    y.forward().unwrap();
    let before = values(&y);
    for shape in [vec![100_000, 6], vec![1, 6], vec![0, 6], vec![4, 60_000], vec![6, 4], vec![24]] {
        run(&y, &|_| x.reset_shape(&shape[..], true));
        x.reset_shape([4, 6], true).unwrap();
        x.raw_data().fill(0.1).unwrap();
        y.forward().unwrap();
        assert_eq!(values(&y), before, "after {shape:?}");
    }
}

#[test]
fn shapes_that_hooks_change_never_reach_a_kernel() {
    let w = Variable::from_slice(&[0.5f32; 18], [6, 3].into()).unwrap().with_need_grad(true);
    let graphs: [&dyn Fn(&Variable) -> Variable; 3] = [
        &|x| f::sum(&f::sin(&f::exp(x).unwrap()).unwrap(), Default::default()).unwrap(),
        &|x| f::sum(&f::affine(x, &w, None, Default::default()).unwrap(), Default::default()).unwrap(),
        &|x| f::sum(&f::softmax(x, Default::default()).unwrap(), Default::default()).unwrap(),
    ];
    for make in graphs {
        survives(make, |y, change| {
            drop(y.forward_with(ForwardRun { pre: Some(change), ..Default::default() }));
        });
        survives(make, |y, change| {
            drop(y.forward_with(ForwardRun { post: Some(change), ..Default::default() }));
            drop(y.backward());
        });
        survives(make, |y, change| {
            y.forward().unwrap();
            drop(y.backward_with(BackwardRun { pre: Some(change), ..Default::default() }));
        });
        survives(make, |y, change| {
            y.forward().unwrap();
            drop(y.backward_with(BackwardRun { post: Some(change), ..Default::default() }));
            drop(y.backward());
        });
    }
}
