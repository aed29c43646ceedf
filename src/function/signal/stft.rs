//! `stft`, `istft`: short-time Fourier transforms of real signals. Each is linear; the transpose of one is the other with the other's
//! weights.

use crate::function;
use crate::function::{Function, Grad, Resolved};
use crate::graph::Variable;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::frames::{Analysis, FrameWindow, Frames, Synthesis};
use nnrs_kernels::shape::Shape;
use smallvec::smallvec;

/// Sizes at most: sums of a few stay far from overflow.
const MOST: i64 = 1 << 40;
/// Sums of squares of windows at least, for the inverse to divide by.
const LEAST: f64 = 1e-11;

function! {
    /// Short-time Fourier transform: the spectra of frames of fft_size samples, stride apart, each times a window.
    STFT stft in Signal, any_device
    inputs { x: "Signals of shape (.., samples)." }
    args {
        window_size: i64, "Samples of the window, fft_size at most; it is in the middle of the frame, with zeros around.";
        stride: i64, "Samples from the beginning of a frame to that of the next.";
        fft_size: i64, "Samples of a frame.";
        window_type: String = "hanning".to_string(), "'hanning', 'hamming' or 'rectangular'.";
        center: bool = true, "Whether fft_size // 2 samples are put before and after the signal, so that frames are around their samples.";
        pad_mode: String = "reflect".to_string(), "What these are: 'reflect', the signal mirrored, or 'constant', zeros.";
        as_istft_backward: bool = false, "Computes the gradient of `istft` instead, with x the gradient of its result."
    }
    outputs {
        y_r: "Real parts, of shape (.., fft_size // 2 + 1, frames).",
        y_i: "Imaginary parts, of y_r's shape.",
    }
}

function! {
    /// Inverse short-time Fourier transform: frames from their spectra, times the window, added up, and divided by the sum of the
    /// squares of the windows.
    ISTFT istft in Signal, any_device
    inputs {
        y_r: "Real parts of spectra, of shape (.., fft_size // 2 + 1, frames).",
        y_i: "Imaginary parts, of y_r's shape.",
    }
    args {
        window_size: i64, "As of `stft`.";
        stride: i64, "As of `stft`.";
        fft_size: i64, "As of `stft`.";
        window_type: String = "hanning".to_string(), "As of `stft`.";
        center: bool = true, "Whether fft_size // 2 samples are cut off both ends.";
        pad_mode: String = "reflect".to_string(), "Used with as_stft_backward only: as of `stft`.";
        as_stft_backward: bool = false, "Computes the gradient of `stft` instead, with y_r and y_i the gradients of its results."
    }
    outputs { x: "Signals of shape (.., stride (frames - 1) + fft_size), less what is cut off." }
}

function! {
    /// The gradient of `stft`, for any number of samples.
    StftBackward stft_backward in Special, any_device
    inputs { y_r: "Gradient of the real parts.", y_i: "Gradient of the imaginary parts." }
    args {
        window_size: i64, "As of `stft`.";
        stride: i64, "As of `stft`.";
        fft_size: i64, "As of `stft`.";
        window_type: String, "As of `stft`.";
        center: bool, "As of `stft`.";
        pad_mode: String, "As of `stft`.";
        as_istft_backward: bool, "As of `stft`.";
        samples: i64, "Samples of the signals."
    }
    outputs { x: "Gradient of the signals." }
}

/// The arguments of both.
struct Spec<'a> {
    window_size: i64,
    stride: i64,
    fft_size: i64,
    window_type: &'a str,
    center: bool,
    pad_mode: &'a str,
    inverse: bool,
}

macro_rules! spec {
    ($f:expr, $inverse:expr) => {
        Spec {
            window_size: $f.window_size,
            stride: $f.stride,
            fft_size: $f.fft_size,
            window_type: &$f.window_type,
            center: $f.center,
            pad_mode: &$f.pad_mode,
            inverse: $inverse,
        }
    };
}

/// The function of that name with the same arguments, and the further ones given.
macro_rules! alike {
    ($name:ident, $f:expr $(, $arg:ident: $value:expr)*) => {
        $name {
            window_size: $f.window_size,
            stride: $f.stride,
            fft_size: $f.fft_size,
            window_type: $f.window_type.clone(),
            center: $f.center,
            pad_mode: $f.pad_mode.clone(),
            $($arg: $value,)*
        }
    };
}

