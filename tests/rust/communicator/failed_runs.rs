//! Backward runs that fail on one rank, which goes on: an error on all, and the steps behind are right.

use super::array;
use nnrs::communicator::{
    AllReduceOptions, CallbackOptions, Communicator, SyncBatchNormalization, Threads, WORLD, sync_batch_normalization,
};
use nnrs::graph::{BackwardRun, CommunicatorBackwardCallback, FunctionRef};
use nnrs::{DType, Error, NdArray, Result, Variable, functions as f};
use std::time::Duration;

fn leaf(value: f32) -> Result<Variable> {
    let v = Variable::from_slice(&[value], [1].into())?.with_need_grad(true);
    v.grad().zero()?;
    Ok(v)
}

/// The sum of `sin(a) + exp(b)`, and its leaves: of rank r 1 + r and 2 + r.
fn net(comm: &Communicator) -> Result<([Variable; 2], Variable)> {
    let own = comm.rank() as f32;
    let leaves = [leaf(1.0 + own)?, leaf(2.0 + own)?];
    let y = f::sum(&(&f::sin(&leaves[0])? + &f::exp(&leaves[1])?)?, f::Sum::default())?;
    Ok((leaves, y))
}

fn each(group: &str) -> CallbackOptions<'_> {
    CallbackOptions { pack_size: 1, group, ..Default::default() }
}

struct Fails;

impl CommunicatorBackwardCallback for Fails {
    fn on_finish_backward(&self) -> Result<()> {
        Err(Error::graph("a bad sample"))
    }
}

struct FailsAtOnce;

impl CommunicatorBackwardCallback for FailsAtOnce {
    fn on_begin_backward(&self, _run: u64) -> Result<()> {
        Err(Error::graph("a bad sample"))
    }
}

/// What a rank does at the end of a function.
type Hook<'a> = &'a dyn Fn(&FunctionRef) -> Result<()>;

/// Five steps over three ranks, of which rank 1 fails in the second and third; `step` runs backward, and is told of which
/// step and whether it shall fail. The gradients of the others are those of `expected`.
fn check(
    size: usize,
    expected: impl Fn(&[f32]) -> Vec<f32>,
    step: impl Fn(&Communicator, &[Variable; 2], &Variable, usize, bool) -> Result<()> + Sync,
) {
    let world = Threads::world_within(size, Duration::from_secs(20));
    let seen = Threads::run_over(world, |comm| {
        comm.new_group("one", &[0, 1])?;
        comm.new_group("other", &[1, 0])?;
        let (leaves, y) = net(&comm)?;
        let mut found = vec![];
        for i in 0..5 {
            leaves.iter().try_for_each(|v| v.grad().zero())?;
            y.forward()?;
            let result = step(&comm, &leaves, &y, i, comm.rank() == 1 && [1, 2].contains(&i));
            found.push(match result {
                Ok(()) => Ok([leaves[0].grad().to_vec::<f32>()?[0], leaves[1].grad().to_vec::<f32>()?[0]]),
                Err(e) => Err(e.to_string()),
            });
        }
        Ok(found)
    });
    let own: Vec<f32> = (0..size).map(|r| 1.0 + r as f32).collect();
    let expected = expected(&own);
    for (rank, found) in seen.unwrap().into_iter().enumerate() {
        for (i, found) in found.into_iter().enumerate() {
            match found {
                Ok(got) => {
                    assert!(![1, 2].contains(&i), "rank {rank}, step {i}: {got:?}");
                    assert!(
                        got.iter().zip(&expected).all(|(g, e)| (g - e).abs() < 1e-4 * e.abs()),
                        "{got:?} {expected:?}"
                    );
                }
                Err(text) => {
                    assert!([1, 2].contains(&i) && text.contains("a bad sample"), "rank {rank}, step {i}: {text}");
                    assert!(rank == 1 || text.contains("has given its backward run up: "), "{text}");
                }
            }
        }
    }
}

