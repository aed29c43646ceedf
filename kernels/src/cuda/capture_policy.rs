//! When a plan's runs are worth capturing: after a few runs with the same arrays. Where that does not come, or capturing
//! fails, the plan is left alone for some runs, and then looked at again.

/// Runs with the arrays as they are before one is captured.
const WARM: u32 = 2;
/// Sets of arrays that are remembered: a first backward pass writes gradients, a second one adds to them.
const SETS: usize = 8;
/// Runs in a row without a replay before the plan is left alone.
const MISSES: u32 = 24;
/// Captures that fail: the cause may pass (a limit on memory).
const FAILURES: u32 = 4;
/// Runs for which a plan is left alone, at first and at most.
const REST: [u32; 2] = [64, 4096];

/// What to do with a run that is no replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Advice {
    Run,
    /// The next one with these arrays will be captured.
    RunSettled,
    Capture,
    /// Drop what is captured.
    GiveUp,
}

/// What the runs of a plan have been like.
pub(super) struct CapturePolicy {
    /// What the arrays were before a run, and after which run that came again.
    sets: Vec<(Vec<usize>, u32)>,
    misses: u32,
    failures: u32,
    /// Runs for which the plan is left alone, now and the next time.
    rest: u32,
    next: u32,
    why: Option<String>,
}

impl Default for CapturePolicy {
    fn default() -> CapturePolicy {
        CapturePolicy { sets: Vec::new(), misses: 0, failures: 0, rest: 0, next: REST[0], why: None }
    }
}

impl CapturePolicy {
    /// True if this run is left alone.
    pub(super) fn rests(&mut self) -> bool {
        self.rest = self.rest.saturating_sub(1);
        self.rest > 0
    }

    /// The run was a replay.
    pub(super) fn replayed(&mut self) {
        (self.misses, self.next, self.why) = (0, REST[0], None);
    }

    /// A run with these arrays is no replay. What is said of it last comes first.
    pub(super) fn meet(&mut self, arrays: Vec<usize>) -> Advice {
        self.misses += 1;
        if self.misses > MISSES {
            self.leave_alone("its arrays are others in each run".into());
            return Advice::GiveUp;
        }
        let seen = self.sets.iter().position(|s| s.0 == arrays).map_or(0, |i| self.sets.remove(i).1 + 1);
        if self.sets.len() == SETS {
            self.sets.remove(0);
        }
        if seen == WARM {
            return Advice::Capture;
        }
        self.sets.push((arrays, seen));
        if seen + 1 == WARM { Advice::RunSettled } else { Advice::Run }
    }

    /// The arrays before the last run.
    pub(super) fn last(&self) -> &[usize] {
        self.sets.last().map_or(&[], |s| &s.0)
    }

    pub(super) fn captured(&mut self) {
        (self.failures, self.why) = (0, None);
    }

    pub(super) fn failed(&mut self, why: String) {
        self.failures += 1;
        match self.failures {
            FAILURES => self.leave_alone(why),
            _ => self.why = Some(why),
        }
    }

    /// For some runs; for more of them each time, until there is a replay.
    pub(super) fn leave_alone(&mut self, why: String) {
        let next = (self.next * 2).min(REST[1]);
        *self = CapturePolicy { rest: self.next, next, why: Some(why), ..CapturePolicy::default() };
    }

    /// Why nothing is captured, if that is known.
    pub(super) fn why(&self) -> Option<&str> {
        self.why.as_deref()
    }
}

#[cfg(feature = "emulate")]
mod tests {
    use super::*;

    fn meet(p: &mut CapturePolicy, sets: &[usize]) -> Vec<Advice> {
        sets.iter().map(|&s| p.meet(vec![s])).collect()
    }

    unit_test!(the_third_run_with_the_same_arrays_is_captured);
    fn the_third_run_with_the_same_arrays_is_captured() {
        let mut p = CapturePolicy::default();
        assert_eq!(meet(&mut p, &[7, 7, 7]), [Advice::Run, Advice::RunSettled, Advice::Capture]);
        let mut p = CapturePolicy::default();
        let turns = meet(&mut p, &[1, 2, 1, 2, 1, 2]);
        assert_eq!(turns, [[Advice::Run; 2], [Advice::RunSettled; 2], [Advice::Capture; 2]].concat());
    }

    unit_test!(a_plan_whose_arrays_change_is_left_alone_and_looked_at_again);
    fn a_plan_whose_arrays_change_is_left_alone_and_looked_at_again() {
        let mut p = CapturePolicy::default();
        for rest in [64, 128, 256] {
            let last = (0..).map(|s| p.meet(vec![s])).position(|a| a == Advice::GiveUp);
            assert_eq!(last, Some(MISSES as usize));
            assert_eq!((0..).take_while(|_| p.rests()).count(), rest - 1);
            assert!(p.why().is_some());
        }
        p.replayed();
        p.leave_alone("no memory".into());
        assert_eq!(((0..).take_while(|_| p.rests()).count(), p.why()), (63, Some("no memory")));
    }

    unit_test!(failures_are_forgotten_by_a_capture);
    fn failures_are_forgotten_by_a_capture() {
        let mut p = CapturePolicy::default();
        (0..FAILURES - 1).for_each(|_| p.failed("a view".into()));
        p.captured();
        p.failed("a view".into());
        assert!(!p.rests() && p.why() == Some("a view"));
        (0..FAILURES).for_each(|_| p.failed("a view".into()));
        assert!(p.rests());
    }
}
