//! Tile programs against evaluation in double precision, and fused steps against single loops.

use super::*;
use crate::dtype::DType;
use crate::expr::Formula;
use crate::expr::op::{Binary, Unary};
use crate::shape::Shape;
use crate::simd;
use smallvec::smallvec;

fn run(f: &Formula, x: &[Vec<f32>], shapes: &[Shape], over: &Shape) -> Vec<Vec<f32>> {
    let mut ssa = Ssa::default();
    let args: Vec<Id> = (0..f.inputs()).map(|k| ssa.push(Ins::Input(k as u32))).collect();
    let outs: Vec<Id> = f.apply(&mut ssa, &args).into_iter().flatten().collect();
    let p = TileProgram::<f32>::compile(&ssa, f.inputs(), 0, &outs);
    let sources: Vec<Source> = x
        .iter()
        .zip(shapes)
        .map(|(x, s)| Source { ptr: x.as_ptr() as *const u8, dtype: DType::F32, walk: Walk::new(s, over) })
        .collect();
    let mut y = vec![vec![0f32; over.size()]; outs.len()];
    let sinks: Vec<Destination> =
        y.iter_mut().map(|y| Destination { ptr: y.as_mut_ptr() as *mut u8, dtype: DType::F32 }).collect();
    // SAFETY: sizes match.
    unsafe { p.run(over.size(), &sources, &sinks, &[]) };
    y
}

unit_test!(programs_match_evaluation_with_broadcasting);
fn programs_match_evaluation_with_broadcasting() {
    let f = Formula::new(2, |x| {
        vec![Some((&x[0] * 2.0 + &x[1]).tanh()), Some(x[1].clone()), Some(x[0].gt(&x[1]).select(1.5, &x[0]))]
    });
    let cases: [(&[usize], &[usize]); 5] =
        [(&[7, 300], &[7, 300]), (&[5, 1, 3], &[1, 4, 3]), (&[2, 3, 1], &[3, 700]), (&[], &[9]), (&[0, 2], &[2])];
    for (sa, sb) in cases {
        let (sa, sb) = (Shape::from(sa), Shape::from(sb));
        let over = sa.broadcast(&sb).unwrap();
        let make = |n: usize, k: f32| (0..n).map(|i| ((i as f32) * k).sin()).collect::<Vec<_>>();
        let x = [make(sa.size(), 0.7), make(sb.size(), 1.3)];
        let y = run(&f, &x, &[sa.clone(), sb.clone()], &over);
        let (st_a, st_b) = (sa.strides(), sb.strides());
        #[allow(clippy::needless_range_loop)]
        for flat in 0..over.size() {
            let at = |s: &Shape, st: &[usize]| {
                let (mut rest, mut o) = (flat, 0);
                for ax in (0..over.ndim()).rev() {
                    let i = rest % over[ax];
                    rest /= over[ax];
                    if ax + s.ndim() >= over.ndim() && s[ax + s.ndim() - over.ndim()] != 1 {
                        o += i * st[ax + s.ndim() - over.ndim()];
                    }
                }
                o
            };
            let want = f.eval(&[x[0][at(&sa, &st_a)] as f64, x[1][at(&sb, &st_b)] as f64]);
            for k in 0..3 {
                assert!((y[k][flat] as f64 - want[k].unwrap()).abs() < 1e-6, "{sa} {sb} {flat} {k}");
            }
        }
    }
}

/// Numbers from a seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % n
    }
}

const INPUTS: usize = 3;

/// A program with all kinds of chains: values used once and often, cheap and dear, constants, and several outputs.
fn random(dice: &mut Dice) -> (Ssa, Vec<Id>) {
    use Binary::*;
    let mut ssa = Ssa::default();
    let mut v: Vec<Id> = (0..INPUTS).map(|k| ssa.push(Ins::Input(k as u32))).collect();
    v.extend([1.0, 0.5, 0.0].map(|c| ssa.constant(c)));
    let cheap = [Add, Sub, Mul, Mul, Sub, Add, Max, Min, Gt, Le, Div];
    for _ in 0..4 + dice.roll(60) {
        // Mostly recent values, so that chains grow.
        let mut pick = |v: &[Id]| match dice.roll(3) {
            0 => v[dice.roll(v.len())],
            _ => v[v.len() - 1 - dice.roll(v.len().min(4))],
        };
        let [a, b, c] = [pick(&v), pick(&v), pick(&v)];
        let ins = match dice.roll(16) {
            0 => Ins::Unary(Unary::Tanh, a),
            1 => Ins::Unary(Unary::Neg, a),
            2 => Ins::Unary(Unary::Abs, a),
            3 | 4 => Ins::Select(a, b, c),
            5 => Ins::Binary(Mul, a, a),
            _ => Ins::Binary(cheap[dice.roll(cheap.len())], a, b),
        };
        v.push(ssa.push(ins));
    }
    let outputs = (0..1 + dice.roll(3)).map(|k| v[v.len() - 1 - k]).collect();
    (ssa, outputs)
}

