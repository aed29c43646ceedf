//! What the driver's errors are to us: which kind, in which words.

use crate::error::{Error, ErrorKind};
use cudarc::driver::result::DriverError;
use cudarc::driver::sys::CUresult::{self, *};

/// The device, or the host for its sake, has no memory left.
pub(super) fn is_shortage(e: DriverError) -> bool {
    e.0 == CUresult::CUDA_ERROR_OUT_OF_MEMORY
}

/// What the driver calls an error.
pub(super) fn text(e: DriverError) -> String {
    let text = |t: Result<&std::ffi::CStr, DriverError>| t.map_or("?".into(), |t| t.to_string_lossy().into_owned());
    format!("{} ({})", text(e.error_string()), text(e.error_name()))
}

fn kind(e: CUresult) -> ErrorKind {
    match e {
        CUDA_ERROR_OUT_OF_MEMORY => ErrorKind::OutOfMemory,
        // It is not there, belongs to another process, or cannot do what is wanted.
        CUDA_ERROR_STUB_LIBRARY
        | CUDA_ERROR_NO_DEVICE
        | CUDA_ERROR_INVALID_DEVICE
        | CUDA_ERROR_DEVICE_UNAVAILABLE
        | CUDA_ERROR_SYSTEM_DRIVER_MISMATCH
        | CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE
        | CUDA_ERROR_NO_BINARY_FOR_GPU
        | CUDA_ERROR_INVALID_PTX
        | CUDA_ERROR_UNSUPPORTED_PTX_VERSION
        | CUDA_ERROR_JIT_COMPILER_NOT_FOUND
        | CUDA_ERROR_NOT_SUPPORTED => ErrorKind::Unsupported,
        _ => ErrorKind::Device,
    }
}

/// An error of the driver. After a fault on the device all later calls fail with it.
pub(super) fn wrong(what: &str, e: DriverError) -> Error {
    let error = Error::new(kind(e.0), format!("CUDA: {what}: {}", text(e)));
    match e.0 {
        CUDA_ERROR_STUB_LIBRARY => error.hint(
            "the libcuda.so that was found is the toolkit's stub, for linking alone: take its folder off LD_LIBRARY_PATH",
        ),
        CUDA_ERROR_ILLEGAL_ADDRESS
        | CUDA_ERROR_ILLEGAL_INSTRUCTION
        | CUDA_ERROR_INVALID_ADDRESS_SPACE
        | CUDA_ERROR_INVALID_PC
        | CUDA_ERROR_MISALIGNED_ADDRESS
        | CUDA_ERROR_HARDWARE_STACK_ERROR
        | CUDA_ERROR_ECC_UNCORRECTABLE
        | CUDA_ERROR_ASSERT
        | CUDA_ERROR_LAUNCH_FAILED
        | CUDA_ERROR_LAUNCH_TIMEOUT => error.hint(
            "a kernel has failed, this one or one before; the GPU is lost to this process: start it anew",
        ),
        _ => error,
    }
}

#[cfg(feature = "emulate")]
mod tests {
    use super::*;

    unit_test!(a_fault_is_not_something_that_is_missing);
    fn a_fault_is_not_something_that_is_missing() {
        assert_eq!(kind(CUDA_ERROR_ILLEGAL_ADDRESS), ErrorKind::Device);
        assert_eq!(kind(CUDA_ERROR_LAUNCH_FAILED), ErrorKind::Device);
        assert_eq!(kind(CUDA_ERROR_NO_BINARY_FOR_GPU), ErrorKind::Unsupported);
        assert_eq!(kind(CUDA_ERROR_OUT_OF_MEMORY), ErrorKind::OutOfMemory);
    }
}
