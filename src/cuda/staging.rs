//! Copies from the host through pinned memory, so that the host can go on. What is large travels by a stream of its own into
//! memory of its own on the device, and is moved to its place there when the device's work comes to it: so the next batch
//! is on its way while the device still computes with this one.

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys;
use std::ffi::c_void;

/// Bytes of a part of the pinned memory, and parts of a ring at most.
const PART: usize = 1 << 20;
const PARTS: usize = 8;
/// What is smaller, or larger, goes straight to its place, in order with the device's work.
const LARGE: usize = 256 << 10;
const LARGEST: usize = 256 << 20;

/// A device's memory for copies.
pub(super) struct Staging {
    /// For copies by the device's stream, and by that of the copies.
    main: Ring,
    copies: Ring,
    landing: Option<Landing>,
}

/// Pinned memory for the copies of one stream. Its parts are filled in turn.
struct Ring {
    stream: sys::CUstream,
    parts: Vec<Part>,
    /// The part that is being filled, and how many of its bytes are.
    now: usize,
    used: usize,
}

struct Part {
    memory: *mut c_void,
    /// When the last copy from it is done.
    done: sys::CUevent,
}

/// Where large copies arrive on the device.
struct Landing {
    at: u64,
    bytes: usize,
    /// When the last copy has arrived there, and when it has been moved on.
    arrived: sys::CUevent,
    taken: sys::CUevent,
}

fn event() -> Result<sys::CUevent, DriverError> {
    result::event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING)
}

fn wait(stream: sys::CUstream, event: sys::CUevent) -> Result<(), DriverError> {
    // SAFETY: streams and events are kept to the process's end, or to the landing's.
    unsafe { result::stream::wait_event(stream, event, sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT) }
}

fn record(event: sys::CUevent, stream: sys::CUstream) -> Result<(), DriverError> {
    // SAFETY: as above.
    unsafe { result::event::record(event, stream) }
}

impl Staging {
    /// For copies between the work of `main`, the context being current.
    pub(super) fn new(main: sys::CUstream) -> Result<Staging, DriverError> {
        let copies = result::stream::create(result::stream::StreamKind::NonBlocking)?;
        Ok(Staging { main: Ring::new(main), copies: Ring::new(copies), landing: None })
    }

    /// Copies to the device. The bytes are read when it returns; they arrive in order with the work of the main stream.
    ///
    /// # Safety
    /// Both sides must be valid for `bytes`; the device's context is current.
    pub(super) unsafe fn upload(&mut self, to: u64, from: *const u8, bytes: usize) -> Result<(), DriverError> {
        let landing = if (LARGE..=LARGEST).contains(&bytes) { self.landing(bytes)? } else { None };
        // SAFETY: the caller's promise; the landing has as many bytes.
        unsafe {
            let Some((at, arrived, taken)) = landing else { return self.main.send(to, from, bytes) };
            wait(self.copies.stream, taken)?;
            self.copies.send(at, from, bytes)?;
            record(arrived, self.copies.stream)?;
            wait(self.main.stream, arrived)?;
            result::memcpy_dtod_async(to, at, bytes, self.main.stream)?;
            record(taken, self.main.stream)
        }
    }

    /// A landing of `bytes` at least: where it is, and its events. `None` if there is no memory for one.
    fn landing(&mut self, bytes: usize) -> Result<Option<(u64, sys::CUevent, sys::CUevent)>, DriverError> {
        if self.landing.as_ref().is_none_or(|l| l.bytes < bytes) {
            self.release();
            // SAFETY: written before it is read.
            let Ok(at) = (unsafe { result::malloc_sync(bytes) }) else { return Ok(None) };
            self.landing = Some(Landing { at, bytes, arrived: event()?, taken: event()? });
        }
        Ok(self.landing.as_ref().map(|l| (l.at, l.arrived, l.taken)))
    }

    /// Gives the landing's memory back; true if there was some.
    pub(super) fn release(&mut self) -> bool {
        let Some(l) = self.landing.take() else { return false };
        // What fails here has failed before, and was reported then. Freeing waits for the device's work.
        // SAFETY: nobody uses it from now on.
        unsafe {
            let _ = result::free_sync(l.at);
            let _ = result::event::destroy(l.arrived);
            let _ = result::event::destroy(l.taken);
        }
        true
    }
}

impl Ring {
    fn new(stream: sys::CUstream) -> Ring {
        Ring { stream, parts: Vec::new(), now: 0, used: 0 }
    }

    /// Copies part by part, by way of the pinned memory.
    ///
    /// # Safety
    /// Both sides must be valid for `bytes`.
    unsafe fn send(&mut self, to: u64, from: *const u8, bytes: usize) -> Result<(), DriverError> {
        for begin in (0..bytes).step_by(PART) {
            let n = PART.min(bytes - begin);
            let (room, done) = self.room(n)?;
            // SAFETY: the caller's promise; there is room for n bytes, which no copy reads any more.
            unsafe {
                std::ptr::copy_nonoverlapping(from.add(begin), room, n);
                result::memcpy_htod_async(to + begin as u64, std::slice::from_raw_parts(room, n), self.stream)?;
            }
            record(done, self.stream)?;
        }
        Ok(())
    }

    /// Room for so many bytes, and the event to record when they are on their way.
    fn room(&mut self, bytes: usize) -> Result<(*mut u8, sys::CUevent), DriverError> {
        if self.parts.is_empty() || self.used + bytes > PART {
            self.turn()?;
        }
        let part = &self.parts[self.now];
        // SAFETY: it lies in the part.
        let room = unsafe { (part.memory as *mut u8).add(self.used) };
        self.used = (self.used + bytes).next_multiple_of(256);
        Ok((room, part.done))
    }

    /// Goes on to the next part, once the device has read it.
    fn turn(&mut self) -> Result<(), DriverError> {
        if self.parts.len() < PARTS {
            // SAFETY: pinned memory, kept to the process's end.
            let memory = unsafe { result::malloc_host(PART, 0)? };
            self.parts.push(Part { memory, done: event()? });
            self.now = self.parts.len() - 1;
        } else {
            self.now = (self.now + 1) % PARTS;
            self.used = PART; // nothing of it, should this fail
            // SAFETY: an event of ours.
            unsafe { result::event::synchronize(self.parts[self.now].done)? };
        }
        self.used = 0;
        Ok(())
    }
}
