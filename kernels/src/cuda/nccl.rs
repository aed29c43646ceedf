//! Collectives between GPUs by NCCL. Numbers and signatures are those of its header, nccl.h.

use super::driver_errors::wrong;
use super::group::{DeviceCollective, DeviceGroup, DeviceMove, DevicePieces, DeviceSum, GROUP_ID, GroupPlace};
use super::library::{Name, functions};
use crate::device::capture::is_capturing;
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};
use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys;
use std::collections::VecDeque;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

type CommHandle = *mut c_void;
type NcclStatus = c_int;
type Address = *const c_void;
type StreamHandle = *mut c_void;

/// `ncclUniqueId`, which goes by value.
#[repr(C)]
#[derive(Clone, Copy)]
struct UniqueId([u8; GROUP_ID]);

functions! {
    /// What is used of NCCL.
    Functions {
        version: "ncclGetVersion" (*mut c_int) -> NcclStatus;
        unique_id: "ncclGetUniqueId" (*mut UniqueId) -> NcclStatus;
        join: "ncclCommInitRank" (*mut CommHandle, c_int, UniqueId, c_int) -> NcclStatus;
        destroy: "ncclCommDestroy" (CommHandle) -> NcclStatus;
        abort: "ncclCommAbort" (CommHandle) -> NcclStatus;
        async_error: "ncclCommGetAsyncError" (CommHandle, *mut NcclStatus) -> NcclStatus;
        text: "ncclGetErrorString" (NcclStatus) -> *const c_char;
        all_reduce: "ncclAllReduce" (Address, *mut c_void, usize, c_int, c_int, CommHandle, StreamHandle) -> NcclStatus;
        reduce: "ncclReduce" (Address, *mut c_void, usize, c_int, c_int, c_int, CommHandle, StreamHandle) -> NcclStatus;
        broadcast: "ncclBroadcast" (Address, *mut c_void, usize, c_int, c_int, CommHandle, StreamHandle) -> NcclStatus;
        all_gather: "ncclAllGather" (Address, *mut c_void, usize, c_int, CommHandle, StreamHandle) -> NcclStatus;
        reduce_scatter: "ncclReduceScatter"
            (Address, *mut c_void, usize, c_int, c_int, CommHandle, StreamHandle) -> NcclStatus;
        send: "ncclSend" (Address, usize, c_int, c_int, CommHandle, StreamHandle) -> NcclStatus;
        receive: "ncclRecv" (*mut c_void, usize, c_int, c_int, CommHandle, StreamHandle) -> NcclStatus;
        begin: "ncclGroupStart" () -> NcclStatus;
        end: "ncclGroupEnd" () -> NcclStatus;
    }
}

/// The first with means and bfloat16: 2.10, as `ncclGetVersion` says it.
const OLDEST: c_int = 21000;
const UNHANDLED_CUDA_ERROR: NcclStatus = 1;
const INVALID_USAGE: NcclStatus = 5;
const IN_PROGRESS: NcclStatus = 7;
/// How long who ends a group waits for a call that is not back.
const GRACE: Duration = Duration::from_millis(200);

/// `ncclDataType_t`. What NCCL has no type for is moved as another one of its size; it is never summed.
fn data_type(dtype: DType) -> c_int {
    match dtype {
        DType::I8 => 0,
        DType::U8 | DType::Bool => 1,
        DType::I32 => 2,
        DType::U32 => 3,
        DType::I64 => 4,
        DType::U64 => 5,
        DType::F16 | DType::I16 | DType::U16 => 6,
        DType::F32 => 7,
        DType::F64 => 8,
        DType::BF16 => 9,
    }
}

/// `ncclRedOp_t`.
fn operation(how: DeviceSum) -> c_int {
    match how {
        DeviceSum::Sum => 0,
        DeviceSum::Any => 2, // the largest of bytes that are 0 or 1
        DeviceSum::Mean => 4,
    }
}

fn functions() -> Result<&'static Functions> {
    static FOUND: OnceLock<Result<Functions, String>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let library = Name::Nccl.open()?;
        let f = Functions::load(library)?;
        let mut version = 0;
        // SAFETY: a valid place for the number.
        match unsafe { (f.version)(&mut version) } {
            0 if version >= OLDEST => Ok(f),
            _ => Err(format!("{} is of NCCL before 2.10 (its version is {version})", library.path)),
        }
    });
    found.as_ref().map_err(|why| Error::unsupported(why.clone()))
}

/// Why NCCL cannot be used, if so.
pub(super) fn why_not() -> Option<String> {
    functions().err().map(|e| e.to_string())
}

