//! Which gradients of a backward run go together, and what each waits for: the functions that add to it, and the packs that
//! have it of the run's callbacks that come before, for sums of sums are made in their order.

use super::arrays::{MemoryPlaces, described, sum_type};
use crate::graph::FunctionRef;
use nnrs_kernels::array::NdArray;
use nnrs_kernels::dtype::DType;
use nnrs_kernels::error::Result;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// What other callbacks of the run have to know of a plan.
pub(super) struct PlannedPacks {
    places: MemoryPlaces,
    /// The pack of each gradient.
    pack: Vec<usize>,
    /// How many packs have gone.
    sent: AtomicUsize,
}

impl PlannedPacks {
    /// Whether no pack that has yet to go has a part of an array.
    fn is_through(&self, array: &NdArray) -> bool {
        let sent = self.sent.load(Relaxed);
        self.places.meeting(array).all(|i| self.pack[i] < sent)
    }
}

/// The plan of one run, made when the run's first function is over. Packs go in their order, which is that of all ranks.
pub(super) struct PackPlan {
    root: Option<u64>,
    arrays: Vec<NdArray>,
    /// The gradients that a function adds to, or reads, or has views of, by the function's number; once.
    reads: HashMap<u64, Vec<usize>>,
    /// How many functions have yet to add to each.
    left: Vec<usize>,
    packs: Vec<Vec<usize>>,
    /// How many packs wait for nothing but the run's functions. The others go at its end: who knows what adds to them.
    in_run: usize,
    own: Arc<PlannedPacks>,
    before: Vec<Arc<PlannedPacks>>,
}

impl PackPlan {
    /// Of a run whose first function is `root`, of distinct arrays; `plans` are those before, and this one joins them. Without
    /// a function all go at the end.
    pub(super) fn new(
        root: Option<&FunctionRef>,
        arrays: Vec<NdArray>,
        pack_size: usize,
        plans: &mut Vec<Arc<PlannedPacks>>,
    ) -> Result<PackPlan> {
        let places = MemoryPlaces::new(&arrays);
        let (mut reads, mut left, mut last) = (HashMap::new(), vec![0; arrays.len()], vec![None; arrays.len()]);
        let mut note = |f: &FunctionRef| {
            let inputs = f.node().all_inputs(); // no handles: they would make the plan of the run stale
            if !inputs.iter().any(|v| v.need_grad()) {
                reads.insert(f.id(), vec![]);
                return Ok(());
            }
            let outputs = f.node().outputs(); // whose gradients it reads
            let grads = inputs.iter().chain(&outputs).filter_map(|v| v.existing_grad());
            let read: Vec<usize> = grads.flat_map(|g| places.meeting(&g)).collect();
            for &i in &read {
                left[i] += 1;
                last[i] = Some(last[i].map_or(f.rank(), |r: usize| r.min(f.rank())));
            }
            reads.insert(f.id(), read);
            Ok(())
        };
        root.and_then(|f| f.outputs().first().map(|y| y.visit(&mut note))).unwrap_or(Ok(()))?;
        let (found, at_end) = order(&last);
        let mut packs = in_packs(&arrays, &found, pack_size);
        let in_run = packs.len();
        packs.extend(in_packs(&arrays, &at_end, pack_size));
        let mut pack = vec![0; arrays.len()];
        packs.iter().enumerate().for_each(|(p, all)| all.iter().for_each(|&i| pack[i] = p));
        let own = Arc::new(PlannedPacks { places, pack, sent: AtomicUsize::new(0) });
        let before = plans.clone();
        plans.push(own.clone());
        Ok(PackPlan { root: root.map(FunctionRef::id), arrays, reads, left, packs, in_run, own, before })
    }

    /// Whether the end of `f` belongs to the run; if not, that was given up, and this is another one.
    pub(super) fn goes_on(&self, f: &FunctionRef) -> bool {
        self.root != Some(f.id()) && self.reads.contains_key(&f.id())
    }

