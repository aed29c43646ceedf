//! Networks trained by several ranks: the numbers of one process within rounding, the same bits in each run; and packs of
//! gradients that are summed while backward goes on.

use nnrs::communicator::{CallbackOptions, CollectiveCall, Communicator, GradientReduction, Threads, Transport, WORLD};
use nnrs::graph::{BackwardRun, CommunicatorBackwardCallback, FunctionRef};
use nnrs::solver::{Momentum, Solver};
use nnrs::{BackwardOptions, ForwardOptions, NdArray, Result, Variable, functions as f};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

const BATCH: usize = 12;

fn numbers(n: usize, seed: usize) -> Vec<f32> {
    (0..n).map(|i| ((i * 37 + seed * 101 + 11) % 64) as f32 / 32.0 - 1.0).collect()
}

/// A perceptron of three layers, of which the last two share their weight, and its loss over some rows.
struct Net {
    x: Variable,
    loss: Variable,
    parameters: Vec<(String, Variable)>,
}

impl Net {
    fn new(rows: usize) -> Result<Net> {
        let variable = |shape: [usize; 2], seed| {
            let v = Variable::from_slice(&numbers(shape[0] * shape[1], seed), shape.into())?;
            Ok::<_, nnrs::Error>(v.with_need_grad(true))
        };
        let (x, first, shared) = (Variable::new([rows, 4]), variable([4, 8], 1)?, variable([8, 8], 2)?);
        let layer = |x: &Variable, w: &Variable| f::tanh(&f::affine(x, w, None, f::Affine::default())?);
        let y = layer(&layer(&layer(&x, &first)?, &shared)?, &shared)?;
        let loss = f::mean(&(&y * &y)?, f::Mean::default())?;
        let parameters = [("first", first), ("shared", shared)].map(|(name, w)| (name.to_string(), w)).into();
        Ok(Net { x, loss, parameters })
    }

    fn gradients(&self) -> Vec<NdArray> {
        self.parameters.iter().map(|(_, p)| p.grad()).collect()
    }

    fn load(&self, step: usize, first: usize) -> Result<()> {
        let rows = self.x.shape()[0];
        self.x.raw_data().write(&numbers(4 * BATCH, step + 3)[4 * first..][..4 * rows])
    }

    fn backward(&self, reduced: &GradientReduction) -> Result<()> {
        self.loss.forward_with(ForwardOptions { clear_no_need_grad: true, ..Default::default() })?;
        let options = BackwardOptions { clear_buffer: true, ..Default::default() };
        self.loss.backward_with(BackwardRun { options, callbacks: &[reduced], ..Default::default() })
    }
}

/// The parameters after some steps, each rank with its part of the batch.
fn train(comm: &Communicator, pack_size: usize) -> Result<Vec<f32>> {
    let rows = BATCH / comm.size();
    let net = Net::new(rows)?;
    let solver = Solver::new(Momentum { lr: 0.1, momentum: 0.9 });
    solver.set_parameters(&net.parameters, Default::default())?;
    let options = CallbackOptions { pack_size, division: true, ..Default::default() };
    let reduced = comm.all_reduce_callback(&net.gradients(), options)?;
    for step in 0..20 {
        net.load(step, comm.rank() * rows)?;
        solver.zero_grad()?;
        net.backward(&reduced)?;
        solver.update()?;
    }
    let values = net.parameters.iter().map(|(_, p)| p.to_vec::<f32>()).collect::<Result<Vec<_>>>()?;
    Ok(values.concat())
}

#[test]
fn several_ranks_train_what_one_process_trains() {
    let alone = train(&Communicator::alone(), 1).unwrap();
    for size in [2, 3, 4] {
        let mut runs = vec![];
        for pack_size in [1, 1, 70, 1 << 20] {
            runs.extend(Threads::run(size, |comm| train(&comm, pack_size)).unwrap());
        }
        assert!(runs.iter().all(|r| *r == runs[0]), "the same bits on all ranks, in each run, however packed");
        assert!(alone.iter().zip(&runs[0]).all(|(a, b)| (a - b).abs() < 1e-4 * a.abs().max(1.0)), "{size}");
    }
}

#[test]
fn gradients_are_scaled_and_summed() {
    let plain: Vec<Vec<f32>> = [0, 1].map(|rank| gradients(&Communicator::alone(), rank, 1.0)).into();
    let scaled = gradients(&Communicator::alone(), 0, 0.5);
    assert!(scaled.iter().zip(&plain[0]).all(|(s, p)| *s == p * 0.5));
    let summed = Threads::run(2, |comm| Ok(gradients(&comm, comm.rank(), 0.5))).unwrap();
    let expected: Vec<f32> = plain[0].iter().zip(&plain[1]).map(|(a, b)| a * 0.5 + b * 0.5).collect();
    assert!(summed.iter().all(|s| *s == expected));
}

