//! Each step against the single loops of the same instruction set, to the bit, for all lengths around the blocks.

use super::kernels::Kernels;
use super::tests::{specials, tables};
use super::*;
use crate::dtype::Real;

/// Three operands and the block-sized fourth, `s`; the value in registers is `x[3]`.
struct StepCase<'a, T: 'static> {
    k: &'a Kernels<T>,
    x: [Vec<T>; 4],
}

impl<T: Real> StepCase<'_, T> {
    fn unary(&self, op: Unary, x: &[T]) -> Vec<T> {
        let mut y = vec![T::ZERO; x.len()];
        // SAFETY: `tables` gives only what this CPU can do.
        unsafe { (self.k.unary)(op)(y.as_mut_ptr(), x.as_ptr(), x.len()) };
        y
    }

    fn binary(&self, op: Binary, a: &[T], b: &[T]) -> Vec<T> {
        let mut y = vec![T::ZERO; a.len()];
        // SAFETY: as above.
        unsafe {
            (self.k.binary)(op)(y.as_mut_ptr(), TileAddress::tile(a.as_ptr()), TileAddress::tile(b.as_ptr()), a.len())
        };
        y
    }

    fn select(&self, c: &[T], a: &[T], b: &[T]) -> Vec<T> {
        let mut y = vec![T::ZERO; a.len()];
        // SAFETY: as above.
        unsafe { (self.k.select)(y.as_mut_ptr(), c.as_ptr(), a.as_ptr(), b.as_ptr(), a.len()) };
        y
    }

    /// What the steps give after `Load x[3]`, `act`, and storing; for steps aside, what they stored, and the registers.
    fn run(&self, n: usize, acts: &[Act]) -> [Vec<T>; 2] {
        let step = |act, a, b, c| RegisterOp { act, a, b, c };
        let mut steps = vec![step(Act::Load, 2, 0, 0), step(Act::KeepS, 0, 0, 0), step(Act::Load, 3, 0, 0)];
        steps.extend(acts.iter().map(|&act| step(act, 0, 1, 4)));
        steps.push(step(Act::Store, 5, 0, 0));
        let guard = T::from_f64(77.0);
        let mut y = [vec![guard; n + 1], vec![guard; n + 1]];
        let [aside, last] = &mut y;
        let mut places: Vec<TileAddress<T>> = self.x.iter().map(|x| TileAddress::tile(x.as_ptr())).collect();
        places.extend([aside, last].map(|y| TileAddress::tile(y.as_mut_ptr())));
        // SAFETY: all places have n elements.
        unsafe { (self.k.steps)(&steps, places.as_ptr(), n) };
        assert!(y.iter().all(|y| y[n].to_f64() == 77.0), "written beyond the end");
        y.map(|y| y[..n].to_vec())
    }

    /// Checks that `act` gives `want` in the registers, for many lengths.
    fn check(&self, act: Act, want: &[T]) {
        let whole = want.len();
        for n in (0..40).chain([63, 64, 65, 127, 128, 129, 200, whole]) {
            same(act, &self.run(n, &[act])[1], &want[..n]);
        }
    }

    /// Checks a step aside: what it stores, and that the registers stay.
    fn check_aside(&self, act: Act, want: &[T]) {
        for n in (0..40).chain([63, 64, 65, 127, 128, 129, 200, want.len()]) {
            let [aside, last] = self.run(n, &[act]);
            same(act, &aside, &want[..n]);
            same(act, &last, &self.x[3][..n]);
        }
    }
}

/// The same bits, or both NaN (which operand's NaN an operation passes on is the compiler's choice).
fn same<T: Real>(act: Act, got: &[T], want: &[T]) {
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        let (g, w) = (g.to_f64(), w.to_f64());
        assert!(g.to_bits() == w.to_bits() || (g.is_nan() && w.is_nan()), "{act:?} at {i}: {g:e}, not {w:e}");
    }
    assert_eq!(got.len(), want.len());
}