fn sums(own: &[f32]) -> Vec<f32> {
    vec![own.iter().map(|v| v.cos()).sum(), own.iter().map(|v| (v + 1.0).exp()).sum()]
}

fn fails_at<'a>(name: &'static str, fails: bool, beside: Hook<'a>) -> impl Fn(&FunctionRef) -> Result<()> + 'a {
    move |f| if fails && f.name() == name { Err(Error::graph("a bad sample")) } else { beside(f) }
}

#[test]
fn behind_the_last_gradients() {
    for place in 0..3 {
        check(3, sums, |comm, leaves, y, _, fails| {
            let reduced = comm.all_reduce_callback(&leaves.each_ref().map(|v| v.grad()), each(WORLD))?;
            let callbacks: [&[&dyn CommunicatorBackwardCallback]; 4] =
                [&[&Fails, &reduced], &[&reduced, &Fails], &[&FailsAtOnce, &reduced], &[&reduced]];
            let callbacks = callbacks[if fails { place } else { 3 }];
            y.backward_with(BackwardRun { callbacks, ..Default::default() })
        });
    }
}

#[test]
fn with_other_collectives_in_the_run() {
    for (group, name) in [(WORLD, "sum"), (WORLD, "sin"), ("one", "sum"), ("one", "add2"), ("one", "exp")] {
        check(3, sums, |comm, leaves, y, step, fails| {
            let reduced = comm.all_reduce_callback(&leaves.each_ref().map(|v| v.grad()), each(WORLD))?;
            let sum = |_: &FunctionRef| {
                let x = array(DType::F32, &[(10 * comm.rank() + step) as f64]);
                comm.all_reduce(&[&x], AllReduceOptions { group, ..Default::default() })?;
                let ranks =
                    comm.find_group(group).filter(|all| all.contains(&comm.rank())).unwrap_or(vec![comm.rank()]);
                let expected: usize = ranks.iter().map(|r| 10 * r + step).sum();
                assert_eq!(x.to_vec::<f32>()?, [expected as f32]);
                Ok(())
            };
            let post = fails_at(name, fails, &sum);
            y.backward_with(BackwardRun { callbacks: &[&reduced], post: Some(&post), ..Default::default() })
        });
    }
}

#[test]
fn with_synchronized_normalization_in_the_run() {
    for group in [WORLD, "one"] {
        let seen = Threads::run_over(Threads::world_within(3, Duration::from_secs(20)), |comm| {
            comm.new_group("one", &[0, 1])?;
            let own = comm.rank() as f32;
            let x = Variable::from_slice(&[own, 2.0 - own * own, 0.5], [3, 1].into())?.with_need_grad(true);
            let options = SyncBatchNormalization { group, ..Default::default() };
            let normal = sync_batch_normalization(&f::exp(&x)?, None, None, None, None, &comm, options)?;
            let scale = leaf(3.0)?;
            let y = f::sum(&f::sin(&(&normal[0] * &scale)?)?, f::Sum::default())?;
            let reduced = comm.all_reduce_callback(&[scale.grad()], each(WORLD))?;
            let mut found = vec![];
            for step in 0..4 {
                [&x, &scale].iter().try_for_each(|v| v.grad().zero())?;
                y.forward()?;
                let post = fails_at("sin", comm.rank() == 1 && step < 2, &|_| Ok(()));
                let run = BackwardRun { callbacks: &[&reduced], post: Some(&post), ..Default::default() };
                match y.backward_with(run) {
                    Ok(()) => found.push([x.grad().to_vec::<f32>()?, scale.grad().to_vec()?].concat()),
                    Err(e) => assert!(step < 2 && e.to_string().contains("a bad sample"), "{e}"),
                }
            }
            [&x, &scale].iter().try_for_each(|v| v.grad().zero())?;
            y.forward()?;
            y.backward()?;
            comm.all_reduce(&[scale.grad()], AllReduceOptions::default())?;
            let plain = [x.grad().to_vec::<f32>()?, scale.grad().to_vec()?].concat();
            assert_eq!(found, [plain.clone(), plain]);
            Ok(())
        });
        seen.unwrap();
    }
}

