//! Printed CUDA kernels mean what their formulas mean: compiled as C++ over a small shim, they give what
//! `Formula::eval` gives, on ordinary and special numbers, dense and broadcast, with outputs set, added to, and absent.

use nnrs::DType;
use nnrs::expr::ssa::Ins;
use nnrs::expr::{Formula, cuda};
use nnrs::function::elementwise::default_rules;
use nnrs::function::registry;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

/// A printed kernel and what it must compute.
struct Kernel {
    name: String,
    formula: Arc<Formula>,
}

/// The source of all element-wise functions, and their kernels.
fn kernels(dtype: DType) -> (String, Vec<Kernel>) {
    let (mut text, mut list) = (String::new(), Vec::new());
    for def in registry() {
        let Some(rules) = default_rules(def) else { continue };
        text += &cuda::source(def.snake, &rules.forward, &rules.backward, dtype).unwrap();
        list.push(Kernel { name: format!("{}_forward", def.snake), formula: rules.forward.clone() });
        if rules.backward.outputs().iter().any(Option::is_some) {
            list.push(Kernel { name: format!("{}_backward", def.snake), formula: rules.backward.clone() });
        }
    }
    let update = Kernel { name: "update".into(), formula: Arc::new(update()) };
    text += &cuda::kernel(&update.name, &update.formula, dtype).unwrap();
    list.push(update);
    (text, list)
}

/// A formula with numbers of the run, a gap among its outputs, and every operation that no function uses by default.
fn update() -> Formula {
    Formula::with_scalars(2, 2, |x, s| {
        let mean = &s[0] * &x[0] + (1.0 - &s[0]) * &x[1];
        let odd = x[0].sign() + x[1].round() * x[0].atan2(&x[1]) + x[0].round_f16() + x[1].round_bf16();
        vec![Some(&x[0] - &s[1] * &mean), None, Some(mean), Some(odd.select(x[0].sigmoid(), x[1].is_inf()))]
    })
}

const SCALARS: [f64; 2] = [0.875, 0.25];

/// C++ that reads one case for each kernel and writes its outputs.
fn program(dtype: DType, source: &str, list: &[Kernel]) -> String {
    let element = match dtype {
        DType::F16 => "nnrs::half",
        DType::BF16 => "nnrs::bfloat16",
        DType::F32 => "float",
        _ => "double",
    };
    let mut text = include_str!("cuda_shim.h").replace("//KERNELS", source) + "int main() {\n";
    for _ in 0..2 {
        list.iter().for_each(|k| text += &call(element, k));
    }
    text + "}\n"
}

fn call(element: &str, k: &Kernel) -> String {
    let f = &k.formula;
    let mut given: Vec<String> = (0..f.inputs()).map(|i| format!("c.x[{i}].data()")).collect();
    given.extend((0..f.outputs().len()).filter(|i| f.outputs()[*i].is_some()).map(|i| format!("c.out({i})")));
    given.extend(SCALARS.iter().take(f.scalars()).map(f64::to_string));
    let (inputs, outputs) = (f.inputs(), f.outputs().len());
    let given = given.join(", ");
    format!("{{ Case<{element}, {inputs}, {outputs}> c; c.run([&] {{ {}({given}, c.add, c.layout); }}); }}\n", k.name)
}

/// A small reproducible stream of numbers.
struct Stream(u64);

impl Stream {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % n
    }

    /// Half of them special: NaN, infinities, zeros, whole numbers and halves, very large and very small ones.
    fn number(&mut self) -> f64 {
        const SPECIAL: [f64; 24] = [
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            0.0,
            -0.0,
            1.0,
            -1.0,
            0.5,
            -0.5,
            1.5,
            -2.5,
            2.0,
            -2.0,
            3.0,
            -3.0,
            6.0,
            20.0,
            -20.0,
            -100.0,
            100.0,
            1e-30,
            -1e-5,
            1e5,
            -1e30,
        ];
        if self.below(2) == 0 {
            return SPECIAL[self.below(SPECIAL.len())];
        }
        self.below(1 << 20) as f64 / (1 << 17) as f64 - 4.0
    }
}

