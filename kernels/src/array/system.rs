//! Memory from the system. Large blocks are pages of their own: given back, they leave the process at once, where the
//! C library's heap would keep them.

use super::alloc::ALIGN;
use std::alloc::Layout;
use std::ptr::NonNull;

/// Blocks from this size on are pages of their own.
#[cfg(unix)]
const PAGES: usize = 1 << 20;

fn layout(bytes: usize) -> Layout {
    // SAFETY: ALIGN is a power of two and callers pass sizes far below isize::MAX.
    unsafe { Layout::from_size_align_unchecked(bytes, ALIGN) }
}

/// A block of `bytes`, more than 0 and at most `isize::MAX - ALIGN`, aligned to [`ALIGN`]; `None` without memory.
pub(super) fn take(bytes: usize) -> Option<NonNull<u8>> {
    #[cfg(unix)]
    if bytes >= PAGES {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping changes no memory that is there.
        let p =
            unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0) };
        return if p == libc::MAP_FAILED { None } else { NonNull::new(p as *mut u8) };
    }
    // SAFETY: the size is not zero.
    NonNull::new(unsafe { std::alloc::alloc(layout(bytes)) })
}

/// Gives a block back.
///
/// # Safety
/// The block must come from [`take`] with this size, and may not be used any more.
pub(super) unsafe fn give(p: *mut u8, bytes: usize) {
    #[cfg(unix)]
    if bytes >= PAGES {
        // SAFETY: the caller's promise: these pages are one mapping that is not used.
        unsafe { libc::munmap(p.cast(), bytes) };
        return;
    }
    // SAFETY: the caller's promise.
    unsafe { std::alloc::dealloc(p, layout(bytes)) }
}
