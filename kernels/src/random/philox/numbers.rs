//! Numbers made of random words: uniform, normal, integers, and dropout's mask. Element i depends on the draw and on i alone, so the
//! numbers are the same however the work is split.

use super::lanes::{self, WordLanes};
use super::{BLOCKS, Draw, GROUP};
use crate::dtype::Element;
use crate::expr::op::Unary;
use crate::pool::tasks::{SendPtr, Shared, parts};
use crate::simd::{self, Body, Isa, SimdReal, Vector, isa};

/// Groups made by one task.
const TASK: usize = 128;

/// How random words become numbers of a type.
pub trait Float: SimdReal {
    /// Words that one number takes.
    const WORDS: usize;
    /// Numbers at least 0 and less than 1, `GROUP / WORDS` of them.
    fn unit(words: &[u32; GROUP], y: &mut [Self]);
    /// `1 - u` of one number: more than 0, for logarithms; exact near 0.
    fn positive(words: &[u32; GROUP], i: usize) -> Self;
    fn below(self) -> Self;
}

impl Float for f32 {
    const WORDS: usize = 1;
    #[inline(always)]
    fn unit(words: &[u32; GROUP], y: &mut [f32]) {
        for (y, &w) in y.iter_mut().zip(words) {
            *y = (w >> 8) as i32 as f32 * (1.0 / (1 << 24) as f32);
        }
    }
    #[inline(always)]
    fn positive(words: &[u32; GROUP], i: usize) -> f32 {
        (words[i] as f32 + 1.0) * (1.0 / (1u64 << 32) as f32)
    }
    fn below(self) -> f32 {
        self.next_down()
    }
}

impl Float for f64 {
    const WORDS: usize = 2;
    #[inline(always)]
    fn unit(words: &[u32; GROUP], y: &mut [f64]) {
        for (i, y) in y.iter_mut().enumerate().take(GROUP / 2) {
            *y = (long(words, i) >> 11) as f64 * (1.0 / (1u64 << 53) as f64);
        }
    }
    #[inline(always)]
    fn positive(words: &[u32; GROUP], i: usize) -> f64 {
        ((long(words, i) >> 11) as f64 + 1.0) * (1.0 / (1u64 << 53) as f64)
    }
    fn below(self) -> f64 {
        self.next_down()
    }
}

/// Two words of one block as one: the first two words make number b, the last two number 32 + b.
#[inline(always)]
fn long(words: &[u32; GROUP], i: usize) -> u64 {
    let at = i / BLOCKS * 2 * BLOCKS + i % BLOCKS;
    (words[at] as u64) << 32 | words[at + BLOCKS] as u64
}

/// Calls `f(group, part)` for each part of `y` that one group makes, on all threads.
fn each_group<T: Send>(y: &mut [T], per: usize, f: impl Fn(u64, &mut [T]) + Sync) {
    parts(y, per * TASK, |task, part| {
        for (i, part) in part.chunks_mut(per).enumerate() {
            f((task * TASK + i) as u64, part);
        }
    });
}

/// Numbers at least `low` and less than `high`.
pub fn uniform<T: Float>(d: Draw, y: &mut [T], low: f64, high: f64) {
    let (width, top, low) = (T::from_f64(high - low), T::from_f64(high).below(), T::from_f64(low));
    each_group(y, GROUP / T::WORDS, |group, y| {
        T::unit(&d.group(group), y);
        for v in y {
            let scaled = low + width * *v;
            *v = if scaled > top { top } else { scaled };
        }
    });
}

/// Numbers of `uniform` from 0 to 1, some of them, wherever they stand.
pub struct UniformAt<T> {
    d: Draw,
    /// The last group that was made, and its numbers.
    group: Option<u64>,
    numbers: [T; GROUP],
}

impl<T: Float> UniformAt<T> {
    pub fn new(d: Draw) -> UniformAt<T> {
        UniformAt { d, group: None, numbers: [T::ZERO; GROUP] }
    }

