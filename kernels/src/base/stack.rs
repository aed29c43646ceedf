//! How much of its stack a thread has left.

/// Bytes from here to the end of this thread's stack; more than any has where the system does not say.
pub fn left() -> usize {
    #[cfg(target_os = "linux")]
    {
        thread_local! {
            static END: usize = end().unwrap_or(0);
        }
        let here = 0_u8;
        (&raw const here).addr().saturating_sub(END.with(|end| *end))
    }
    #[cfg(not(target_os = "linux"))]
    usize::MAX
}

/// The lowest address of this thread's stack.
#[cfg(target_os = "linux")]
fn end() -> Option<usize> {
    let mut attributes = std::mem::MaybeUninit::<libc::pthread_attr_t>::uninit();
    let (mut end, mut size) = (std::ptr::null_mut(), 0);
    // SAFETY: the first call makes the attributes where it gives 0; they are given back after they were read.
    unsafe {
        if libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) != 0 {
            return None;
        }
        let found = libc::pthread_attr_getstack(attributes.as_ptr(), &mut end, &mut size) == 0;
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        found.then_some(end.addr())
    }
}
