//! Convolutions by cuDNN. Only its deterministic algorithms are used, and TF32 only where it was asked for.

use super::capture::is_capturing;
use super::library::{Name, functions};
use super::vendor::{ConvolutionPass, Prepared, Scales, VendorConvolution};
use crate::dtype::DType;
use crate::error::{Error, Result};
use smallvec::SmallVec;
use std::ffi::{CStr, c_char, c_void};
use std::sync::{Arc, Mutex};

type CudnnHandle = *mut c_void;
type CudnnStatus = i32;
type FindAlgorithms = unsafe extern "C" fn(
    CudnnHandle,
    CudnnHandle,
    CudnnHandle,
    CudnnHandle,
    CudnnHandle,
    i32,
    *mut i32,
    *mut AlgorithmPerformance,
) -> CudnnStatus;
type WorkspaceSize = unsafe extern "C" fn(
    CudnnHandle,
    CudnnHandle,
    CudnnHandle,
    CudnnHandle,
    CudnnHandle,
    i32,
    *mut usize,
) -> CudnnStatus;
type RunConvolution = unsafe extern "C" fn(
    CudnnHandle,
    *const c_void,
    CudnnHandle,
    *const c_void,
    CudnnHandle,
    *const c_void,
    CudnnHandle,
    i32,
    *mut c_void,
    usize,
    *const c_void,
    CudnnHandle,
    *mut c_void,
) -> CudnnStatus;

functions! {
    /// What is used of cuDNN, as its manual has it.
    Functions {
        create: "cudnnCreate" (*mut CudnnHandle) -> CudnnStatus;
        set_stream: "cudnnSetStream" (CudnnHandle, *mut c_void) -> CudnnStatus;
        error: "cudnnGetErrorString" (CudnnStatus) -> *const c_char;
        tensor_create: "cudnnCreateTensorDescriptor" (*mut CudnnHandle) -> CudnnStatus;
        tensor_set: "cudnnSetTensorNdDescriptor" (CudnnHandle, i32, i32, *const i32, *const i32) -> CudnnStatus;
        tensor_destroy: "cudnnDestroyTensorDescriptor" (CudnnHandle) -> CudnnStatus;
        filter_create: "cudnnCreateFilterDescriptor" (*mut CudnnHandle) -> CudnnStatus;
        filter_set: "cudnnSetFilterNdDescriptor" (CudnnHandle, i32, i32, i32, *const i32) -> CudnnStatus;
        filter_destroy: "cudnnDestroyFilterDescriptor" (CudnnHandle) -> CudnnStatus;
        conv_create: "cudnnCreateConvolutionDescriptor" (*mut CudnnHandle) -> CudnnStatus;
        conv_set: "cudnnSetConvolutionNdDescriptor"
            (CudnnHandle, i32, *const i32, *const i32, *const i32, i32, i32) -> CudnnStatus;
        conv_groups: "cudnnSetConvolutionGroupCount" (CudnnHandle, i32) -> CudnnStatus;
        conv_math: "cudnnSetConvolutionMathType" (CudnnHandle, i32) -> CudnnStatus;
        conv_destroy: "cudnnDestroyConvolutionDescriptor" (CudnnHandle) -> CudnnStatus;
        forward_choose: "cudnnGetConvolutionForwardAlgorithm_v7"
            (CudnnHandle, CudnnHandle, CudnnHandle, CudnnHandle, CudnnHandle, i32, *mut i32, *mut AlgorithmPerformance) -> CudnnStatus;
        forward_measure: "cudnnFindConvolutionForwardAlgorithm"
            (CudnnHandle, CudnnHandle, CudnnHandle, CudnnHandle, CudnnHandle, i32, *mut i32, *mut AlgorithmPerformance) -> CudnnStatus;
        forward_size: "cudnnGetConvolutionForwardWorkspaceSize"
            (CudnnHandle, CudnnHandle, CudnnHandle, CudnnHandle, CudnnHandle, i32, *mut usize) -> CudnnStatus;
        forward: "cudnnConvolutionForward"
            (CudnnHandle, *const c_void, CudnnHandle, *const c_void, CudnnHandle, *const c_void, CudnnHandle, i32, *mut c_void, usize,
             *const c_void, CudnnHandle, *mut c_void) -> CudnnStatus;
        data_choose: "cudnnGetConvolutionBackwardDataAlgorithm_v7"
            (CudnnHandle, CudnnHandle, CudnnHandle, CudnnHandle, CudnnHandle, i32, *mut i32, *mut AlgorithmPerformance) -> CudnnStatus;
        data_measure: "cudnnFindConvolutionBackwardDataAlgorithm"
            (CudnnHandle, CudnnHandle, CudnnHandle, CudnnHandle, CudnnHandle, i32, *mut i32, *mut AlgorithmPerformance) -> CudnnStatus;
        data_size: "cudnnGetConvolutionBackwardDataWorkspaceSize"
            (CudnnHandle, CudnnHandle, CudnnHandle, CudnnHandle, CudnnHandle, i32, *mut usize) -> CudnnStatus;
        data: "cudnnConvolutionBackwardData"
            (CudnnHandle, *const c_void, CudnnHandle, *const c_void, CudnnHandle, *const c_void, CudnnHandle, i32, *mut c_void, usize,
             *const c_void, CudnnHandle, *mut c_void) -> CudnnStatus;
        weight_choose: "cudnnGetConvolutionBackwardFilterAlgorithm_v7"
            (CudnnHandle, CudnnHandle, CudnnHandle, CudnnHandle, CudnnHandle, i32, *mut i32, *mut AlgorithmPerformance) -> CudnnStatus;
        weight_measure: "cudnnFindConvolutionBackwardFilterAlgorithm"
            (CudnnHandle, CudnnHandle, CudnnHandle, CudnnHandle, CudnnHandle, i32, *mut i32, *mut AlgorithmPerformance) -> CudnnStatus;
        weight_size: "cudnnGetConvolutionBackwardFilterWorkspaceSize"
            (CudnnHandle, CudnnHandle, CudnnHandle, CudnnHandle, CudnnHandle, i32, *mut usize) -> CudnnStatus;
        weight: "cudnnConvolutionBackwardFilter"
            (CudnnHandle, *const c_void, CudnnHandle, *const c_void, CudnnHandle, *const c_void, CudnnHandle, i32, *mut c_void, usize,
             *const c_void, CudnnHandle, *mut c_void) -> CudnnStatus;
    }
}