    /// Calls `f(y, number)` for elements whose numbers are those from `first` on.
    pub fn each(&mut self, first: usize, y: &mut [T], f: impl Fn(&mut T, T)) {
        let per = GROUP / T::WORDS;
        let (mut y, mut at) = (y, first);
        while !y.is_empty() {
            let (group, from) = ((at / per) as u64, at % per);
            if self.group != Some(group) {
                T::unit(&self.d.group(group), &mut self.numbers[..per]);
                self.group = Some(group);
            }
            let (now, later) = y.split_at_mut(y.len().min(per - from));
            at += now.len();
            now.iter_mut().zip(&self.numbers[from..]).for_each(|(y, &v)| f(y, v));
            y = later;
        }
    }
}

/// Normal numbers of mean `mu` and deviation `sigma`, by Box and Muller's method.
pub fn normal<T: Float>(d: Draw, y: &mut [T], mu: f64, sigma: f64) {
    let (mu, sigma) = (T::from_f64(mu), T::from_f64(sigma));
    each_group(y, GROUP / T::WORDS, |group, y| {
        let mut z = [T::ZERO; GROUP];
        let z = &mut z[..GROUP / T::WORDS];
        standard(&d.group(group), z);
        y.iter_mut().zip(z).for_each(|(y, z)| *y = mu + sigma * *z);
    });
}

/// The first half of `z` from cosines, the second from sines, of the same radii and angles.
fn standard<T: Float>(words: &[u32; GROUP], z: &mut [T]) {
    let half = z.len() / 2;
    let (mut radius, mut turn) = ([T::ZERO; GROUP / 2], [T::ZERO; GROUP]);
    T::unit(words, &mut turn);
    let (radius, angle) = (&mut radius[..half], &mut turn[half..2 * half]);
    for i in 0..half {
        radius[i] = T::positive(words, i);
        angle[i] = T::from_f64(std::f64::consts::TAU) * angle[i];
    }
    map(Unary::Log, radius);
    simd::scale(radius, T::from_f64(-2.0));
    map(Unary::Sqrt, radius);
    let (cosines, sines) = z.split_at_mut(half);
    cosines.copy_from_slice(angle);
    sines.copy_from_slice(angle);
    map(Unary::Cos, cosines);
    map(Unary::Sin, sines);
    for i in 0..half {
        cosines[i] = cosines[i] * radius[i];
        sines[i] = sines[i] * radius[i];
    }
}

pub(super) fn map<T: SimdReal>(op: Unary, y: &mut [T]) {
    // SAFETY: one array, read and written in place.
    unsafe { simd::unary(op, y.as_mut_ptr(), y.as_ptr(), y.len()) }
}

/// Integers at least `low` and less than `high`.
pub fn integers<T: Element>(d: Draw, y: &mut [T], low: i64, high: i64) {
    let range = high.wrapping_sub(low) as u64 as u128;
    each_group(y, GROUP / 2, |group, y| {
        let words = d.group(group);
        for (i, y) in y.iter_mut().enumerate() {
            let offset = (long(&words, i) as u128 * range) >> 64;
            *y = T::from_f64(low.wrapping_add(offset as i64) as f64);
        }
    });
}

/// What becomes of the destination.
#[derive(Clone, Copy)]
pub(super) struct DropoutMask<T> {
    d: Draw,
    /// Words below it drop their element.
    threshold: u32,
    scale: T,
    add: bool,
    /// Where it is noted what was kept: [`NOTE`] bytes for [`NOTED`] elements, bit r of byte c for element `32 r + c`.
    kept: Option<SendPtr<u8>>,
}

/// Elements that are noted together, and bytes that they take.
const NOTED: usize = 2 * GROUP;
const NOTE: usize = NOTED / 8;
/// Bits of a byte that are of one group.
const ROWS: usize = GROUP / NOTE;