#[test]
fn with_callbacks_of_two_groups() {
    for (name, order) in ["sum", "add2", "sin", "exp"].into_iter().flat_map(|name| [(name, false), (name, true)]) {
        check(2, sums, |comm, leaves, y, _, fails| {
            let one = comm.all_reduce_callback(&[leaves[0].grad()], each("one"))?;
            let other = comm.all_reduce_callback(&[leaves[1].grad()], each("other"))?;
            let callbacks: [&dyn CommunicatorBackwardCallback; 2] = if order { [&one, &other] } else { [&other, &one] };
            let post = fails_at(name, fails, &|_| Ok(()));
            y.backward_with(BackwardRun { callbacks: &callbacks, post: Some(&post), ..Default::default() })
        });
    }
}

#[test]
fn in_the_last_step_of_a_rank() {
    let seen = Threads::run_over(Threads::world_within(3, Duration::from_secs(20)), |comm| {
        let (leaves, y) = net(&comm)?;
        let reduced = comm.all_reduce_callback(&leaves.each_ref().map(|v| v.grad()), each(WORLD))?;
        for _ in 0..2 {
            y.forward()?;
            if comm.rank() != 1 {
                std::thread::sleep(Duration::from_millis(50)); // rank 1 would have ended
            }
            let post = fails_at("add2", comm.rank() == 1, &|_| Ok(()));
            let run = BackwardRun { callbacks: &[&reduced], post: Some(&post), ..Default::default() };
            assert!(y.backward_with(run).unwrap_err().to_string().contains("a bad sample"));
        }
        Ok(())
    });
    seen.unwrap();
}

#[test]
fn what_is_said_of_a_run_meets_a_rank_that_is_not_in_it() {
    let seen = Threads::run_over(Threads::world_within(3, Duration::from_secs(20)), |comm| {
        comm.new_group("one", &[0, 1])?;
        let (leaves, y) = net(&comm)?;
        let reduced = comm.all_reduce_callback(&leaves.each_ref().map(|v| v.grad()), each("one"))?;
        let of_all = |value: usize| {
            let x = array(DType::F32, &[value as f64]);
            comm.all_reduce(&[&x], AllReduceOptions::default())?;
            x.to_vec::<f32>()
        };
        for step in 0..5 {
            let is_bad = [1, 2].contains(&step);
            y.forward()?;
            let within = |f: &FunctionRef| if f.name() == "exp" { of_all(1).map(drop) } else { Ok(()) };
            let post = fails_at("sum", comm.rank() == 1 && is_bad, &within);
            let run = BackwardRun { callbacks: &[&reduced], post: Some(&post), ..Default::default() };
            match comm.rank() {
                2 if !is_bad => drop(of_all(1)?),
                2 => {}
                _ => {
                    let ended = y.backward_with(run);
                    assert_eq!(ended.is_err(), is_bad, "step {step} of rank {}: {ended:?}", comm.rank());
                }
            }
            assert_eq!(of_all(comm.rank() + step)?, [(3 + 3 * step) as f32]);
        }
        Ok(())
    });
    seen.unwrap();
}