    /// `f` has added its part.
    pub(super) fn finished(&mut self, f: &FunctionRef) {
        for i in self.reads.get_mut(&f.id()).map(std::mem::take).into_iter().flatten() {
            self.left[i] -= 1;
        }
    }

    /// How many packs there are.
    pub(super) fn count(&self) -> usize {
        self.packs.len()
    }

    /// Which gradients the packs have, with types and shapes, as ranks compare them.
    pub(super) fn described(&self) -> String {
        let one = |&i: &usize| format!("{i}: {}", described([&self.arrays[i]]));
        let packs = self.packs.iter().map(|pack| pack.iter().map(one).collect::<Vec<_>>().join(", "));
        packs.collect::<Vec<_>>().join(" / ")
    }

    /// The packs that can go now, with their numbers.
    pub(super) fn ready(&mut self) -> Vec<(usize, Vec<NdArray>)> {
        let is_first = |i: usize| self.before.iter().all(|plan| plan.is_through(&self.arrays[i]));
        let can_go = |pack: &&Vec<usize>| pack.iter().all(|&i| self.left[i] == 0 && is_first(i));
        let count = self.packs[..self.in_run].iter().skip(self.sent()).take_while(can_go).count();
        self.take(count)
    }

    /// All packs that have not gone.
    pub(super) fn rest(&mut self) -> Vec<(usize, Vec<NdArray>)> {
        self.take(self.packs.len() - self.sent())
    }

    fn sent(&self) -> usize {
        self.own.sent.load(Relaxed)
    }

    fn take(&mut self, count: usize) -> Vec<(usize, Vec<NdArray>)> {
        let start = self.own.sent.fetch_add(count, Relaxed);
        let pack = |p: usize| (p, self.packs[p].iter().map(|&i| self.arrays[i].clone()).collect());
        (start..start + count).map(pack).collect()
    }
}

/// As they become final: backward runs from the highest rank down, and the lowest reader is the last; and those that nobody
/// reads.
fn order(last: &[Option<usize>]) -> (Vec<usize>, Vec<usize>) {
    let (mut found, at_end): (Vec<usize>, Vec<usize>) = (0..last.len()).partition(|&i| last[i].is_some());
    found.sort_by_key(|&i| std::cmp::Reverse(last[i]));
    (found, at_end)
}

/// Neighbours together until a pack has `pack_size` numbers, or the next is of another type.
fn in_packs(arrays: &[NdArray], order: &[usize], pack_size: usize) -> Vec<Vec<usize>> {
    let mut packs: Vec<Vec<usize>> = vec![];
    let (mut count, mut dtype) = (0, DType::F32);
    for &i in order {
        let own = sum_type(arrays[i].dtype());
        if packs.is_empty() || count >= pack_size || own != dtype {
            packs.push(vec![]);
            (count, dtype) = (0, own);
        }
        if let Some(pack) = packs.last_mut() {
            pack.push(i);
        }
        count += arrays[i].size();
    }
    packs
}

#[cfg(feature = "emulate")]
mod tests {
    use super::*;

    nnrs_kernels::unit_test!(packs_are_full_and_of_one_type);
    fn packs_are_full_and_of_one_type() {
        let array = |n: usize, dtype| {
            let a = NdArray::new([n].into());
            a.cast(dtype).unwrap();
            a
        };
        let f = DType::F32;
        let arrays = [array(3, f), array(3, f), array(1, DType::F16), array(1, DType::F64), array(1, f)];
        assert_eq!(in_packs(&arrays, &[0, 1, 2, 3, 4], 4), [vec![0, 1], vec![2], vec![3], vec![4]]);
        assert_eq!(in_packs(&arrays, &[4, 2, 0, 1, 3], 100), [vec![4, 2, 0, 1], vec![3]]);
        assert_eq!(in_packs(&arrays, &[], 4), Vec::<Vec<usize>>::new());
    }

    nnrs_kernels::unit_test!(the_last_layer_comes_first);
    fn the_last_layer_comes_first() {
        assert_eq!(order(&[Some(0), None, Some(3), Some(3), Some(1)]), (vec![2, 3, 4, 0], vec![1]));
    }
}