/// Bytes of a note of what is kept of `n` elements.
pub fn note(n: usize) -> usize {
    n.div_ceil(NOTED) * NOTE
}

/// `y = x / (1 - p)` where the draw keeps an element, `x * 0` elsewhere; with `add`, added to y. Makes the same mask at every call, and
/// [notes](note) it where that is asked for.
pub fn dropout<T: Float>(d: Draw, p: f64, y: &mut [T], x: &[T], add: bool, kept: Option<&mut [u8]>) {
    let threshold = (p * (1u64 << 32) as f64) as u32;
    assert!(kept.as_ref().is_none_or(|kept| kept.len() == note(y.len())), "a bit for each element");
    let kept = kept.map(|kept| SendPtr(kept.as_mut_ptr()));
    let f = DropoutMask { d, threshold, scale: T::from_f64(1.0 / (1.0 - p)), add, kept };
    parts(y, GROUP * TASK, |task, y| {
        let x = &x[task * GROUP * TASK..][..y.len()];
        let (group, kept) = ((task * TASK) as u64, f.kept.map(|kept| kept.add(task * note(GROUP * TASK))));
        let f = DropoutMask { kept, ..f };
        // SAFETY: `isa` names what this CPU has.
        unsafe {
            match isa() {
                #[cfg(target_arch = "x86_64")]
                Isa::Avx512 => lanes::avx512::dropout(&f, group, y, x),
                #[cfg(target_arch = "x86_64")]
                Isa::Avx2 => lanes::avx2::dropout(&f, group, y, x),
                _ => f.run::<lanes::ScalarWords>(group, y, x),
            }
        }
    });
}

impl<T: Float> DropoutMask<T> {
    /// Works on the elements of whole groups from `group` on.
    ///
    /// # Safety
    /// The CPU must have the instruction set of V.
    #[inline(always)]
    pub(super) unsafe fn run<V: WordLanes>(&self, group: u64, y: &mut [T], x: &[T]) {
        let (mut words, mut bits) = ([0; GROUP], [0; NOTE]);
        let mut first = 0;
        while first < y.len() {
            // SAFETY: the caller's promise.
            unsafe { lanes::group::<V>(&self.d, group + (first / GROUP) as u64, &mut words) };
            let end = y.len().min(first + GROUP);
            self.apply(&words, &mut y[first..end], &x[first..end]);
            if let Some(kept) = self.kept {
                // SAFETY: a note for each pair of groups, or what is left of one.
                let note = unsafe { &mut *kept.add(first / NOTED * NOTE).0.cast::<[u8; NOTE]>() };
                self.bits(&words, &mut bits);
                match first / GROUP % 2 {
                    0 => note.iter_mut().zip(&bits).for_each(|(note, bits)| *note = *bits as u8),
                    _ => note.iter_mut().zip(&bits).for_each(|(note, bits)| *note |= (bits << ROWS) as u8),
                }
            }
            first += GROUP;
        }
    }

    /// The bits of a group.
    #[inline(always)]
    fn bits(&self, words: &[u32; GROUP], bits: &mut [u32; NOTE]) {
        for (c, bits) in bits.iter_mut().enumerate() {
            let bit = |r: usize| ((words[r * NOTE + c] >= self.threshold) as u32) << r;
            *bits = bit(0) | bit(1) | bit(2) | bit(3);
        }
    }

    #[inline(always)]
    fn apply(&self, words: &[u32; GROUP], y: &mut [T], x: &[T]) {
        if self.add {
            for ((y, &x), &w) in y.iter_mut().zip(x).zip(words) {
                *y += x * if w >= self.threshold { self.scale } else { T::ZERO };
            }
        } else {
            for ((y, &x), &w) in y.iter_mut().zip(x).zip(words) {
                *y = x * if w >= self.threshold { self.scale } else { T::ZERO };
            }
        }
    }
}

