//! Synchronized batch normalization against the one of the whole batch.

use nnrs::communicator::{Communicator, SyncBatchNormalization, Threads, sync_batch_normalization};
use nnrs::{Context, DType, ErrorKind, Result, Variable, functions as f, graph, graph::mode};

/// Rows of each rank: ranks may have different ones.
const ROWS: [usize; 3] = [2, 1, 3];
const CHANNELS: usize = 3;
const INNER: usize = 4;

fn numbers(n: usize, seed: usize) -> Vec<f64> {
    (0..n).map(|i| ((i * 53 + seed * 29 + i / 7) % 41) as f64 / 20.0 - 0.9).collect()
}

struct Seen {
    y: Vec<f64>,
    gx: Vec<f64>,
    /// Gradients of beta and gamma, running statistics, those of the batch.
    channels: [Vec<f64>; 6],
}

/// One normalization of rows, forward twice and backward once, in double.
fn run(
    first: usize,
    rows: usize,
    normalize: impl Fn(&Variable, [&Variable; 4]) -> Result<Vec<Variable>>,
) -> Result<Seen> {
    mode::set_context(Context::cpu(DType::F64)?.into());
    let all: usize = ROWS.iter().sum();
    let part =
        |seed| numbers(all * CHANNELS * INNER, seed)[first * CHANNELS * INNER..][..rows * CHANNELS * INNER].to_vec();
    let shape = [rows, CHANNELS, INNER];
    let channel = |seed: usize| Variable::from_slice(&numbers(CHANNELS, seed), [1, CHANNELS, 1].into());
    let x = Variable::from_slice(&part(1), shape.into())?.with_need_grad(true);
    let (beta, gamma) = (channel(2)?.with_need_grad(true), channel(3)?.with_need_grad(true));
    let (mean, variance) = (channel(4)?, channel(5)?);
    let made = normalize(&x, [&beta, &gamma, &mean, &variance])?;
    let loss = f::sum(&(&made[0] * &Variable::from_slice(&part(6), shape.into())?)?, f::Sum::default())?;
    loss.forward()?;
    loss.forward()?;
    loss.backward()?;
    let gradient = |v: &Variable| v.grad().to_vec::<f64>();
    let channels =
        [gradient(&beta)?, gradient(&gamma)?, mean.to_vec()?, variance.to_vec()?, made[1].to_vec()?, made[2].to_vec()?];
    Ok(Seen { y: made[0].to_vec()?, gx: gradient(&x)?, channels })
}

fn close(got: &[f64], want: &[f64], what: &str) {
    let are_close = got.len() == want.len() && got.iter().zip(want).all(|(g, w)| (g - w).abs() < 1e-9);
    assert!(are_close, "{what}: {got:?} != {want:?}");
}

#[test]
fn it_is_that_of_the_whole_batch() {
    for size in [2, 3] {
        let rows: usize = ROWS[..size].iter().sum();
        let args = f::BatchNormalization { decay_rate: 0.75, output_stat: true, ..Default::default() };
        let whole = run(0, rows, |x, [beta, gamma, mean, variance]| {
            f::batch_normalization(x, Some(beta), Some(gamma), Some(mean), Some(variance), args.clone())
        });
        let parts = Threads::run(size, |comm| {
            let first = ROWS[..comm.rank()].iter().sum();
            run(first, ROWS[comm.rank()], |x, [beta, gamma, mean, variance]| {
                let options = SyncBatchNormalization { decay_rate: 0.75, output_stat: true, ..Default::default() };
                sync_batch_normalization(x, Some(beta), Some(gamma), Some(mean), Some(variance), &comm, options)
            })
        });
        let (whole, parts) = (whole.unwrap(), parts.unwrap());
        let joined = |of: fn(&Seen) -> &Vec<f64>| parts.iter().flat_map(|p| of(p).clone()).collect::<Vec<_>>();
        close(&joined(|p| &p.y), &whole.y, "y");
        close(&joined(|p| &p.gx), &whole.gx, "the gradient of x");
        for (i, what) in ["beta", "gamma"].into_iter().enumerate() {
            let sum: Vec<f64> = (0..CHANNELS).map(|c| parts.iter().map(|p| p.channels[i][c]).sum()).collect();
            close(&sum, &whole.channels[i], what);
        }
        for (i, what) in [(2, "running mean"), (3, "running variance"), (4, "mean"), (5, "variance")] {
            parts.iter().for_each(|p| close(&p.channels[i], &whole.channels[i], what));
        }
    }
}

#[test]
fn groups_normalize_apart_and_a_group_of_one_as_the_plain_function() {
    let seen = Threads::run(3, |comm| {
        comm.new_group("two", &[0, 2])?;
        let x = Variable::from_slice(&[comm.rank() as f32, 0.0], [1, 2].into())?;
        let options = SyncBatchNormalization { group: "two", output_stat: true, ..Default::default() };
        let made = sync_batch_normalization(&x, None, None, None, None, &comm, options)?;
        made[0].forward()?;
        made[1].to_vec::<f32>()
    });
    assert_eq!(seen.unwrap(), [[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]]);
    let (comm, x) = (Communicator::alone(), Variable::from_slice(&[1.0f32, 3.0], [2, 1].into()).unwrap());
    let made = sync_batch_normalization(&x, None, None, None, None, &comm, Default::default()).unwrap();
    assert_eq!((made.len(), made[0].parent().unwrap().name()), (1, "batch_normalization"));
}

#[test]
fn its_gradient_is_a_graph_too() {
    let first = |comm: &Communicator, values: &[f64]| -> Result<Vec<f64>> {
        mode::set_context(Context::cpu(DType::F64)?.into());
        let x = Variable::from_slice(values, [values.len(), 1].into())?.with_need_grad(true);
        let y = sync_batch_normalization(&x, None, None, None, None, comm, Default::default())?.swap_remove(0);
        let cubes = ((&y * &y)? * &y)?;
        let gx = graph::grad(&[&cubes], &[&x], &[])?.swap_remove(0).unwrap();
        let second = graph::grad(&[&(&gx * &gx)?], &[&x], &[])?.swap_remove(0).unwrap();
        second.forward()?;
        second.to_vec()
    };
    let values = numbers(6, 3);
    let whole = first(&Communicator::alone(), &values).unwrap();
    let parts = Threads::run(2, |comm| first(&comm, &values[3 * comm.rank()..][..3])).unwrap();
    close(&parts.concat(), &whole, "the second derivative");
}

#[test]
fn mistakes_are_those_of_batch_normalization() {
    let errors = Threads::run(2, |comm| {
        let (x, wrong) = (Variable::new([2, 3]), Variable::new([1, 2]));
        let of = |axes: Vec<i64>, beta: Option<&Variable>| {
            let options = SyncBatchNormalization { axes, ..Default::default() };
            sync_batch_normalization(&x, beta, None, None, None, &comm, options).map(drop).unwrap_err()
        };
        let other = SyncBatchNormalization { group: "there", ..Default::default() };
        let unknown = sync_batch_normalization(&x, None, None, None, None, &comm, other).map(drop).unwrap_err();
        Ok([of(vec![2], None), of(vec![1], Some(&wrong)), unknown].map(|e| (e.kind(), e.to_string())))
    });
    for [axes, beta, group] in errors.unwrap() {
        assert!(axes.1.contains("axes") && beta.1.contains("beta") && group.1.contains("argument 'group'"));
        assert_eq!((beta.0, group.0), (ErrorKind::Shape, ErrorKind::Argument));
    }
}