impl Functions {
    fn done(&self, what: &str, status: NcclStatus) -> Result<()> {
        if status == 0 || status == IN_PROGRESS {
            return Ok(());
        }
        // SAFETY: a static text for each number.
        let text = unsafe { CStr::from_ptr((self.text)(status)) }.to_string_lossy();
        let error = Error::new(ErrorKind::Device, format!("NCCL: {what}: {text}"));
        Err(match status {
            INVALID_USAGE => {
                error.hint("each rank needs a GPU of its own: a context with device_id=str(comm.local_rank)")
            }
            UNHANDLED_CUDA_ERROR => error.hint("NCCL_DEBUG=WARN in the environment says more"),
            _ => error,
        })
    }
}

/// A name for a new group.
pub(super) fn unique_id() -> Result<Vec<u8>> {
    let (f, mut id) = (functions()?, UniqueId([0; GROUP_ID]));
    // SAFETY: a valid place for the name.
    f.done("ncclGetUniqueId", unsafe { (f.unique_id)(&mut id) })?;
    Ok(id.0.to_vec())
}

/// A device in a communicator of NCCL's.
pub(super) struct NcclMember {
    f: &'static Functions,
    handle: CommHandle,
    rank: usize,
    size: usize,
    stream: sys::CUstream,
    /// Held while NCCL is called: a communicator is for one thread at a time.
    calling: Mutex<()>,
    /// NCCL has let go of it.
    has_ended: AtomicBool,
    events: Mutex<CallEvents>,
}

// SAFETY: the handles may be used by any thread, one at a time, of which the lock takes care; but for `ncclCommAbort`, which may
// be called beside another call.
unsafe impl Send for NcclMember {}
// SAFETY: as above.
unsafe impl Sync for NcclMember {}

/// Marks on the stream behind the collectives that may not be over, and marks to be used again.
#[derive(Default)]
struct CallEvents {
    waiting: VecDeque<sys::CUevent>,
    free: Vec<sys::CUevent>,
}

/// Joins a group with the device whose context is current, to work on its `stream`.
pub(super) fn join(stream: sys::CUstream, place: &GroupPlace) -> Result<Arc<dyn DeviceGroup>> {
    let (f, mut handle, mut id) = (functions()?, std::ptr::null_mut(), UniqueId([0; GROUP_ID]));
    id.0.copy_from_slice(&place.id);
    let (rank, size) = (place.rank, place.size);
    // SAFETY: a valid place for the handle.
    let joined = unsafe { (f.join)(&mut handle, size as c_int, id, rank as c_int) };
    f.done("ncclCommInitRank", joined)?;
    let (calling, has_ended, events) = Default::default();
    Ok(Arc::new(NcclMember { f, handle, rank, size, stream, calling, has_ended, events }))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

impl NcclMember {
    /// # Safety
    /// As of [`DeviceGroup::perform`].
    unsafe fn call(&self, call: &DeviceCollective, from: u64, to: u64) -> NcclStatus {
        let (x, y, n) = (from as Address, to as *mut c_void, call.count);
        let (f, kind, comm, stream) = (self.f, data_type(call.dtype), self.handle, self.stream as StreamHandle);
        // SAFETY: the caller's promise; the stream is the device's.
        unsafe {
            match &call.what {
                DeviceMove::AllReduce(how) => (f.all_reduce)(x, y, n, kind, operation(*how), comm, stream),
                DeviceMove::Reduce(how, to) => (f.reduce)(x, y, n, kind, operation(*how), *to as c_int, comm, stream),
                DeviceMove::ReduceScatter(how) => (f.reduce_scatter)(x, y, n, kind, operation(*how), comm, stream),
                DeviceMove::Broadcast(root) => (f.broadcast)(x, y, n, kind, *root as c_int, comm, stream),
                DeviceMove::AllGather => (f.all_gather)(x, y, n, kind, comm, stream),
                DeviceMove::Pieces(pieces) => self.pieces(pieces, call.dtype, from, to),
            }
        }
    }

    /// # Safety
    /// As of [`DeviceGroup::perform`].
    unsafe fn pieces(&self, pieces: &DevicePieces, dtype: DType, from: u64, to: u64) -> NcclStatus {
        let (f, kind, comm, stream) = (self.f, data_type(dtype), self.handle, self.stream as StreamHandle);
        let at = |base: u64, element: usize| base + (element * dtype.size()) as u64;
        // SAFETY: the caller's promise. What was begun is ended, whatever fails between.
        unsafe {
            let mut status = (f.begin)();
            for (rank, (send, receive)) in pieces.send.iter().zip(&pieces.receive).enumerate() {
                let peer = rank as c_int;
                if status == 0 && !send.is_empty() {
                    status = (f.send)(at(from, send.start) as Address, send.len(), kind, peer, comm, stream);
                }
                if status == 0 && !receive.is_empty() {
                    status = (f.receive)(at(to, receive.start) as *mut c_void, receive.len(), kind, peer, comm, stream);
                }
            }
            let ended = (f.end)();
            if status == 0 { ended } else { status }
        }
    }

    /// Marks on the stream where the last call is over.
    fn mark(&self) -> Result<(), DriverError> {
        let mut events = lock(&self.events);
        let event = match events.free.pop() {
            Some(event) => event,
            None => result::event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING)?,
        };
        events.waiting.push_back(event);
        // SAFETY: events are kept as long as this, and the stream to the process's end.
        unsafe { result::event::record(event, self.stream) }
    }

    /// True if it is the caller who lets go of the communicator.
    fn end(&self) -> bool {
        !self.has_ended.swap(true, SeqCst)
    }
}

