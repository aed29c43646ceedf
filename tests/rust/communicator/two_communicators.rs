//! A backward run that fails on one rank, with callbacks of one communicator, and a hook that sums by another one; and worlds
//! that have nothing to do with each other.

use super::array;
use nnrs::communicator::{AllReduceOptions, CallbackOptions, Communicator, Threads};
use nnrs::graph::{BackwardRun, FunctionRef};
use nnrs::{DType, Error, Result, Variable, functions as f};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
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
    let hook = |of: &FunctionRef| match of.name() {
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

/// A run of ranks 0 and 1, in which all sum up; rank 2 does so without a run. It fails on rank 1 before that.
fn run_of_two(comm: &Communicator, fails: bool) -> Result<()> {
    if comm.rank() == 2 {
        return if fails { Ok(()) } else { sum(comm, 1).map(drop) };
    }
    let w = Variable::from_slice(&[1f32], [1].into())?.with_need_grad(true);
    w.grad().zero()?;
    let y = f::sum(&w, f::Sum::default())?;
    y.forward()?;
    let reduced = comm.all_reduce_callback(&[w.grad()], CallbackOptions { group: "two", ..Default::default() })?;
    let hook = |_: &FunctionRef| match fails {
        true if comm.rank() == 1 => Err(Error::graph("a bad sample")),
        true => Ok(()),
        false => sum(comm, 1).map(drop),
    };
    y.backward_with(BackwardRun { callbacks: &[&reduced], post: Some(&hook), ..Default::default() })
}

#[test]
fn worlds_side_by_side_do_not_hear_of_each_other() {
    let is_over = AtomicBool::new(false);
    let steps = |fails: bool, count: usize| {
        Threads::run_over(Threads::world_within(RANKS, Duration::from_secs(20)), |comm| {
            Communicator::alone().barrier()?; // ranks of both worlds have such a one
            comm.new_group("two", &[0, 1])?;
            for _ in 0..count {
                let done = run_of_two(&comm, fails);
                assert_eq!(done.is_err(), fails && comm.rank() < 2, "{done:?}");
                comm.barrier()?;
            }
            Ok(())
        })
    };
    std::thread::scope(|s| {
        s.spawn(|| {
            while !is_over.load(Relaxed) {
                steps(true, 5).unwrap();
            }
        });
        let seen = std::panic::catch_unwind(|| steps(false, 500));
        is_over.store(true, Relaxed);
        seen.unwrap().unwrap();
    });
}
