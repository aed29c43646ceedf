//! Memory of the emulated GPU: what a kernel touches beside an array ends the process, or is found when the array goes.

use std::collections::{BTreeMap, HashMap};
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};

const PAGE: usize = 4096;
/// What fresh memory is filled with: as a float it is NaN.
pub(super) const FRESH: u8 = 0xFF;
/// What lies between an array's end and the page that ends it.
const MARGIN: u8 = 0xA5;
/// Blocks that have mappings of their own, at most, where small ones want one: a process has 65,530, and a block takes three.
const MOST: usize = 8000;

static MAPPED: AtomicUsize = AtomicUsize::new(0);
/// The other small blocks, by address: with margins of 64 bytes, but no pages that may not be touched.
static CROWD: Mutex<Option<HashMap<u64, Vec<MarginLine>>>> = Mutex::new(None);

#[derive(Clone)]
#[repr(align(64))]
struct MarginLine([u8; 64]);

/// The blocks of one device, with their bytes.
#[derive(Default)]
pub(super) struct DeviceBlocks(Mutex<BTreeMap<u64, usize>>);

impl DeviceBlocks {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, usize>> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }

    pub(super) fn add(&self, at: u64, bytes: usize) {
        self.lock().insert(at, bytes);
    }

    pub(super) fn remove(&self, at: u64) {
        self.lock().remove(&at);
    }

    /// True if the bytes are all of one block.
    pub(super) fn has(&self, at: u64, bytes: usize) -> bool {
        let blocks = self.lock();
        let block = blocks.range(..=at).next_back();
        block.is_some_and(|(start, size)| at + bytes as u64 <= start + *size as u64)
    }
}

/// Fresh memory, or `None` where the system has none.
pub(super) fn alloc(bytes: usize) -> Option<u64> {
    if MAPPED.fetch_add(1, Relaxed) < MOST || bytes > PAGE {
        return map(bytes);
    }
    MAPPED.fetch_sub(1, Relaxed);
    let mut lines = vec![MarginLine([MARGIN; 64]); bytes.div_ceil(64) + 2];
    let at = lines[1..].as_mut_ptr() as u64;
    // SAFETY: the block has room for them.
    unsafe { (at as *mut u8).write_bytes(FRESH, bytes) };
    crowd().get_or_insert_default().insert(at, lines);
    Some(at)
}

/// Gives memory back.
///
/// # Safety
/// It came from `alloc` with the same size, and nobody uses it.
pub(super) unsafe fn free(at: u64, bytes: usize) {
    let crowded = crowd().as_mut().and_then(|c| c.remove(&at));
    let intact = match crowded {
        Some(lines) => {
            lines.iter().flat_map(|l| l.0).enumerate().all(|(i, b)| b == MARGIN || (64..64 + bytes).contains(&i))
        }
        // SAFETY: as the caller promised.
        None => unsafe { unmap(at, bytes) },
    };
    assert!(intact, "a kernel has written beside an array of {bytes} bytes");
}

fn crowd() -> MutexGuard<'static, Option<HashMap<u64, Vec<MarginLine>>>> {
    CROWD.lock().unwrap_or_else(|e| e.into_inner())
}

/// Bytes of the mapping around a block, and where in it the block begins: its end is that of a page.
fn span(bytes: usize) -> (usize, usize) {
    let used = bytes.next_multiple_of(16);
    let inner = used.next_multiple_of(PAGE);
    (inner + 2 * PAGE, PAGE + inner - used)
}

fn map(bytes: usize) -> Option<u64> {
    let (whole, start) = span(bytes);
    // SAFETY: a fresh mapping; its first and last page are closed, the rest is filled.
    unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let p = libc::mmap(std::ptr::null_mut(), whole, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
        if p == libc::MAP_FAILED {
            MAPPED.fetch_sub(1, Relaxed);
            return None;
        }
        let p = p as *mut u8;
        p.add(PAGE).write_bytes(MARGIN, whole - 2 * PAGE);
        p.add(start).write_bytes(FRESH, bytes);
        libc::mprotect(p as *mut c_void, PAGE, libc::PROT_NONE);
        libc::mprotect(p.add(whole - PAGE) as *mut c_void, PAGE, libc::PROT_NONE);
        Some(p.add(start) as u64)
    }
}

/// True if the margins are as they were.
unsafe fn unmap(at: u64, bytes: usize) -> bool {
    let (whole, start) = span(bytes);
    let p = (at as usize - start) as *mut u8;
    // SAFETY: the mapping that `map` made.
    unsafe {
        let margin = |from: usize, n: usize| std::slice::from_raw_parts(p.add(from), n).iter().all(|b| *b == MARGIN);
        let intact = margin(PAGE, start - PAGE) && margin(start + bytes, whole - PAGE - start - bytes);
        libc::munmap(p as *mut c_void, whole);
        MAPPED.fetch_sub(1, Relaxed);
        intact
    }
}
