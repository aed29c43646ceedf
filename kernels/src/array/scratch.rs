//! Memory that kernels work in. Small buffers are the thread's own, kept for its next kernel, because fresh pages cost more
//! than the work on small layers; large ones are blocks like those of arrays, counted and limited. Where there is no memory,
//! the kernel is unwound: the run that called it ends with an error.

use crate::array::alloc::{self, Block};
use crate::dtype::AnyBits;
use crate::pool;
use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};

#[derive(Clone, Copy)]
#[repr(align(64))]
struct CacheLine(#[allow(dead_code)] [u8; 64]);

/// Bytes of the largest buffer that a thread keeps; what is larger counts as an array does.
pub const KEEP: usize = 2 << 20;
#[cfg(unix)]
const _: () = assert!(KEEP >= alloc::MAPPED, "larger buffers are pages from the system");

/// Bytes that are set to 0 before it is asked whether to stop: gigabytes of fresh pages take seconds.
#[cfg(not(unix))]
const PIECE: usize = 16 << 20;

thread_local! {
    static FREE: RefCell<Vec<Vec<CacheLine>>> = const { RefCell::new(Vec::new()) };
}

enum ScratchMemory {
    Own(Vec<CacheLine>),
    Block(Block),
}

impl ScratchMemory {
    /// Memory of `bytes` bytes, all of them initialised: zeros, or what earlier work left there.
    fn new(bytes: usize) -> ScratchMemory {
        if bytes > KEEP {
            let block = Block::new(bytes).unwrap_or_else(|e| pool::refuse(e));
            // Elsewhere pages come from the system, which has written them.
            #[cfg(not(unix))]
            for from in (0..bytes).step_by(PIECE) {
                // SAFETY: the block is this long and has no other owner.
                unsafe { block.ptr().add(from).write_bytes(0, PIECE.min(bytes - from)) };
                pool::check();
            }
            return ScratchMemory::Block(block);
        }
        let mut lines = FREE.try_with(|free| free.borrow_mut().pop()).ok().flatten().unwrap_or_default();
        let need = bytes.div_ceil(64);
        if lines.len() < need {
            reserve(&mut lines, need);
            lines.resize(need, CacheLine([0; 64]));
        }
        ScratchMemory::Own(lines)
    }

    fn ptr(&mut self) -> *mut u8 {
        match self {
            ScratchMemory::Own(lines) => lines.as_mut_ptr().cast(),
            ScratchMemory::Block(block) => block.ptr(),
        }
    }
}

/// A buffer of numbers, aligned to a cache line. It goes back when it is dropped.
pub struct Scratch<T: Copy> {
    memory: ManuallyDrop<ScratchMemory>,
    ptr: *mut T,
    len: usize,
}

impl<T: Copy> Scratch<T> {
    /// `len` times `value`.
    pub fn filled(len: usize, value: T) -> Scratch<T> {
        let scratch = Scratch::<T>::new(len);
        // SAFETY: the memory is this long; its old bytes are not read.
        (0..len).for_each(|i| unsafe { scratch.ptr.add(i).write(value) });
        scratch
    }

    /// `f(i)` for each `i`.
    pub fn each(len: usize, mut f: impl FnMut(usize) -> T) -> Scratch<T> {
        let scratch = Scratch::<T>::new(len);
        // SAFETY: as in `filled`.
        (0..len).for_each(|i| unsafe { scratch.ptr.add(i).write(f(i)) });
        scratch
    }

    /// A copy of `x`.
    pub fn of(x: &[T]) -> Scratch<T> {
        let scratch = Scratch::<T>::new(x.len());
        // SAFETY: the memory is this long and apart from `x`.
        unsafe { scratch.ptr.copy_from_nonoverlapping(x.as_ptr(), x.len()) };
        scratch
    }

    /// Its numbers may be none that T allows.
    fn new(len: usize) -> Scratch<T> {
        const { assert!(align_of::<T>() <= 64) };
        let mut memory = ScratchMemory::new(len.saturating_mul(size_of::<T>()));
        let ptr = memory.ptr().cast();
        Scratch { memory: ManuallyDrop::new(memory), ptr, len }
    }
}

impl<T: AnyBits> Scratch<T> {
    /// Zeros, or what earlier work left there.
    pub fn any(len: usize) -> Scratch<T> {
        Scratch::new(len)
    }
}

// SAFETY: whoever shares a buffer only reads it; its memory has no other owner.
unsafe impl<T: Copy + Sync> Sync for Scratch<T> {}

impl<T: Copy> Deref for Scratch<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `filled`, `each` and `of` have written `len` numbers, `any` asks for numbers of which all bytes are valid.
        unsafe { std::slice::from_raw_parts(self.ptr, self.len) }
    }
}

impl<T: Copy> DerefMut for Scratch<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above; the buffer has one owner.
        unsafe { std::slice::from_raw_parts_mut(self.ptr, self.len) }
    }
}

impl<T: Copy> Drop for Scratch<T> {
    fn drop(&mut self) {
        // SAFETY: taken once, here.
        if let ScratchMemory::Own(lines) = unsafe { ManuallyDrop::take(&mut self.memory) } {
            let _ = FREE.try_with(|free| free.borrow_mut().push(lines));
        }
    }
}

/// Calls `f` with `len` numbers: zeros, or what earlier work left there.
pub fn with<T: AnyBits, R>(len: usize, f: impl FnOnce(&mut [T]) -> R) -> R {
    f(&mut Scratch::any(len))
}

/// `n` rounded up so that the next piece of a buffer starts on a cache line.
pub fn line<T>(n: usize) -> usize {
    n.next_multiple_of(64 / size_of::<T>())
}

/// Bytes that a plan counts for a buffer of `bytes`: none for those that a thread keeps.
pub fn counted(bytes: usize) -> usize {
    if bytes > KEEP { bytes } else { 0 }
}

/// Room for `n` elements.
pub fn reserve<T>(list: &mut Vec<T>, n: usize) {
    if n <= list.capacity() {
        return;
    }
    let bytes = n.saturating_mul(size_of::<T>());
    alloc::check_refused(bytes).unwrap_or_else(|e| pool::refuse(e));
    if list.try_reserve_exact(n - list.len()).is_err() {
        pool::refuse(alloc::refused(bytes));
    }
}

/// `n` times `value`, for what a function keeps or returns.
pub fn list<T: Copy>(n: usize, value: T) -> Vec<T> {
    let mut list = Vec::new();
    reserve(&mut list, n);
    list.resize(n, value);
    list
}
