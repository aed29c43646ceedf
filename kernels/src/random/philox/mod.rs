//! Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): random words as a function of a key and a
//! counter, so that any thread, or any device, can make any part of a sequence.
//!
//! Words come in groups of 128, from 32 blocks of 4: word `w` of the group's block `b` stands at `32 w + b`. Whatever is made of
//! several words uses words of one block. So both vectors here and warps on a GPU write neighbouring words together.

mod lanes;
mod numbers;
mod shaped;

pub use numbers::{Float, UniformAt, dropout, dropout_noted, integers, normal, note, uniform};
pub use shaped::{Distribution, shaped};

use crate::simd::{Isa, isa};

/// Words made together.
pub const GROUP: usize = 128;
pub const BLOCKS: usize = GROUP / 4;

const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
const ROUNDS: usize = 10;

/// One sequence of random words: which generator, and which of its draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draw {
    pub key: u64,
    pub number: u64,
}

/// Four words of a counter: the generator itself, in plain words.
pub fn block(key: [u32; 2], counter: [u32; 4]) -> [u32; 4] {
    let ([mut a, mut b, mut c, mut d], mut k) = (counter, key);
    for _ in 0..ROUNDS {
        let (p, q) = (a as u64 * MULTIPLIERS[0] as u64, c as u64 * MULTIPLIERS[1] as u64);
        (a, b, c, d) = ((q >> 32) as u32 ^ b ^ k[0], q as u32, (p >> 32) as u32 ^ d ^ k[1], p as u32);
        k = [k[0].wrapping_add(WEYL[0]), k[1].wrapping_add(WEYL[1])];
    }
    [a, b, c, d]
}

impl Draw {
    /// Words of `32 group .. 32 group + 32` as counters, in the order of a group.
    pub fn group(&self, group: u64) -> [u32; GROUP] {
        let mut words = [0; GROUP];
        // SAFETY: `isa` names what this CPU has.
        unsafe {
            match isa() {
                #[cfg(target_arch = "x86_64")]
                Isa::Avx512 => lanes::avx512::group(self, group, &mut words),
                #[cfg(target_arch = "x86_64")]
                Isa::Avx2 => lanes::avx2::group(self, group, &mut words),
                _ => lanes::group::<lanes::ScalarWords>(self, group, &mut words),
            }
        }
        words
    }
}

#[cfg(feature = "emulate")]
mod tests {
    use super::*;

    unit_test!(known_answers);
    /// The known answers that the authors publish with Random123.
    fn known_answers() {
        let pi = [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344];
        let cases = [
            ([0; 2], [0; 4], [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]),
            ([u32::MAX; 2], [u32::MAX; 4], [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]),
            ([0xa409_3822, 0x299f_31d0], pi, [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]),
        ];
        for (key, counter, want) in cases {
            assert_eq!(block(key, counter), want);
        }
    }

    fn by_blocks(d: &Draw, group: u64) -> Vec<u32> {
        let word = |i: usize| {
            let n = group * BLOCKS as u64 + (i % BLOCKS) as u64;
            let counter = [n as u32, (n >> 32) as u32, d.number as u32, (d.number >> 32) as u32];
            block([d.key as u32, (d.key >> 32) as u32], counter)[i / BLOCKS]
        };
        (0..GROUP).map(word).collect()
    }

    unit_test!(groups_are_made_of_blocks);
    fn groups_are_made_of_blocks() {
        for d in [Draw { key: 0, number: 0 }, Draw { key: 0x1234_5678_9abc_def0, number: 3 << 40 | 7 }] {
            for group in [0, 1, (1 << 27) - 1, 1 << 27, 1 << 50] {
                let want = by_blocks(&d, group);
                assert_eq!(d.group(group).to_vec(), want);
                let mut plain = [0; GROUP];
                // SAFETY: plain words need no feature.
                unsafe { lanes::group::<lanes::ScalarWords>(&d, group, &mut plain) };
                assert_eq!(plain.to_vec(), want);
                #[cfg(target_arch = "x86_64")]
                if isa() >= Isa::Avx2 {
                    let mut words = [0; GROUP];
                    // SAFETY: the CPU has AVX2.
                    unsafe { lanes::avx2::group(&d, group, &mut words) };
                    assert_eq!(words.to_vec(), want);
                }
            }
        }
    }
}