/// `cudnnConvolutionFwdAlgoPerf_t`, and those of the other parts, which are alike.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct AlgorithmPerformance {
    algorithm: i32,
    status: CudnnStatus,
    time: f32,
    memory: usize,
    deterministic: i32,
    math: i32,
    reserved: [i32; 3],
}

const CHOICES: usize = 16;
/// Workspace at most.
const WORKSPACE: usize = 1 << 30;
const CROSS_CORRELATION: i32 = 1;
const DEFAULT_MATH: i32 = 0;
const TENSOR_OP_MATH: i32 = 1;
const FMA_MATH: i32 = 3;

fn data_type(dtype: DType) -> i32 {
    match dtype {
        DType::F64 => 1,
        DType::F16 => 2,
        DType::BF16 => 9,
        _ => 0,
    }
}

/// The library and its handle, for one device.
pub(super) struct Cudnn {
    f: Functions,
    /// One thread at a time may use it.
    handle: Mutex<CudnnHandle>,
}

// SAFETY: any thread may use a handle, one at a time.
unsafe impl Send for Cudnn {}
// SAFETY: as above.
unsafe impl Sync for Cudnn {}

impl Cudnn {
    /// Opens it for the device whose context is current, to work on its `stream`.
    pub(super) fn open(stream: *mut c_void) -> Result<Cudnn, String> {
        let f = Functions::load(Name::Cudnn.open()?)?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: a valid place for the handle, and then a valid handle.
        let status = unsafe {
            match (f.create)(&mut handle) {
                0 => (f.set_stream)(handle, stream),
                status => status,
            }
        };
        match status {
            0 => Ok(Cudnn { f, handle: Mutex::new(handle) }),
            status => Err(format!("cudnnCreate failed: {}", f.text(status))),
        }
    }

