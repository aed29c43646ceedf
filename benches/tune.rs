//! `make tune`: measures which of two kernels is faster at which sizes, for each instruction set of this processor, on one thread,
//! and writes the rows into kernels/src/tuned/table.rs. Rows of other processors stay; those for any processor are made of all.

use nnrs_kernels::array::Output;
use nnrs_kernels::gemm::{Mat, MatMut, matmul};
use nnrs_kernels::kernel::convolution::cpu::{ChannelOrder, Conv};
use nnrs_kernels::simd::{self, Isa};
use nnrs_kernels::tuned::{
    self, ALWAYS, COLUMNS_CHANNELS, COLUMNS_SIDES, NEVER, NOWHERE, Percents, THIN_ROWS, THIN_SIDES, Tuning, UNMEASURED,
};
use std::process::Command;
use std::time::Instant;

/// Seconds that one kernel is measured for at a time, and how often in turn with the other.
const SECONDS: f64 = 0.012;
const ROUNDS: usize = 7;

/// Points of many images.
const MANY: usize = 1024;

/// What a processor without a row is given: the worst of all measured ones, and so much more.
const CAUTION: f64 = 1.25;

/// Seconds of one call.
fn seconds(f: &mut impl FnMut()) -> f64 {
    let (start, mut calls) = (Instant::now(), 0);
    while calls == 0 || start.elapsed().as_secs_f64() < SECONDS {
        f();
        calls += 1;
    }
    start.elapsed().as_secs_f64() / calls as f64
}

