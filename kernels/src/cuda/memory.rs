//! Memory of a GPU: freed blocks are kept by size and handed out again. All work of a device is done in order on one
//! stream, so what is freed may be used again at once by work that comes later.

use super::Gpu;
use super::replays;
use crate::array::alloc::{self, Stats};
use crate::device::DeviceMemory;
use crate::device::capture::is_capturing;
use crate::error::{Error, Result};
use crate::fork;
use std::collections::{BTreeMap, BTreeSet};

/// Free blocks by size, and statistics.
#[derive(Default)]
pub(super) struct DeviceMemoryPool {
    free: BTreeMap<usize, Vec<u64>>,
    /// Size and origin of the blocks in use.
    live: BTreeMap<u64, (usize, alloc::Label)>,
    live_bytes: usize,
    cached: usize,
    peak: usize,
    limit: Option<usize>,
    /// The memory of a run that is being captured.
    pub(super) arena: Option<Arena>,
    /// Memory of arenas that was in use when they were closed; with its size once it has been dropped.
    reserved: BTreeMap<u64, Option<usize>>,
}

/// Memory that a captured run uses and frees on the way: it is not given to other work as long as the run may be replayed. It
/// counts as in use.
#[derive(Default)]
pub(super) struct Arena {
    free: BTreeMap<usize, Vec<u64>>,
    owned: BTreeSet<u64>,
}

impl Gpu {
    /// What the device's arrays hold.
    pub fn memory(&self) -> Stats {
        self.pool().stats()
    }

    /// Limits the bytes that arrays may hold on the device together.
    pub fn set_memory_limit(&self, bytes: usize) {
        self.pool().limit = Some(bytes);
    }

    /// Starts a new peak measurement.
    pub fn reset_memory_peak(&self) {
        let mut pool = self.pool();
        pool.peak = pool.live_bytes;
    }

    /// Gives cached memory back to the device.
    pub fn clear_memory_cache(&self) {
        self.pool().clear(self);
    }
}

/// For the engine.
#[doc(hidden)]
impl Gpu {
    /// Memory of `bytes` bytes, content undefined.
    pub fn alloc(&'static self, bytes: usize) -> Result<DeviceMemory> {
        self.check_fork()?;
        if !is_capturing() {
            return self.alloc_apart(bytes);
        }
        let bytes = self.rounded(bytes);
        let own = self.pool().arena.as_mut().and_then(|a| a.free.get_mut(&bytes)).and_then(Vec::pop);
        let at = match own {
            Some(at) => at,
            None => self.take(bytes)?,
        };
        if let Some(arena) = &mut self.pool().arena {
            arena.owned.insert(at);
        }
        // SAFETY: a block of that size, of the arena or the pool, which do not have it any more.
        Ok(unsafe { DeviceMemory::new(self, at, bytes) })
    }

    /// As [`alloc`](Gpu::alloc), also in a captured run for what is not a part of it: no memory that the run uses otherwise.
    pub(super) fn alloc_apart(&'static self, bytes: usize) -> Result<DeviceMemory> {
        self.check_fork()?;
        let bytes = self.rounded(bytes);
        let at = self.take(bytes)?;
        // SAFETY: a block of that size, which the pool does not have any more.
        Ok(unsafe { DeviceMemory::new(self, at, bytes) })
    }

    /// A block of the pool. When there is none, others give theirs back.
    fn take(&'static self, bytes: usize) -> Result<u64> {
        loop {
            let taken = self.pool().take(self, bytes);
            match taken {
                Err(e) if e.is_out_of_memory() && self.give_back() => (),
                taken => return taken,
            }
        }
    }

    /// Takes a block back that was handed out.
    pub(super) fn give(&self, at: u64, bytes: usize) {
        if self.check_fork().is_err() {
            return; // it is the parent's
        }
        let mut pool = self.pool();
        match &mut pool.arena {
            Some(arena) if arena.owned.contains(&at) => arena.free.entry(bytes).or_default().push(at),
            _ => match pool.reserved.get_mut(&at) {
                Some(dropped) => *dropped = Some(bytes),
                None => pool.give(at, bytes),
            },
        }
    }

