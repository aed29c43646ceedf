//! A backward run that fails on one rank, with callbacks of one communicator, and a hook that sums by another one.

use super::array;
use nnrs::communicator::{AllReduceOptions, CallbackOptions, Communicator, Threads};
use nnrs::graph::BackwardRun;
use nnrs::{DType, Error, Result, Variable, functions as f};
use std::sync::Arc;
use std::time::Duration;

const RANKS: usize = 3;

fn sum(comm: &Communicator, value: usize) -> Result<usize> {
    let x = array(DType::F32, &[value as f64]);
    comm.all_reduce(&[&x], AllReduceOptions::default())?;
    Ok(x.to_vec::<f32>()?[0] as usize)
}

/// A step of training; rank 1 fails in two of them before the hook's sum.
fn step(i: usize, first: &Communicator, second: &Communicator) -> Result<()> {
    let w = Variable::from_slice(&[1f32], [1].into())?.with_need_grad(true);
    w.grad().zero()?;
    let y = f::sum(
        &f::mul_scalar(&w, f::MulScalar { val: first.rank() as f64 + 1.0, ..Default::default() })?,
        f::Sum::default(),
    )?;
    y.forward()?;
    let reduced = first.all_reduce_callback(&[w.grad()], CallbackOptions { pack_size: 1, ..Default::default() })?;
    let hook = |of: &nnrs::graph::FunctionRef| match of.name() {
        "sum" if first.rank() == 1 && [1, 2].contains(&i) => Err(Error::graph("a bad sample")),
        "sum" => {
            assert_eq!(sum(second, 1 + i)?, RANKS * (1 + i));
            Ok(())
        }
        _ => Ok(()),
    };
    y.backward_with(BackwardRun { callbacks: &[&reduced], post: Some(&hook), ..Default::default() })?;
    assert_eq!(w.grad().to_vec::<f32>()?, [6.0]);
    Ok(())
}

/// Steps, and a sum behind each if it `evaluates`. `in_threads`: the ranks each of whose steps has a thread of its own.
fn check(in_threads: &[usize], evaluates: bool) {
    let worlds = [0; 2].map(|_| Threads::world_within(RANKS, Duration::from_secs(20)));
    std::thread::scope(|s| {
        let [first, second] = worlds;
        for world in first.into_iter().zip(second) {
            s.spawn(move || {
                let (first, second) = (Communicator::new(Arc::new(world.0)), Communicator::new(Arc::new(world.1)));
                for i in 0..5 {
                    let done = match in_threads.contains(&first.rank()) {
                        true => std::thread::scope(|s| s.spawn(|| step(i, &first, &second)).join().unwrap()),
                        false => step(i, &first, &second),
                    };
                    assert_eq!(done.is_err(), [1, 2].contains(&i), "step {i}: {done:?}");
                    let told = done.err().is_none_or(|e| e.to_string().contains("a bad sample"));
                    assert!(told && (!evaluates || sum(&second, 100 + i).unwrap() == RANKS * (100 + i)));
                }
            });
        }
    });
}

#[test]
fn of_which_the_other_was_not_told() {
    for in_threads in [&[][..], &[0, 1, 2], &[1], &[0, 2]] {
        [true, false].into_iter().for_each(|evaluates| check(in_threads, evaluates));
    }
}
