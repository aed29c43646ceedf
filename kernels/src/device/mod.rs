//! Devices with memory of their own, as arrays and contexts see them: where elements are wanted, and who copies them there.
//! `cuda/` implements the trait; nothing here or below knows how.

pub mod capture;
pub mod context;
mod memory;
mod site;

pub use context::Context;
pub use memory::DeviceMemory;
pub use site::Site;

use crate::dtype::DType;
use crate::error::Result;
use std::any::Any;
use std::fmt::{Debug, Display};
use std::sync::RwLockReadGuard;

/// Where elements are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the memory that the CPU reads.
    Host,
    /// In the memory of a GPU.
    Gpu(&'static dyn Device),
}

/// Leave to use a device's stream: while there is one, no other thread captures what goes through it.
pub type StreamGuard<'a> = RwLockReadGuard<'a, ()>;

/// A device with memory of its own, which does all its work in order. Addresses are of its memory. What runs on it is known to
/// who knows which kind it is (`Any`).
pub trait Device: Any + Send + Sync + Debug + Display {
    /// Memory of `bytes` bytes, content undefined.
    fn alloc(&'static self, bytes: usize) -> Result<DeviceMemory>;

    /// Takes back what `alloc` gave; work that was asked for so far may still use it.
    ///
    /// # Safety
    /// It came from `alloc` with this size, and no work on it is asked for from now on.
    unsafe fn free(&self, at: u64, bytes: usize);

    /// Leave to move data between the host and the device: waits until no other thread captures.
    fn turn_with_host(&self) -> Result<StreamGuard<'_>>;

    /// As [`turn_with_host`](Device::turn_with_host), for who holds what the capturing thread may want: `None` while there is one.
    fn try_turn(&self) -> Result<Option<StreamGuard<'_>>>;

    /// Waits until no other thread captures.
    fn await_capture(&self);

    /// Copies from the host, by who has the turn. The bytes are read when it returns.
    ///
    /// # Safety
    /// Both sides must be valid for `bytes`.
    unsafe fn upload(&self, turn: &StreamGuard, to: u64, from: *const u8, bytes: usize) -> Result<()>;

    /// Copies to the host, by who has the turn, and waits for it.
    ///
    /// # Safety
    /// Both sides must be valid for `bytes`.
    unsafe fn download(&self, turn: &StreamGuard, to: *mut u8, from: u64, bytes: usize) -> Result<()>;

    /// Copies from another device of its kind, by who has the turn on both.
    ///
    /// # Safety
    /// Both sides must be valid for `bytes`.
    unsafe fn copy_from(
        &self,
        turns: [&StreamGuard; 2],
        to: u64,
        other: &dyn Device,
        from: u64,
        bytes: usize,
    ) -> Result<()>;

    /// Sets `n` elements to `value`.
    ///
    /// # Safety
    /// They are the memory's, of this type.
    unsafe fn fill(&'static self, at: u64, dtype: DType, n: usize, value: f64) -> Result<()>;

    /// Copies (and converts) `n` elements.
    ///
    /// # Safety
    /// Both sides have as many, of their types.
    unsafe fn convert(&'static self, to: (u64, DType), from: (u64, DType), n: usize) -> Result<()>;
}

// By the address alone: one type may have several tables of methods.
impl PartialEq for dyn Device {
    fn eq(&self, other: &dyn Device) -> bool {
        std::ptr::addr_eq(self, other)
    }
}

impl Eq for dyn Device {}

/// A kind of device that contexts can name. Each kind that is built in submits its own.
pub struct Backend {
    /// What contexts call it: `name:type`.
    pub names: &'static [&'static str],
    /// The device of a context's `device_id`.
    pub open: fn(&str) -> Result<&'static dyn Device>,
}

inventory::collect!(Backend);
