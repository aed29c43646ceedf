//! Free blocks that wait for their next owner. Those of the C library's heap are handed out at their own size; pages are
//! cut to the size that is asked for, and grow together again with the free pages beside them: a training step whose arrays
//! have other sizes than those of the step before finds its memory there, and the process holds little more than what was
//! in use at once.

use super::system;
use std::collections::{BTreeMap, BTreeSet};
use std::ptr::NonNull;

/// Pages that nobody took while so many others were taken go back to the system: an earlier part of the program used them.
const IDLE: u64 = 1 << 14;

/// Free pages in a row.
#[derive(Clone, Copy)]
struct Pages {
    bytes: usize,
    /// What the clock said when the last of them became free.
    since: u64,
}

/// Free blocks by size, and pages by address.
pub(super) struct FreeBlocks {
    heap: BTreeMap<usize, Vec<usize>>,
    pages: BTreeMap<usize, Pages>,
    /// Sizes and addresses of `pages`.
    by_size: BTreeSet<(usize, usize)>,
    /// Pages taken so far.
    clock: u64,
}

impl FreeBlocks {
    pub(super) const fn new() -> FreeBlocks {
        FreeBlocks { heap: BTreeMap::new(), pages: BTreeMap::new(), by_size: BTreeSet::new(), clock: 0 }
    }

    /// A block of `bytes`, if there is one; and how many bytes of pages went back since nobody took them for long.
    pub(super) fn take(&mut self, bytes: usize) -> (Option<NonNull<u8>>, usize) {
        if !system::is_pages(bytes) {
            return (self.heap.get_mut(&bytes).and_then(Vec::pop).and_then(|p| NonNull::new(p as *mut u8)), 0);
        }
        self.clock += 1;
        (self.cut(bytes), if self.clock.is_multiple_of(IDLE) { self.give_idle() } else { 0 })
    }

    /// The beginning of the smallest row of pages that is long enough.
    fn cut(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        let &(_, start) = self.by_size.range((bytes, 0)..).next()?;
        let row = self.remove(start)?;
        if row.bytes > bytes {
            self.insert(start + bytes, Pages { bytes: row.bytes - bytes, ..row });
        }
        NonNull::new(start as *mut u8)
    }

    /// Keeps a block that is free now.
    pub(super) fn put(&mut self, start: usize, bytes: usize) {
        if !system::is_pages(bytes) {
            return self.heap.entry(bytes).or_default().push(start);
        }
        let (mut start, mut row) = (start, Pages { bytes, since: self.clock });
        if let Some(after) = self.remove(start + bytes) {
            row.bytes += after.bytes;
        }
        let before = self.pages.range(..start).next_back().map(|(&p, r)| (p, r.bytes));
        if let Some((p, n)) = before.filter(|(p, n)| p + n == start) {
            self.remove(p);
            (start, row.bytes) = (p, row.bytes + n);
        }
        self.insert(start, row);
    }

    fn insert(&mut self, start: usize, row: Pages) {
        self.pages.insert(start, row);
        self.by_size.insert((row.bytes, start));
    }

    fn remove(&mut self, start: usize) -> Option<Pages> {
        let row = self.pages.remove(&start)?;
        self.by_size.remove(&(row.bytes, start));
        Some(row)
    }

    /// Gives at least `bytes` back to the system if there are as many, what was free longest first; how many it gave.
    pub(super) fn give_back(&mut self, bytes: usize) -> usize {
        let mut rows: Vec<_> = self.pages.iter().map(|(&p, r)| (r.since, p)).collect();
        rows.sort_unstable();
        let mut given = 0;
        for (_, start) in rows {
            if given >= bytes {
                return given;
            }
            given += self.unmap(start);
        }
        if given < bytes { given + self.give_heap() } else { given }
    }

    /// Gives pages back that nobody took for long; how many bytes.
    fn give_idle(&mut self) -> usize {
        let since = self.clock.saturating_sub(IDLE);
        let idle: Vec<_> = self.pages.iter().filter(|(_, r)| r.since < since).map(|(&p, _)| p).collect();
        idle.into_iter().map(|p| self.unmap(p)).sum()
    }

    fn unmap(&mut self, start: usize) -> usize {
        let bytes = self.remove(start).map_or(0, |row| row.bytes);
        if bytes > 0 {
            // SAFETY: pages from the system, free, and in no list any more.
            unsafe { system::give_pages(start as *mut u8, bytes) };
        }
        bytes
    }

    fn give_heap(&mut self) -> usize {
        let mut given = 0;
        for (bytes, blocks) in std::mem::take(&mut self.heap) {
            for p in blocks {
                // SAFETY: the block came from `system` with this size and is in no list any more.
                unsafe { system::give(p as *mut u8, bytes) };
                given += bytes;
            }
        }
        given
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    fn fresh(bytes: usize) -> usize {
        system::take(bytes).unwrap().as_ptr() as usize
    }

    unit_test!(pages_are_cut_and_grow_together_again);
    fn pages_are_cut_and_grow_together_again() {
        let (mut free, start) = (FreeBlocks::new(), fresh(8 * MIB));
        free.put(start, 8 * MIB);
        let parts: Vec<_> = [3, 1, 2].map(|n| free.cut(n * MIB).unwrap().as_ptr() as usize).into();
        assert_eq!(parts, [start, start + 3 * MIB, start + 4 * MIB]);
        assert!(free.cut(3 * MIB).is_none());
        for (p, n) in [(parts[1], 1), (parts[0], 3), (parts[2], 2)] {
            free.put(p, n * MIB);
        }
        assert_eq!(free.pages.len(), 1);
        assert_eq!(free.cut(8 * MIB).unwrap().as_ptr() as usize, start);
        free.put(start, 8 * MIB);
        assert_eq!((free.give_back(1), free.by_size.len()), (8 * MIB, 0));
    }

    unit_test!(the_smallest_row_is_cut_and_the_oldest_goes_first);
    fn the_smallest_row_is_cut_and_the_oldest_goes_first() {
        let (mut free, start) = (FreeBlocks::new(), fresh(16 * MIB));
        let small = start + 12 * MIB; // what is between is in use
        free.put(start, 8 * MIB);
        free.clock += 1;
        free.put(small, 4 * MIB);
        assert_eq!(free.cut(4 * MIB - 4096).unwrap().as_ptr() as usize, small);
        free.put(small, 4 * MIB - 4096);
        assert_eq!(free.give_back(2 * MIB), 8 * MIB);
        free.put(start + 8 * MIB, 4 * MIB);
        assert_eq!(free.give_back(usize::MAX), 8 * MIB);
    }

    unit_test!(what_nobody_takes_goes_back);
    fn what_nobody_takes_goes_back() {
        let mut free = FreeBlocks::new();
        free.put(fresh(2 * MIB), 2 * MIB);
        free.clock = 2 * IDLE;
        assert_eq!(free.give_idle(), 2 * MIB);
        free.put(fresh(2 * MIB), 2 * MIB);
        assert_eq!(free.give_idle(), 0);
        assert_eq!(free.give_back(1), 2 * MIB);
    }
}
