//! Copies from the host through pinned memory, so that the host can go on. What is large travels by a stream of its own into
//! memory of its own on the device, and is moved to its place there when the device's work comes to it: so the next batch
//! is on its way while the device still computes with this one.

use super::retry::Tries;
use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys;
use std::ffi::c_void;

/// Bytes of a part of the pinned memory, and parts of a ring at most.
const PART: usize = 1 << 20;
const PARTS: usize = 8;
/// What is smaller, or larger, goes straight to its place, in order with the device's work.
const LARGE: usize = 256 << 10;
const LARGEST: usize = 256 << 20;

/// Taken in turn: the second array of a step does not wait until the first has been moved on.
const LANDINGS: usize = 2;

/// A device's memory for copies.
pub(super) struct Staging {
    /// For copies by the device's stream, and by that of the copies.
    main: Ring,
    copies: Ring,
    landings: [Option<Landing>; LANDINGS],
    next: usize,
    /// How often the host has waited, since the number was last taken.
    pub(super) waits: u64,
}

/// Pinned memory for the copies of one stream. Its parts are filled in turn.
struct Ring {
    stream: sys::CUstream,
    parts: Vec<PinnedBuffer>,
    /// The part that is being filled, and how many of its bytes are.
    now: usize,
    used: usize,
    /// Where pinned memory was refused, as some containers do.
    refused: Tries,
}

struct PinnedBuffer {
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
        let (main, copies) = (Ring::new(main), Ring::new(copies));
        Ok(Staging { main, copies, landings: [None, None], next: 0, waits: 0 })
    }

    /// Copies to the device. The bytes are read when it returns; they arrive in order with the work of the main stream.
    ///
    /// # Safety
    /// Both sides must be valid for `bytes`; the device's context is current.
    pub(super) unsafe fn upload(&mut self, to: u64, from: *const u8, bytes: usize) -> Result<(), DriverError> {
        let landing = if (LARGE..=LARGEST).contains(&bytes) { self.landing(bytes)? } else { None };
        // SAFETY: the caller's promise; the landing has as many bytes.
        unsafe {
            let Some((at, arrived, taken)) = landing else { return self.main.send(to, from, bytes, &mut self.waits) };
            wait(self.copies.stream, taken)?;
            self.copies.send(at, from, bytes, &mut self.waits)?;
            record(arrived, self.copies.stream)?;
            wait(self.main.stream, arrived)?;
            result::memcpy_dtod_async(to, at, bytes, self.main.stream)?;
            record(taken, self.main.stream)
        }
    }

    /// The next landing, with `bytes` at least: where it is, and its events. `None` if there is no memory for one.
    fn landing(&mut self, bytes: usize) -> Result<Option<(u64, sys::CUevent, sys::CUevent)>, DriverError> {
        self.next = (self.next + 1) % LANDINGS;
        let landing = &mut self.landings[self.next];
        if landing.as_ref().is_none_or(|l| l.bytes < bytes) {
            landing.take().into_iter().for_each(Landing::release);
            // SAFETY: written before it is read.
            let Ok(at) = (unsafe { result::malloc_sync(bytes) }) else { return Ok(None) };
            *landing = Some(Landing { at, bytes, arrived: event()?, taken: event()? });
        }
        Ok(landing.as_ref().map(|l| (l.at, l.arrived, l.taken)))
    }

    /// Gives the landings' memory back; true if there was some.
    pub(super) fn release(&mut self) -> bool {
        let all = self.landings.iter_mut().filter_map(Option::take);
        all.map(Landing::release).count() > 0
    }
}

impl Landing {
    fn release(self) {
        // What fails here has failed before, and was reported then. Freeing waits for the device's work.
        // SAFETY: it is not used from now on.
        unsafe {
            let _ = result::free_sync(self.at);
            let _ = result::event::destroy(self.arrived);
            let _ = result::event::destroy(self.taken);
        }
    }
}

impl Ring {
    fn new(stream: sys::CUstream) -> Ring {
        Ring { stream, parts: Vec::new(), now: 0, used: 0, refused: Tries::default() }
    }

    /// Copies part by part, by way of the pinned memory. Without any it goes from where it lies, and is waited for.
    ///
    /// # Safety
    /// Both sides must be valid for `bytes`.
    unsafe fn send(&mut self, to: u64, from: *const u8, bytes: usize, waits: &mut u64) -> Result<(), DriverError> {
        for begin in (0..bytes).step_by(PART) {
            let n = PART.min(bytes - begin);
            let Some((room, done)) = self.room(n, waits)? else {
                *waits += 1;
                // SAFETY: the caller's promise.
                unsafe {
                    let rest = std::slice::from_raw_parts(from.add(begin), bytes - begin);
                    result::memcpy_htod_async(to + begin as u64, rest, self.stream)?;
                    return result::stream::synchronize(self.stream);
                }
            };
            // SAFETY: the caller's promise; there is room for n bytes, which no copy reads any more.
            unsafe {
                std::ptr::copy_nonoverlapping(from.add(begin), room, n);
                result::memcpy_htod_async(to + begin as u64, std::slice::from_raw_parts(room, n), self.stream)?;
            }
            record(done, self.stream)?;
        }
        Ok(())
    }

    /// Room for so many bytes, and the event to record when they are on their way. `None` without pinned memory.
    fn room(&mut self, bytes: usize, waits: &mut u64) -> Result<Option<(*mut u8, sys::CUevent)>, DriverError> {
        if (self.parts.is_empty() || self.used + bytes > PART) && !self.turn(waits)? {
            return Ok(None);
        }
        let part = &self.parts[self.now];
        // SAFETY: it lies in the part.
        let room = unsafe { (part.memory as *mut u8).add(self.used) };
        self.used = (self.used + bytes).next_multiple_of(256);
        Ok(Some((room, part.done)))
    }

    /// Goes on to another part: a new one, or the next, once the device has read it. False if there is none at all.
    fn turn(&mut self, waits: &mut u64) -> Result<bool, DriverError> {
        if let Some(part) = self.more()? {
            self.parts.push(part);
            self.now = self.parts.len() - 1;
        } else if self.parts.is_empty() {
            return Ok(false);
        } else {
            self.now = (self.now + 1) % self.parts.len();
            self.used = PART; // nothing of it, should this fail
            let done = self.parts[self.now].done;
            // SAFETY: an event of ours.
            unsafe {
                if result::event::query(done).is_err() {
                    *waits += 1;
                    result::event::synchronize(done)?;
                }
            }
        }
        self.used = 0;
        Ok(true)
    }

    /// One more part, if there may be one.
    fn more(&mut self) -> Result<Option<PinnedBuffer>, DriverError> {
        if self.parts.len() == PARTS || !self.refused.again() {
            return Ok(None);
        }
        // SAFETY: pinned memory, kept to the process's end.
        let Ok(memory) = (unsafe { result::malloc_host(PART, 0) }) else { return Ok(None) };
        self.refused = Tries::default();
        Ok(Some(PinnedBuffer { memory, done: event()? }))
    }
}
