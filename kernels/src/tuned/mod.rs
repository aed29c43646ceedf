//! Which of two kernels is faster at which sizes. `make tune` measures it (`benches/tune.rs`) and writes `table.rs`, which has a row for
//! each instruction set of each family of processors; those that nobody has measured take a row of their own, which asks for more.
//! What is chosen follows from sizes, never from the number of threads.

mod table;

use crate::simd::{Isa, isa};
use crate::switch::Switch;
use std::cell::Cell;
use std::sync::OnceLock;
pub use table::ROWS;

/// The time of a kernel in percent of another's, at five sizes (rows) and five sizes (columns): each place stands for the sizes around it.
/// 255 is for more, and for smaller sizes than the first.
pub type Percents = [[u8; 5]; 5];

/// A kernel that is never used.
pub const NEVER: u8 = 255;

/// What nobody has measured yet on a family: that of any processor holds.
pub const UNMEASURED: Percents = [[NEVER; 5]; 5];

/// Channels that are summed and made, the fewer of both, and sides of images, at which Winograd's way was measured.
pub const WINOGRAD_CHANNELS: [usize; 5] = [16, 32, 64, 128, 256];
pub const WINOGRAD_SIDES: [usize; 5] = [4, 7, 14, 28, 56];

/// Points of rows at which that of rows was, with the same channels.
pub const WINOGRAD_POINTS: [usize; 5] = [16, 64, 256, 1024, 4096];

/// Channels of 3x3 kernels and sides of results, at which windows laid out as columns were.
pub const COLUMNS_CHANNELS: [usize; 5] = [24, 48, 96, 192, 384];
pub const COLUMNS_SIDES: [usize; 5] = [1, 2, 4, 8, 14];

/// Rows of a product, all that there are loops for, and sides of the other matrix, at which reading that as it lies was.
pub const THIN_ROWS: [usize; 5] = [1, 2, 3, 4, 5];
pub const THIN_SIDES: [usize; 5] = [32, 256, 640, 1024, 2048];

/// What was measured on one family of processors with one instruction set.
#[derive(Clone, Copy)]
pub struct Tuning {
    /// See [`processor`]; empty for all that have no row.
    pub processor: &'static str,
    pub isa: Isa,
    /// Winograd's way beside the direct one, for the result, the gradient of the image and that of the weights, by channels and tiles,
    /// all of whose points are wanted.
    pub winograd: [Percents; 3],
    /// The same for kernels of a row.
    pub winograd_rows: [Percents; 3],
    /// Windows as a matrix beside bands of images, for the result, the gradient of the image and that of the weights, by weights and points.
    pub columns: [Percents; 3],
    /// The same for so many images that they are several matrices, by weights and points of an image.
    pub many_columns: [Percents; 3],
    /// Products of few rows that read the other matrix as it lies beside those that pack it, by rows and numbers of that: where its columns
    /// are in order, and where its rows are.
    pub thin: [Percents; 2],
}

impl Tuning {
    /// Windows as a matrix beside bands, for one of three results: of few images and of many.
    pub fn columns(&self, pass: usize) -> [&Percents; 2] {
        [&self.columns[pass], &self.many_columns[pass]]
    }

    /// The same for each size.
    const fn constant(percent: u8) -> Tuning {
        let all = [[percent; 5]; 5];
        Tuning {
            processor: "",
            isa: Isa::Portable,
            winograd: [all; 3],
            winograd_rows: [all; 3],
            columns: [all; 3],
            many_columns: [all; 3],
            thin: [all; 2],
        }
    }
}

/// To measure: what is chosen everywhere from the first sizes on, or nowhere.
pub static ALWAYS: Tuning = Tuning::constant(0);
pub static NOWHERE: Tuning = Tuning::constant(NEVER);

/// The percent at two sizes: that of the nearest ones, by ratio.
pub fn percent(of: &Percents, sizes: [&[usize; 5]; 2], at: [usize; 2]) -> usize {
    let place = |sizes: &[usize; 5], at: usize| {
        let is_near = |i: usize| i == 0 || at.saturating_mul(at) >= sizes[i - 1] * sizes[i];
        (0..5).rfind(|&i| is_near(i)).filter(|_| at >= sizes[0])
    };
    let found = place(sizes[0], at[0]).zip(place(sizes[1], at[1]));
    usize::from(found.map_or(NEVER, |(row, column)| of[row][column]))
}

thread_local! {
    static ASKED: Cell<Option<&'static Tuning>> = const { Cell::new(None) };
}