    /// Chooses how to do a part of a convolution. `None`: the library has nothing for it.
    pub(super) fn prepare(self: &Arc<Self>, c: &VendorConvolution) -> Option<Arc<dyn Prepared>> {
        let mut ready = self.describe(c)?;
        ready.choose(c).then(|| Arc::new(ready) as Arc<dyn Prepared>)
    }

    fn describe(self: &Arc<Self>, c: &VendorConvolution) -> Option<PreparedConvolution> {
        let mut ready = PreparedConvolution {
            lib: self.clone(),
            part: c.part,
            tensors: [std::ptr::null_mut(); 2],
            filter: std::ptr::null_mut(),
            conv: std::ptr::null_mut(),
            algorithm: 0,
            workspace: 0,
            double: c.dtype == DType::F64,
            accumulate: c.accumulate,
        };
        ready.describe(c).then_some(ready)
    }
}

impl Functions {
    fn text(&self, status: CudnnStatus) -> String {
        // SAFETY: the library gives static texts.
        unsafe { CStr::from_ptr((self.error)(status)).to_string_lossy().into_owned() }
    }

    /// What chooses a way for a part, says how much memory it wants, and does it.
    fn of(&self, part: ConvolutionPass) -> (FindAlgorithms, WorkspaceSize, RunConvolution) {
        match part {
            ConvolutionPass::Forward => (self.forward_choose, self.forward_size, self.forward),
            ConvolutionPass::Data => (self.data_choose, self.data_size, self.data),
            ConvolutionPass::Weight => (self.weight_choose, self.weight_size, self.weight),
        }
    }

    /// What chooses a way by trying all, in memory of its own.
    fn measuring(&self, part: ConvolutionPass) -> FindAlgorithms {
        match part {
            ConvolutionPass::Forward => self.forward_measure,
            ConvolutionPass::Data => self.data_measure,
            ConvolutionPass::Weight => self.weight_measure,
        }
    }
}

/// A convolution that is ready; what it is described by goes with it.
struct PreparedConvolution {
    lib: Arc<Cudnn>,
    part: ConvolutionPass,
    /// Of x and y.
    tensors: [CudnnHandle; 2],
    filter: CudnnHandle,
    conv: CudnnHandle,
    algorithm: i32,
    workspace: usize,
    double: bool,
    accumulate: bool,
}

// SAFETY: descriptions are only read once they are made, which any thread may do.
unsafe impl Send for PreparedConvolution {}
// SAFETY: as above.
unsafe impl Sync for PreparedConvolution {}

type Ints = SmallVec<[i32; 5]>;

/// The spatial sizes of at least two axes; missing ones have `missing`.
fn spatial(sizes: &[usize], missing: i32) -> Ints {
    let fill = std::iter::repeat_n(missing, 2usize.saturating_sub(sizes.len()));
    fill.chain(sizes.iter().map(|&n| n as i32)).collect()
}

/// Sizes and strides of an image: batch, channels, axes.
fn image(c: &VendorConvolution, channels: usize, sizes: &[usize]) -> (Ints, Ints) {
    let axes = spatial(sizes, 1);
    let points: i32 = axes.iter().product();
    let channels = channels as i32;
    let (channel, mut step) = if c.channel_last { (1, channels) } else { (points, 1) };
    let mut strides: Ints = axes
        .iter()
        .rev()
        .map(|n| {
            let stride = step;
            step *= n;
            stride
        })
        .collect();
    strides.reverse();
    strides.insert_many(0, [points * channels, channel]);
    let mut dims = axes;
    dims.insert_many(0, [c.batch as i32, channels]);
    (dims, strides)
}

