//! Matrix products by cuBLASLt.

use super::library::{Name, functions};
use super::vendor::{MatrixLayout, Prepared, Scales, VendorProduct};
use crate::dtype::DType;
use crate::error::{Error, Result};
use std::ffi::c_void;
use std::sync::Arc;

type CublasHandle = *mut c_void;
type CublasStatus = i32;

functions! {
    /// What is used of cuBLASLt, as its manual has it.
    Functions {
        create: "cublasLtCreate" (*mut CublasHandle) -> CublasStatus;
        desc_create: "cublasLtMatmulDescCreate" (*mut CublasHandle, i32, i32) -> CublasStatus;
        desc_set: "cublasLtMatmulDescSetAttribute" (CublasHandle, i32, *const c_void, usize) -> CublasStatus;
        desc_destroy: "cublasLtMatmulDescDestroy" (CublasHandle) -> CublasStatus;
        layout_create: "cublasLtMatrixLayoutCreate" (*mut CublasHandle, i32, u64, u64, i64) -> CublasStatus;
        layout_set: "cublasLtMatrixLayoutSetAttribute" (CublasHandle, i32, *const c_void, usize) -> CublasStatus;
        layout_destroy: "cublasLtMatrixLayoutDestroy" (CublasHandle) -> CublasStatus;
        preference_create: "cublasLtMatmulPreferenceCreate" (*mut CublasHandle) -> CublasStatus;
        preference_set: "cublasLtMatmulPreferenceSetAttribute" (CublasHandle, i32, *const c_void, usize) -> CublasStatus;
        preference_destroy: "cublasLtMatmulPreferenceDestroy" (CublasHandle) -> CublasStatus;
        heuristic: "cublasLtMatmulAlgoGetHeuristic"
            (CublasHandle, CublasHandle, CublasHandle, CublasHandle, CublasHandle, CublasHandle, CublasHandle, i32, *mut MatmulHeuristic, *mut i32) -> CublasStatus;
        matmul: "cublasLtMatmul"
            (CublasHandle, CublasHandle, *const c_void, *const c_void, CublasHandle, *const c_void, CublasHandle, *const c_void, *const c_void,
             CublasHandle, *mut c_void, CublasHandle, *const Algorithm, *mut c_void, usize, *mut c_void) -> CublasStatus;
    }
}

/// `cublasLtMatmulAlgo_t`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Algorithm([u64; 8]);

/// `cublasLtMatmulHeuristicResult_t`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct MatmulHeuristic {
    algorithm: Algorithm,
    workspace: usize,
    state: CublasStatus,
    waves: f32,
    reserved: [i32; 4],
}

const COMPUTE_32F: i32 = 68;
const COMPUTE_64F: i32 = 70;
const COMPUTE_32F_FAST_TF32: i32 = 77;
const TRANSA: i32 = 3;
const TRANSB: i32 = 4;
const LAYOUT_BATCH: i32 = 5;
const LAYOUT_STEP: i32 = 6;
const PREFER_WORKSPACE: i32 = 1;
const PREFER_REDUCTIONS: i32 = 3;
/// Parts of a sum are added in the type to compute in, never in that of the result.
const IN_COMPUTE_TYPE: u32 = 2;
/// For A; those for B, C and D follow.
const PREFER_ALIGNMENT: i32 = 5;
/// Workspace at most: what NVIDIA recommends for Hopper.
const WORKSPACE: usize = 32 << 20;

fn data_type(dtype: DType) -> i32 {
    match dtype {
        DType::F64 => 1,
        DType::F16 => 2,
        DType::BF16 => 14,
        _ => 0,
    }
}

/// The library and its handle, for one device.
pub(super) struct Cublas {
    f: Functions,
    handle: CublasHandle,
    stream: *mut c_void,
}

// SAFETY: a cuBLASLt handle may be used by all threads.
unsafe impl Send for Cublas {}
// SAFETY: as above.
unsafe impl Sync for Cublas {}