/// Other choices on this thread, while it is there.
pub struct TuningAsked(Option<&'static Tuning>);

/// Makes choices by `tuning` from now on.
#[must_use]
pub fn ask(tuning: &'static Tuning) -> TuningAsked {
    TuningAsked(ASKED.replace(Some(tuning)))
}

impl Drop for TuningAsked {
    fn drop(&mut self) {
        ASKED.set(self.0);
    }
}

/// What holds for this processor; with NNRS_TUNED=0 for any one that has its instruction set.
#[inline]
pub fn get() -> &'static Tuning {
    static FOUND: OnceLock<Tuning> = OnceLock::new();
    ASKED.get().unwrap_or_else(|| FOUND.get_or_init(find))
}

#[cold]
fn find() -> Tuning {
    static TUNED: Switch = Switch::new("NNRS_TUNED", true);
    let row = |processor: &str| ROWS.iter().find(|row| row.isa == isa() && row.processor == processor);
    let own = if TUNED.get() { row(&processor()) } else { None };
    let any = row("").expect("each instruction set has a row");
    let own = own.unwrap_or(any);
    let known = |own: &[Percents; 3], any: &[Percents; 3]| {
        std::array::from_fn(|i| if own[i] == UNMEASURED { any[i] } else { own[i] })
    };
    let columns = known(&own.columns, &any.columns);
    let [winograd_rows, many_columns] =
        [(&own.winograd_rows, &any.winograd_rows), (&own.many_columns, &any.many_columns)]
            .map(|(own, any)| known(own, any));
    Tuning { columns, winograd_rows, many_columns, ..*own }
}

/// Maker and family of the processor; of Intel's, which are one family, the model too, or that it computes with 16 bits: so do all for
/// servers from Sapphire Rapids on, whose models virtual machines disguise. Empty where there is no way to know.
#[cfg(target_arch = "x86_64")]
pub fn processor() -> String {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    let maker = __cpuid(0);
    let maker: Vec<u8> = [maker.ebx, maker.edx, maker.ecx].iter().flat_map(|word| word.to_le_bytes()).collect();
    let maker = String::from_utf8_lossy(&maker).into_owned();
    let word = __cpuid(1).eax;
    let family = (word >> 8 & 15) + if word >> 8 & 15 == 15 { word >> 20 & 255 } else { 0 };
    let model = (word >> 4 & 15) + (word >> 16 & 15) * 16;
    let computes_halves = __cpuid(0).eax >= 7 && __cpuid_count(7, 0).edx >> 23 & 1 == 1;
    match (family, computes_halves) {
        (6, true) => format!("{maker} {family} fp16"),
        (6, false) => format!("{maker} {family} {model}"),
        _ => format!("{maker} {family}"),
    }
}

#[cfg(not(target_arch = "x86_64"))]
pub fn processor() -> String {
    String::new()
}

#[cfg(feature = "emulate")]
mod tests {
    use super::*;

    unit_test!(each_instruction_set_has_a_row_for_any_processor);
    fn each_instruction_set_has_a_row_for_any_processor() {
        for isa in [Isa::Portable, Isa::Avx2, Isa::Avx512] {
            let any = ROWS.iter().filter(|row| row.isa == isa && row.processor.is_empty());
            assert_eq!(any.count(), 1, "{isa:?}");
        }
        let names: std::collections::BTreeSet<_> = ROWS.iter().map(|row| (row.processor, row.isa as u8)).collect();
        assert_eq!(names.len(), ROWS.len(), "each row once");
    }

    unit_test!(a_size_takes_the_nearest_place);
    fn a_size_takes_the_nearest_place() {
        let mut table = [[7; 5]; 5];
        table[1][2] = 40;
        let sizes = [&[16, 32, 64, 128, 256], &[1, 4, 16, 49, 196]];
        for (at, want) in [
            ([32, 16], 40),
            ([23, 8], 40),
            ([45, 27], 40),
            ([22, 16], 7),
            ([46, 16], 7),
            ([32, 7], 7),
            ([32, 29], 7),
            ([15, 16], 255),
            ([32, 0], 255),
        ] {
            assert_eq!(percent(&table, sizes, at), want, "{at:?}");
        }
        assert_eq!(percent(&table, sizes, [1 << 40, 1 << 40]), 7);
    }

    unit_test!(others_are_asked_on_one_thread_only);
    fn others_are_asked_on_one_thread_only() {
        let own = get() as *const Tuning as usize;
        {
            let _all = ask(&ALWAYS);
            assert!(std::ptr::eq(get(), &ALWAYS));
            {
                let _none = ask(&NOWHERE);
                assert!(std::ptr::eq(get(), &NOWHERE));
            }
            assert!(std::ptr::eq(get(), &ALWAYS));
            let there = std::thread::spawn(|| get() as *const Tuning as usize).join();
            assert_eq!(there.expect("no panic"), own);
        }
        assert_eq!(get() as *const Tuning as usize, own);
    }
}
