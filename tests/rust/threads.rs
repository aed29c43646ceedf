//! Threads: everything is `Send + Sync`, graphs run side by side, one graph in turn; modes and scopes belong to a thread.

use nnrs::graph::{self, mode};
use nnrs::initializer::Constant;
use nnrs::parameter::{self, get_parameter_or_create, get_parameters, parameter_scope};
use nnrs::solver::{Momentum, Sgd, Solver};
use nnrs::{BackwardOptions, Context, DType, ForwardOptions, NdArray, Variable, function, functions as f, solver};
use std::sync::Barrier;
use std::thread;

#[test]
fn all_types_go_to_other_threads() {
    fn yes<T: Send + Sync>() {}
    yes::<Variable>();
    yes::<NdArray>();
    yes::<graph::FunctionRef>();
    yes::<graph::Closed>();
    yes::<graph::Seed>();
    yes::<graph::Fit>();
    yes::<graph::Report>();
    yes::<graph::GradientRule>();
    yes::<graph::hooks::FunctionHook>();
    yes::<(ForwardOptions, BackwardOptions, Context, DType, nnrs::Shape)>();
    yes::<(nnrs::Error, nnrs::ErrorKind, nnrs::Result<Variable>)>();
    yes::<(Solver, solver::Keep, solver::State, solver::Sgd, solver::Momentum)>();
    yes::<(solver::Nesterov, solver::Adam, solver::AdamW)>();
    yes::<(nnrs::array::Data, nnrs::array::Storage, nnrs::array::alloc::Stats)>();
    yes::<(Constant, nnrs::initializer::Uniform, nnrs::initializer::Normal, nnrs::initializer::Orthogonal)>();
    yes::<(f::ReLU, f::Convolution, f::Dropout, f::BatchNormalization)>();
    yes::<(Box<dyn nnrs::Function>, function::ArgValue, &'static function::Def, function::Grad)>();
    yes::<nnrs::io::safetensors::Tensor>();
}

/// A small network with its own parameters and data.
struct Net {
    loss: Variable,
    weights: [Variable; 2],
}

impl Net {
    fn new(seed: usize) -> Net {
        let numbers = |n: usize, k: usize| (0..n).map(move |i| ((i * 37 + k * 101 + 11) % 64) as f32 / 32.0 - 1.0);
        let var = |shape: [usize; 2], k| {
            Variable::from_slice(&numbers(shape[0] * shape[1], k).collect::<Vec<_>>(), shape.into()).unwrap()
        };
        let x = var([8, 4], seed);
        let weights = [var([4, 16], seed + 1), var([16, 1], seed + 2)].map(|w| w.with_need_grad(true));
        let h = f::tanh(&f::affine(&x, &weights[0], None, f::Affine::default()).unwrap()).unwrap();
        let y = f::affine(&h, &weights[1], None, f::Affine::default()).unwrap();
        let loss = f::mean(&(&y * &y).unwrap(), f::Mean::default()).unwrap();
        Net { loss, weights }
    }

    /// Trains; gives the losses.
    fn train(&self, steps: usize) -> Vec<f32> {
        let solver = Solver::new(Momentum { lr: 0.05, momentum: 0.9 });
        let params = self.weights.iter().enumerate().map(|(i, w)| (i.to_string(), w.clone())).collect::<Vec<_>>();
        solver.set_parameters(&params, Default::default()).unwrap();
        let step = |_| {
            self.loss.forward_with(ForwardOptions { clear_no_need_grad: true, ..Default::default() }).unwrap();
            solver.zero_grad().unwrap();
            self.loss.backward_with(BackwardOptions { clear_buffer: true, ..Default::default() }).unwrap();
            solver.update().unwrap();
            self.loss.to_vec::<f32>().unwrap()[0]
        };
        (0..steps).map(step).collect()
    }
}

#[test]
fn graphs_of_two_threads_run_side_by_side() {
    let alone: Vec<Vec<f32>> = (0..2).map(|seed| Net::new(seed).train(200)).collect();
    assert!(alone.iter().all(|losses| losses[199] < 0.1 * losses[0]), "they learn");
    let start = Barrier::new(2);
    let together: Vec<Vec<f32>> = thread::scope(|s| {
        let run = |seed| {
            let net = Net::new(seed);
            start.wait();
            net.train(200)
        };
        let threads: Vec<_> = (0..2).map(|seed| s.spawn(move || run(seed))).collect::<Vec<_>>();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    assert_eq!(together, alone);
}

#[test]
fn one_graph_runs_in_turn() {
    let net = Net::new(5);
    net.loss.forward().unwrap();
    let loss = net.loss.to_vec::<f32>().unwrap();
    net.loss.backward().unwrap();
    let one: Vec<f32> = net.weights[0].grad().to_vec().unwrap();
    net.weights.iter().for_each(|w| w.grad().zero().unwrap());
    const THREADS: usize = 4;
    const RUNS: usize = 50;
    let start = Barrier::new(THREADS);
    thread::scope(|s| {
        for _ in 0..THREADS {
            s.spawn(|| {
                start.wait();
                for _ in 0..RUNS {
                    net.loss.forward().unwrap();
                    net.loss.backward().unwrap();
                    assert_eq!(net.loss.to_vec::<f32>().unwrap(), loss);
                }
            });
        }
    });
    let all: Vec<f32> = net.weights[0].grad().to_vec().unwrap();
    for (all, one) in all.iter().zip(one) {
        let want = one * (THREADS * RUNS) as f32;
        assert!((all - want).abs() <= 1e-4 * want.abs().max(1.0), "{all} != {want}");
    }
}

#[test]
fn threads_build_on_one_variable() {
    let x = Variable::from_slice(&[0.5f32], [1].into()).unwrap().with_need_grad(true);
    let h = f::exp(&x).unwrap();
    let work = |k: usize| {
        (0..200).all(|i| {
            let val = (k * 200 + i) as f64;
            let y = (&h * val).unwrap();
            y.forward().unwrap();
            y.to_vec::<f32>().unwrap() == [0.5f32.exp() * val as f32]
        })
    };
    let right = thread::scope(|s| {
        let threads: Vec<_> = (0..3).map(|k| s.spawn(move || work(k))).collect();
        threads.into_iter().all(|t| t.join().unwrap())
    });
    assert!(right && h.function_references().is_empty());
}

#[test]
fn graphs_move_between_threads() {
    let y = thread::spawn(|| f::exp(&f::sin(&Variable::new([2])).unwrap()).unwrap()).join().unwrap();
    y.forward().unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [1.0, 1.0]);
    thread::spawn(move || drop(y)).join().unwrap();
}

#[test]
fn modes_belong_to_a_thread() {
    mode::set_auto_forward(true);
    mode::set_no_grad(true);
    mode::set_recompute(true);
    mode::set_context(Context::cpu(DType::F64).unwrap().into());
    let other = || (mode::auto_forward(), mode::no_grad(), mode::recompute(), mode::context().dtype());
    assert_eq!(thread::spawn(other).join().unwrap(), (false, false, false, DType::F32));
    assert_eq!(other(), (true, true, true, DType::F64));
    let x = Variable::new([1]).with_need_grad(true);
    let y = f::exp(&x).unwrap();
    assert_eq!((y.data().unwrap().dtype(), y.need_grad(), y.to_vec::<f64>().unwrap()), (DType::F64, false, vec![1.0]));
}

#[test]
fn scopes_belong_to_a_thread() {
    let names = || get_parameters().into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    let make = |name: &str| get_parameter_or_create(name, [1], &Constant(1.0), true);
    let start = Barrier::new(2);
    let work = |scope: &str, name: &str| {
        parameter_scope(scope, || {
            start.wait();
            make(name)?;
            start.wait();
            Ok(names())
        })
        .unwrap()
    };
    thread::scope(|s| {
        let a = s.spawn(|| work("thread-a", "x"));
        let b = s.spawn(|| work("thread-b", "y"));
        assert_eq!((a.join().unwrap(), b.join().unwrap()), (vec!["x".to_string()], vec!["y".to_string()]));
    });
    // One tree: what another thread made is there; the first thread that asks makes a parameter.
    assert_eq!(parameter::get_parameter("thread-a/x").unwrap().to_vec::<f32>().unwrap(), [1.0]);
    let same = thread::scope(|s| {
        let threads: Vec<_> = (0..4).map(|_| s.spawn(|| make("thread-shared").unwrap())).collect();
        threads.into_iter().map(|t| t.join().unwrap().id()).collect::<Vec<_>>()
    });
    assert!(same.iter().all(|id| *id == same[0]));
}

#[test]
fn a_solver_serves_several_threads() {
    let w = Variable::from_slice(&[0.0f32], [1].into()).unwrap().with_need_grad(true);
    w.grad().fill(1.0).unwrap();
    let solver = Solver::new(Sgd { lr: 1.0 });
    solver.set_parameters(&[("w".into(), w.clone())], Default::default()).unwrap();
    thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| (0..100).for_each(|_| solver.update().unwrap()));
        }
    });
    assert_eq!(w.to_vec::<f32>().unwrap(), [-400.0]);
    assert_eq!(solver.get_states()[0].1.t, 400);
}
