//! The caching allocator: freed blocks are kept and handed out again (`free.rs`), because fresh pages cost more than
//! most kernels. Counts live, cached and peak bytes, keeps to a limit, and knows the largest blocks by name.

use super::free::FreeBlocks;
use super::kept::KeptForm;
use super::mirror::Mirror;
use super::system;
use super::views::Views;
use crate::error::{Error, ErrorKind, Result};
use crate::fork::at_fork;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock};

/// Alignment of every block: a cache line, and an AVX-512 vector.
///
/// ```
/// use nnrs_kernels::array::alloc::{ALIGN, Block};
/// assert_eq!(Block::new(100)?.ptr() as usize % ALIGN, 0);
/// # Ok::<(), nnrs_kernels::Error>(())
/// ```
pub const ALIGN: usize = 64;
/// Blocks from this size on have no byte that nobody has written.
#[cfg(unix)]
pub(super) const MAPPED: usize = system::PAGES;
/// Blocks up to this size are cached per thread, without a lock.
const SMALL: usize = 4096;
/// Small blocks of one size kept by one thread.
const SMALL_KEPT: usize = 256;
/// Bytes that the cache may hold beside as much as was in use at once.
const ROOM: usize = 64 << 20;
/// Blocks from this size on are listed by name for the out-of-memory report.
const NAMED: usize = 1 << 16;
/// More than any machine has. Larger sizes count as this one: there is no memory for them either.
pub const IMPOSSIBLE: usize = 1 << (usize::BITS - 2);

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static CACHED: AtomicUsize = AtomicUsize::new(0);
static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);
static BLOCKS: AtomicUsize = AtomicUsize::new(0);
/// Allocations until one is refused, for tests of what follows; `NEVER`: none is. Looked at beyond the limit alone, which is 0
/// meanwhile.
static REFUSE: AtomicUsize = AtomicUsize::new(NEVER);
const NEVER: usize = usize::MAX;
static POISON: AtomicBool = AtomicBool::new(false);

/// Free blocks above [`SMALL`], and the live blocks above [`NAMED`] by address.
struct Large {
    free: FreeBlocks,
    live: BTreeMap<usize, (usize, Label)>,
}

static LARGE: Mutex<Large> = Mutex::new(Large { free: FreeBlocks::new(), live: BTreeMap::new() });

/// Small free blocks of this thread; given back to the system when the thread ends.
struct SmallCache(Vec<Vec<NonNull<u8>>>);

impl Drop for SmallCache {
    fn drop(&mut self) {
        for (class, blocks) in self.0.iter_mut().enumerate() {
            for p in blocks.drain(..) {
                CACHED.fetch_sub(class * ALIGN, Relaxed);
                // SAFETY: the block came from `system` with this class's size.
                unsafe { system::give(p.as_ptr(), class * ALIGN) };
            }
        }
    }
}

thread_local! {
    static SMALL_FREE: RefCell<SmallCache> = const { RefCell::new(SmallCache(Vec::new())) };
    static LABEL: Cell<Label> = const { Cell::new(UNLABELLED) };
}

/// Where a block comes from: a word for what it is, and a function.
pub type Label = (&'static str, &'static str);
const UNLABELLED: Label = ("array", "");
static NAMES: OnceLock<fn() -> BTreeMap<usize, String>> = OnceLock::new();

/// Sets the function that gives the names that users gave: addresses of blocks and what they are.
pub fn set_names(f: fn() -> BTreeMap<usize, String>) {
    let _ = NAMES.set(f);
}

/// What the allocator holds, in bytes.
///
/// ```
/// let stats = nnrs_kernels::array::alloc::stats();
/// assert!(stats.peak >= stats.live && stats.limit >= stats.live);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    /// Bytes in use by arrays.
    pub live: usize,
    /// Bytes kept for re-use.
    pub cached: usize,
    /// The most that was live at once since the last [`reset_peak`].
    pub peak: usize,
    /// Blocks in use.
    pub blocks: usize,
    /// The limit on live bytes; `usize::MAX` without one.
    pub limit: usize,
}

/// Current statistics.
///
/// ```
/// use nnrs_kernels::array::alloc::{stats, Block};
/// let (before, _block) = (stats(), Block::new(1000)?);
/// assert!(stats().live - before.live >= 1000 && stats().blocks - before.blocks == 1);
/// # Ok::<(), nnrs_kernels::Error>(())
/// ```
pub fn stats() -> Stats {
    Stats {
        live: LIVE.load(Relaxed),
        cached: CACHED.load(Relaxed),
        peak: PEAK.load(Relaxed),
        blocks: BLOCKS.load(Relaxed),
        limit: LIMIT.load(Relaxed),
    }
}

