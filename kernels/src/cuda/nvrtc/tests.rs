use super::*;
use crate::dtype::DType;
use crate::expr::Formula;
use crate::expr::cuda::generated::{BroadcastInput, Form, Read, Recipe, source};
use crate::expr::ssa::{Id, Ins, Ssa};
use smallvec::smallvec;

/// A fused unit: a dear and cheap functions of an array, one that broadcasts, a number, and a number of the run.
fn unit(dtype: DType, width: usize, ragged: bool, table: bool) -> String {
    let f = Formula::with_scalars(3, 1, |x, s| {
        let h = (&x[0] * &x[1] + &x[2]).tanh();
        vec![Some(&h * &s[0]), Some(h.gt(0.0).select(&x[0], h.square()))]
    });
    let mut ssa = Ssa::default();
    let args: Vec<Id> = (0..3).map(|k| ssa.push(Ins::Input(k))).collect();
    let outputs: Vec<Id> = f.apply(&mut ssa, &args).into_iter().flatten().collect();
    let recipe = Recipe::new(dtype == DType::F64, &ssa, &outputs);
    let strided =
        Read::Strided(BroadcastInput { dtype, grid: 0, moves: smallvec![true, false, true], packed: !ragged });
    let form = Form {
        reads: smallvec![Read::Dense(dtype), if table { Read::Splat(dtype) } else { strided }, Read::Number],
        writes: smallvec![dtype, DType::F32],
        grids: if table { smallvec![] } else { smallvec![3] },
        width,
        aligned: true,
        ragged,
        table,
    };
    source(&recipe, &form)
}

fn nvrtc() -> Option<&'static Nvrtc> {
    std::env::var_os("NNRS_CUDA_LIBRARY_PATH").map(|_| Nvrtc::get().unwrap())
}

unit_test!(kernels_compile);
/// Where NNRS_CUDA_LIBRARY_PATH has the library: all kinds of kernels compile, for devices that it knows and for newer ones.
fn kernels_compile() {
    let Some(lib) = nvrtc() else { return };
    for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16] {
        let width = (16 / dtype.size()).min(8);
        for (ragged, table) in [(false, false), (true, false), (false, true)] {
            let text = unit(dtype, width, ragged, table);
            for sm in [70, 80, 90].into_iter().filter(|sm| lib.known.contains(sm)) {
                let cubin = lib.compile(&text, CompileTarget::Real(sm)).unwrap_or_else(|e| panic!("{e}\n{text}"));
                assert!(cubin.starts_with(b"\x7fELF"));
            }
            let ptx = lib.compile(&text, CompileTarget::Virtual(lib.known[lib.known.len() - 1])).unwrap();
            assert_eq!(ptx.last(), Some(&0));
            let ptx = String::from_utf8(ptx).unwrap();
            assert!(ptx.contains(".entry generated("), "{ptx}");
            assert_eq!(ptx.contains("cvt.rn.bf16.f32"), dtype == DType::BF16, "{ptx}");
            // Addresses out of a table are not known to be of global memory.
            let whole = |l: &str| l.contains(".v4.") || l.contains(".v2.f64") || l.contains(".v2.b64");
            let wide = |op: &str| ptx.lines().any(|l| l.trim_start().starts_with(op) && whole(l));
            assert!(wide("ld.") && wide("st."), "accesses of 16 bytes: {ptx}");
        }
    }
}

unit_test!(devices_that_it_does_not_know);
fn devices_that_it_does_not_know() {
    let Some(lib) = nvrtc() else { return };
    assert_eq!(lib.target((9, 0)).unwrap(), CompileTarget::Real(90));
    let newest = lib.known[lib.known.len() - 1];
    assert_eq!(lib.target((99, 0)).unwrap(), CompileTarget::Virtual(newest));
    assert!(lib.target((2, 0)).unwrap_err().to_string().contains("2.0"));
}

unit_test!(errors_are_the_compilers);
fn errors_are_the_compilers() {
    let Some(lib) = nvrtc() else { return };
    let e = lib.compile("this is no CUDA", CompileTarget::Real(80)).unwrap_err().to_string();
    assert!(e.contains("generated.cu(1)"), "{e}");
}

unit_test!(chains_are_short);
/// Fifty functions in five instructions for each five: what is the same bits in fewer is.
fn chains_are_short() {
    let Some(lib) = nvrtc() else { return };
    let f = Formula::new(1, |x| {
        let mut h = x[0].clone();
        for _ in 0..10 {
            let a = (&h - &x[0]) * 0.5 + 0.25;
            h = a.gt(0.0).select(&a, &a * 0.1) * &x[0];
        }
        vec![Some(h)]
    });
    let mut ssa = Ssa::default();
    let args = [ssa.push(Ins::Input(0))];
    let outputs: Vec<Id> = f.apply(&mut ssa, &args).into_iter().flatten().collect();
    let (reads, writes) = (smallvec![Read::Dense(DType::F32)], smallvec![DType::F32]);
    let grids = smallvec![];
    let form = Form { reads, writes, grids, width: 4, aligned: true, ragged: false, table: false };
    let text = source(&Recipe::new(false, &ssa, &outputs), &form);
    let ptx = String::from_utf8(lib.compile(&text, CompileTarget::Virtual(90)).unwrap()).unwrap();
    let count = |op: &str| ptx.lines().filter(|l| l.trim_start().starts_with(op)).count();
    let counts = ["sub.", "fma.", "mul.rn.f32", "max.", "selp."].map(count);
    assert_eq!(counts, [40, 40, 80, 40, 0], "{ptx}");
}