/// As `dropout`, by a note of what is kept.
pub fn dropout_noted<T: Float>(kept: &[u8], p: f64, y: &mut [T], x: &[T], add: bool) {
    assert_eq!(kept.len(), note(y.len()), "a bit for each element");
    let scale = T::from_f64(1.0 / (1.0 - p));
    parts(y, GROUP * TASK, |task, y| {
        let (x, kept) = (&x[task * GROUP * TASK..][..y.len()], &kept[task * note(GROUP * TASK)..]);
        // SAFETY: y is this task's own.
        unsafe { simd::run::<T>(&NotedMask { kept, scale, y: Shared(y.as_mut_ptr()), x, add }) };
    });
}

struct NotedMask<'a, T> {
    kept: &'a [u8],
    scale: T,
    y: Shared<T>,
    x: &'a [T],
    add: bool,
}

impl<T: Float> NotedMask<'_, T> {
    #[inline(always)]
    fn each<const ADD: bool>(&self, y: &mut [T]) {
        let rows = y.chunks_mut(NOTE).zip(self.x.chunks(NOTE)).enumerate();
        for (r, (y, x)) in rows {
            let (bits, bit) = (&self.kept[r / 8 * NOTE..][..NOTE], 1 << (r % 8));
            for ((y, &x), &bits) in y.iter_mut().zip(x).zip(bits) {
                let v = x * if bits & bit != 0 { self.scale } else { T::ZERO };
                *y = if ADD { *y + v } else { v };
            }
        }
    }
}

impl<T: Float> Body<T> for NotedMask<'_, T> {
    #[inline(always)]
    unsafe fn run<V: Vector<E = T>>(&self) {
        // SAFETY: the caller's promise.
        let y = unsafe { std::slice::from_raw_parts_mut(self.y.0, self.x.len()) };
        if self.add { self.each::<true>(y) } else { self.each::<false>(y) }
    }
}

#[cfg(feature = "emulate")]
mod tests {
    use super::*;

    const D: Draw = Draw { key: 7, number: 3 };

    fn moments(y: &[f64]) -> (f64, f64) {
        let mean = y.iter().sum::<f64>() / y.len() as f64;
        (mean, (y.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / y.len() as f64).sqrt())
    }

    fn wide<T: SimdReal>(y: &[T]) -> Vec<f64> {
        y.iter().map(|v| v.to_f64()).collect()
    }

    fn check<T: Float>() {
        let n = 100_003;
        let mut y = vec![T::ZERO; n];
        uniform(D, &mut y, -1.0, 3.0);
        let u = wide(&y);
        assert!(u.iter().all(|v| (-1.0..3.0).contains(v)));
        let (mean, deviation) = moments(&u);
        assert!((mean - 1.0).abs() < 0.02 && (deviation - 4.0 / 12f64.sqrt()).abs() < 0.02);
        normal(D, &mut y, 2.0, 0.5);
        let (mean, deviation) = moments(&wide(&y));
        assert!((mean - 2.0).abs() < 0.01 && (deviation - 0.5).abs() < 0.01);
        let beyond = wide(&y).iter().filter(|v| (**v - 2.0).abs() > 1.0).count() as f64 / n as f64;
        assert!((beyond - 0.0455).abs() < 0.004, "{beyond}");
        integers(D, &mut y, -2, 3);
        let counts: Vec<usize> = (-2..3).map(|k| wide(&y).iter().filter(|v| **v == k as f64).count()).collect();
        assert!(counts.iter().all(|c| (*c as f64 / n as f64 - 0.2).abs() < 0.01), "{counts:?}");
    }

    unit_test!(distributions);
    fn distributions() {
        check::<f32>();
        check::<f64>();
    }

    unit_test!(a_part_does_not_depend_on_the_length);
    fn a_part_does_not_depend_on_the_length() {
        let (mut long, mut short) = (vec![0f32; 70_000], vec![0f32; 301]);
        for make in [|y: &mut [f32]| uniform(D, y, 0.0, 1.0), |y: &mut [f32]| normal(D, y, 0.0, 1.0)] {
            make(&mut long);
            make(&mut short);
            assert_eq!(long[..301], short);
        }
    }