/// Starts a new peak measurement.
///
/// ```
/// use nnrs_kernels::array::alloc::{reset_peak, stats, Block};
/// drop(Block::new(1 << 20)?);
/// assert!(stats().peak > stats().live);
/// reset_peak();
/// assert_eq!(stats().peak, stats().live);
/// # Ok::<(), nnrs_kernels::Error>(())
/// ```
pub fn reset_peak() {
    PEAK.store(LIVE.load(Relaxed), Relaxed);
}

/// Limits the bytes that arrays may hold together.
///
/// ```
/// use nnrs_kernels::array::alloc;
/// alloc::set_limit(alloc::stats().live + (1 << 20));
/// let error = nnrs_kernels::NdArray::from_slice(&vec![0.0f32; 1 << 20], [1 << 20].into()).unwrap_err();
/// assert!(error.is_out_of_memory());
/// ```
pub fn set_limit(bytes: usize) {
    LIMIT.store(bytes, Relaxed);
}

/// For tests: refuses the allocation that comes after `n` more (of arrays, of anything that kernels work in), once. `None`: none.
/// A limit is not kept meanwhile, and there is none afterwards. True if one was refused since the last call.
///
/// ```
/// use nnrs_kernels::array::alloc::{refuse_after, Block};
/// refuse_after(Some(1));
/// assert!(Block::new(100).is_ok() && Block::new(100).is_err() && Block::new(100).is_ok());
/// assert!(refuse_after(None));
/// ```
pub fn refuse_after(n: Option<usize>) -> bool {
    let left = REFUSE.swap(n.map_or(NEVER, |n| n + 1), Relaxed);
    LIMIT.store(if n.is_some() { 0 } else { NEVER }, Relaxed);
    left == 0
}

/// Whether an allocation beyond the limit is refused.
#[cold]
fn is_over() -> bool {
    let count = |n: usize| (n != NEVER && n > 0).then(|| n - 1);
    match REFUSE.fetch_update(Relaxed, Relaxed, count) {
        Ok(n) => n == 1,
        Err(n) => n == NEVER,
    }
}

/// Counts an allocation that is none of arrays: an error if it is the one to refuse.
pub fn check_refused(bytes: usize) -> Result<()> {
    if LIMIT.load(Relaxed) == 0 && REFUSE.load(Relaxed) != NEVER && is_over() { Err(refused(bytes)) } else { Ok(()) }
}

/// Fills freed blocks with a pattern, so that a use after freeing shows (for debugging).
///
/// ```
/// use nnrs_kernels::{array::{alloc, Data}, DType};
/// alloc::set_poison(true);
/// let data = Data::new(DType::U8, 64)?;
/// unsafe { data.slice_mut::<u8>().fill(0) }; // SAFETY: no other owner
/// drop(data);
/// assert_ne!(Data::new(DType::U8, 64)?.as_slice::<u8>(), [0; 64]); // the same block again
/// # Ok::<(), nnrs_kernels::Error>(())
/// ```
pub fn set_poison(on: bool) {
    POISON.store(on, Relaxed);
}

/// Gives all cached blocks of the shared cache, and the small ones of this thread, back to the system.
///
/// ```
/// use nnrs_kernels::array::alloc::{clear_cache, stats, Block};
/// drop(Block::new(1 << 20)?);
/// assert!(stats().cached >= 1 << 20);
/// clear_cache();
/// assert_eq!(stats().cached, 0);
/// # Ok::<(), nnrs_kernels::Error>(())
/// ```
pub fn clear_cache() {
    give_back(usize::MAX);
    let _ = SMALL_FREE.try_with(|s| *s.borrow_mut() = SmallCache(Vec::new()));
}

/// Gives at least `bytes` of the shared cache back, if there are as many.
fn give_back(bytes: usize) {
    let given = lock().free.give_back(bytes);
    CACHED.fetch_sub(given, Relaxed);
}

/// Says where this thread's next blocks come from (for the out-of-memory report), until the guard is dropped.
pub fn label(what: &'static str, function: &'static str) -> Labelled {
    Labelled(LABEL.replace((what, function)))
}

/// Where this thread's next blocks come from.
pub fn current_label() -> Label {
    LABEL.get()
}

