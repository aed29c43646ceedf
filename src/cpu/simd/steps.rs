//! Runs of cheap operations with the value at hand in registers. A loop that only adds or multiplies is bound by its store and its loads;
//! here a block of a few vectors goes through a whole list of steps, each of which reads at most one more tile, and only values that
//! are used again later are stored. Each step is the same operation as its loop, so the bits are the same.

use crate::function::expr::op::{Binary, Unary};

use super::ops;
use super::vector::Vector;

/// Where a tile lies. Element i is at `ptr + (i & mask)`: a mask of all ones for a tile, a block's length less one for a value
/// that lives only inside a block.
#[derive(Clone, Copy)]
pub struct Place<T> {
    pub ptr: *mut T,
    pub mask: usize,
}

/// One step: what to do with the registers, and the numbers of the places it reads or writes.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    pub act: Act,
    pub a: u16,
    pub b: u16,
}

/// The list of steps: what an operation of the table does to the registers `r`.
macro_rules! acts {
    (unary: $($u:ident)*; left: $($l:ident $ls:ident $lt:ident),*; right: $($r:ident $rs:ident $rt:ident $rop:ident),*; swapped: $($s:ident $sop:ident)*;) => {
        /// What a step does with the value in registers, `r`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Act {
            /// `r = a`
            Load,
            /// `a = r`
            Store,
            /// `s = r`, `t = r`
            KeepS,
            KeepT,
            /// `r = s`, `r = t`
            BackS,
            BackT,
            /// `r = r * r`
            Square,
            /// `r = r ? a : b`
            Choose,
            /// `r = a ? r : b`
            IfTrue,
            /// `r = a ? b : r`
            IfFalse,
            $(/// `r = op(r)`
            $u,)*
            $(/// `r = op(r, a)`, then with s and t for a
            $l, $ls, $lt,)*
            $(/// `r = op(a, r)`, then with s and t for a
            $r, $rs, $rt,)*
        }

        impl Act {
            /// The step for `op(r)`, if there is one.
            pub fn unary(op: Unary) -> Option<Act> {
                match op {
                    $(Unary::$u => Some(Act::$u),)*
                    _ => None,
                }
            }

            /// The step that finds `a` in other registers instead of memory: s or t.
            pub fn with_register(self, t: bool) -> Option<Act> {
                Some(match self {
                    Act::Load => if t { Act::BackT } else { Act::BackS },
                    Act::Store => if t { Act::KeepT } else { Act::KeepS },
                    $(Act::$l => if t { Act::$lt } else { Act::$ls },)*
                    $(Act::$r => if t { Act::$rt } else { Act::$rs },)*
                    _ => return None,
                })
            }

            /// The step for `op(r, a)`.
            pub fn left(op: Binary) -> Option<Act> {
                match op {
                    $(Binary::$l => Some(Act::$l),)*
                    _ => None,
                }
            }

            /// The step for `op(a, r)`.
            pub fn right(op: Binary) -> Option<Act> {
                match op {
                    $(Binary::$rop => Some(Act::$r),)*
                    $(Binary::$s => Some(Act::$sop),)*
                    _ => None,
                }
            }
        }

        /// One block of `B` vectors through all steps.
        #[inline(always)]
        unsafe fn pass<V: Vector, R: Reach<V>, const B: usize>(reach: R, steps: &[Step], places: *const Place<V::E>, i: usize) {
            let mut r = [V::splat(0.0); B];
            let (mut s, mut t) = (r, r);
            for step in steps {
                // SAFETY: the caller's promise.
                unsafe {
                    let at = |k: u16| {
                        let p = *places.add(k as usize);
                        p.ptr.add(i & p.mask)
                    };
                    match step.act {
                        Act::Load => {
                            let a = at(step.a);
                            for k in 0..B {
                                r[k] = reach.load(a.add(k * V::N));
                            }
                        }
                        Act::Store => {
                            let a = at(step.a);
                            for k in 0..B {
                                reach.store(r[k], a.add(k * V::N));
                            }
                        }
                        Act::KeepS => s = r,
                        Act::KeepT => t = r,
                        Act::BackS => r = s,
                        Act::BackT => r = t,
                        Act::Square => {
                            for k in 0..B {
                                r[k] = r[k] * r[k];
                            }
                        }
                        Act::Choose => {
                            let (a, b) = (at(step.a), at(step.b));
                            for k in 0..B {
                                r[k] = V::select(r[k].is_true(), reach.load(a.add(k * V::N)), reach.load(b.add(k * V::N)));
                            }
                        }
                        Act::IfTrue => {
                            let (a, b) = (at(step.a), at(step.b));
                            for k in 0..B {
                                r[k] = V::select(reach.load(a.add(k * V::N)).is_true(), r[k], reach.load(b.add(k * V::N)));
                            }
                        }
                        Act::IfFalse => {
                            let (a, b) = (at(step.a), at(step.b));
                            for k in 0..B {
                                r[k] = V::select(reach.load(a.add(k * V::N)).is_true(), reach.load(b.add(k * V::N)), r[k]);
                            }
                        }
                        $(Act::$u => {
                            for k in 0..B {
                                r[k] = V::apply1(&ops::$u, r[k]);
                            }
                        })*
                        $(Act::$l => {
                            let a = at(step.a);
                            for k in 0..B {
                                r[k] = V::apply2(&ops::$l, r[k], reach.load(a.add(k * V::N)));
                            }
                        })*
                        $(Act::$ls => {
                            for k in 0..B {
                                r[k] = V::apply2(&ops::$l, r[k], s[k]);
                            }
                        })*
                        $(Act::$lt => {
                            for k in 0..B {
                                r[k] = V::apply2(&ops::$l, r[k], t[k]);
                            }
                        })*
                        $(Act::$rs => {
                            for k in 0..B {
                                r[k] = V::apply2(&ops::$rop, s[k], r[k]);
                            }
                        })*
                        $(Act::$rt => {
                            for k in 0..B {
                                r[k] = V::apply2(&ops::$rop, t[k], r[k]);
                            }
                        })*
                        $(Act::$r => {
                            let a = at(step.a);
                            for k in 0..B {
                                r[k] = V::apply2(&ops::$rop, reach.load(a.add(k * V::N)), r[k]);
                            }
                        })*
                    }
                }
            }
        }
    };
}

