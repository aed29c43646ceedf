//! Signal processing: resampling, Fourier transforms.

mod fft;
mod interpolate;
mod onnx_resize;
pub(super) mod resampled;
mod stft;

use super::Def;
pub use fft::*;
pub use interpolate::*;
pub use onnx_resize::*;
pub use stft::{ISTFT, STFT, istft, stft};

/// The functions of this group.
pub(super) const FUNCTIONS: &[&Def] = &[Interpolate::DEF, ONNXResize::DEF, FFT::DEF, IFFT::DEF, STFT::DEF, ISTFT::DEF];