#[test]
fn sums_over_rows_and_then_over_columns() {
    let seen = Threads::run(4, |comm| {
        let (row, column) = (comm.rank() / 2, comm.rank() % 2);
        for i in 0..2 {
            comm.new_group(&format!("row{i}"), &[2 * i, 2 * i + 1])?;
            comm.new_group(&format!("column{i}"), &[i, i + 2])?;
        }
        let leaves = [leaf(1.0 + comm.rank() as f32)?, leaf(2.0)?];
        let gradients: [NdArray; 2] = leaves.each_ref().map(|v| v.grad());
        let (rows, columns) = (format!("row{row}"), format!("column{column}"));
        let [rows, columns] = [&rows, &columns]
            .map(|group| comm.all_reduce_callback(&gradients, CallbackOptions { group, ..Default::default() }));
        let y = f::sum(&(&(&leaves[0] * &leaves[0])? * &leaves[1])?, f::Sum::default())?;
        y.forward()?;
        y.backward_with(BackwardRun { callbacks: &[&rows?, &columns?], ..Default::default() })?;
        Ok([gradients[0].to_vec::<f32>()?[0], gradients[1].to_vec::<f32>()?[0]])
    });
    assert_eq!(seen.unwrap(), [[40.0, 30.0]; 4]);
}

#[test]
fn in_a_group_or_a_run_within_the_run_to_which_the_failing_rank_has_not_come() {
    for (is_run, group, first) in [(false, "other", 0), (false, "other", 2), (true, "other", 0), (true, WORLD, 1)] {
        let seen = Threads::run_over(Threads::world_within(2, Duration::from_secs(20)), |comm| {
            comm.new_group("other", &[1, 0])?;
            let (leaves, y) = net(&comm)?;
            let inner_leaf = leaf(1.0)?;
            let z = f::sum(&(&inner_leaf + &inner_leaf)?, f::Sum::default())?;
            let outer = comm.all_reduce_callback(&leaves.each_ref().map(|v| v.grad()), each(WORLD))?;
            let inner = comm.all_reduce_callback(&[inner_leaf.grad()], each(group))?;
            let mut found = vec![];
            for step in 0..7 {
                leaves.iter().try_for_each(|v| v.grad().zero())?;
                y.forward()?;
                let is_bad = [first, first + 2].contains(&step);
                let within = |f: &FunctionRef| match (f.name() == "exp", is_run) {
                    (false, _) => Ok(()),
                    (true, true) if step == first + 2 => Ok(()),
                    (true, true) => {
                        inner_leaf.grad().zero()?;
                        z.forward()?;
                        z.backward_with(BackwardRun { callbacks: &[&inner], ..Default::default() })?;
                        assert_eq!(inner_leaf.grad().to_vec::<f32>()?, [4.0]);
                        Ok(())
                    }
                    (true, false) => {
                        let x = array(DType::F32, &[step as f64]);
                        comm.all_reduce(&[&x], AllReduceOptions { group, ..Default::default() })?;
                        assert_eq!(x.to_vec::<f32>()?, [2.0 * step as f32]);
                        Ok(())
                    }
                };
                let post = fails_at("add2", comm.rank() == 1 && is_bad, &within);
                let run = BackwardRun { callbacks: &[&outer], post: Some(&post), ..Default::default() };
                match y.backward_with(run) {
                    Ok(()) => found.push(leaves[1].grad().to_vec::<f32>()?[0]),
                    Err(e) => assert!(is_bad && e.to_string().contains("a bad sample"), "step {step}: {e}"),
                }
            }
            Ok(found)
        });
        let expected = 2f32.exp() + 3f32.exp();
        for found in seen.unwrap() {
            assert!(found.len() == 5 && found.iter().all(|g| (g - expected).abs() < 1e-4), "{group}: {found:?}");
        }
    }
}

#[test]
fn what_is_said_in_a_group_that_nobody_comes_to_has_all_the_time() {
    let seen = Threads::run_over(Threads::world_within(3, Duration::from_millis(400)), |comm| {
        comm.new_group("one", &[0, 1])?;
        comm.new_group("all", &[2, 1, 0])?;
        let (leaves, y) = net(&comm)?;
        let reduced = comm.all_reduce_callback(&leaves.each_ref().map(|v| v.grad()), each("one"))?;
        y.forward()?;
        let post = fails_at("add2", comm.rank() == 1, &|_| Ok(()));
        let run = BackwardRun { callbacks: &[&reduced], post: Some(&post), ..Default::default() };
        assert_eq!(comm.rank() < 2, comm.rank() < 2 && y.backward_with(run).is_err());
        std::thread::sleep(Duration::from_secs(1));
        let x = array(DType::F32, &[1.0]);
        comm.all_reduce(&[&x], AllReduceOptions { group: "all", ..Default::default() })?;
        x.to_vec::<f32>()
    });
    assert_eq!(seen.unwrap(), [[3.0]; 3]);
}