/// Pairs of special values, and numbers that round in every operation.
fn operands<T: Real>() -> [Vec<T>; 4] {
    let s: Vec<f64> = specials().iter().map(|&v| v as f64).chain([0.1, -0.7, 1.0 / 3.0, 1e-3]).collect();
    std::array::from_fn(|k| {
        (0..s.len() * s.len())
            .map(|i| match (i % 3, k) {
                (0, _) => s[(i / 3 * [1, 7, 11, 13][k] + i / 97) % s.len()],
                _ => ((i * 7919 + k * 104729) % 100003) as f64 / 30011.0 - 1.5,
            })
            .map(T::from_f64)
            .collect()
    })
}

fn all_steps<T: Real>(k: &Kernels<T>) {
    let c = StepCase { k, x: operands() };
    let [a, b, s, r] = &c.x;
    for op in Unary::ALL {
        if let Some(act) = Act::unary(op) {
            c.check(act, &c.unary(op, r));
        }
    }
    for op in Binary::ALL {
        for (act, [left, right], [p, q]) in [(Act::left(op), [r, a], [r, s]), (Act::right(op), [a, r], [s, r])] {
            let Some(act) = act else { continue };
            c.check(act, &c.binary(op, left, right));
            c.check(act.with_register().expect("binary steps take s"), &c.binary(op, p, q));
        }
    }
    use Binary::{Add, Mul, Sub};
    let product = c.binary(Mul, a, b);
    c.check(Act::Load, a);
    c.check(Act::BackS, s);
    c.check(Act::Square, &c.binary(Mul, r, r));
    c.check(Act::Double, &c.binary(Add, r, r));
    c.check(Act::Choose, &c.select(r, a, b));
    c.check(Act::IfTrue, &c.select(b, r, a));
    c.check(Act::IfTrueS, &c.select(b, r, s));
    c.check(Act::IfFalse, &c.select(b, a, r));
    c.check(Act::IfFalseS, &c.select(b, s, r));
    c.check(Act::LoadAdd, &c.binary(Add, a, b));
    c.check(Act::LoadSub, &c.binary(Sub, a, b));
    c.check(Act::LoadMul, &product);
    c.check(Act::MulSum, &c.binary(Mul, r, &c.binary(Add, a, b)));
    c.check(Act::MulDiff, &c.binary(Mul, r, &c.binary(Sub, a, b)));
    c.check(Act::MulMul, &c.binary(Mul, r, &product));
    c.check(Act::MulLess, &c.binary(Mul, r, &c.binary(Sub, a, &c.binary(Mul, b, b))));
    c.check(Act::NegWhere, &c.select(&c.binary(Binary::Lt, a, b), &c.unary(Unary::Neg, r), r));
    c.check(Act::AddMul, &c.binary(Add, r, &product));
    c.check(Act::SubMul, &c.binary(Sub, r, &product));
    c.check_aside(Act::SideAdd, &c.binary(Add, r, a));
    c.check_aside(Act::SideSub, &c.binary(Sub, a, r));
    c.check_aside(Act::SideMul, &c.binary(Mul, r, a));
    c.check_aside(Act::SideAddMul, &c.binary(Add, b, &c.binary(Mul, r, a)));
}

unit_test!(steps_are_the_loops_to_the_bit);
fn steps_are_the_loops_to_the_bit() {
    for (_, k32, k64) in tables() {
        all_steps(k32);
        all_steps(k64);
    }
}

unit_test!(blocks_are_their_own);
/// A place with a mask keeps its value for the length of a block, and several steps work on one block before the next.
fn blocks_are_their_own() {
    for (isa, k, _) in tables() {
        let n = 3 * k.block + 5;
        let x: Vec<f32> = (0..n).map(|i| i as f32 * 0.37).collect();
        let (mut y, mut block) = (vec![0.0; n], vec![0.0; k.block]);
        let places = [
            TileAddress::tile(x.as_ptr()),
            TileAddress::tile(y.as_mut_ptr()),
            TileAddress { ptr: block.as_mut_ptr(), mask: k.block - 1 },
        ];
        let acts = [(Act::Load, 0), (Act::Square, 0), (Act::Store, 2), (Act::Load, 0), (Act::Sub, 2), (Act::Store, 1)];
        let steps = acts.map(|(act, a)| RegisterOp { act, a, b: 0, c: 0 });
        // SAFETY: the places are as long as their masks say.
        unsafe { (k.steps)(&steps, places.as_ptr(), n) };
        let want: Vec<f32> = x.iter().map(|x| x - x * x).collect();
        assert_eq!(y, want, "{isa:?}");
    }
}
