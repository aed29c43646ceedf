//! Copies of arrays larger than the caches: on all threads, written past the caches.

use crate::pool::run;
use crate::pool::tasks::SendPtr;

/// From this many bytes on a copy is worth threads, and leaves nothing in the caches that is read before it is thrown out.
pub const LARGE: usize = 4 << 20;

/// What one task copies.
const PART: usize = 1 << 20;
/// What processors write as a whole.
const LINE: usize = 64;

/// Copies `n` bytes.
///
/// # Safety
/// They are there to be read and to be written, and do not overlap.
pub unsafe fn copy(from: *const u8, to: *mut u8, n: usize) {
    let (from, to) = (SendPtr(from.cast_mut()), SendPtr(to));
    run(n.div_ceil(PART), &|task| {
        let first = task * PART;
        // SAFETY: the caller's promise; tasks have parts of their own.
        unsafe { part(from.add(first).0, to.add(first).0, PART.min(n - first)) };
    });
}

/// As [`copy`], on this thread.
#[cfg(target_arch = "x86_64")]
unsafe fn part(from: *const u8, to: *mut u8, n: usize) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};
    let head = to.align_offset(LINE).min(n);
    let whole = (n - head) / LINE * LINE;
    // SAFETY: the caller's promise; `to + head` is a multiple of what a store past the caches needs.
    unsafe {
        std::ptr::copy_nonoverlapping(from, to, head);
        for at in (head..head + whole).step_by(LINE) {
            let (from, to): (*const __m128i, *mut __m128i) = (from.add(at).cast(), to.add(at).cast());
            let line: [__m128i; 4] = std::array::from_fn(|i| _mm_loadu_si128(from.add(i)));
            line.into_iter().enumerate().for_each(|(i, x)| _mm_stream_si128(to.add(i), x));
        }
        _mm_sfence(); // such stores are seen by other threads after this
        std::ptr::copy_nonoverlapping(from.add(head + whole), to.add(head + whole), n - head - whole);
    }
}

/// As [`copy`], on this thread.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn part(from: *const u8, to: *mut u8, n: usize) {
    // SAFETY: the caller's promise.
    unsafe { std::ptr::copy_nonoverlapping(from, to, n) };
}

#[cfg(feature = "emulate")]
mod tests {
    use super::*;

    unit_test!(all_bytes_arrive_and_no_other_is_written);
    fn all_bytes_arrive_and_no_other_is_written() {
        let from: Vec<u8> = (0..PART * 2 + 1000).map(|i| (i * 7 + i / 251) as u8).collect();
        for (n, skipped, offset) in [(0, 0, 0), (1, 3, 5), (63, 1, 0), (64, 0, 1), (200, 9, 63), (PART * 2 + 77, 5, 3)]
        {
            let mut to = vec![0xa5; n + offset + 100];
            // SAFETY: both are longer than that, and two arrays.
            unsafe { copy(from.as_ptr().add(skipped), to.as_mut_ptr().add(offset), n) };
            assert_eq!(to[offset..offset + n], from[skipped..skipped + n], "{n} bytes");
            assert!(to[..offset].iter().chain(&to[offset + n..]).all(|x| *x == 0xa5), "{n} bytes");
        }
    }
}