#[test]
fn sums_of_sums_are_made_in_the_order_of_the_callbacks() {
    for pack_size in [1, 1 << 20] {
        let seen = Threads::run(3, |comm| {
            comm.new_group("pair", &[0, 1])?;
            let [w, v, u] = [leaf(1.0 + comm.rank() as f32)?, leaf(1.0)?, leaf(1.0)?];
            let late = f::tanh(&f::tanh(&v)?)?;
            let y = f::sum(&(&(&late + &(&w * &w)?)? + &f::tanh(&u)?)?, f::Sum::default())?;
            let reduced = |some: [&Variable; 2], group| {
                comm.all_reduce_callback(&some.map(Variable::grad), CallbackOptions { pack_size, ..each(group) })
            };
            let [a, b, c] = [reduced([&w, &v], WORLD)?, reduced([&w, &u], "pair")?, reduced([&u, &w], WORLD)?];
            y.forward()?;
            y.backward_with(BackwardRun { callbacks: &[&a, &b, &c], ..Default::default() })?;
            w.grad().to_vec::<f32>()
        });
        assert_eq!(seen.unwrap(), [[24.0 + 24.0 + 12.0]; 3]);
    }
}

/// Rows add gradients up, columns what is in a hook: of five steps rank `failing` fails in the third, and all leave that out.
fn rows_and_columns(rows: &[&[usize]], columns: &[&[usize]], failing: usize, warm_up: usize) {
    let size = rows.iter().map(|ranks| ranks.len()).sum();
    let seen = Threads::run_over(Threads::world_within(size, Duration::from_secs(20)), |comm| {
        let of = |groups: &[&[usize]]| groups.iter().position(|ranks| ranks.contains(&comm.rank())).unwrap();
        rows.iter().enumerate().try_for_each(|(i, ranks)| comm.new_group(&format!("row{i}"), ranks))?;
        columns.iter().enumerate().try_for_each(|(i, ranks)| comm.new_group(&format!("column{i}"), ranks))?;
        let (row, column) = (format!("row{}", of(rows)), format!("column{}", of(columns)));
        let (leaves, y) = net(&comm)?;
        let reduced = comm.all_reduce_callback(&leaves.each_ref().map(|v| v.grad()), each(&row))?;
        for _ in 0..if of(rows) == 0 { warm_up } else { 0 } {
            y.forward()?;
            y.backward_with(BackwardRun { callbacks: &[&reduced], ..Default::default() })?;
        }
        let mut found = vec![];
        for step in 0..5 {
            leaves.iter().try_for_each(|v| v.grad().zero())?;
            y.forward()?;
            let sum = |f: &FunctionRef| {
                if f.name() == "exp" {
                    let x = array(DType::F32, &[(comm.rank() + step) as f64]);
                    comm.all_reduce(&[&x], AllReduceOptions { group: &column, ..Default::default() })?;
                    let expected: usize = columns[of(columns)].iter().map(|r| r + step).sum();
                    assert_eq!(x.to_vec::<f32>()?, [expected as f32]);
                }
                Ok(())
            };
            let post = fails_at("sum", comm.rank() == failing && step == 2, &sum);
            match y.backward_with(BackwardRun { callbacks: &[&reduced], post: Some(&post), ..Default::default() }) {
                Err(e) => assert!(e.to_string().contains("a bad sample"), "{e}"),
                Ok(()) => {
                    let expected: f32 = rows[of(rows)].iter().map(|&r| (2.0 + r as f32).exp()).sum();
                    let got = leaves[1].grad().to_vec::<f32>()?[0];
                    assert!((got - expected).abs() < 1e-4 * expected, "{got} {expected}");
                    found.push(step);
                }
            }
        }
        Ok(found)
    });
    assert_eq!(seen.unwrap(), vec![vec![0, 1, 3, 4]; size]);
}