fn gradients(comm: &Communicator, part: usize, scale_grad: f64) -> Vec<f32> {
    let net = Net::new(BATCH / 2).unwrap();
    net.load(0, part * BATCH / 2).unwrap();
    let options = CallbackOptions { scale_grad, ..Default::default() };
    net.backward(&comm.all_reduce_callback(&net.gradients(), options).unwrap()).unwrap();
    net.gradients().iter().flat_map(|g| g.to_vec::<f32>().unwrap()).collect()
}

#[test]
fn gradients_outside_of_the_graph_and_a_run_without_any() {
    let seen = Threads::run(2, |comm| {
        let outside = NdArray::from_slice(&[comm.rank() as f32 + 1.0], [1].into())?;
        let x = Variable::from_slice(&[2.0f32], [1].into())?.with_need_grad(true);
        let run = |y: &Variable, gradients: &[NdArray]| {
            let reduced = comm.all_reduce_callback(gradients, CallbackOptions::default())?;
            y.forward()?;
            y.backward_with(BackwardRun { callbacks: &[&reduced], ..Default::default() })
        };
        run(&(&x * &x)?, &[x.grad(), outside.clone()])?;
        assert_eq!((x.grad().to_vec::<f32>()?, outside.to_vec::<f32>()?), (vec![8.0], vec![3.0]));
        run(&f::exp(&Variable::new([1]))?, std::slice::from_ref(&outside))?;
        outside.to_vec::<f32>()
    });
    assert_eq!(seen.unwrap(), [[6.0], [6.0]]);
}

#[test]
fn a_callback_after_a_run_that_failed() {
    let seen = Threads::run(2, |comm| {
        let net = Net::new(BATCH / 2)?;
        net.load(0, comm.rank() * BATCH / 2)?;
        let reduced =
            comm.all_reduce_callback(&net.gradients(), CallbackOptions { pack_size: 1, ..Default::default() })?;
        net.loss.forward()?;
        let fail = |f: &FunctionRef| match f.name() {
            "tanh" => Err(nnrs::Error::graph("no")),
            _ => Ok(()),
        };
        let failed =
            net.loss.backward_with(BackwardRun { callbacks: &[&reduced], post: Some(&fail), ..Default::default() });
        assert!(failed.is_err());
        net.gradients().iter().try_for_each(NdArray::zero)?;
        net.backward(&reduced)?;
        Ok(net.gradients().iter().flat_map(|g| g.to_vec::<f32>().unwrap()).collect::<Vec<_>>())
    });
    let plain = [0, 1].map(|part| gradients(&Communicator::alone(), part, 1.0));
    let expected: Vec<f32> = plain[0].iter().zip(&plain[1]).map(|(a, b)| a + b).collect();
    assert!(seen.unwrap().iter().all(|s| *s == expected));
}

/// Leaves of some values, and `e^first last`, summed.
fn exponential(values: [f32; 2], size: usize, is_swapped: bool) -> Result<([Variable; 2], Variable)> {
    let leaf = |v: f32| Ok::<_, nnrs::Error>(Variable::from_slice(&vec![v; size], [size].into())?.with_need_grad(true));
    let [a, b] = [leaf(values[0])?, leaf(values[1])?];
    let (first, last) = if is_swapped { (&b, &a) } else { (&a, &b) };
    let y = f::sum(&(&f::exp(first)? * last)?, f::Sum::default())?;
    Ok(([a, b], y))
}

fn run(y: &Variable, leaves: &[Variable], callbacks: &[&dyn CommunicatorBackwardCallback]) -> Result<Vec<f32>> {
    leaves.iter().try_for_each(|v| v.grad().zero())?;
    y.forward()?;
    y.backward_with(BackwardRun { callbacks, ..Default::default() })?;
    leaves.iter().map(|v| Ok(*v.grad().to_vec::<f32>()?.last().unwrap_or(&0.0))).collect()
}

fn each(pack_size: usize) -> CallbackOptions<'static> {
    CallbackOptions { pack_size, ..Default::default() }
}

#[test]
fn gradients_of_one_shape_in_another_order_are_an_error() {
    let told = Threads::run(2, |comm| {
        let (leaves, y) = exponential([2.0, 3.0], 1, comm.rank() == 1)?;
        let reduced = comm.all_reduce_callback(&[leaves[0].grad(), leaves[1].grad()], each(1))?;
        let told = run(&y, &leaves, &[&reduced]).unwrap_err();
        comm.barrier()?;
        Ok((told.kind(), told.to_string()))
    });
    for (kind, told) in told.unwrap() {
        assert!(kind == nnrs::ErrorKind::Argument && told.contains("expected the same call on all ranks"), "{told}");
    }
}