pub struct Labelled(Label);

impl Drop for Labelled {
    fn drop(&mut self) {
        LABEL.set(self.0);
    }
}

/// Bytes that a request really takes.
///
/// ```
/// use nnrs_kernels::array::alloc::rounded;
/// assert_eq!((rounded(1), rounded(65), rounded((1 << 20) + 1)), (64, 128, (1 << 20) + 4096));
/// ```
pub fn rounded(bytes: usize) -> usize {
    let step = if bytes < 1 << 20 { ALIGN } else { 4096 };
    bytes.clamp(1, IMPOSSIBLE).next_multiple_of(step)
}

/// An owned block of bytes, aligned to [`ALIGN`]; dropped, it returns to the cache. A GPU may have a copy of it, which may
/// be newer, or all there is.
pub struct Block {
    /// Null while there is nothing on the host.
    host: AtomicPtr<u8>,
    /// What was asked for.
    bytes: usize,
    /// Views of other libraries (NumPy) over the block.
    pub(super) views: Views,
    /// How often another storage has come to share it.
    pub(super) shares: AtomicUsize,
    /// How many plans keep it for their captured runs.
    pub(super) held: AtomicUsize,
    pub(super) mirror: OnceLock<Box<Mutex<Mirror>>>,
    pub(super) kept: KeptForm,
    /// What memory of another library belongs to.
    owner: Option<Box<dyn Send + Sync>>,
}

impl Block {
    /// A block of at least `bytes` bytes, content undefined.
    ///
    /// # Errors
    /// Not enough memory, or the [limit](set_limit) is reached.
    ///
    /// ```
    /// assert_eq!(nnrs_kernels::array::alloc::Block::new(100)?.bytes(), 128);
    /// assert!(nnrs_kernels::array::alloc::Block::new(usize::MAX).is_err());
    /// # Ok::<(), nnrs_kernels::Error>(())
    /// ```
    pub fn new(bytes: usize) -> Result<Block> {
        let block = Block::nowhere(bytes);
        block.take_host()?;
        Ok(block)
    }

    /// A block without memory.
    pub(super) fn nowhere(bytes: usize) -> Block {
        let host = AtomicPtr::new(std::ptr::null_mut());
        let (views, shares, held, mirror, kept) = Default::default();
        Block { host, bytes, views, shares, held, mirror, kept, owner: None }
    }

    /// A block over `bytes` bytes of another library, which may read and write them at any time. It counts in no statistics.
    ///
    /// # Safety
    /// The bytes from `ptr` on can be read and written as long as `owner` is there, and `ptr` is aligned for what is read.
    pub(super) unsafe fn foreign(ptr: NonNull<u8>, bytes: usize, owner: Box<dyn Send + Sync>) -> Block {
        let mut block = Block::nowhere(bytes);
        (block.host, block.views, block.owner) = (AtomicPtr::new(ptr.as_ptr()), Views::endless(), Some(owner));
        block
    }

    /// Gives a block without memory on the host some, content undefined. No other thread may do so at the same time.
    pub(super) fn take_host(&self) -> Result<()> {
        self.host.store(take(self.bytes())?.as_ptr(), Relaxed);
        Ok(())
    }

    /// Where the memory begins; aligned to [`ALIGN`] unless another library made it. Null while only a GPU has it.
    ///
    /// ```
    /// assert!(!nnrs_kernels::array::alloc::Block::new(100)?.ptr().is_null());
    /// # Ok::<(), nnrs_kernels::Error>(())
    /// ```
    pub fn ptr(&self) -> *mut u8 {
        self.host.load(Relaxed)
    }

    /// Its size: what was asked for, rounded up.
    ///
    /// ```
    /// assert_eq!(nnrs_kernels::array::alloc::Block::new(100)?.bytes(), 128);
    /// # Ok::<(), nnrs_kernels::Error>(())
    /// ```
    pub fn bytes(&self) -> usize {
        if self.owner.is_some() { self.bytes } else { rounded(self.bytes) }
    }

    /// What was asked for.
    pub(super) fn asked(&self) -> usize {
        self.bytes
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if let (Some(ptr), None) = (NonNull::new(*self.host.get_mut()), &self.owner) {
            give(ptr, rounded(self.bytes));
        }
    }
}