/// The time of `f` with one choice as a share of that with another; the best of some in turn.
fn share(choices: [&'static Tuning; 2], mut f: impl FnMut()) -> f64 {
    let mut best = [f64::MAX; 2];
    for round in 0..2 * ROUNDS + 2 {
        let which = round % 2;
        let _choice = tuned::ask(choices[which]);
        let time = seconds(&mut f);
        if round > 1 {
            best[which] = best[which].min(time);
        }
    }
    best[0] / best[1]
}

fn percent(share: f64) -> u8 {
    (share * 100.0).ceil().min(f64::from(NEVER)) as u8
}

fn noise(n: usize) -> Vec<f32> {
    (0..n).map(|i| ((i * 7919 + 13) % 1009) as f32 / 1009.0 - 0.5).collect()
}

/// A 3x3 convolution of one image.
fn conv(channels: usize, side: usize, stride: usize) -> Conv {
    Conv {
        batch: 1,
        group: 1,
        in_channels: channels,
        out_channels: channels,
        input: [1, side, side],
        kernel: [1, 3, 3],
        stride: [1, stride, stride],
        pad: [0, 1, 1],
        dilation: [1; 3],
        layout: ChannelOrder::ChannelFirst,
    }
}

/// One of three taps in a row.
fn row_conv(channels: usize, points: usize) -> Conv {
    Conv { input: [1, 1, points], kernel: [1, 1, 3], pad: [0, 0, 1], ..conv(channels, 1, 1) }
}

/// The result, the gradient of the image and that of the weights with one choice beside another.
fn passes(c: &Conv, choices: [&'static Tuning; 2]) -> [f64; 3] {
    let (x, w, gy) = (noise(c.input_len()), noise(c.weight_len()), noise(c.output_len()));
    let (mut y, mut gx, mut gw) = (gy.clone(), x.clone(), w.clone());
    [
        share(choices, || c.forward(&x, &w, None, &mut y)),
        share(choices, || c.backward_data(&gy, &w, &mut gx, Output::Write)),
        share(choices, || c.backward_weight(&gy, &x, &mut gw, Output::Write)),
    ]
}

/// With columns where these are the faster ones, for convolutions of some channels and sides.
fn winograd(columns: [Percents; 3], sides: [usize; 5], conv: fn(usize, usize) -> Conv) -> [Percents; 3] {
    let choices = [&ALWAYS, &NOWHERE]
        .map(|all| -> &Tuning { Box::leak(Box::new(Tuning { columns, many_columns: columns, ..*all })) });
    let mut found = [[[0; 5]; 5]; 3];
    for (row, channels) in tuned::WINOGRAD_CHANNELS.into_iter().enumerate() {
        for (column, side) in sides.into_iter().enumerate() {
            let c = conv(channels, side);
            let shares = passes(&c, choices);
            // The time is that of the tiles, and the table is for tiles of which all points are wanted.
            let wanted = |n: usize| if n == 1 { 1.0 } else { n as f64 / (n.div_ceil(4) * 4) as f64 };
            let wanted: f64 = c.input.into_iter().map(wanted).product();
            (0..3).for_each(|pass| found[pass][row][column] = percent(shares[pass] * wanted));
        }
    }
    found
}

/// With images of `points` points together, or one.
fn columns(points: usize) -> [Percents; 3] {
    let mut found = [[[0; 5]; 5]; 3];
    for (row, channels) in COLUMNS_CHANNELS.into_iter().enumerate() {
        for (column, side) in COLUMNS_SIDES.into_iter().enumerate() {
            let c = Conv { batch: (points / (side * side)).max(1), ..conv(channels, 2 * side, 2) };
            let shares = passes(&c, [&ALWAYS, &NOWHERE]);
            (0..3).for_each(|pass| found[pass][row][column] = percent(shares[pass]));
        }
    }
    found
}

fn thin() -> [Percents; 2] {
    [true, false].map(|is_turned| {
        THIN_ROWS.map(|rows| {
            THIN_SIDES.map(|n| {
                let (a, b, mut c) = (noise(rows * n), noise(n * n), noise(rows * n));
                let b = Mat::new(&b, n, n);
                let b = if is_turned { b.t() } else { b };
                let product = || matmul(Mat::new(&a, rows, n), b, MatMut::new(&mut c, rows, n), Output::Write);
                percent(share([&ALWAYS, &NOWHERE], product))
            })
        })
    })
}

fn measured() -> Tuning {
    nnrs_kernels::pool::set_num_threads(1);
    let (thin, columns, many_columns) = (thin(), columns(1), columns(MANY));
    Tuning {
        processor: tuned::processor().leak(),
        isa: simd::isa(),
        winograd: winograd(columns, tuned::WINOGRAD_SIDES, |channels, side| conv(channels, side, 1)),
        winograd_rows: winograd(columns, tuned::WINOGRAD_POINTS, row_conv),
        columns,
        many_columns,
        thin,
    }
}

/// For any processor, from all that were measured.
fn for_any(rows: &[Tuning], isa: Isa) -> Tuning {
    let table = |of: &dyn Fn(&Tuning) -> &Percents| -> Percents {
        let measured = rows.iter().filter(|row| row.isa == isa).map(of).filter(|table| **table != UNMEASURED);
        let tables: Vec<&Percents> = measured.collect();
        let worst = |i: usize, j: usize| tables.iter().map(|table| table[i][j]).max().unwrap_or(NEVER);
        std::array::from_fn(|i| std::array::from_fn(|j| percent(f64::from(worst(i, j)) / 100.0 * CAUTION)))
    };
    Tuning {
        processor: "",
        isa,
        winograd: [0, 1, 2].map(|pass| table(&|row| &row.winograd[pass])),
        winograd_rows: [0, 1, 2].map(|pass| table(&|row| &row.winograd_rows[pass])),
        columns: [0, 1, 2].map(|pass| table(&|row| &row.columns[pass])),
        many_columns: [0, 1, 2].map(|pass| table(&|row| &row.many_columns[pass])),
        thin: [0, 1].map(|how| table(&|row| &row.thin[how])),
    }
}

/// As Rust.
fn text(row: &Tuning) -> String {
    let Tuning { processor, isa, winograd, winograd_rows, columns, many_columns, thin } = row;
    format!(
        "Tuning {{ processor: {processor:?}, isa: Isa::{isa:?}, winograd: {winograd:?}, winograd_rows: {winograd_rows:?}, columns: {columns:?}, many_columns: {many_columns:?}, thin: {thin:?} }},\n"
    )
}

/// As numbers, between this process and those that measure an instruction set.
fn numbers(row: &Tuning) -> String {
    let [a, b, c, d] = [&row.winograd, &row.winograd_rows, &row.columns, &row.many_columns];
    let tables = a.iter().chain(b).chain(c).chain(d).chain(&row.thin);
    tables.flatten().flatten().map(|n| format!("{n} ")).collect()
}

fn from_numbers(isa: Isa, text: &str) -> Tuning {
    let numbers: Vec<u8> = text.split_whitespace().map(|n| n.parse().expect("numbers")).collect();
    let table =
        |t: usize| -> Percents { std::array::from_fn(|i| std::array::from_fn(|j| numbers[t * 25 + i * 5 + j])) };
    let [winograd, winograd_rows, columns, many_columns] =
        [0, 3, 6, 9].map(|first| [0, 1, 2].map(|pass| table(first + pass)));
    let thin = [12, 13].map(table);
    Tuning { processor: tuned::processor().leak(), isa, winograd, winograd_rows, columns, many_columns, thin }
}

fn main() {
    if std::env::var("NNRS_TUNE_ONE").is_ok() {
        println!("{}", numbers(&measured()));
        return;
    }
    let mut rows: Vec<Tuning> = tuned::ROWS.iter().filter(|row| !row.processor.is_empty()).copied().collect();
    for (isa, name) in [(Isa::Avx512, "avx512"), (Isa::Avx2, "avx2"), (Isa::Portable, "portable")] {
        if isa > simd::isa() {
            continue;
        }
        println!("{} with {name} ...", tuned::processor());
        let me = std::env::current_exe().expect("a program");
        let told = [("NNRS_SIMD", name), ("NNRS_TUNE_ONE", "1")];
        let run = Command::new(me).envs(told).output().expect("the program runs once more");
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        let row = from_numbers(isa, &String::from_utf8_lossy(&run.stdout));
        rows.retain(|old| (old.processor, old.isa) != (row.processor, isa));
        rows.push(row);
    }
    let any = [Isa::Avx512, Isa::Avx2, Isa::Portable].map(|isa| for_any(&rows, isa));
    rows.sort_by(|a, b| (a.processor, b.isa).cmp(&(b.processor, a.isa)));
    let rows: String = rows.iter().chain(&any).map(text).collect();
    let text = format!(
        "//! Written by `make tune`: do not edit.\n\nuse super::Tuning;\nuse crate::simd::Isa;\n\npub static ROWS: &[Tuning] = &[\n{rows}];\n"
    );
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/tuned/table.rs");
    std::fs::write(path, text).expect("the table can be written");
    println!("Written: {path}");
}
