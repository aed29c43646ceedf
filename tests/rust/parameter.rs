//! Parameters, scopes, parametric functions, and their files.

use nnrs::initializer::{Constant, Initializer, Uniform};
use nnrs::io::safetensors::{Elements, Notes, Part, read, write};
use nnrs::parameter::*;
use nnrs::{DType, Error, Shape, Variable, parametric as pf};
use std::fs;
use std::path::PathBuf;

/// Each test works in a scope of its own: the tree belongs to the process.
fn apart(test: &str, f: impl FnOnce()) {
    parameter_scope(test, || {
        f();
        clear_parameters();
        Ok(())
    })
    .unwrap();
}

struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("nnrs-{test}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn names() -> Vec<String> {
    get_all_parameters().into_iter().map(|(n, _)| n).collect()
}

fn text<T>(r: nnrs::Result<T>) -> String {
    r.err().expect("an error").to_string()
}

#[test]
fn scopes_nest_and_keep_their_order() {
    apart("order", || {
        let make = |name: &str, need_grad| get_parameter_or_create(name, [2], &Constant(1.0), need_grad).unwrap();
        make("z", true);
        parameter_scope("b/a", || {
            make("w", false);
            make("v", true);
            Ok(())
        })
        .unwrap();
        let w = make("b/a/w", false);
        assert_eq!(names(), ["z", "b/a/w", "b/a/v"]);
        assert_eq!(get_parameters().len(), 2);
        assert!(get_parameter("b/a/w").unwrap().is(&w) && get_parameter("b").is_none());
        make("b/a/w", true);
        assert!(w.need_grad());
        set_parameter("b/a/w", &Variable::new([5])).unwrap();
        assert_eq!(get_parameter("/b//a/w").unwrap().shape(), [5].into());
        let other = parameter_scope("b/a", || get_parameter_or_create("v", [3], &Constant(0.0), true));
        assert!(text(other).contains("b/a/v' has shape (2,), but shape (3,) is asked for"));
        assert!(text(parameter_scope("z/y", || Ok(()))).contains("there is a parameter 'z'"));
        assert!(text(get_parameter_or_create("b", [1], &Constant(0.0), true)).contains("there is a scope 'b'"));
        assert!(text(set_parameter("//", &w)).contains("at least one letter"));
        let wrong = |_: &Shape| Constant(0.0).make(&[7].into());
        assert!(text(get_parameter_or_create("n", [2], &wrong, true)).contains("got (7,)"));
    });
}

#[test]
fn a_failed_scope_is_left() {
    apart("left", || {
        let failed: nnrs::Result<()> = parameter_scope("inner", || Err(Error::graph("stop")));
        assert!(failed.is_err());
        get_parameter_or_create("w", [1], &Constant(0.0), true).unwrap();
        assert_eq!(names(), ["w"]);
    });
}

#[test]
fn layers_make_their_parameters() {
    apart("layers", || {
        let x = Variable::new([4, 6, 9, 9]);
        let grouped = pf::Convolution { group: 2, stride: Some(vec![2, 2]), ..Default::default() };
        let y = pf::convolution("c", &x, 8, [3, 3], grouped).unwrap();
        assert_eq!(y.shape(), [4, 8, 4, 4].into());
        let fixed = pf::Affine { fix_parameters: true, with_bias: false, ..Default::default() };
        let z = pf::affine("", &y, 10, fixed).unwrap();
        assert_eq!(z.shape(), [4, 10].into());
        z.forward().unwrap();
        z.backward().unwrap();
        assert_eq!(names(), ["c/conv/W", "c/conv/b", "affine/W"]);
        assert_eq!(get_parameter("c/conv/W").unwrap().shape(), [8, 3, 3, 3].into());
        assert_eq!(get_parameter("affine/W").unwrap().grad().to_vec::<f32>().unwrap(), [0.0; 1280]);
        let w: Vec<f64> = get_parameter("c/conv/W").unwrap().to_vec().unwrap();
        let limit = (6.0f64 / (9.0 * 14.0)).sqrt();
        assert!(w.iter().all(|v| v.abs() <= limit) && w.iter().any(|v| v.abs() > 0.9 * limit));
        let ids = Variable::from_slice(&[1i32, 0, 2], [3].into()).unwrap();
        let e = pf::embed(
            "e",
            &ids,
            3,
            2,
            pf::Embed { initializer: pf::Init::new(Uniform(1.0, 2.0)), ..Default::default() },
        );
        assert_eq!(e.unwrap().shape(), [3, 2].into());
        let before = names();
        assert!(pf::convolution("bad", &x, 8, [30, 30], pf::Convolution::default()).is_err());
        let wrong = pf::convolution("bad", &x, 8, [3], pf::Convolution { group: 5, ..Default::default() });
        assert!(text(wrong).contains("a divisor of the 6 input channels and of outmaps=8, got 5"));
        assert_eq!(names(), before);
    });
}

