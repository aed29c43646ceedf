//! Memory of a GPU: freed blocks are kept by size and handed out again. All work of a device is done in order on one
//! stream, so what is freed may be used again at once by work that comes later.

use super::Gpu;
use super::capture::{Turn, is_capturing};
use super::replays;
use crate::array::alloc::{self, Stats};
use crate::error::{Error, Result};
use crate::fork;
use std::collections::{BTreeMap, BTreeSet};

/// Free blocks by size, and statistics.
#[derive(Default)]
pub(super) struct Pool {
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

/// An owned block of a GPU's memory; dropped, it returns to the pool.
pub struct Memory {
    gpu: &'static Gpu,
    at: u64,
    bytes: usize,
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
    pub fn alloc(&'static self, bytes: usize) -> Result<Memory> {
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
        Ok(Memory { gpu: self, at, bytes })
    }

    /// As [`alloc`](Gpu::alloc), also in a captured run for what is not a part of it: no memory that the run uses otherwise.
    pub(super) fn alloc_apart(&'static self, bytes: usize) -> Result<Memory> {
        self.check_fork()?;
        let bytes = self.rounded(bytes);
        Ok(Memory { gpu: self, at: self.take(bytes)?, bytes })
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

impl Pool {
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

impl Memory {
    pub fn address(&self) -> u64 {
        self.at
    }

    pub fn gpu(&self) -> &'static Gpu {
        self.gpu
    }

    /// Copies to the beginning of it from the host.
    ///
    /// # Safety
    /// `from` must be readable for `bytes`.
    pub unsafe fn upload(&self, from: *const u8, bytes: usize) -> Result<()> {
        let turn = self.gpu.turn_with_host()?;
        // SAFETY: the caller's promise.
        unsafe { self.upload_in(&turn, from, bytes) }
    }

    /// As [`upload`](Memory::upload), by the thread that has the turn.
    ///
    /// # Safety
    /// As there.
    pub unsafe fn upload_in(&self, _: &Turn, from: *const u8, bytes: usize) -> Result<()> {
        debug_assert!(bytes <= self.bytes);
        // SAFETY: the caller's promise, and this memory's size.
        unsafe { self.gpu.driver.upload(self.at, from, bytes) }
    }

    /// Copies the first `bytes` to the host, and waits for it.
    ///
    /// # Safety
    /// `to` must be writable for `bytes`.
    pub unsafe fn download(&self, _: &Turn, to: *mut u8, bytes: usize) -> Result<()> {
        debug_assert!(bytes <= self.bytes);
        self.gpu.count_waits(1);
        // SAFETY: the caller's promise, and this memory's size.
        unsafe { self.gpu.driver.download(to, self.at, bytes) }
    }

    /// Copies from another block of the same size, which is on another device, by the thread that has the turn on both.
    pub fn copy_from(&self, _: [&Turn; 2], other: &Memory) -> Result<()> {
        self.gpu.count_waits(1);
        // SAFETY: both have that many bytes.
        unsafe { self.gpu.driver.copy(self.at, other.at, self.bytes.min(other.bytes), Some(&*other.gpu.driver)) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.gpu.check_fork().is_err() {
            return; // it is the parent's
        }
        let mut pool = self.gpu.pool();
        match &mut pool.arena {
            Some(arena) if arena.owned.contains(&self.at) => {
                arena.free.entry(self.bytes).or_default().push(self.at);
            }
            _ => match pool.reserved.get_mut(&self.at) {
                Some(dropped) => *dropped = Some(self.bytes),
                None => pool.give(self.at, self.bytes),
            },
        }
    }
}