acts! {
    unary: Neg Abs Sign Floor Ceil Round Sqrt IsNan IsInf Not RoundF16;
    left: Add AddS AddT, Sub SubS SubT, Mul MulS MulT, Div DivS DivT, Max MaxS MaxT, Min MinS MinT, Lt LtS LtT, Le LeS LeT, Gt GtS GtT, Ge GeS GeT, Eq EqS EqT, Ne NeS NeT, And AndS AndT, Or OrS OrT, Xor XorS XorT;
    right: SubFrom SubFromS SubFromT Sub, DivOf DivOfS DivOfT Div, MaxOf MaxOfS MaxOfT Max, MinOf MinOfS MinOfT Min;
    swapped: Add Add Mul Mul Eq Eq Ne Ne And And Or Or Xor Xor Lt Gt Gt Lt Le Ge Ge Le;
}

/// How vectors are loaded and stored: whole, or their first lanes only.
trait Reach<V: Vector>: Copy {
    unsafe fn load(self, p: *const V::E) -> V;
    unsafe fn store(self, v: V, p: *mut V::E);
}

#[derive(Clone, Copy)]
struct Whole;

impl<V: Vector> Reach<V> for Whole {
    #[inline(always)]
    unsafe fn load(self, p: *const V::E) -> V {
        // SAFETY: the caller's promise.
        unsafe { V::load(p) }
    }
    #[inline(always)]
    unsafe fn store(self, v: V, p: *mut V::E) {
        // SAFETY: the caller's promise.
        unsafe { v.store(p) }
    }
}

#[derive(Clone, Copy)]
struct Part(usize);

impl<V: Vector> Reach<V> for Part {
    #[inline(always)]
    unsafe fn load(self, p: *const V::E) -> V {
        // SAFETY: the caller's promise.
        unsafe { V::load_part(p, self.0) }
    }
    #[inline(always)]
    unsafe fn store(self, v: V, p: *mut V::E) {
        // SAFETY: the caller's promise.
        unsafe { v.store_part(p, self.0) }
    }
}

/// Elements `0 .. n` through all steps, in blocks of `B` vectors; what is left goes vector by vector.
///
/// # Safety
/// The steps must name places that are good for `n` elements under their masks, and apart or the same.
#[inline(always)]
pub unsafe fn run<V: Vector, const B: usize>(steps: &[Step], places: *const Place<V::E>, n: usize) {
    let mut i = 0;
    // SAFETY: the caller's promise.
    unsafe {
        while i + B * V::N <= n {
            pass::<V, Whole, B>(Whole, steps, places, i);
            i += B * V::N;
        }
        while i < n {
            pass::<V, Part, 1>(Part(V::N.min(n - i)), steps, places, i);
            i += V::N;
        }
    }
}