impl Cublas {
    /// Opens it for the device whose context is current, to work on its `stream`.
    pub(super) fn open(stream: *mut c_void) -> Result<Cublas, String> {
        let f = Functions::load(Name::CublasLt.open()?)?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: a valid place for the handle.
        match unsafe { (f.create)(&mut handle) } {
            0 => Ok(Cublas { f, handle, stream }),
            status => Err(format!("cublasLtCreate failed with status {status}")),
        }
    }

    /// Chooses how to do a product. `None`: the library has nothing for it.
    pub(super) fn prepare(self: &Arc<Self>, p: &VendorProduct) -> Option<Arc<dyn Prepared>> {
        let mut ready = self.describe(p)?;
        ready.choose(p).then(|| Arc::new(ready) as Arc<dyn Prepared>)
    }

    fn describe(self: &Arc<Self>, p: &VendorProduct) -> Option<PreparedProduct> {
        let mut ready = PreparedProduct {
            lib: self.clone(),
            desc: std::ptr::null_mut(),
            layouts: [std::ptr::null_mut(); 3],
            choice: MatmulHeuristic::default(),
            double: p.from == DType::F64,
            accumulate: p.accumulate,
        };
        ready.describe(p).then_some(ready)
    }
}

/// A product that is ready; what it is described by goes with it.
struct PreparedProduct {
    lib: Arc<Cublas>,
    desc: CublasHandle,
    /// Of A, B and C.
    layouts: [CublasHandle; 3],
    choice: MatmulHeuristic,
    double: bool,
    accumulate: bool,
}

// SAFETY: descriptions are only read once they are made, which any thread may do.
unsafe impl Send for PreparedProduct {}
// SAFETY: as above.
unsafe impl Sync for PreparedProduct {}

type Setter = unsafe extern "C" fn(CublasHandle, i32, *const c_void, usize) -> CublasStatus;

/// Sets an attribute.
fn set<T>(setter: Setter, of: CublasHandle, attribute: i32, value: T) -> bool {
    // SAFETY: attributes are read as `T` by the library, here and now.
    unsafe { setter(of, attribute, &value as *const T as *const c_void, size_of::<T>()) == 0 }
}

impl PreparedProduct {
    fn describe(&mut self, p: &VendorProduct) -> bool {
        let f = &self.lib.f;
        let compute = match (p.from, p.tf32) {
            (DType::F64, _) => COMPUTE_64F,
            (_, true) => COMPUTE_32F_FAST_TF32,
            _ => COMPUTE_32F,
        };
        let scale = if self.double { data_type(DType::F64) } else { data_type(DType::F32) };
        // SAFETY: a valid place for the description.
        let made = unsafe { (f.desc_create)(&mut self.desc, compute, scale) == 0 };
        let [m, n, k] = p.sizes;
        made && set(f.desc_set, self.desc, TRANSA, p.a.transposed as i32)
            && set(f.desc_set, self.desc, TRANSB, p.b.transposed as i32)
            && self.lay_out(0, p.a, p.from, [m, k], p.batch)
            && self.lay_out(1, p.b, p.from, [k, n], p.batch)
            && self.lay_out(2, p.c, p.to, [m, n], p.batch)
    }

    /// Describes a matrix as it lies.
    fn lay_out(&mut self, i: usize, l: MatrixLayout, dtype: DType, [rows, columns]: [usize; 2], batch: usize) -> bool {
        let f = &self.lib.f;
        let [rows, columns] = if l.transposed { [columns, rows] } else { [rows, columns] };
        let layout = &mut self.layouts[i];
        // SAFETY: a valid place for the layout.
        let made = unsafe { (f.layout_create)(layout, data_type(dtype), rows as u64, columns as u64, l.lead as i64) };
        made == 0
            && (batch == 1
                || set(f.layout_set, *layout, LAYOUT_BATCH, batch as i32)
                    && set(f.layout_set, *layout, LAYOUT_STEP, l.step as i64))
    }