    unit_test!(dropout_follows_the_words);
    fn dropout_follows_the_words() {
        let x: Vec<f32> = (0..40_000).map(|i| i as f32 + 1.0).collect();
        let mut y = vec![0.5; x.len()];
        let mut kept = vec![0; note(x.len())];
        dropout(D, 0.25, &mut y, &x, false, Some(&mut kept));
        for (i, (&y, &x)) in y.iter().zip(&x).enumerate() {
            let kept = D.group((i / GROUP) as u64)[i % GROUP] >= 1 << 30;
            assert_eq!(y, if kept { x * (1.0 / 0.75f32) } else { 0.0 });
        }
        let once = y.clone();
        dropout(D, 0.25, &mut y, &x, true, None);
        assert!(y.iter().zip(&once).all(|(y, o)| *y == o + o));
        dropout_noted(&kept, 0.25, &mut y, &x, false);
        assert_eq!(y, once);
        dropout_noted(&kept, 0.25, &mut y, &x, true);
        assert!(y.iter().zip(&once).all(|(y, o)| *y == o + o));
    }

    unit_test!(normal_numbers_pair_words_of_one_block);
    fn normal_numbers_pair_words_of_one_block() {
        let words = D.group(0);
        let mut z = [0f64; 64];
        standard(&words, &mut z);
        let number = |k: usize, b: usize| ((words[k * 32 + b] as u64) << 32 | words[k * 32 + 32 + b] as u64) >> 11;
        for b in 0..32 {
            let u = (number(0, b) as f64 + 1.0) / (1u64 << 53) as f64;
            let angle = std::f64::consts::TAU * (number(2, b) as f64 / (1u64 << 53) as f64);
            let radius = (-2.0 * u.ln()).sqrt();
            assert!((z[b] - radius * angle.cos()).abs() < 1e-13 && (z[32 + b] - radius * angle.sin()).abs() < 1e-13);
        }
    }

    fn check_parts<T: Float + PartialEq + std::fmt::Debug>() {
        let mut all = [T::ZERO; 1000];
        uniform(D, &mut all, 0.0, 1.0);
        let mut at = UniformAt::new(D);
        for (first, n) in [(0, 10), (5, 300), (127, 1), (63, 2), (640, 360), (0, 0)] {
            let mut y = vec![T::ZERO; n];
            at.each(first, &mut y, |y, v| *y = v);
            assert_eq!(y, all[first..first + n]);
        }
    }

    unit_test!(uniform_numbers_are_found_wherever_they_stand);
    fn uniform_numbers_are_found_wherever_they_stand() {
        check_parts::<f32>();
        check_parts::<f64>();
    }

    unit_test!(speed_of_random, ignore = "prints a measurement");
    /// `cargo test --release --features emulate -- --ignored --nocapture speed_of_random`
    fn speed_of_random() {
        let n = 1 << 20;
        let (x, mut y) = (vec![1f32; n], vec![0f32; n]);
        let mut show = |what: &str, f: &dyn Fn(&mut [f32])| {
            let best = (0..50).map(|_| (std::time::Instant::now(), f(&mut y)).0.elapsed()).min();
            println!("{what}: {:.3} ns an element", best.unwrap().as_secs_f64() * 1e9 / n as f64);
        };
        show("dropout", &|y| dropout(D, 0.5, y, &x, false, None));
        let kept = std::cell::RefCell::new(vec![0; note(n)]);
        show("dropout, noted", &|y| dropout(D, 0.5, y, &x, false, Some(&mut kept.borrow_mut())));
        show("dropout by a note", &|y| dropout_noted(&kept.borrow(), 0.5, y, &x, false));
        show("uniform", &|y| uniform(D, y, 0.0, 1.0));
        show("normal", &|y| normal(D, y, 0.0, 1.0));
    }
}
