//! Threads that Python ends. One that wants the GIL back from a finishing interpreter is ended by `pthread_exit` (before
//! Python 3.14), and the C library of Linux unwinds its stack then: frames of Rust are in the way, and the process aborts. But
//! first it calls what the thread has registered by `pthread_cleanup_push`, as far as the frame with the registration has been
//! left. A registration that is not on the stack counts as left from the beginning. So each thread that comes to the engine
//! has one, which does not return: the thread keeps its stack, and takes no part in anything any more.

use super::finish;
use nnrs_kernels::fork;
use pyo3::ffi;
use std::ffi::{c_int, c_void};
#[cfg(target_os = "linux")]
use std::mem::transmute;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::time::Duration;

type CleanupCall = extern "C" fn(*mut c_void);

/// The C library's `struct _pthread_cleanup_buffer`.
#[repr(C)]
struct CleanupEntry {
    call: CleanupCall,
    with: *mut c_void,
    kind: c_int,
    before: *mut CleanupEntry,
}

type Push = unsafe extern "C" fn(*mut CleanupEntry, CleanupCall, *mut c_void);
type Pop = unsafe extern "C" fn(*mut CleanupEntry, c_int);

/// What the macros `pthread_cleanup_push` and `pthread_cleanup_pop` stand for.
#[derive(Clone, Copy)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
struct CleanupFunctions {
    push: Push,
    pop: Pop,
}

static LIBRARY: OnceLock<CleanupFunctions> = OnceLock::new();

/// Looks for the functions. Where they are missing, threads are ended without unwinding.
pub(super) fn register() {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: both names end with a zero byte.
        let [push, pop] = [c"_pthread_cleanup_push", c"_pthread_cleanup_pop"]
            .map(|name| unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) });
        if !push.is_null() && !pop.is_null() {
            // SAFETY: they have had these arguments since there are threads in the C library.
            let (push, pop) = unsafe { (transmute::<*mut c_void, Push>(push), transmute::<*mut c_void, Pop>(pop)) };
            let _ = LIBRARY.set(CleanupFunctions { push, pop });
        }
    }
}

/// A thread's registration.
struct Mark(*mut CleanupEntry);

impl Mark {
    fn new() -> Mark {
        let Some(library) = LIBRARY.get() else { return Mark(null_mut()) };
        let entry = Box::into_raw(Box::new(CleanupEntry { call: left, with: null_mut(), kind: 0, before: null_mut() }));
        // SAFETY: the entry stays where it is until it is taken back.
        unsafe { (library.push)(entry, left, null_mut()) };
        Mark(entry)
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        if let Some(library) = LIBRARY.get().filter(|_| !self.0.is_null()) {
            // SAFETY: the entry of this thread, made by a Box; what was registered later is done.
            unsafe {
                (library.pop)(self.0, 0);
                drop(Box::from_raw(self.0));
            }
        }
    }
}

thread_local! {
    static MARK: Mark = Mark::new();
}

/// To be called before Python code is, by frames that the thread's end must not unwind.
#[inline]
pub(crate) fn mark() {
    let _ = MARK.try_with(|_| ());
}

/// `pthread_exit` was called.
extern "C" fn left(_: *mut c_void) {
    // SAFETY: may be asked by any thread at any time.
    if finish::is_over() || unsafe { ffi::Py_IsInitialized() } == 0 {
        for_ever();
    }
}

/// Does nothing any more.
pub(super) fn for_ever() -> ! {
    fork::resting(|| {
        loop {
            std::thread::sleep(Duration::from_secs(3600));
        }
    })
}