#[test]
fn on_a_rank_with_which_others_share_no_gradients() {
    rows_and_columns(&[&[0, 1], &[2, 3]], &[&[0, 2], &[1, 3]], 1, 0);
    rows_and_columns(&[&[0, 1], &[2, 3]], &[&[0, 2], &[1, 3]], 0, 1);
    rows_and_columns(&[&[0, 1], &[2]], &[&[0, 2], &[1]], 0, 0);
    rows_and_columns(&[&[0, 1], &[2]], &[&[0, 2], &[1]], 2, 0);
}

#[test]
fn a_run_of_some_that_fails_before_one_of_all() {
    let seen = Threads::run_over(Threads::world_within(3, Duration::from_secs(20)), |comm| {
        comm.new_group("pair", &[0, 1])?;
        let ([a, w], own_value) = ([leaf(1.0)?, leaf(1.0)?], 1.0 + comm.rank() as f32);
        let y = f::sum(&f::sin(&a)?, f::Sum::default())?;
        let z = f::sum(&(&w * &leaf(own_value)?)?, f::Sum::default())?;
        let own = comm.all_reduce_callback(&[a.grad()], each("pair"))?;
        let everywhere = comm.all_reduce_callback(&[w.grad()], each(WORLD))?;
        let mut found = vec![];
        for step in 0..4 {
            w.grad().write(&[step as f32])?;
            y.forward()?;
            z.forward()?;
            if comm.rank() < 2 {
                let is_bad = [0, 2].contains(&step);
                let post = fails_at("sum", comm.rank() == 1 && is_bad, &|_| Ok(()));
                let run = BackwardRun { callbacks: &[&own], post: Some(&post), ..Default::default() };
                assert_eq!(y.backward_with(run).is_err(), is_bad);
            }
            z.backward_with(BackwardRun { callbacks: &[&everywhere], ..Default::default() })?;
            found.push(w.grad().to_vec::<f32>()?[0]);
        }
        Ok(found)
    });
    assert_eq!(seen.unwrap(), [[6.0, 9.0, 12.0, 15.0]; 3]);
}

#[test]
fn one_callback_in_a_run_and_in_a_run_within() {
    let seen = Threads::run_over(Threads::world_within(2, Duration::from_secs(20)), |comm| {
        let [w, q] = [leaf(1.0 + comm.rank() as f32)?, leaf(1.0 + comm.rank() as f32)?];
        let y = f::sum(&f::tanh(&(&w * &w)?)?, f::Sum::default())?;
        let z = f::sum(&(&q * &q)?, f::Sum::default())?;
        let reduced = comm.all_reduce_callback(&[q.grad(), w.grad()], each(WORLD))?;
        let within = |f: &FunctionRef| {
            if f.name() == "tanh" {
                q.grad().zero()?;
                z.forward()?;
                z.backward_with(BackwardRun { callbacks: &[&reduced, &reduced], ..Default::default() })?;
                assert_eq!(q.grad().to_vec::<f32>()?, [6.0]);
            }
            Ok(())
        };
        y.forward()?;
        y.backward_with(BackwardRun { callbacks: &[&reduced], post: Some(&within), ..Default::default() })?;
        w.grad().to_vec::<f32>()
    });
    let expected: f32 = [1f32, 2.0].iter().map(|w| 2.0 * w / (w * w).cosh().powi(2)).sum();
    assert!(seen.unwrap().iter().all(|g| (g[0] - expected).abs() < 1e-4));
}