impl Spec<'_> {
    fn window(&self) -> Result<(FrameWindow, usize)> {
        let window = match self.window_type {
            "hanning" => FrameWindow::Hanning,
            "hamming" => FrameWindow::Hamming,
            "rectangular" => FrameWindow::Rectangular,
            other => {
                let expected = "'hanning', 'hamming' or 'rectangular'";
                return Err(Error::arg("window_type", expected).actual(format!("'{other}'")));
            }
        };
        if !(1..=self.fft_size).contains(&self.window_size) {
            let expected = format!("a number from 1 to fft_size, {}", self.fft_size);
            return Err(Error::arg("window_size", expected).actual(self.window_size));
        }
        Ok((window, self.window_size as usize))
    }

    /// All sizes but the number of frames.
    fn frames(&self, batch: usize, samples: usize) -> Result<Frames> {
        for (name, given) in [("fft_size", self.fft_size), ("stride", self.stride)] {
            if !(1..=MOST).contains(&given) {
                return Err(Error::arg(name, format!("a number from 1 to {MOST}")).actual(given));
            }
        }
        if !["reflect", "constant"].contains(&self.pad_mode) {
            return Err(Error::arg("pad_mode", "'reflect' or 'constant'").actual(format!("'{}'", self.pad_mode)));
        }
        let (size, stride) = (self.fft_size as usize, self.stride as usize);
        let border = if self.center { size / 2 } else { 0 };
        let reflect = self.pad_mode == "reflect" && !self.inverse && border > 0;
        let frames = Frames::new(batch, samples, size, stride, self.window()?);
        Ok(Frames { border, reflect, inverse: self.inverse, ..frames })
    }

    /// Of signals of shape `x`.
    fn analysis(&self, x: &Shape) -> Result<Frames> {
        let Some((&samples, lead)) = x.split_last() else {
            return Err(Error::shape("x", "shape (.., samples)").actual(x));
        };
        let s = self.frames(lead.iter().product(), samples)?;
        if samples == 0 || samples > MOST as usize || s.padded() < s.size {
            let needed = s.size.saturating_sub(2 * s.border).max(1);
            return Err(Error::shape("x", format!("{needed} samples at least for a frame of {}", s.size)).actual(x));
        }
        checked(Frames { frames: (s.padded() - s.size) / s.stride + 1, ..s })
    }

    /// To signals of `samples` samples, or of as many as the frames are long.
    fn synthesis(&self, re: &Shape, im: &Shape, samples: Option<usize>) -> Result<Frames> {
        let s = self.frames(1, 0)?;
        let lead = re.ndim().saturating_sub(2);
        if re.ndim() < 2 || re[lead] != s.bins() || re[lead + 1] == 0 {
            return Err(Error::shape("y_r", format!("shape (.., {}, frames)", s.bins())).actual(re));
        }
        if re != im {
            return Err(Error::shape("y_i", format!("shape {re}, as y_r")).actual(im));
        }
        let frames = re[lead + 1];
        let long = (frames as u128 - 1) * s.stride as u128 + s.size as u128;
        let all = long.saturating_sub(2 * s.border as u128);
        let left = samples.map_or(all, |n| n as u128);
        let fits = left + 2 * s.border as u128 >= long;
        if !fits || left == 0 || left > MOST as u128 {
            let expected = format!("frames for 1 to {MOST} samples");
            return Err(Error::shape("y_r", expected).actual(format!("{re}, which is {left}")));
        }
        checked(Frames { batch: re.size_to(lead), samples: left as usize, frames, ..s })
    }

    /// The shape of spectra.
    fn spectra(x: &Shape, s: &Frames) -> Result<Shape> {
        x[..x.ndim() - 1].iter().copied().chain([s.bins(), s.frames]).collect::<Shape>().checked()
    }
}

/// The inverse divides by the windows' squares, which must not be 0 anywhere.
fn checked(s: Frames) -> Result<Frames> {
    let apart = s.frames > 1 && s.stride > s.width; // found without a walk over the samples, which may be very many
    if s.inverse && (apart || s.least_overlap() < LEAST) {
        let e = Error::arg("stride", "windows that overlap at each sample, so that signals can be made of frames");
        let hint = "a smaller stride, or center=True, where the ends, at which windows are 0, are cut off";
        return Err(e.actual(format!("{} with a window of {}", s.stride, s.width)).hint(hint));
    }
    Ok(s)
}

impl Function for STFT {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let s = spec!(self, self.as_istft_backward).analysis(&x[0])?;
        let y = Spec::spectra(&x[0], &s)?;
        Ok(Resolved::new(smallvec![y.clone(), y], Analysis(s)))
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let samples = g.call::<Analysis>().0.samples as i64;
        let args = alike!(StftBackward, self, as_istft_backward: self.as_istft_backward, samples: samples);
        Ok(vec![Some(stft_backward(&g.gy[0], &g.gy[1], args)?)])
    }
}

fn signals(re: &Shape, s: &Frames) -> Result<Shape> {
    re[..re.ndim() - 2].iter().copied().chain([s.samples]).collect::<Shape>().checked()
}

impl Function for ISTFT {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let s = spec!(self, !self.as_stft_backward).synthesis(&x[0], &x[1], None)?;
        Ok(Resolved::one(signals(&x[0], &s)?, Synthesis(s)))
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let y = stft(&g.gy[0], alike!(STFT, self, as_istft_backward: !self.as_stft_backward))?;
        Ok(y.into_iter().map(Some).collect())
    }
}

impl Function for StftBackward {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let s = spec!(self, self.as_istft_backward).synthesis(&x[0], &x[1], Some(self.samples.max(1) as usize))?;
        Ok(Resolved::one(signals(&x[0], &s)?, Synthesis(s)))
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let y = stft(&g.gy[0], alike!(STFT, self, as_istft_backward: self.as_istft_backward))?;
        Ok(y.into_iter().map(Some).collect())
    }
}