impl DeviceGroup for NcclMember {
    unsafe fn perform(self: Arc<Self>, call: &DeviceCollective, from: u64, to: u64) -> Result<()> {
        let _calling = lock(&self.calling);
        if self.has_ended.load(SeqCst) {
            return Err(Error::new(ErrorKind::Device, "NCCL: the group has ended"));
        }
        // SAFETY: the caller's promise.
        let status = unsafe { self.call(call, from, to) };
        self.f.done(&format!("{call}, on rank {} of {}", self.rank, self.size), status)?;
        if is_capturing() {
            // What was captured may be replayed for as long as the process lives.
            std::mem::forget(self.clone());
            return Ok(());
        }
        self.mark().map_err(|e| wrong("cuEventRecord", e))
    }

    fn pending(&self) -> Result<usize> {
        let mut events = lock(&self.events);
        while let Some(&first) = events.waiting.front() {
            // SAFETY: an event that was recorded.
            match unsafe { result::event::query(first) } {
                Err(e) if e.0 == sys::CUresult::CUDA_ERROR_NOT_READY => break,
                over => over.map_err(|e| wrong("cuEventQuery", e))?,
            }
            events.waiting.pop_front();
            events.free.push(first);
        }
        Ok(events.waiting.len())
    }

    fn check(&self) -> Result<()> {
        if self.has_ended.load(SeqCst) {
            return Ok(());
        }
        let mut found = 0;
        // SAFETY: the communicator is there: who ends it asks no more.
        let status = unsafe { (self.f.async_error)(self.handle, &mut found) };
        self.f.done("ncclCommGetAsyncError", status)?;
        self.f.done("an error on the way", found)
    }

    fn leave(&self) {
        if self.end() {
            // `ncclCommDestroy` waits for the other members' on the same machine, which may come to it at any time, or never;
            // where nothing is on its way this one frees the same.
            // SAFETY: the communicator is there, and is not used from now on.
            let _ = unsafe { if self.size == 1 { (self.f.destroy)(self.handle) } else { (self.f.abort)(self.handle) } };
        }
    }

    fn abort(&self) {
        if !self.end() {
            return;
        }
        // A call that is not back may wait for the others for ever: this is what brings it back.
        let begin = Instant::now();
        let mut calling = self.calling.try_lock();
        while calling.is_err() && begin.elapsed() < GRACE {
            std::thread::sleep(Duration::from_millis(1));
            calling = self.calling.try_lock();
        }
        // SAFETY: the communicator is there, and no new call begins.
        let _ = unsafe { (self.f.abort)(self.handle) };
    }
}

impl Drop for NcclMember {
    fn drop(&mut self) {
        let events = std::mem::take(&mut *lock(&self.events));
        for event in events.waiting.into_iter().chain(events.free) {
            // SAFETY: it is not used from now on; the driver keeps what a stream still needs of it.
            let _ = unsafe { result::event::destroy(event) };
        }
    }
}

#[cfg(feature = "emulate")]
mod tests {
    use super::*;

    unit_test!(the_library_has_what_is_used);
    /// Where NNRS_CUDA_LIBRARY_PATH has the library, it has all that is used of it, and makes names. (What follows them needs
    /// a GPU.)
    fn the_library_has_what_is_used() {
        if std::env::var_os("NNRS_CUDA_LIBRARY_PATH").is_none() || Name::Nccl.open().is_err() {
            return;
        }
        let f = functions().unwrap();
        assert!(f.done("a call", 4).unwrap_err().to_string().starts_with("NCCL: a call: invalid argument"));
        assert!(f.done("a call", INVALID_USAGE).unwrap_err().to_string().contains("device_id=str(comm.local_rank)"));
    }

    unit_test!(a_name_is_as_long_as_in_the_header);
    fn a_name_is_as_long_as_in_the_header() {
        assert_eq!(size_of::<UniqueId>(), 128);
    }
}
