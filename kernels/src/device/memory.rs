//! Memory of a device.

use super::{Device, StreamGuard};
use crate::error::Result;

/// An owned block of a device's memory; dropped, it returns to the device.
pub struct DeviceMemory {
    device: &'static dyn Device,
    at: u64,
    bytes: usize,
}

impl DeviceMemory {
    /// The block at `at`.
    ///
    /// # Safety
    /// The device has allocated it with this size, and it has no other owner.
    pub unsafe fn new(device: &'static dyn Device, at: u64, bytes: usize) -> DeviceMemory {
        DeviceMemory { device, at, bytes }
    }

    pub fn address(&self) -> u64 {
        self.at
    }

    pub fn device(&self) -> &'static dyn Device {
        self.device
    }

    /// Copies to the beginning of it from the host.
    ///
    /// # Safety
    /// `from` must be readable for `bytes`.
    pub unsafe fn upload(&self, from: *const u8, bytes: usize) -> Result<()> {
        let turn = self.device.turn_with_host()?;
        // SAFETY: the caller's promise.
        unsafe { self.upload_in(&turn, from, bytes) }
    }

    /// As [`upload`](DeviceMemory::upload), by who has the turn.
    ///
    /// # Safety
    /// As there.
    pub unsafe fn upload_in(&self, turn: &StreamGuard, from: *const u8, bytes: usize) -> Result<()> {
        debug_assert!(bytes <= self.bytes);
        // SAFETY: the caller's promise, and this memory's size.
        unsafe { self.device.upload(turn, self.at, from, bytes) }
    }

    /// Copies the first `bytes` to the host, and waits for it.
    ///
    /// # Safety
    /// `to` must be writable for `bytes`.
    pub unsafe fn download(&self, turn: &StreamGuard, to: *mut u8, bytes: usize) -> Result<()> {
        debug_assert!(bytes <= self.bytes);
        // SAFETY: the caller's promise, and this memory's size.
        unsafe { self.device.download(turn, to, self.at, bytes) }
    }

    /// Copies from another block of the same size, which is on another device, by who has the turn on both.
    pub fn copy_from(&self, turns: [&StreamGuard; 2], other: &DeviceMemory) -> Result<()> {
        // SAFETY: both have that many bytes.
        unsafe { self.device.copy_from(turns, self.at, other.device, other.at, self.bytes.min(other.bytes)) }
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        // SAFETY: the device has allocated it with this size, and its owner is gone.
        unsafe { self.device.free(self.at, self.bytes) }
    }
}