#[test]
fn normalizations_make_their_parameters() {
    apart("normal", || {
        let x =
            Variable::from_slice(&(0..24).map(|v| (v * v % 17) as f32).collect::<Vec<_>>(), [4, 3, 2].into()).unwrap();
        let y = pf::batch_normalization("b", &x, pf::BatchNormalization::default()).unwrap();
        let z = pf::layer_normalization("l", &y[0], pf::LayerNormalization::default()).unwrap();
        z[0].forward().unwrap();
        assert_eq!(
            names(),
            ["b/bn/beta", "b/bn/gamma", "b/bn/mean", "b/bn/var"]
                .map(String::from)
                .into_iter()
                .chain(["l/layer_normalization/beta", "l/layer_normalization/gamma"].map(String::from))
                .collect::<Vec<_>>()
        );
        assert_eq!(get_parameters().len(), 4);
        assert_eq!(get_parameter("b/bn/gamma").unwrap().shape(), [1, 3, 1].into());
        assert_eq!(get_parameter("l/layer_normalization/beta").unwrap().shape(), [1, 3, 2].into());
        let values: Vec<f64> = z[0].to_vec().unwrap();
        for sample in values.chunks(6) {
            let mean = sample.iter().sum::<f64>() / 6.0;
            let variance = sample.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 6.0;
            assert!(mean.abs() < 1e-6 && (variance - 1.0).abs() < 1e-3, "{mean} {variance}");
        }
        assert!(get_parameter("b/bn/mean").unwrap().to_vec::<f32>().unwrap().iter().all(|&m| m > 0.0));
    });
}

#[test]
fn files_bring_back_everything() {
    let folder = Folder::new("files");
    let path = folder.0.join("p.safetensors");
    apart("files", || {
        for (i, dtype) in DType::ALL.into_iter().enumerate() {
            let name = format!("z{}/{dtype}", 100 - i);
            let v = get_parameter_or_create(&name, [2, 3], &Uniform(0.0, 5.0), i % 2 == 0).unwrap();
            v.raw_data().cast(dtype).unwrap();
        }
        let constants = [
            get_parameter_or_create("empty", [0, 7], &Constant(0.0), true),
            get_parameter_or_create("scalar \"ü\"", Shape::default(), &Constant(2.5), true),
        ];
        // A constant would take the type of its first reader.
        constants.into_iter().for_each(|v| v.unwrap().raw_data().cast(DType::F32).unwrap());
        let state = || -> Vec<(String, DType, Shape, Vec<f64>, bool)> {
            let all = get_all_parameters().into_iter();
            all.map(|(n, v)| (n, v.raw_data().dtype(), v.shape(), v.to_vec().unwrap(), v.need_grad())).collect()
        };
        let before = state();
        save_parameters(&path).unwrap();
        clear_parameters();
        load_parameters(&path).unwrap();
        assert_eq!(state(), before);
        let kept = get_parameter("empty").unwrap();
        get_all_parameters().iter().for_each(|(_, v)| v.raw_data().fill(1.0).unwrap());
        load_parameters(&path).unwrap();
        assert_eq!(state(), before);
        assert!(get_parameter("empty").unwrap().is(&kept));
        set_parameter("empty", &Variable::new([3])).unwrap();
        get_parameter("scalar \"ü\"").unwrap().raw_data().fill(7.0).unwrap();
        let error = text(load_parameters(&path));
        assert!(
            error.contains("load_parameters: parameter 'empty' has shape (3,) here, but (0, 7) in the file"),
            "{error}"
        );
        assert_eq!(get_parameter("scalar \"ü\"").unwrap().to_vec::<f32>().unwrap(), [7.0]);
    });
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1);
}

#[test]
fn what_is_no_file_is_an_error() {
    let folder = Folder::new("none");
    assert!(text(load_parameters(folder.0.join("none"))).contains("No such file"));
    assert!(text(load_parameters(&folder.0)).contains("plain file"));
    assert!(save_parameters(folder.0.join("none/file.safetensors")).is_err());
    for other in ["x.txt", "x", ""] {
        let error = text(save_parameters(folder.0.join(other)));
        assert!(
            error.starts_with("save_parameters: argument 'path': expected a file of kind '.safetensors'"),
            "{error}"
        );
    }
}

fn write_bytes(folder: &Folder, bytes: &[u8]) -> PathBuf {
    let path = folder.0.join("file");
    fs::write(&path, bytes).unwrap();
    path
}

fn with_header(header: &str, data: usize) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.resize(bytes.len() + data, 3);
    bytes
}