#[test]
fn a_run_that_fails_on_one_rank_is_an_error_for_the_others() {
    for size in [1, 2, 5000, 40_000] {
        let seen = Threads::run(3, |comm| {
            let (leaves, y) = exponential([1.0 + comm.rank() as f32, 3.0], size, false)?;
            let gradients = [leaves[0].grad(), leaves[1].grad()];
            let reduced = comm.all_reduce_callback(&gradients, each(1))?;
            let mut found = vec![];
            for failing in ["", "sum", "mul2", "exp", ""] {
                gradients.iter().try_for_each(NdArray::zero)?;
                y.forward()?;
                let post = |f: &FunctionRef| match comm.rank() == 1 && f.name() == failing {
                    true => Err(nnrs::Error::graph("a bad sample")),
                    false => Ok(()),
                };
                let run = BackwardRun { callbacks: &[&reduced], post: Some(&post), ..Default::default() };
                found.push(match y.backward_with(run) {
                    Ok(()) => format!("{:?}", gradients.each_ref().map(|g| g.to_vec::<f32>().unwrap()[size - 1])),
                    Err(e) => e.to_string(),
                });
            }
            Ok(found)
        });
        let sums = [3.0 * (1f32.exp() + 2f32.exp() + 3f32.exp()), 1f32.exp() + 2f32.exp() + 3f32.exp()];
        for (rank, found) in seen.unwrap().into_iter().enumerate() {
            for told in &found[1..4] {
                let expected = match rank {
                    1 => "a bad sample",
                    _ => {
                        "Communicator::all_reduce_callback: rank 1 of group 'world' has given its backward run up: a bad sample"
                    }
                };
                assert_eq!(told.lines().next(), Some(expected));
            }
            for numbers in [&found[0], &found[4]] {
                let got: Vec<f32> = numbers.trim_matches(['[', ']']).split(", ").map(|n| n.parse().unwrap()).collect();
                assert!(got.iter().zip(sums).all(|(g, s)| (g - s).abs() < 1e-4 * s), "{got:?} {sums:?}");
            }
        }
    }
}

#[test]
fn several_callbacks_in_one_run_and_one_twice() {
    let seen = Threads::run(2, |comm| {
        let (leaves, y) = exponential([1.0 + comm.rank() as f32, 3.0], 40_000, false)?;
        let [a, b] = leaves.each_ref().map(|v| comm.all_reduce_callback(&[v.grad()], CallbackOptions::default()));
        let (a, b) = (a?, b?);
        Ok([run(&y, &leaves, &[&a, &b])?, run(&y, &leaves, &[&b, &a, &b])?, run(&y, &leaves, &[&a, &a, &b])?])
    });
    let sums = [3.0 * (1f32.exp() + 2f32.exp()), 1f32.exp() + 2f32.exp()];
    for got in seen.unwrap().into_iter().flatten() {
        assert!(got.iter().zip(sums).all(|(g, s)| (g - s).abs() < 1e-4 * s), "{got:?} {sums:?}");
    }
}

#[test]
fn a_run_that_fails_with_callbacks_of_two_groups() {
    let seen = Threads::run_over(Threads::world_within(3, Duration::from_secs(20)), |comm| {
        comm.new_group("pair", &[0, 1])?;
        let (leaves, y) = exponential([1.0, 3.0], 2, false)?;
        let first = comm.all_reduce_callback(&[leaves[0].grad()], each(1))?;
        let last =
            comm.all_reduce_callback(&[leaves[1].grad()], CallbackOptions { group: "pair", ..Default::default() })?;
        for failing in ["sum", "mul2"] {
            y.forward()?;
            let post = |f: &FunctionRef| match comm.rank() == 1 && f.name() == failing {
                true => Err(nnrs::Error::graph("a bad sample")),
                false => Ok(()),
            };
            let run = BackwardRun { callbacks: &[&first, &last], post: Some(&post), ..Default::default() };
            assert!(y.backward_with(run).unwrap_err().to_string().contains("a bad sample"));
            comm.barrier()?;
        }
        run(&y, &leaves, &[&first, &last])
    });
    let e = 1f32.exp();
    for (got, ranks) in seen.unwrap().into_iter().zip([2.0, 2.0, 1.0]) {
        assert!((got[0] - 9.0 * e).abs() < 1e-3 && (got[1] - ranks * e).abs() < 1e-3, "{got:?}");
    }
}

#[test]
fn what_flows_through_a_variable_whose_gradient_is_summed_is_ones_own() {
    let seen = Threads::run(2, |comm| {
        let a = Variable::from_slice(&vec![1.0 + comm.rank() as f32; 100_000], [100_000].into())?.with_need_grad(true);
        let h = (&a * &Variable::from_slice(&[2.0f32], [1].into())?)?;
        let y = f::sum(&(&h * &h)?, f::Sum::default())?;
        let reduced = comm.all_reduce_callback(&[h.grad()], each(1))?;
        for _ in 0..5 {
            run(&y, std::slice::from_ref(&a), &[&reduced])?;
            let own = 8.0 * (1.0 + comm.rank() as f32);
            assert!(a.grad().to_vec::<f32>()?.iter().all(|g| *g == own));
            assert!(h.grad().to_vec::<f32>()?.iter().all(|g| *g == 12.0));
        }
        Ok(())
    });
    seen.unwrap();
}