/// The values of a program, one loop for each over whole arrays.
fn one_by_one<T: SimdReal>(ssa: &Ssa, x: &[Vec<T>]) -> Vec<Vec<T>> {
    let n = x[0].len();
    let mut v: Vec<Vec<T>> = Vec::new();
    for ins in ssa.ins() {
        let mut y = vec![T::ZERO; n];
        let of = |o: Id| v[o as usize].as_ptr();
        // SAFETY: all are n long.
        unsafe {
            match *ins {
                Ins::Input(k) => y.clone_from(&x[k as usize]),
                Ins::Const(bits) => y.fill(T::from_f64(f64::from_bits(bits))),
                Ins::Scalar(_) => unreachable!("no scalars here"),
                Ins::Unary(op, a) => simd::unary(op, y.as_mut_ptr(), of(a), n),
                Ins::Binary(op, a, b) => simd::binary(op, y.as_mut_ptr(), of(a), of(b), n),
                Ins::Select(c, a, b) => simd::select(y.as_mut_ptr(), of(c), of(a), of(b), n),
            }
        }
        v.push(y);
    }
    v
}

/// An input of `n` elements: dense, an element for each run, or a run for all.
fn input<T: SimdReal>(dice: &mut Dice, n: usize, run: usize) -> (Vec<T>, Walk) {
    let (size, walk) = match dice.roll(4) {
        0 => (n / run, Walk::Strided(0, smallvec![(n / run, 1), (run, 0)])),
        1 => (run, Walk::Strided(0, smallvec![(n / run, 0), (run, 1)])),
        _ => (n, Walk::Dense),
    };
    ((0..size).map(|_| T::from_f64(dice.roll(1000) as f64 / 300.0 - 1.6)).collect(), walk)
}

/// All elements that a walk comes to.
fn written_out<T: SimdReal>(x: &[T], walk: &Walk, n: usize) -> Vec<T> {
    let Walk::Strided(_, axes) = walk else { return x.to_vec() };
    let [(_, outer), (run, inner)] = axes[..] else { unreachable!("two axes") };
    (0..n).map(|i| x[i / run * outer as usize + i % run * inner as usize]).collect()
}

fn check_random<T: SimdReal>(seed: u64) {
    let mut dice = Dice(seed);
    let (ssa, outputs) = random(&mut dice);
    let program = TileProgram::<T>::compile(&ssa, INPUTS, 0, &outputs);
    let (n, run) =
        [(1, 1), (16, 4), (31, 31), (64, 8), (100, 10), (129, 43), (256, 64), (700, 350), (3000, 300), (9000, 4500)]
            [dice.roll(10)];
    let mut made: Vec<(Vec<T>, Walk)> = (0..INPUTS).map(|_| input(&mut dice, n, run)).collect();
    let values = one_by_one(&ssa, &made.iter().map(|(x, walk)| written_out(x, walk, n)).collect::<Vec<_>>());
    let mut y = vec![vec![T::ZERO; n]; outputs.len()];
    // The first output takes the place of an input, sometimes.
    let mut pointers: Vec<*mut T> = y.iter_mut().map(|y| y.as_mut_ptr()).collect();
    let alias = dice.roll(2 * INPUTS);
    if made.get(alias).is_some_and(|(_, walk)| *walk == Walk::Dense) {
        pointers[0] = made[alias].0.as_mut_ptr();
    }
    let source = |(x, walk): &(Vec<T>, Walk)| Source { ptr: x.as_ptr().cast(), dtype: T::DTYPE, walk: walk.clone() };
    let sources: Vec<Source> = made.iter().map(source).collect();
    let sinks: Vec<Destination> =
        pointers.iter().map(|&p| Destination { ptr: p as *mut u8, dtype: T::DTYPE }).collect();
    // SAFETY: all are n long.
    unsafe { program.run(n, &sources, &sinks, &[]) };
    for (k, (&id, &p)) in outputs.iter().zip(&pointers).enumerate() {
        // SAFETY: as above.
        let got = unsafe { std::slice::from_raw_parts(p, n) };
        for (i, (g, w)) in got.iter().zip(&values[id as usize]).enumerate() {
            let (g, w) = (g.to_f64(), w.to_f64());
            assert!(g.to_bits() == w.to_bits() || (g.is_nan() && w.is_nan()), "seed {seed}, output {k}, {i}: {g} {w}");
        }
    }
}

unit_test!(programs_are_their_single_loops_to_the_bit);
fn programs_are_their_single_loops_to_the_bit() {
    for seed in 0..3000 {
        check_random::<f32>(seed);
        check_random::<f64>(seed);
    }
}

unit_test!(gradients_take_few_steps);
/// The chain that steps are made for: few steps, and no more of them than operations.
fn gradients_take_few_steps() {
    let f = Formula::new(1, |x| {
        let h = (x[0].tanh() * 0.5).sigmoid() - &x[0];
        vec![Some(h.gt(0.0).select(&h, &h * 0.1).square())]
    });
    let p = TileProgram::<f32>::of(&f.derivative());
    assert!(p.steps.len() <= p.loops(), "{} steps for {} operations", p.steps.len(), p.loops());
}