impl PreparedConvolution {
    fn describe(&mut self, c: &VendorConvolution) -> bool {
        let (f, dtype, format) = (&self.lib.f, data_type(c.dtype), c.channel_last as i32);
        let images = [image(c, c.in_channels, &c.input), image(c, c.out_channels, &c.output)];
        let mut weight = spatial(&c.kernel, 1);
        weight.insert_many(0, [c.out_channels as i32, (c.in_channels / c.group) as i32]);
        let [pad, stride, dilation] = [spatial(&c.pad, 0), spatial(&c.stride, 1), spatial(&c.dilation, 1)];
        let (axes, compute) = (pad.len() as i32, if self.double { data_type(DType::F64) } else { 0 });
        // SAFETY: valid places for the descriptions, lists as long as is said.
        unsafe {
            let tensors = self.tensors.iter_mut().zip(&images).all(|(t, (dims, strides))| {
                (f.tensor_create)(t) == 0
                    && (f.tensor_set)(*t, dtype, dims.len() as i32, dims.as_ptr(), strides.as_ptr()) == 0
            });
            tensors
                && (f.filter_create)(&mut self.filter) == 0
                && (f.filter_set)(self.filter, dtype, format, weight.len() as i32, weight.as_ptr()) == 0
                && (f.conv_create)(&mut self.conv) == 0
                && (f.conv_set)(
                    self.conv,
                    axes,
                    pad.as_ptr(),
                    stride.as_ptr(),
                    dilation.as_ptr(),
                    CROSS_CORRELATION,
                    compute,
                ) == 0
                && (f.conv_groups)(self.conv, c.group as i32) == 0
        }
    }

    /// The descriptions of the arrays in the library's order: the two that are read, then the result.
    fn order(&self) -> [CudnnHandle; 3] {
        let [x, y] = self.tensors;
        match self.part {
            ConvolutionPass::Forward => [x, self.filter, y],
            ConvolutionPass::Data => [self.filter, y, x],
            ConvolutionPass::Weight => [x, y, self.filter],
        }
    }

    /// Asks for the best way among those that always give the same bits.
    fn choose(&mut self, c: &VendorConvolution) -> bool {
        let math = match (c.dtype, c.tf32) {
            (DType::F16 | DType::BF16, _) => TENSOR_OP_MATH,
            (DType::F32, false) => FMA_MATH,
            _ => DEFAULT_MATH,
        };
        let (f, [a, b, to]) = (&self.lib.f, self.order());
        let (estimate, size, _) = f.of(self.part);
        // A run that is being captured does no work.
        let choose = if c.autotune && !is_capturing() { f.measuring(self.part) } else { estimate };
        let handle = self.lib.handle.lock().unwrap_or_else(|e| e.into_inner());
        let (mut found, mut choices) = (0, [AlgorithmPerformance::default(); CHOICES]);
        // SAFETY: all of it was made by `describe`; there is room for as many choices.
        let asked = unsafe {
            (f.conv_math)(self.conv, math) == 0
                && choose(*handle, a, b, self.conv, to, CHOICES as i32, &mut found, choices.as_mut_ptr()) == 0
        };
        let known = |choice: &&AlgorithmPerformance| choice.status == 0 && choice.deterministic == 1;
        for choice in choices[..found.clamp(0, CHOICES as i32) as usize].iter().filter(known) {
            let mut bytes = 0;
            // Whatever a choice says, the description decides whether TF32 is allowed: by the default type it is.
            let math = if math == FMA_MATH { FMA_MATH } else { choice.math };
            // SAFETY: as above.
            let fits = asked
                && unsafe {
                    (f.conv_math)(self.conv, math) == 0
                        && size(*handle, a, b, self.conv, to, choice.algorithm, &mut bytes) == 0
                };
            if fits && bytes <= WORKSPACE {
                (self.algorithm, self.workspace) = (choice.algorithm, bytes);
                return true;
            }
        }
        false
    }
}

impl Prepared for PreparedConvolution {
    fn workspace(&self) -> usize {
        self.workspace
    }