#[test]
fn a_group_reduces_its_own() {
    let seen = Threads::run(3, |comm| {
        comm.new_group("first", &[0, 1])?;
        let x = Variable::from_slice(&[comm.rank() as f32 + 1.0], [1].into())?.with_need_grad(true);
        let y = (&x * &x)?;
        y.forward()?;
        let options = CallbackOptions { group: "first", ..Default::default() };
        let reduced = comm.all_reduce_callback(&[x.grad()], options)?;
        y.backward_with(BackwardRun { callbacks: &[&reduced], ..Default::default() })?;
        x.grad().to_vec::<f32>()
    });
    assert_eq!(seen.unwrap(), [[6.0], [6.0], [6.0]]);
}

/// Counts the moves that are over.
struct Counted {
    inner: Threads,
    moves: Arc<Moves>,
}

#[derive(Default)]
struct Moves(Mutex<usize>, Condvar);

impl Moves {
    fn note<R>(&self, result: R) -> R {
        *self.0.lock().unwrap() += 1;
        self.1.notify_all();
        result
    }

    /// Whether there were `count` of them within a minute.
    fn reach(&self, count: usize) -> bool {
        let too_few = |moves: &mut usize| *moves < count;
        !self.1.wait_timeout_while(self.0.lock().unwrap(), Duration::from_secs(60), too_few).unwrap().1.timed_out()
    }
}

impl Transport for Counted {
    fn rank(&self) -> usize {
        self.inner.rank()
    }
    fn size(&self) -> usize {
        self.inner.size()
    }
    fn all_to_all(&self, send: &[u8], cuts: &[usize], received: &mut [u8]) -> Result<()> {
        self.moves.note(self.inner.all_to_all(send, cuts, received))
    }
    fn all_gather(&self, buffer: &mut [u8], cuts: &[usize]) -> Result<()> {
        self.moves.note(self.inner.all_gather(buffer, cuts))
    }
    fn gather(&self, buffer: &mut [u8], cuts: &[usize], dst: usize) -> Result<()> {
        self.moves.note(self.inner.gather(buffer, cuts, dst))
    }
    fn bcast(&self, buffer: &mut [u8], src: usize) -> Result<()> {
        self.moves.note(self.inner.bcast(buffer, src))
    }
    fn subset(&self, ranks: &[usize], name: &str) -> Result<Option<Arc<dyn Transport>>> {
        self.inner.subset(ranks, name)
    }
    fn begin(&self, call: &CollectiveCall) {
        self.inner.begin(call);
    }
}

/// Backward waits, before its last function, for sums of the packs that went before: they need nothing of its thread.
#[test]
fn packs_are_summed_while_backward_goes_on() {
    let work = |inner: Threads| -> Result<usize> {
        let moves = Arc::new(Moves::default());
        let comm = Communicator::new(Arc::new(Counted { inner, moves: moves.clone() }));
        let net = Net::new(2)?;
        net.load(0, 2 * comm.rank())?;
        let reduced =
            comm.all_reduce_callback(&net.gradients(), CallbackOptions { pack_size: 1, ..Default::default() })?;
        net.loss.forward()?;
        let affines = Mutex::new(0);
        let post = |f: &FunctionRef| {
            *affines.lock().unwrap() += (f.name() == "affine") as usize;
            // The third of them is that of the first layer. The word on all packs, then that on the shared weight, and its sum.
            if f.name() == "affine" && *affines.lock().unwrap() == 3 {
                assert!(moves.reach(3), "nothing was summed meanwhile");
            }
            Ok(())
        };
        net.loss.backward_with(BackwardRun { callbacks: &[&reduced], post: Some(&post), ..Default::default() })?;
        comm.bcast(&net.gradients(), 0, WORLD)?;
        let found = *moves.0.lock().unwrap();
        Ok(found)
    };
    let moves: Vec<_> = std::thread::scope(|s| {
        let ranks: Vec<_> = Threads::world(2).into_iter().map(|t| s.spawn(move || work(t))).collect();
        ranks.into_iter().map(|r| r.join().unwrap().unwrap()).collect()
    });
    // The word, two packs with one each, that at the end; a word, a broadcast. Two more with a word behind a failed run: another test's.
    assert!(moves[0] == moves[1] && [0, 2, 4, 6, 8, 10].contains(&(moves[0] - 8)), "{moves:?}");
}