    /// Asks for the best way.
    fn choose(&mut self, p: &VendorProduct) -> bool {
        let f = &self.lib.f;
        let mut preference = std::ptr::null_mut();
        // SAFETY: a valid place for the preference.
        if unsafe { (f.preference_create)(&mut preference) } != 0 {
            return false;
        }
        let alignments = [p.a, p.b, p.c, p.c].map(|l| l.alignment);
        let mut asked = set(f.preference_set, preference, PREFER_WORKSPACE, WORKSPACE)
            && set(f.preference_set, preference, PREFER_REDUCTIONS, IN_COMPUTE_TYPE);
        for (i, alignment) in alignments.into_iter().enumerate() {
            asked &= set(f.preference_set, preference, PREFER_ALIGNMENT + i as i32, alignment);
        }
        let ([a, b, c], mut found) = (self.layouts, 0);
        // SAFETY: all of it was made above; there is room for one choice.
        let status = unsafe {
            let handle = self.lib.handle;
            let status = (f.heuristic)(handle, self.desc, a, b, c, c, preference, 1, &mut self.choice, &mut found);
            (f.preference_destroy)(preference);
            status
        };
        asked && status == 0 && found == 1 && self.choice.state == 0
    }
}

impl Prepared for PreparedProduct {
    fn workspace(&self) -> usize {
        self.choice.workspace
    }

    unsafe fn perform(self: Arc<Self>, arrays: [u64; 3], workspace: u64) -> Result<()> {
        let ([a, b, c], [x, y, z]) = (arrays.map(|p| p as *mut c_void), self.layouts);
        let scales = Scales::new(self.double, self.accumulate);
        let (lib, size) = (&self.lib, self.choice.workspace);
        // SAFETY: the caller's promise; the descriptions are those of the choice.
        let status = unsafe {
            let (algorithm, workspace) = (&self.choice.algorithm, workspace as *mut c_void);
            (lib.f.matmul)(
                lib.handle,
                self.desc,
                scales.result(),
                a,
                x,
                b,
                y,
                scales.before(),
                c,
                z,
                c,
                z,
                algorithm,
                workspace,
                size,
                lib.stream,
            )
        };
        match status {
            0 => Ok(()),
            status => Err(Error::unsupported(format!("cuBLASLt: a matrix product failed with status {status}"))),
        }
    }
}

impl Drop for PreparedProduct {
    fn drop(&mut self) {
        let f = &self.lib.f;
        // SAFETY: they have no other owner.
        unsafe {
            if !self.desc.is_null() {
                (f.desc_destroy)(self.desc);
            }
            self.layouts.iter().filter(|l| !l.is_null()).for_each(|l| {
                (f.layout_destroy)(*l);
            });
        }
    }
}

#[cfg(feature = "emulate")]
mod tests {
    use super::*;

    unit_test!(descriptions_are_taken);
    /// Where NNRS_CUDA_LIBRARY_PATH has the library, it has all that is used of it, and takes the descriptions of a product.
    /// (What follows them needs a GPU.)
    fn descriptions_are_taken() {
        if std::env::var_os("NNRS_CUDA_LIBRARY_PATH").is_none() {
            return;
        }
        let f = Functions::load(Name::CublasLt.open().unwrap()).unwrap();
        let lib = Arc::new(Cublas { f, handle: std::ptr::null_mut(), stream: std::ptr::null_mut() });
        let layout = |transposed, lead| MatrixLayout { transposed, lead, step: 64, alignment: 16 };
        for from in [DType::F32, DType::F64, DType::F16, DType::BF16] {
            let p = VendorProduct {
                batch: 3,
                sizes: [4, 5, 6],
                a: layout(false, 4),
                b: layout(true, 5),
                c: layout(false, 4),
                from,
                to: from,
                accumulate: true,
                tf32: false,
            };
            assert!(lib.describe(&p).is_some());
        }
    }

    unit_test!(structs_are_those_of_the_headers);
    fn structs_are_those_of_the_headers() {
        assert_eq!(size_of::<MatmulHeuristic>(), 96);
    }
}
