//! Memory from the system. Large blocks are pages of their own: given back, they leave the process at once, where the
//! C library's heap would keep them. The largest are huge pages where the system has them for those who ask: a first pass over
//! them meets 512 times fewer page faults, and each pass fewer misses of the address cache.

use super::alloc::ALIGN;
use std::alloc::Layout;
use std::ptr::NonNull;
#[cfg(target_os = "linux")]
use std::sync::OnceLock;

/// Blocks from this size on are pages of their own: all their bytes were written, by the system or by whoever had them before.
pub(super) const PAGES: usize = 1 << 20;

/// The size of a huge page; blocks from this size on begin at a multiple of it.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
const HUGE: usize = 2 << 20;

fn layout(bytes: usize) -> Layout {
    // SAFETY: ALIGN is a power of two and callers pass sizes far below isize::MAX.
    unsafe { Layout::from_size_align_unchecked(bytes, ALIGN) }
}

/// A block of `bytes`, more than 0 and at most `isize::MAX - ALIGN`, aligned to [`ALIGN`]; `None` without memory.
pub(super) fn take(bytes: usize) -> Option<NonNull<u8>> {
    #[cfg(unix)]
    if bytes >= PAGES {
        if bytes > all_memory() {
            return None;
        }
        return huge(bytes).or_else(|| pages(bytes));
    }
    // SAFETY: the size is not zero.
    NonNull::new(unsafe { std::alloc::alloc(layout(bytes)) })
}

/// What the machine has, swap included. Some systems promise more (`vm.overcommit_memory=1`), and end a program that writes
/// there.
#[cfg(target_os = "linux")]
fn all_memory() -> usize {
    static ALL: OnceLock<usize> = OnceLock::new();
    *ALL.get_or_init(|| {
        // SAFETY: a structure of integers, for which zeros are values.
        let mut info: libc::sysinfo = unsafe { std::mem::zeroed() };
        // SAFETY: a valid place.
        match unsafe { libc::sysinfo(&mut info) } {
            0 => {
                (info.totalram as usize).saturating_add(info.totalswap as usize).saturating_mul(info.mem_unit as usize)
            }
            _ => usize::MAX,
        }
    })
}

#[cfg(all(unix, not(target_os = "linux")))]
fn all_memory() -> usize {
    usize::MAX
}

#[cfg(unix)]
fn pages(bytes: usize) -> Option<NonNull<u8>> {
    let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping changes no memory that is there.
    let p = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, kind, -1, 0) };
    if p == libc::MAP_FAILED { None } else { NonNull::new(p as *mut u8) }
}

/// Pages that begin where a huge one may: what is before and behind them goes back at once.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn huge(bytes: usize) -> Option<NonNull<u8>> {
    if bytes < HUGE {
        return None;
    }
    let (bytes, more) = (bytes.next_multiple_of(4096), HUGE - 4096);
    let start = pages(bytes + more)?.as_ptr();
    let before = start.align_offset(HUGE);
    let block = start.wrapping_add(before);
    // SAFETY: all three are parts of the new mapping, on borders of pages, and only the block is used; advice changes no content.
    unsafe {
        if before > 0 {
            libc::munmap(start.cast(), before);
        }
        if before < more {
            libc::munmap(block.wrapping_add(bytes).cast(), more - before);
        }
        libc::madvise(block.cast(), bytes, libc::MADV_HUGEPAGE);
    }
    NonNull::new(block)
}

#[cfg(all(unix, not(all(target_os = "linux", target_arch = "x86_64"))))]
fn huge(_bytes: usize) -> Option<NonNull<u8>> {
    None
}

/// Gives a block back.
///
/// # Safety
/// The block must come from [`take`] with this size, and may not be used any more.
pub(super) unsafe fn give(p: *mut u8, bytes: usize) {
    if is_pages(bytes) {
        // SAFETY: the caller's promise.
        return unsafe { give_pages(p, bytes) };
    }
    // SAFETY: the caller's promise.
    unsafe { std::alloc::dealloc(p, layout(bytes)) }
}

/// Whether blocks of `bytes` are pages, which can be given back in any parts.
pub(super) fn is_pages(bytes: usize) -> bool {
    cfg!(unix) && bytes >= PAGES
}

/// Gives pages back: those of a block, of a part of one, or of several that lie in a row.
///
/// # Safety
/// The pages must come from [`take`], and may not be used any more.
#[cfg(unix)]
pub(super) unsafe fn give_pages(p: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise; a hole in what was mapped is none for the system.
    unsafe { libc::munmap(p.cast(), bytes) };
}

/// # Safety
/// Never called: no block is pages here.
#[cfg(not(unix))]
pub(super) unsafe fn give_pages(_p: *mut u8, _bytes: usize) {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    unit_test!(more_than_there_is_is_refused);
    fn more_than_there_is_is_refused() {
        let all = all_memory();
        assert!(all > PAGES && all < 1 << 50, "{all} bytes");
        assert!(take(all + 1).is_none());
        let block = take(PAGES).unwrap();
        // SAFETY: it comes from `take`.
        unsafe { give(block.as_ptr(), PAGES) };
    }
}