/// Memory of `bytes` (rounded) bytes.
fn take(bytes: usize) -> Result<NonNull<u8>> {
    if bytes >= IMPOSSIBLE {
        return Err(out_of_memory(bytes, "no machine has as much"));
    }
    let live = LIVE.fetch_add(bytes, Relaxed) + bytes;
    if live > LIMIT.load(Relaxed) && is_over() {
        LIVE.fetch_sub(bytes, Relaxed);
        return Err(out_of_memory(bytes, "the limit on memory is reached"));
    }
    let Some(ptr) = take_cached(bytes).or_else(|| fresh(bytes)) else {
        LIVE.fetch_sub(bytes, Relaxed);
        return Err(refused(bytes));
    };
    if live > PEAK.load(Relaxed) {
        PEAK.fetch_max(live, Relaxed);
    }
    BLOCKS.fetch_add(1, Relaxed);
    if bytes >= NAMED {
        lock().live.insert(ptr.as_ptr() as usize, (bytes, LABEL.get()));
    }
    Ok(ptr)
}

/// Takes memory back that [`take`] gave.
fn give(ptr: NonNull<u8>, bytes: usize) {
    if POISON.load(Relaxed) {
        // SAFETY: the memory is `bytes` long and has no other owner.
        unsafe { ptr.as_ptr().write_bytes(0xFF, bytes) };
    }
    LIVE.fetch_sub(bytes, Relaxed);
    BLOCKS.fetch_sub(1, Relaxed);
    CACHED.fetch_add(bytes, Relaxed);
    let kept = bytes <= SMALL && keep_small(ptr, bytes);
    if !kept {
        keep_large(ptr, bytes);
    }
}

fn lock() -> MutexGuard<'static, Large> {
    crate::fork::watch();
    LARGE.lock().unwrap_or_else(|e| e.into_inner())
}

at_fork!(HoldInner, lock());

fn take_cached(bytes: usize) -> Option<NonNull<u8>> {
    let found = if bytes <= SMALL {
        SMALL_FREE.try_with(|s| s.borrow_mut().0.get_mut(bytes / ALIGN).and_then(Vec::pop)).ok().flatten()
    } else {
        let (found, idle) = lock().free.take(bytes);
        CACHED.fetch_sub(idle, Relaxed);
        found
    };
    if found.is_some() {
        CACHED.fetch_sub(bytes, Relaxed);
    }
    found
}

/// A new block of the system's, for which cached ones go back as far as both would be more than what was in use at once, a
/// quarter of that, and [`ROOM`]; or more than the limit.
fn fresh(bytes: usize) -> Option<NonNull<u8>> {
    let peak = PEAK.load(Relaxed).max(LIVE.load(Relaxed));
    let most = peak.saturating_add((peak / 4).max(ROOM)).min(LIMIT.load(Relaxed));
    let excess = LIVE.load(Relaxed).saturating_add(CACHED.load(Relaxed)).saturating_sub(most);
    if excess > 0 {
        give_back(excess);
    }
    system::take(bytes).or_else(|| {
        clear_cache();
        system::take(bytes)
    })
}

fn keep_small(ptr: NonNull<u8>, bytes: usize) -> bool {
    let keep = |s: &RefCell<SmallCache>| {
        let mut cache = s.borrow_mut();
        let class = bytes / ALIGN;
        if cache.0.len() <= class {
            cache.0.resize_with(SMALL / ALIGN + 1, Vec::new);
        }
        let list = &mut cache.0[class];
        let room = list.len() < SMALL_KEPT;
        if room {
            list.push(ptr);
        }
        room
    };
    SMALL_FREE.try_with(keep).unwrap_or(false)
}

fn keep_large(ptr: NonNull<u8>, bytes: usize) {
    if bytes <= SMALL {
        CACHED.fetch_sub(bytes, Relaxed);
        // SAFETY: the block came from `system` with this size.
        unsafe { system::give(ptr.as_ptr(), bytes) };
        return;
    }
    let mut large = lock();
    if bytes >= NAMED {
        large.live.remove(&(ptr.as_ptr() as usize));
    }
    large.free.put(ptr.as_ptr() as usize, bytes);
}

/// Whether the system has `bytes` more: for libraries that end the process where it has not.
pub fn probe(bytes: usize) -> Result<()> {
    check_refused(bytes)?;
    let there = system::take(bytes).or_else(|| {
        clear_cache();
        system::take(bytes)
    });
    let ptr = there.ok_or_else(|| refused(bytes))?;
    // SAFETY: taken above with this size.
    unsafe { system::give(ptr.as_ptr(), bytes) };
    Ok(())
}

