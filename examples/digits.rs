//! Trains a LeNet-size network on the handwritten digits that scikit-learn ships, without Python:
//!
//!     cargo run --release --no-default-features --example digits
//!
//! One static graph learns, another one evaluates; both use the same parameters. About digits.bin, see make_digits.py.

use nnrs::parametric::{Affine, Convolution, affine, convolution};
use nnrs::solver::{Adam, Keep, Solver};
use nnrs::{BackwardOptions, ForwardOptions, Result, Variable, functions as f, parameter, random};

static DIGITS: &[u8] = include_bytes!("digits.bin");
const RECORD: usize = 65;
const TRAIN: usize = 1437;
const BATCH: usize = 64;
const EPOCHS: usize = 30;
/// The first step size; it falls to almost nothing along half a cosine.
const STEP: f64 = 6e-3;

/// Scores of the ten digits, (batch, 10), of images (batch, 1, 8, 8).
fn lenet(x: &Variable) -> Result<Variable> {
    let pool = |h: &Variable| f::max_pooling(h, f::MaxPooling { kernel: vec![2, 2], ..Default::default() });
    let relu = |h: &Variable| f::relu(h, f::ReLU::default());
    let h = convolution("conv1", x, 32, [3, 3], Convolution::padded(&[1, 1]))?;
    let h = pool(&relu(&h)?)?;
    let h = convolution("conv2", &h, 64, [3, 3], Convolution::padded(&[1, 1]))?;
    let h = pool(&relu(&h)?)?;
    let h = relu(&affine("affine1", &h, 128, Affine::default())?)?;
    affine("affine2", &h, 10, Affine::default())
}

/// A static graph: inputs `x` and `t`, and what is computed from them.
struct Network {
    x: Variable,
    t: Variable,
    y: Variable,
    loss: Variable,
}

impl Network {
    fn new(batch: usize) -> Result<Network> {
        let (x, t) = (Variable::new([batch, 1, 8, 8]), Variable::new([batch, 1]));
        let y = lenet(&x)?;
        y.set_persistent(true);
        let loss = f::softmax_cross_entropy(&y, &t, f::SoftmaxCrossEntropy::default())?;
        let loss = f::mean(&loss, f::Mean::default())?;
        Ok(Network { x, t, y, loss })
    }

    /// Puts records in, each moved by `shift` (rows, columns).
    fn load(&self, records: &[usize], mut shift: impl FnMut() -> (i64, i64)) -> Result<()> {
        let mut x = Vec::with_capacity(records.len() * 64);
        let mut t = Vec::with_capacity(records.len());
        for &i in records {
            let record = &DIGITS[i * RECORD..][..RECORD];
            let (down, right) = shift();
            let pixel = |r: i64, c: i64| match (0..8).contains(&r) && (0..8).contains(&c) {
                true => record[(r * 8 + c) as usize] as f32 / 16.0,
                false => 0.0,
            };
            x.extend((0..64).map(|k| pixel(k / 8 + down, k % 8 + right)));
            t.push(record[64] as i32);
        }
        self.x.raw_data().write(&x)?;
        self.t.raw_data().write(&t)
    }
}

/// Random numbers below `n`, for the order of the images and their shifts.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        ((self.0 >> 32) as usize * n) >> 32
    }

    fn shuffle(&mut self, items: &mut [usize]) {
        (1..items.len()).rev().for_each(|i| items.swap(i, self.below(i + 1)));
    }
}

/// One pass over the training images; gives the mean loss.
fn train(net: &Network, solver: &Solver, order: &mut [usize], dice: &mut Dice) -> Result<f64> {
    dice.shuffle(order);
    let mut total = 0.0;
    for batch in order.chunks_exact(BATCH) {
        net.load(batch, || (dice.below(3) as i64 - 1, dice.below(3) as i64 - 1))?;
        net.loss.forward_with(ForwardOptions { clear_no_need_grad: true, ..Default::default() })?;
        solver.zero_grad()?;
        net.loss.backward_with(BackwardOptions { clear_buffer: true, ..Default::default() })?;
        solver.update()?;
        total += net.loss.to_vec::<f64>()?[0];
    }
    Ok(total / (order.len() / BATCH) as f64)
}

/// The share of held-out images that the network gets right.
fn accuracy(net: &Network, records: &[usize]) -> Result<f64> {
    net.load(records, || (0, 0))?;
    net.loss.forward_with(ForwardOptions { clear_buffer: true, ..Default::default() })?;
    let scores: Vec<f32> = net.y.to_vec()?;
    let right = scores.chunks(10).zip(records).filter(|(s, i)| {
        let best = (0..10).max_by(|&a, &b| s[a].total_cmp(&s[b]));
        best == Some(DIGITS[**i * RECORD + 64] as usize)
    });
    Ok(right.count() as f64 / records.len() as f64)
}

fn main() -> Result<()> {
    random::set_function_seed(0);
    let mut order: Vec<usize> = (0..TRAIN).collect();
    let held_out: Vec<usize> = (TRAIN..DIGITS.len() / RECORD).collect();
    let (learn, evaluate) = (Network::new(BATCH)?, Network::new(held_out.len())?);
    let solver = Solver::new(Adam { alpha: STEP, ..Default::default() });
    solver.set_parameters(&parameter::get_parameters(), Keep::Nothing)?;
    let (mut dice, start) = (Dice(1), std::time::Instant::now());
    for epoch in 1..=EPOCHS {
        let progress = epoch as f64 / EPOCHS as f64;
        solver.set_learning_rate(STEP * (1.0 + (progress * std::f64::consts::PI).cos()) / 2.0 + 1e-5);
        let loss = train(&learn, &solver, &mut order, &mut dice)?;
        if epoch % 5 == 0 {
            println!(
                "epoch {epoch:2}: loss {loss:.4}, held-out accuracy {:.2} %",
                100.0 * accuracy(&evaluate, &held_out)?
            );
        }
    }
    println!(
        "held-out accuracy: {:.2} % after {:.1} s",
        100.0 * accuracy(&evaluate, &held_out)?,
        start.elapsed().as_secs_f64()
    );
    Ok(())
}
