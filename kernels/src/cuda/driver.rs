//! What the engine asks of a GPU: the one trait that stands between it and CUDA. The real device implements it, and for
//! tests an emulated one, so that every launch, argument and copy is checked where there is no GPU.

use super::Gpu;
use super::group::{DeviceGroup, GroupPlace};
use super::module::Module;
use super::vendor::{Prepared, VendorCall};
use crate::error::Result;
use std::ffi::c_void;
use std::sync::Arc;

/// A device and the stream on which all its work is done in order. Addresses are of its memory.
pub trait Driver: Send + Sync {
    /// What the device is.
    fn properties(&self) -> &Properties;

    /// Says whose driver it is: the device that has memory to give back, and counts.
    fn belongs_to(&self, _gpu: &'static Gpu) {}

    /// New memory, aligned to 256 bytes (16 where it is emulated); `None` if there is not enough.
    fn alloc(&self, bytes: usize) -> Result<Option<u64>>;

    /// Gives memory back, once the work that was asked for so far is done.
    ///
    /// # Safety
    /// It came from `alloc` with this size, and is not used from now on.
    unsafe fn free(&self, at: u64, bytes: usize);

    /// Copies from the host. It has read the bytes when it returns; they arrive in order with the other work.
    ///
    /// # Safety
    /// Both sides must be valid for `bytes`.
    unsafe fn upload(&self, to: u64, from: *const u8, bytes: usize) -> Result<()>;

    /// Copies to the host; waits for it, and so for all work before it.
    ///
    /// # Safety
    /// Both sides must be valid for `bytes`.
    unsafe fn download(&self, to: *mut u8, from: u64, bytes: usize) -> Result<()>;

    /// Copies within the device, or from `peer` to it.
    ///
    /// # Safety
    /// Both sides must be valid for `bytes`.
    unsafe fn copy(&self, to: u64, from: u64, bytes: usize, peer: Option<&dyn Driver>) -> Result<()>;

    /// Loads kernels.
    fn load(&self, module: &Module) -> Result<Loaded>;

    /// Compiles kernels and loads them; `None` without a compiler.
    fn compile(&self, source: &str) -> Result<Option<Loaded>>;

    /// The kernel `name` of a loaded module.
    fn kernel(&self, module: Loaded, name: &str) -> Result<Kernel>;

    /// Starts a kernel.
    ///
    /// # Safety
    /// `args` point to values of the types of the kernel's parameters; pointers among them are valid for what it does.
    unsafe fn launch(&self, kernel: Kernel, grid: LaunchGrid, args: &mut [*mut c_void]) -> Result<()>;

    /// Does `work` while the device is this thread's, for libraries. The device is open then.
    fn inside(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<()>;

    /// The device's context, by which another device finds its memory.
    fn context(&self) -> Result<u64>;

    /// NVIDIA's libraries by name: the file that is used, or why there is none.
    fn libraries(&self) -> Result<Vec<(&'static str, Result<String, String>)>>;

    /// Has a library choose how to do a call; `None` if there is none for it. Out of memory: there is none just now.
    fn prepare(&self, call: &VendorCall) -> Result<Option<Arc<dyn Prepared>>>;

    /// A name for a new group of devices.
    fn group_id(&self) -> Result<Vec<u8>>;

    /// Joins a group together with all its other members.
    fn join_group(&self, place: &GroupPlace) -> Result<Arc<dyn DeviceGroup>>;

    /// Waits for all work.
    fn synchronize(&self) -> Result<()>;

    /// Copies from the host at once, also while a run is captured, and not as a part of it.
    ///
    /// # Safety
    /// As [`upload`](Driver::upload).
    unsafe fn upload_constant(&self, to: u64, from: *const u8, bytes: usize) -> Result<()>;

    /// From now on work is noted, not done.
    fn begin_capture(&self) -> Result<()>;

    /// Ends what `begin_capture` began.
    fn end_capture(&self) -> Result<Captured>;

    /// Does the captured work again.
    ///
    /// # Safety
    /// The memory that it used belongs to it, or is what it was.
    unsafe fn replay(&self, captured: Captured) -> Result<()>;

    /// Drops captured work.
    fn forget(&self, captured: Captured);
}

/// Finds other devices than the real ones, for tests: they are taken if there are some.
#[cfg(feature = "emulate")]
pub struct Substitute(pub fn() -> Result<Option<Vec<Box<dyn Driver>>>>);

#[cfg(feature = "emulate")]
inventory::collect!(Substitute);

/// A device's name and limits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Properties {
    /// What its maker calls it.
    pub name: String,
    /// Compute capability.
    pub capability: (u32, u32),
    /// Bytes of memory.
    pub memory: usize,
    /// Multiprocessors.
    pub processors: usize,
    /// Tests alone: kernels are compiled for the CPU.
    pub emulated: bool,
}

/// A module's handle.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Loaded(pub u64);

/// A handle of captured work.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Captured(pub u64);

/// A kernel's handle.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Kernel(pub u64);

/// How many blocks, of how many threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchGrid {
    pub blocks: [u32; 3],
    pub threads: [u32; 3],
}

impl LaunchGrid {
    pub fn new(blocks: usize, threads: usize) -> LaunchGrid {
        LaunchGrid { blocks: [blocks as u32, 1, 1], threads: [threads as u32, 1, 1] }
    }

    /// Threads for `n` elements that a kernel walks by [`first` and `step`](../../../cuda/common.cuh), enough to fill
    /// `processors`.
    pub fn over(n: usize, processors: usize) -> LaunchGrid {
        const THREADS: usize = 256;
        LaunchGrid::new(n.div_ceil(THREADS).clamp(1, processors.max(1) * 16), THREADS)
    }
}
