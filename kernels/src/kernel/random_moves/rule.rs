//! Where elements come from along one axis, as a random number says.

/// What is done along an axis; the numbers are those in `cuda/random_moves.cu`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveKind {
    Stay,
    /// A part is taken.
    Crop,
    /// The order is reversed, or not.
    Flip,
    /// Elements move by so many places at most; the ends are repeated.
    ShiftNearest(u32),
    /// The array is mirrored at its ends.
    ShiftReflect(u32),
    /// A constant comes in.
    ShiftConstant(u32),
}

impl MoveKind {
    /// Its number, and the largest distance.
    pub(super) fn code(self) -> [i64; 2] {
        match self {
            MoveKind::Stay => [0, 0],
            MoveKind::Crop => [1, 0],
            MoveKind::Flip => [2, 0],
            MoveKind::ShiftNearest(most) => [3, most.into()],
            MoveKind::ShiftReflect(most) => [4, most.into()],
            MoveKind::ShiftConstant(most) => [5, most.into()],
        }
    }
}

/// One axis of `n` places, from which `to` are made.
#[derive(Clone, Copy, Debug)]
pub struct MoveRule {
    pub kind: MoveKind,
    pub n: usize,
    pub to: usize,
    /// Which of a sample's random numbers it takes.
    pub column: usize,
}

impl MoveRule {
    /// How far elements move, from a number of at least 0 and less than 1; 0 or 1 for a flip.
    pub(super) fn amount(&self, u: f64) -> i64 {
        // The product may be rounded up to the number of choices.
        let choose = |choices: i64| ((u * choices as f64) as i64).min(choices - 1);
        match self.kind {
            MoveKind::Stay => 0,
            MoveKind::Crop => -choose((self.n - self.to) as i64 + 1),
            MoveKind::Flip => (u < 0.5) as i64,
            MoveKind::ShiftNearest(most) | MoveKind::ShiftReflect(most) | MoveKind::ShiftConstant(most) => {
                choose(2 * i64::from(most) + 1) - i64::from(most)
            }
        }
    }

    /// The place that place `i` of the result shows; none where a constant comes in.
    pub(super) fn source(&self, amount: i64, i: usize) -> Option<usize> {
        let (n, i) = (self.n as i64, i as i64);
        let at = match self.kind {
            MoveKind::Flip if amount == 1 => n - 1 - i,
            MoveKind::Flip => i,
            MoveKind::ShiftNearest(_) => (i - amount).clamp(0, n - 1),
            MoveKind::ShiftReflect(_) => {
                let at = (i - amount).rem_euclid(2 * n);
                at.min(2 * n - 1 - at)
            }
            _ => i - amount,
        };
        (0..n).contains(&at).then_some(at as usize)
    }

    /// The places of the result that show neighbours in their order, and the first place that they show.
    pub(super) fn run(&self, amount: i64) -> (std::ops::Range<usize>, usize) {
        let (n, to) = (self.n as i64, self.to as i64);
        if self.kind == MoveKind::Flip {
            return if amount == 1 { (0..0, 0) } else { (0..self.to, 0) };
        }
        let low = amount.clamp(0, to);
        let high = (n + amount).clamp(low, to);
        (low as usize..high as usize, if low < high { (low - amount) as usize } else { 0 })
    }
}

#[cfg(feature = "emulate")]
mod tests {
    use super::*;

    unit_test!(runs_are_what_the_sources_say);
    fn runs_are_what_the_sources_say() {
        let kinds = [MoveKind::Crop, MoveKind::Flip, MoveKind::ShiftNearest(9), MoveKind::ShiftReflect(9)];
        for kind in kinds.into_iter().chain([MoveKind::ShiftConstant(9), MoveKind::Stay]) {
            let rule = MoveRule { kind, n: 6, to: if kind == MoveKind::Crop { 4 } else { 6 }, column: 0 };
            for k in 0..100 {
                let amount = rule.amount(k as f64 / 100.0);
                let (run, first) = rule.run(amount);
                for i in run.clone() {
                    assert_eq!(rule.source(amount, i), Some(first + i - run.start), "{kind:?} {amount}");
                }
                assert!(kind != MoveKind::Crop || run == (0..4));
            }
        }
    }

    unit_test!(every_amount_comes_up_equally_often);
    fn every_amount_comes_up_equally_often() {
        let rule = MoveRule { kind: MoveKind::ShiftConstant(2), n: 6, to: 6, column: 0 };
        let amounts: Vec<i64> = (0..1000).map(|k| rule.amount(k as f64 / 1000.0)).collect();
        assert!((-2..=2).all(|a| amounts.iter().filter(|b| **b == a).count() == 200));
        assert_eq!(rule.amount(1f64.next_down()), 2);
    }
}
