//! Where and in which precision a function runs: NNabla's Context.

use crate::dtype::DType;
use crate::error::{Error, Result};
use std::sync::{Arc, LazyLock};

/// A computation context. `backend` lists candidates as `device:type`, for example `cpu:float`.
///
/// Functions take the [context of their thread](crate::graph::mode::set_context) when they are made, and keep it.
///
/// ```
/// use nnrs::{Context, DType};
/// let half = Context::cpu(DType::F16);
/// assert_eq!((half.backend[0].as_str(), half.dtype(), half.compute_dtype()), ("cpu:half", DType::F16, DType::F32));
/// assert!(Context::new(vec!["tpu:float".into()], String::new(), "0".into()).is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context {
    /// Candidates, the first that this build knows decides: `cpu:float`, `cpu:half`, `cpu:bfloat16`, `cpu:double`.
    pub backend: Vec<String>,
    /// NNabla's name of the array's class; only shown.
    pub array_class: String,
    /// The device as a number in words; only shown on the CPU.
    pub device_id: String,
    dtype: DType,
}

// As in NNabla, the context that nobody chose names no kind of arrays.
static DEFAULT: LazyLock<Arc<Context>> =
    LazyLock::new(|| Arc::new(Context { array_class: String::new(), ..Context::cpu(DType::F32) }));

/// Makes what is made on first use.
pub(crate) fn ready() {
    LazyLock::force(&DEFAULT);
}

impl Context {
    /// A CPU context that computes and stores in `dtype`, a floating-point type.
    pub fn cpu(dtype: DType) -> Context {
        Context {
            backend: vec![format!("cpu:{}", type_config(dtype))],
            array_class: "CpuCachedArray".into(),
            device_id: "0".into(),
            dtype,
        }
    }

    /// A context from NNabla's fields; the first backend that this build knows decides.
    ///
    /// # Errors
    /// This build knows none of the backends.
    pub fn new(backend: Vec<String>, array_class: String, device_id: String) -> Result<Context> {
        let known = backend.iter().find_map(|b| parse(b));
        match known {
            Some(dtype) => Ok(Context { backend, array_class, device_id, dtype }),
            None if backend.is_empty() => Ok(Context { backend, array_class, device_id, dtype: DType::F32 }),
            None => {
                Err(Error::unsupported(format!("no backend of '{}' is available in this build", backend.join("', '")))
                    .function("Context")
                    .argument("backend")
                    .hint("this build has 'cpu:float', 'cpu:half', 'cpu:bfloat16' and 'cpu:double'"))
            }
        }
    }

    /// The element type of results.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The type in which kernels compute: double for double, float for all others.
    pub fn compute_dtype(&self) -> DType {
        compute_dtype(self.dtype)
    }

    /// The context `cpu:float`.
    pub fn default_cpu() -> Arc<Context> {
        DEFAULT.clone()
    }
}

/// The type in which kernels compute when results are stored as `dtype`.
pub fn compute_dtype(dtype: DType) -> DType {
    if dtype == DType::F64 { DType::F64 } else { DType::F32 }
}

fn parse(backend: &str) -> Option<DType> {
    let (device, kind) = backend.split_once(':').or_else(|| backend.split_once('|')).unwrap_or((backend, "float"));
    if device != "cpu" {
        return None;
    }
    match kind {
        "float" => Some(DType::F32),
        "half" => Some(DType::F16),
        "bfloat16" => Some(DType::BF16),
        "double" => Some(DType::F64),
        _ => None,
    }
}

fn type_config(dtype: DType) -> &'static str {
    match dtype {
        DType::F16 => "half",
        DType::BF16 => "bfloat16",
        DType::F64 => "double",
        _ => "float",
    }
}