    unsafe fn perform(self: Arc<Self>, arrays: [u64; 3], workspace: u64) -> Result<()> {
        // The weight comes before gradients of y.
        let [first, second, result] = arrays.map(|p| p as *mut c_void);
        let (one, two) = if self.part == ConvolutionPass::Data { (second, first) } else { (first, second) };
        let scales = Scales::new(self.double, self.accumulate);
        let (f, [a, b, to], workspace) = (&self.lib.f, self.order(), workspace as *mut c_void);
        let run = f.of(self.part).2;
        let handle = self.lib.handle.lock().unwrap_or_else(|e| e.into_inner());
        // SAFETY: the caller's promise; the descriptions are those for which it was chosen.
        let status = unsafe {
            let (algorithm, size) = (self.algorithm, self.workspace);
            run(
                *handle,
                scales.result(),
                a,
                one,
                b,
                two,
                self.conv,
                algorithm,
                workspace,
                size,
                scales.before(),
                to,
                result,
            )
        };
        match status {
            0 => Ok(()),
            status => Err(Error::unsupported(format!("cuDNN: a convolution failed: {}", f.text(status)))),
        }
    }
}

impl Drop for PreparedConvolution {
    fn drop(&mut self) {
        let f = &self.lib.f;
        let destroy = |g: unsafe extern "C" fn(CudnnHandle) -> CudnnStatus, h: CudnnHandle| {
            if !h.is_null() {
                // SAFETY: it has no other owner.
                unsafe { g(h) };
            }
        };
        self.tensors.iter().for_each(|t| destroy(f.tensor_destroy, *t));
        destroy(f.filter_destroy, self.filter);
        destroy(f.conv_destroy, self.conv);
    }
}

#[cfg(feature = "emulate")]
mod tests {
    use super::*;

    type OutputSize = unsafe extern "C" fn(CudnnHandle, CudnnHandle, CudnnHandle, i32, *mut i32) -> CudnnStatus;

    unit_test!(descriptions_are_taken);
    /// Where NNRS_CUDA_LIBRARY_PATH has the library, it has all that is used of it, takes the descriptions of convolutions
    /// over one to three axes, and finds the output that they say. (What follows them needs a GPU.)
    fn descriptions_are_taken() {
        if std::env::var_os("NNRS_CUDA_LIBRARY_PATH").is_none() {
            return;
        }
        let library = Name::Cudnn.open().unwrap();
        let lib = Arc::new(Cudnn { f: Functions::load(library).unwrap(), handle: Mutex::new(std::ptr::null_mut()) });
        let at = library.symbol("cudnnGetConvolutionNdForwardOutputDim").unwrap();
        // SAFETY: the function has this type.
        let output_size: OutputSize = unsafe { std::mem::transmute(at) };
        for (axes, channel_last) in (1..=3).flat_map(|axes| [(axes, false), (axes, true)]) {
            let list = |a: [usize; 3]| -> super::super::vendor::SpatialSizes { a[..axes].into() };
            let c = VendorConvolution {
                part: ConvolutionPass::Forward,
                dtype: DType::F16,
                batch: 2,
                group: 2,
                in_channels: 4,
                out_channels: 6,
                input: list([9, 10, 11]),
                output: list([5, 8, 4]),
                kernel: list([3, 3, 3]),
                stride: list([2, 1, 2]),
                pad: list([1, 1, 0]),
                dilation: list([1, 2, 2]),
                channel_last,
                accumulate: false,
                tf32: false,
                autotune: false,
            };
            let ready = lib.describe(&c).unwrap();
            let mut found = [0; 5];
            let n = axes.max(2) + 2;
            // SAFETY: descriptions of `describe`, and room for all axes.
            let status =
                unsafe { output_size(ready.conv, ready.tensors[0], ready.filter, n as i32, found.as_mut_ptr()) };
            assert_eq!((status, &found[..n]), (0, &image(&c, 6, &c.output).0[..]));
        }
    }

    unit_test!(structs_are_those_of_the_headers);
    fn structs_are_those_of_the_headers() {
        assert_eq!(size_of::<AlgorithmPerformance>(), 48);
    }
}
