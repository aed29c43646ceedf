//! Data-parallel training in Rust: ranks with the same network and a part of each batch each add up their gradients while
//! backward goes on.
//!
//!     cargo run --release --example data_parallel
//!
//! Ranks are threads of this program, over the transport `Threads`. A program of several processes is the same but for its `main`,
//! which makes one communicator over a transport of its own (`nnrs::communicator::Transport` shows how).

use nnrs::communicator::{AllReduceOptions, CallbackOptions, Communicator, Threads, WORLD};
use nnrs::communicator::{SyncBatchNormalization, sync_batch_normalization};
use nnrs::graph::BackwardRun;
use nnrs::initializer::Constant;
use nnrs::parameter::{get_parameter_or_create, get_parameters, parameter_scope};
use nnrs::parametric::{Affine, affine};
use nnrs::solver::{Adam, Keep, Solver};
use nnrs::{BackwardOptions, ForwardOptions, NdArray, Result, Variable, cpu, functions as f};

const RANKS: usize = 2;
/// Angles in a batch, over all ranks.
const BATCH: usize = 64;
const STEPS: usize = 200;

/// The point of the unit circle for each angle, (rows, 2). The batch's statistics are those of all ranks together.
fn network(x: &Variable, comm: &Communicator) -> Result<Variable> {
    let h = affine("hidden", x, 32, Affine::default())?;
    let beta = get_parameter_or_create("beta", [1, 32], &Constant(0.0), true)?;
    let gamma = get_parameter_or_create("gamma", [1, 32], &Constant(1.0), true)?;
    let options = SyncBatchNormalization::default();
    let h = sync_batch_normalization(&h, Some(&beta), Some(&gamma), None, None, comm, options)?.swap_remove(0);
    affine("point", &f::tanh(&h)?, 2, Affine::default())
}

/// Trains on this rank's part of each batch; gives the mean losses of the whole ones, and the parameters.
fn train(comm: &Communicator) -> Result<(Vec<f64>, Vec<f32>)> {
    let rows = BATCH / comm.size();
    let (x, t) = (Variable::new([rows, 1]), Variable::new([rows, 2]));
    let y = network(&x, comm)?;
    let error = (&y - &t)?;
    let loss = f::mean(&(&error * &error)?, f::Mean::default())?;
    let parameters = get_parameters();
    let arrays = |of: fn(&Variable) -> NdArray| parameters.iter().map(|(_, p)| of(p)).collect::<Vec<_>>();
    comm.bcast(&arrays(Variable::raw_data), 0, WORLD)?; // all begin as rank 0 does

    let solver = Solver::new(Adam { alpha: 0.01, ..Default::default() });
    solver.set_parameters(&parameters, Keep::Nothing)?;
    let options = CallbackOptions { division: true, ..Default::default() };
    let reduced = comm.all_reduce_callback(&arrays(Variable::grad), options)?;
    let mut losses = vec![];
    for _ in 0..STEPS {
        load(&x, &t, comm.rank() * rows)?;
        loss.forward_with(ForwardOptions { clear_no_need_grad: true, ..Default::default() })?;
        solver.zero_grad()?;
        let options = BackwardOptions { clear_buffer: true, ..Default::default() };
        loss.backward_with(BackwardRun { options, callbacks: &[&reduced], ..Default::default() })?;
        solver.update()?;
        let whole = NdArray::from_slice(&loss.to_vec::<f64>()?, [1].into())?;
        comm.all_reduce(&[&whole], AllReduceOptions { division: true, ..Default::default() })?;
        losses.extend(whole.to_vec::<f64>()?);
    }
    let values = parameters.iter().map(|(_, p)| p.to_vec::<f32>()).collect::<Result<Vec<_>>>()?;
    Ok((losses, values.concat()))
}

/// A rank's part of the batch: the angles from number `first` on, and their points.
fn load(x: &Variable, t: &Variable, first: usize) -> Result<()> {
    let angles: Vec<f32> = (first..first + x.shape()[0]).map(|i| i as f32 / 32.0 - 1.0).collect();
    let points: Vec<f32> = angles.iter().flat_map(|a| [(4.0 * a).cos(), (4.0 * a).sin()]).collect();
    x.raw_data().write(&angles)?;
    t.raw_data().write(&points)
}

/// What each of some ranks ends with. The tree of parameters is the process's: each has a scope of its own.
fn train_on(ranks: usize) -> Result<Vec<(Vec<f64>, Vec<f32>)>> {
    Threads::run(ranks, |comm| parameter_scope(&format!("{ranks} ranks/{}", comm.rank()), || train(&comm)))
}

fn main() -> Result<()> {
    cpu::set_num_threads(1); // ranks times threads should not be more than there are cores
    nnrs::random::set_function_seed(313);
    let several = train_on(RANKS)?;
    let (losses, parameters) = &several[0];
    println!("{RANKS} ranks: loss {:.4} -> {:.4}", losses[0], losses[STEPS - 1]);
    assert!(losses[STEPS - 1] < 0.05 * losses[0], "the network did not learn");
    assert!(several.iter().all(|other| other == &several[0]), "all ranks have the same parameters");
    println!("{} parameters, the same bits on all ranks", parameters.len());
    Ok(())
}

#[test]
fn it_runs() -> Result<()> {
    main()
}
