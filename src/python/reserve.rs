//! Memory for what cannot do without. Rust's collections end the process where there is no memory for them, so a part of it
//! is kept back, and given up when a request fails: the call in which that happens still ends well, and calls that would
//! need more are a MemoryError until the part is there again.

use super::{errors, stay};
use nnrs_kernels::array::alloc;
use pyo3::prelude::*;
use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::SeqCst};

/// The system's allocator with a reserve.
struct Reserving;

#[global_allocator]
static ALLOCATOR: Reserving = Reserving;

const BYTES: usize = 32 << 20;
const LAYOUT: Layout = Layout::new::<[u8; BYTES]>();

/// Null where it was given up.
static HELD: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());

// SAFETY: all is the system's allocator's, which is asked once more after the reserve was given back to it.
unsafe impl GlobalAlloc for Reserving {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        or_again(|| unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        or_again(|| unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller promises; where it fails, the old block stays as it is.
        or_again(|| unsafe { System.realloc(at, layout, size) })
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(at, layout) }
    }
}

#[inline]
fn or_again(request: impl Fn() -> *mut u8) -> *mut u8 {
    let found = request();
    if found.is_null() && give_up() { request() } else { found }
}

/// Gives the reserve back to the system; false if that has happened already.
#[cold]
fn give_up() -> bool {
    let held = HELD.swap(ptr::null_mut(), SeqCst);
    if held.is_null() {
        return false;
    }
    // SAFETY: taken with this layout, by this thread alone since the swap.
    unsafe { System.dealloc(held, LAYOUT) };
    true
}

/// Takes the reserve.
pub(super) fn take() {
    // SAFETY: the layout has a size.
    let new = unsafe { System.alloc(LAYOUT) };
    let old = HELD.swap(new, SeqCst);
    if !old.is_null() {
        // SAFETY: taken with this layout, by this thread alone since the swap.
        unsafe { System.dealloc(old, LAYOUT) };
    }
}

/// Before a call does its work: an error while the reserve is not there: what is to be made might not find memory.
#[inline]
pub(super) fn check(py: Python<'_>) -> PyResult<()> {
    stay::mark();
    if HELD.load(SeqCst).is_null() { refill(py) } else { Ok(()) }
}

#[cold]
fn refill(py: Python<'_>) -> PyResult<()> {
    take();
    match HELD.load(SeqCst).is_null() {
        true => Err(errors::raise(py, alloc::refused(BYTES))),
        false => Ok(()),
    }
}