/// `v` as an array of `dtype` keeps it.
fn stored(dtype: DType, v: f64) -> f64 {
    match dtype {
        DType::F16 => half::f16::from_f32(v as f32).to_f64(),
        DType::BF16 => half::bf16::from_f32(v as f32).to_f64(),
        DType::F32 => v as f32 as f64,
        _ => v,
    }
}

/// The formula with every step rounded to float, unless it runs in double.
fn evaluate(f: &Formula, dtype: DType, x: &[f64]) -> Vec<Option<f64>> {
    if dtype == DType::F64 {
        return f.eval_with(x, &SCALARS);
    }
    let mut v: Vec<f64> = Vec::new();
    for ins in f.ins() {
        let of = |id: u32| v[id as usize];
        let value = match *ins {
            Ins::Input(k) => x[k as usize],
            Ins::Scalar(k) => SCALARS[k as usize],
            Ins::Const(bits) => f64::from_bits(bits),
            Ins::Unary(op, a) => op.eval(of(a)),
            Ins::Binary(op, a, b) => op.eval(of(a), of(b)),
            Ins::Select(c, a, b) => of(if of(c) != 0.0 { a } else { b }),
        };
        v.push(value as f32 as f64);
    }
    f.outputs().iter().map(|o| o.map(|o| v[o as usize])).collect()
}

/// One run of a kernel: its inputs, the outputs before, and how elements are found.
struct Case {
    sizes: Vec<usize>,
    x: Vec<Vec<f64>>,
    strides: Vec<Vec<usize>>,
    before: Vec<Vec<f64>>,
    add: usize,
    wanted: usize,
}

impl Case {
    fn new(f: &Formula, dtype: DType, dense: bool, r: &mut Stream) -> Case {
        let sizes = if dense { vec![400] } else { vec![3, 4, 5] };
        let strides: Vec<_> =
            (0..f.inputs()).map(|k| strides(&sizes, if dense { sizes.len() } else { k % 3 })).collect();
        let n: usize = sizes.iter().product();
        let mut numbers = |_: &Vec<usize>| (0..n).map(|_| stored(dtype, r.number())).collect();
        let x = strides.iter().map(&mut numbers).collect();
        let before = f.outputs().iter().map(|_| numbers(&vec![])).collect();
        // Dense runs set all outputs; the others add to the odd ones and leave the last of several alone.
        let all = (1 << f.outputs().len()) - 1;
        let wanted = if dense || all == 1 { all } else { all >> 1 };
        Case { sizes, x, strides, before, add: if dense { 0 } else { 0b1010 }, wanted }
    }

    fn words(&self, dense: bool) -> Vec<u8> {
        let n = self.before.first().map_or(0, Vec::len);
        let mut out: Vec<u8> = Vec::new();
        let axes = |list: &[usize]| (0..12).map(|a| list.get(a).copied().unwrap_or(0)).collect::<Vec<_>>();
        let mut whole = vec![n, if dense { 0 } else { self.sizes.len() }];
        whole.extend(axes(&self.sizes));
        self.strides.iter().for_each(|s| whole.extend(axes(s)));
        whole.extend([self.add, self.wanted]);
        whole.iter().for_each(|w| out.extend((*w as u64).to_le_bytes()));
        for v in self.x.iter().chain(&self.before) {
            out.extend((v.len() as u64).to_le_bytes());
            v.iter().for_each(|d| out.extend(d.to_le_bytes()));
        }
        out
    }

    /// The inputs of element `i`.
    fn at(&self, i: usize) -> Vec<f64> {
        let place = |strides: &Vec<usize>| {
            let walk =
                |(rest, at): (usize, usize), a: usize| (rest / self.sizes[a], at + rest % self.sizes[a] * strides[a]);
            (0..self.sizes.len()).rev().fold((i, 0), walk).1
        };
        self.strides.iter().zip(&self.x).map(|(s, x)| x[place(s)]).collect()
    }