    /// Has tables, or captured runs that are not at work, give their memory back to the pool; false if there are none.
    pub(super) fn give_back(&self) -> bool {
        self.forget_tables() || replays::give_back(self)
    }

    /// What is asked for is rounded up, for more of it to fit again; not where a byte too far is to be found.
    fn rounded(&self, bytes: usize) -> usize {
        if self.properties().emulated {
            bytes.clamp(1, alloc::IMPOSSIBLE)
        } else {
            alloc::rounded(bytes).next_multiple_of(256)
        }
    }

    /// An error in a process that was forked after the device had been opened: CUDA does not survive that.
    pub(super) fn check_fork(&self) -> Result<()> {
        match fork::count() == self.forks {
            true => Ok(()),
            false => Err(Error::graph("CUDA cannot be used in a process that was forked after its first use")
                .hint("use multiprocessing with the start method 'spawn', or fork before the first use of the GPU")),
        }
    }

    /// Ends a recording: the arena's memory stays its own, also what is still in use, and dropped later.
    pub(super) fn close_arena(&self) -> Arena {
        let mut pool = self.pool();
        let arena = pool.arena.take().unwrap_or_default();
        pool.reserved.extend(arena.owned.iter().map(|&at| (at, None)));
        arena
    }

    /// Gives an arena's memory back to all.
    pub(super) fn dissolve(&self, arena: &Arena) {
        let mut pool = self.pool();
        for at in &arena.owned {
            if let Some(Some(bytes)) = pool.reserved.remove(at) {
                pool.give(*at, bytes);
            }
        }
        for (&bytes, blocks) in &arena.free {
            blocks.iter().for_each(|&at| pool.give(at, bytes));
        }
    }
}

impl DeviceMemoryPool {
    fn take(&mut self, gpu: &Gpu, bytes: usize) -> Result<u64> {
        if self.limit.is_some_and(|limit| self.live_bytes + bytes > limit) {
            return Err(self.out_of_memory(gpu, bytes, "the limit on memory is reached"));
        }
        let cached = self.free.get_mut(&bytes).and_then(Vec::pop);
        let at = match cached {
            Some(at) => {
                self.cached -= bytes;
                at
            }
            None => self.fresh(gpu, bytes)?,
        };
        self.live_bytes += bytes;
        self.peak = self.peak.max(self.live_bytes);
        self.live.insert(at, (bytes, alloc::current_label()));
        Ok(at)
    }

    /// A new block; if there is none, the cache goes first.
    fn fresh(&mut self, gpu: &Gpu, bytes: usize) -> Result<u64> {
        if let Some(at) = gpu.driver.alloc(bytes)? {
            return Ok(at);
        }
        self.clear(gpu); // the driver waits for the work on what it frees
        match gpu.driver.alloc(bytes)? {
            Some(at) => Ok(at),
            None => Err(self.out_of_memory(gpu, bytes, "the device has no such block")),
        }
    }

    fn give(&mut self, at: u64, bytes: usize) {
        self.live.remove(&at);
        self.live_bytes -= bytes;
        self.cached += bytes;
        self.free.entry(bytes).or_default().push(at);
    }

    fn clear(&mut self, gpu: &Gpu) {
        for (bytes, blocks) in std::mem::take(&mut self.free) {
            for at in blocks {
                self.cached -= bytes;
                // SAFETY: the block came from the driver with this size and is in no list any more.
                unsafe { gpu.driver.free(at, bytes) };
            }
        }
    }

    fn stats(&self) -> Stats {
        Stats {
            live: self.live_bytes,
            cached: self.cached,
            peak: self.peak,
            blocks: self.live.len(),
            limit: self.limit.unwrap_or(usize::MAX),
        }
    }

    pub(super) fn out_of_memory(&self, gpu: &Gpu, bytes: usize, why: &str) -> Error {
        let blocks = self.live.iter().map(|(at, (n, label))| (*n, *at as usize, *label)).collect();
        alloc::shortage(&format!(" on {gpu}"), bytes, why, &self.stats(), blocks)
            .hint("drop arrays that are no longer needed, use forward(clear_buffer=True), or a smaller batch")
    }
}