/// The error where the system has no block of `bytes`.
pub fn refused(bytes: usize) -> Error {
    out_of_memory(bytes, "the system has no such block")
}

fn out_of_memory(bytes: usize, why: &str) -> Error {
    let blocks: Vec<_> = lock().live.iter().map(|(p, (n, label))| (*n, *p, *label)).collect();
    shortage("", bytes, why, &stats(), blocks)
        .hint("drop arrays that are no longer needed, use forward(clear_buffer=True), or raise nn.memory.set_limit")
}

/// The error where `bytes` (0: not known how many) are missing `place`; `blocks` there by size, address and label.
pub fn shortage(place: &str, bytes: usize, why: &str, s: &Stats, mut blocks: Vec<(usize, usize, Label)>) -> Error {
    blocks.sort_by(|a, b| b.cmp(a));
    let known = NAMES.get().map_or_else(BTreeMap::new, |f| f());
    let name = |p: &usize, (what, function): &Label| match known.get(p) {
        Some(name) => name.clone(),
        None => format!("{what} {function}").trim_end().to_string(),
    };
    let names: Vec<_> = blocks.iter().take(5).map(|(n, p, l)| format!("{} {}", name(p, l), human(*n))).collect();
    let limit = if s.limit == usize::MAX { "none".to_string() } else { human(s.limit) };
    let asked = if bytes == 0 { String::new() } else { format!("asked for {}, ", human(bytes)) };
    let what = format!(
        "out of memory{place}: {why}; {asked}in use {}, cached {}, limit {limit}; the largest arrays: {}",
        human(s.live),
        human(s.cached),
        if names.is_empty() { "none".to_string() } else { names.join(", ") }
    );
    Error::new(ErrorKind::OutOfMemory, what)
}

/// Bytes as a person reads them.
///
/// ```
/// use nnrs_kernels::array::alloc::human;
/// assert_eq!((human(7), human(1536)), ("7 B".into(), "1.5 KiB".into()));
/// ```
pub fn human(bytes: usize) -> String {
    let (n, unit) = match bytes {
        0..1024 => return format!("{bytes} B"),
        1024..1_048_576 => (1024.0, "KiB"),
        1_048_576..1_073_741_824 => (1_048_576.0, "MiB"),
        _ => (1_073_741_824.0, "GiB"),
    };
    format!("{:.1} {unit}", bytes as f64 / n)
}

#[cfg(feature = "emulate")]
mod tests {
    use super::*;

    unit_test!(blocks_are_reused_and_counted);
    fn blocks_are_reused_and_counted() {
        let a = Block::new(5_000_000).unwrap();
        let p = a.ptr();
        drop(a);
        let b = Block::new(5_000_000).unwrap();
        assert_eq!(b.ptr(), p);
        assert_eq!(b.ptr() as usize % ALIGN, 0);
        assert!(stats().live >= 5_000_000 && stats().peak >= 5_000_000);
    }

    unit_test!(impossible_sizes_are_an_error);
    fn impossible_sizes_are_an_error() {
        for bytes in [isize::MAX as usize - 4096, usize::MAX, usize::MAX / 2, isize::MAX as usize / 2] {
            assert!(Block::new(bytes).err().is_some_and(|e| e.is_out_of_memory()), "{bytes}");
        }
    }

    /// Forks a child that allocates; SIGALRM ends one that hangs.
    #[cfg(unix)]
    fn child_allocates() -> bool {
        let (mut status, bytes) = (-1, 1 << 17);
        // SAFETY: the child only allocates, and leaves by _exit.
        unsafe {
            let child = libc::fork();
            if child == 0 {
                libc::alarm(20);
                libc::_exit(Block::new(bytes).is_err() as i32);
            }
            libc::waitpid(child, &mut status, 0);
        }
        status == 0
    }

    #[cfg(unix)]
    unit_test!(a_child_allocates_though_another_thread_did_when_it_was_forked);
    #[cfg(unix)]
    fn a_child_allocates_though_another_thread_did_when_it_was_forked() {
        crate::fork::watch(); // a fork before that knows nothing of the thread
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|s| {
            s.spawn(|| {
                while !stop.load(Relaxed) {
                    let _ = Block::new(1 << 17);
                }
            });
            let fine = (0..200).all(|_| child_allocates());
            stop.store(true, Relaxed);
            assert!(fine);
        });
    }
}