    /// Output `k` of element `i` after the run.
    fn expected(&self, f: &Formula, dtype: DType, i: usize, k: usize) -> f64 {
        match evaluate(f, dtype, &self.at(i))[k] {
            Some(v) if self.wanted >> k & 1 == 1 => {
                stored(dtype, if self.add >> k & 1 == 1 { self.before[k][i] + v } else { v })
            }
            _ => self.before[k][i],
        }
    }
}

/// Row-major strides with axis `broadcast` at 0.
fn strides(sizes: &[usize], broadcast: usize) -> Vec<usize> {
    let mut next = 1;
    let mut list: Vec<usize> = Vec::new();
    for a in (0..sizes.len()).rev() {
        list.push(if a == broadcast { 0 } else { next });
        next *= if a == broadcast { 1 } else { sizes[a] };
    }
    list.reverse();
    list
}

/// Near enough for two correct mathematical libraries, one minus something near one included; what is too large for the type is infinite.
fn near(dtype: DType, a: f64, b: f64) -> bool {
    let (relative, absolute, largest) = match dtype {
        DType::F16 => (2e-3, 1e-6, 65504.0),
        DType::BF16 => (1.6e-2, 1e-30, f32::MAX as f64),
        DType::F32 => (1e-4, 1e-30, f32::MAX as f64),
        _ => (1e-12, 1e-300, f64::MAX),
    };
    let (x, y) = (a.clamp(-largest, largest), b.clamp(-largest, largest));
    (a.is_nan() && b.is_nan()) || (x - y).abs() <= absolute + relative * x.abs().max(y.abs())
}

/// Compiles `text` with the system's C++ compiler and feeds it; `None` without such a compiler.
fn run(name: &str, text: &str, input: Vec<u8>) -> Option<Vec<f64>> {
    Command::new("g++").arg("--version").stdout(Stdio::null()).status().ok()?;
    let folder = std::env::temp_dir().join(format!("nnrs-cuda-source-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (file, binary): (PathBuf, PathBuf) = (folder.join("kernels.cpp"), folder.join("kernels"));
    std::fs::write(&file, text).unwrap();
    let options = ["-std=c++17", "-O0", "-ffp-contract=off", "-o"];
    let built = Command::new("g++").args(options).arg(&binary).arg(&file).status().unwrap();
    assert!(built.success(), "g++ refuses {}", file.display());
    let mut child = Command::new(&binary).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success());
    std::fs::remove_dir_all(&folder).unwrap();
    Some(output.stdout.chunks(8).map(|c| f64::from_le_bytes(c.try_into().unwrap())).collect())
}

fn check(dtype: DType) {
    let (source, list) = kernels(dtype);
    assert!(list.len() > 100, "only {} kernels", list.len());
    let mut r = Stream(7);
    let runs: Vec<(&Kernel, bool)> = [true, false].iter().flat_map(|d| list.iter().map(move |k| (k, *d))).collect();
    let cases: Vec<Case> = runs.iter().map(|(k, dense)| Case::new(&k.formula, dtype, *dense, &mut r)).collect();
    let input = cases.iter().zip(&runs).flat_map(|(c, (_, dense))| c.words(*dense)).collect();
    let Some(output) = run(dtype.name(), &program(dtype, &source, &list), input) else {
        eprintln!("skipped: no g++ on this machine");
        return;
    };
    let mut got = output.into_iter();
    let mut wrong = Vec::new();
    for (case, (k, _)) in cases.iter().zip(&runs) {
        for (output, before) in case.before.iter().enumerate() {
            for i in 0..before.len() {
                let (got, want) = (got.next().unwrap(), case.expected(&k.formula, dtype, i, output));
                if !near(dtype, got, want) {
                    wrong.push(format!("{} output {output} of {:?}: {got:?}, not {want:?}", k.name, case.at(i)));
                }
            }
        }
    }
    assert!(got.next().is_none());
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong[..wrong.len().min(40)].join("\n"));
}

#[test]
fn float() {
    check(DType::F32);
}

#[test]
fn double() {
    check(DType::F64);
}

#[test]
fn half() {
    check(DType::F16);
}

#[test]
fn bfloat16() {
    check(DType::BF16);
}