#[test]
fn lying_headers_are_refused() {
    let folder = Folder::new("lies");
    let tensor = |shape: &str, offsets: &str| {
        format!("\"a\":{{\"dtype\":\"F32\",\"shape\":{shape},\"data_offsets\":{offsets}}}")
    };
    let whole = |inner: &str| format!("{{{inner}}}");
    let good = tensor("[2]", "[0,8]");
    let bad = [
        (vec![], "only 0 bytes"),
        (vec![1; 7], "only 7 bytes"),
        (u64::MAX.to_le_bytes().to_vec(), "its header should have 18446744073709551615 bytes"),
        (with_header("", 0), "in its header"),
        (with_header("[]", 0), "in its header"),
        (with_header(&"[".repeat(100_000), 0), "in its header"),
        (with_header(&format!("{{\"a\":{}", "[".repeat(100_000)), 0), "in its header"),
        (with_header("{\"\u{0}", 0), "in its header"),
        (with_header(&whole(&good), 7), "its tensors should have 8 bytes, but it has 7"),
        (with_header(&whole(&good), 9), "its tensors should have 8 bytes, but it has 9"),
        (with_header(&whole(&format!("{good},{good}")), 8), "'a' comes twice"),
        (with_header(&whole(&tensor("[3]", "[0,8]")), 8), "in its header"),
        (with_header(&whole(&tensor("[2]", "[8,0]")), 8), "in its header"),
        (with_header(&whole(&tensor("[2]", "[1,9]")), 9), "in its header"),
        (with_header(&whole(&tensor("[2]", "[-1,7]")), 8), "in its header"),
        (with_header(&whole(&tensor("[4611686018427387904,4]", "[0,0]")), 0), "in its header"),
        (with_header(&whole(&tensor("[4611686018427387904,0]", "[0,0]")), 0), "fits into memory"),
        (with_header(&whole(&tensor("[99999999999]", "[0,399999999996]")), 8), "its tensors should have 399999999996"),
        (with_header(&whole(&good.replace("F32", "F33")), 8), "in its header"),
        (with_header(&whole(&good.replace("F32", "C64").replace("[2]", "[1]")), 8), "elements of type C64"),
        (with_header(&whole(&format!("\"__metadata__\":{{\"x\":1}},{good}")), 8), "in its header"),
    ];
    for (bytes, want) in bad {
        let path = write_bytes(&folder, &bytes);
        let error = read(&path, Elements::Typed).expect_err(want);
        assert!(error.to_string().contains(want), "{error} should say: {want}");
        assert_eq!(error.kind(), nnrs::ErrorKind::Format, "{error}");
    }
    let path = write_bytes(&folder, &with_header(&whole(&good), 8));
    assert_eq!(read(&path, Elements::Typed).unwrap().0[0].shape, [2].into());
}

#[test]
fn clashing_names_and_bad_notes_are_refused() {
    let folder = Folder::new("clash");
    let path = folder.0.join("file");
    let save = |names: &[&str], notes: &[(&str, &str)]| {
        let part = |name| Part { name, kind: "U8", shape: &[1], bytes: &[1] };
        let parts: Vec<Part> = names.iter().map(|n| part(*n)).collect();
        let notes: Notes = notes.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        write(&mut fs::File::create(&path).unwrap(), &parts, &notes)
    };
    apart("clash", || {
        for names in [["a", "a/b"], ["a/b", "a//b"], ["x", ""]] {
            save(&names, &[]).unwrap();
            assert!(text(load_parameters(&path)).contains("clash"));
        }
        for notes in [("nnrs.order", "{}"), ("nnrs.need_grad", "[1]"), ("nnrs.order", "["), ("nnrs.order", "[1]")] {
            save(&["a"], &[notes]).unwrap();
            assert!(text(load_parameters(&path)).contains("bad note"));
        }
        assert!(names().is_empty());
    });
    assert!(text(save(&["a", "a"], &[])).contains("names that differ"));
    assert!(text(save(&["__metadata__"], &[])).contains("names that differ"));
}

#[test]
fn any_bytes_give_an_error_or_tensors() {
    let folder = Folder::new("fuzz");
    let bytes: Vec<u8> = (0..24).collect();
    let parts = [
        Part { name: "a", kind: "F32", shape: &[2, 2], bytes: &bytes[..16] },
        Part { name: "flag", kind: "BOOL", shape: &[3], bytes: &bytes[5..8] },
        Part { name: "s", kind: "I64", shape: &[], bytes: &bytes[16..24] },
    ];
    let path = folder.0.join("file");
    let notes: Notes = [("nnrs.order".to_string(), "[\"a\"]".to_string())].into();
    write(&mut fs::File::create(&path).unwrap(), &parts, &notes).unwrap();
    let (tensors, back) = read(&path, Elements::Raw).unwrap();
    assert_eq!(back, notes);
    assert_eq!(tensors.iter().map(|t| t.name.as_str()).collect::<Vec<_>>(), ["a", "flag", "s"]);
    assert_eq!(tensors[0].array.to_vec::<u8>().unwrap(), bytes[..16]);
    assert_eq!(tensors[1].array.to_vec::<u8>().unwrap(), [1, 1, 1]);
    let good = fs::read(&path).unwrap();
    for n in 0..good.len() {
        assert!(read(&write_bytes(&folder, &good[..n]), Elements::Typed).is_err(), "cut at {n}");
    }
    let mut seed = 1u64;
    for _ in 0..500 {
        let mut bad = good.clone();
        for _ in 0..3 {
            seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            let at = (seed >> 33) as usize % bad.len();
            bad[at] = (seed >> 20) as u8;
        }
        let _ = read(&write_bytes(&folder, &bad), Elements::Typed);
    }
}
