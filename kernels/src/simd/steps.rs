//! Runs of cheap operations with the value at hand in registers. A loop that only adds or multiplies is bound by its store and its loads;
//! here a block of a few vectors goes through a whole list of steps, each of which reads at most one more tile, and only values that
//! are used again later are stored. Each step is the same operation as its loop, so the bits are the same.

use crate::expr::op::{Binary, Unary};

use super::ops;
use super::vector::Vector;

/// Where a tile lies. Element i is at `ptr + (i & mask)`: a mask of all ones for a tile, a block's length less one for a value
/// that lives only inside a block.
#[derive(Clone, Copy)]
pub struct TileAddress<T> {
    pub ptr: *mut T,
    pub mask: usize,
}

impl<T> TileAddress<T> {
    pub fn tile(ptr: *const T) -> TileAddress<T> {
        TileAddress { ptr: ptr.cast_mut(), mask: usize::MAX }
    }

    /// Element i.
    #[inline(always)]
    pub fn at(self, i: usize) -> *mut T {
        self.ptr.wrapping_add(i & self.mask)
    }
}

/// One step: what to do with the registers, and the numbers of the places it reads or writes.
#[derive(Clone, Copy, Debug)]
pub struct RegisterOp {
    pub act: Act,
    pub a: u32,
    pub b: u32,
    pub c: u32,
}

/// Each register from itself and the vectors that the step names, by the names of its fields.
macro_rules! each {
    ($r:ident $reach:ident $at:ident $step:ident $k:ident; $($x:ident)* => $value:expr) => {{
        $(let $x = $at($step.$x);)*
        for $k in 0..B {
            // SAFETY: the caller's promise.
            $(let $x = unsafe { $reach.load($x.add($k * V::N)) };)*
            $r[$k] = $value;
        }
    }};
}

/// As `each`, but to memory.
macro_rules! put {
    ($r:ident $reach:ident $at:ident $step:ident $k:ident; $to:ident = $($x:ident)* => $value:expr) => {{
        $(let $x = $at($step.$x);)*
        let to = $at($step.$to);
        for $k in 0..B {
            // SAFETY: the caller's promise.
            unsafe {
                $(let $x = $reach.load($x.add($k * V::N));)*
                $reach.store($value, to.add($k * V::N));
            }
        }
    }};
}

/// The list of steps: what an operation of the table does to the registers `r`.
macro_rules! acts {
    (unary: $($u:ident)*; left: $($l:ident $ls:ident),*; right: $($r:ident $rs:ident $rop:ident),*; swapped: $($s:ident $sop:ident)*;) => {
        /// What a step does with the value in registers, `r`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Act {
            /// `r = a`
            Load,
            /// `a = r`
            Store,
            /// `s = r`
            KeepS,
            /// `r = s`
            BackS,
            /// `r = r * r`
            Square,
            /// `r = r + r`
            Double,
            /// `r = r ? a : b`
            Choose,
            /// `r = b ? r : a`, then with s for a
            IfTrue,
            IfTrueS,
            /// `r = b ? a : r`, then with s for a
            IfFalse,
            IfFalseS,
            /// `r = a + b`
            LoadAdd,
            /// `r = a - b`
            LoadSub,
            /// `r = a * b`
            LoadMul,
            /// `r = r * (a + b)`
            MulSum,
            /// `r = r * (a - b)`
            MulDiff,
            /// `r = r * (a * b)`
            MulMul,
            /// `r = r * (a - b * b)`
            MulLess,
            /// `r = a < b ? -r : r`
            NegWhere,
            /// `r = r + a * b`, the product rounded first
            AddMul,
            /// `r = r - a * b`, the product rounded first
            SubMul,
            /// `c = r + a`; r stays
            SideAdd,
            /// `c = a - r`; r stays
            SideSub,
            /// `c = r * a`; r stays
            SideMul,
            /// `c = b + r * a`, the product rounded first; r stays
            SideAddMul,
            $(/// `r = op(r)`
            $u,)*
            $(/// `r = op(r, a)`, then with s for a
            $l, $ls,)*
            $(/// `r = op(a, r)`, then with s for a
            $r, $rs,)*
        }

        impl Act {
            /// The step for `op(r)`, if there is one.
            pub fn unary(op: Unary) -> Option<Act> {
                match op {
                    $(Unary::$u => Some(Act::$u),)*
                    _ => None,
                }
            }

            /// The step that finds `a` in the registers s instead of memory, or puts it there.
            pub fn with_register(self) -> Option<Act> {
                Some(match self {
                    Act::Load => Act::BackS,
                    Act::Store => Act::KeepS,
                    Act::IfTrue => Act::IfTrueS,
                    Act::IfFalse => Act::IfFalseS,
                    $(Act::$l => Act::$ls,)*
                    $(Act::$r => Act::$rs,)*
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
        unsafe fn pass<V: Vector, R: Reach<V>, const B: usize>(
            reach: R,
            steps: &[RegisterOp],
            places: *const TileAddress<V::E>,
            i: usize,
        ) {
            let mut r = [V::splat(0.0); B];
            let mut s = r;
            for step in steps {
                // SAFETY: the caller's promise.
                let at = |k: u32| unsafe { *places.add(k as usize) }.at(i);
                match step.act {
                    Act::Load => each!(r reach at step k; a => a),
                    Act::Store => put!(r reach at step k; a = => r[k]),
                    Act::KeepS => s = r,
                    Act::BackS => r = s,
                    Act::Square => each!(r reach at step k; => r[k] * r[k]),
                    Act::Double => each!(r reach at step k; => r[k] + r[k]),
                    Act::Choose => each!(r reach at step k; a b => V::select(r[k].is_true(), a, b)),
                    Act::IfTrue => each!(r reach at step k; a b => V::select(b.is_true(), r[k], a)),
                    Act::IfTrueS => each!(r reach at step k; b => V::select(b.is_true(), r[k], s[k])),
                    Act::IfFalse => each!(r reach at step k; a b => V::select(b.is_true(), a, r[k])),
                    Act::IfFalseS => each!(r reach at step k; b => V::select(b.is_true(), s[k], r[k])),
                    Act::LoadAdd => each!(r reach at step k; a b => a + b),
                    Act::LoadSub => each!(r reach at step k; a b => a - b),
                    Act::LoadMul => each!(r reach at step k; a b => a * b),
                    Act::MulSum => each!(r reach at step k; a b => r[k] * (a + b)),
                    Act::MulDiff => each!(r reach at step k; a b => r[k] * (a - b)),
                    Act::MulMul => each!(r reach at step k; a b => r[k] * (a * b)),
                    Act::MulLess => each!(r reach at step k; a b => r[k] * (a - b * b)),
                    Act::NegWhere => each!(r reach at step k; a b => V::select(a.lt(b), -r[k], r[k])),
                    Act::AddMul => each!(r reach at step k; a b => r[k] + a * b),
                    Act::SubMul => each!(r reach at step k; a b => r[k] - a * b),
                    Act::SideAdd => put!(r reach at step k; c = a => r[k] + a),
                    Act::SideSub => put!(r reach at step k; c = a => a - r[k]),
                    Act::SideMul => put!(r reach at step k; c = a => r[k] * a),
                    Act::SideAddMul => put!(r reach at step k; c = a b => b + r[k] * a),
                    $(Act::$u => each!(r reach at step k; => V::apply1(&ops::$u, r[k])),)*
                    $(Act::$l => each!(r reach at step k; a => V::apply2(&ops::$l, r[k], a)),)*
                    $(Act::$ls => each!(r reach at step k; => V::apply2(&ops::$l, r[k], s[k])),)*
                    $(Act::$r => each!(r reach at step k; a => V::apply2(&ops::$rop, a, r[k])),)*
                    $(Act::$rs => each!(r reach at step k; => V::apply2(&ops::$rop, s[k], r[k])),)*
                }
            }
        }
    };
}

acts! {
    unary: Neg Abs Sign Floor Ceil Round Sqrt IsNan IsInf Not RoundF16;
    left: Add AddS, Sub SubS, Mul MulS, Div DivS, Max MaxS, Min MinS, Lt LtS, Le LeS, Gt GtS, Ge GeS, Eq EqS, Ne NeS, And AndS, Or OrS, Xor XorS;
    right: SubFrom SubFromS Sub, DivOf DivOfS Div, MaxOf MaxOfS Max, MinOf MinOfS Min;
    swapped: Add Add Mul Mul Eq Eq Ne Ne And And Or Or Xor Xor Lt Gt Gt Lt Le Ge Ge Le;
}

/// How vectors are loaded and stored: whole, or their first lanes only.
trait Reach<V: Vector>: Copy {
    unsafe fn load(self, p: *const V::E) -> V;
    unsafe fn store(self, v: V, p: *mut V::E);
}

#[derive(Clone, Copy)]
struct FullAccess;

impl<V: Vector> Reach<V> for FullAccess {
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
struct PartialAccess(usize);

impl<V: Vector> Reach<V> for PartialAccess {
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

/// Elements `0 .. n` through all steps, in blocks of `B` vectors; what is left goes in pairs, the last one or two by themselves.
///
/// # Safety
/// The steps must name places that are good for `n` elements under their masks, and apart or the same.
#[inline(always)]
pub unsafe fn run<V: Vector, const B: usize>(steps: &[RegisterOp], places: *const TileAddress<V::E>, n: usize) {
    let mut i = 0;
    // SAFETY: the caller's promise.
    unsafe {
        while i + B * V::N <= n {
            pass::<V, FullAccess, B>(FullAccess, steps, places, i);
            i += B * V::N;
        }
        while i + 2 * V::N <= n {
            pass::<V, FullAccess, 2>(FullAccess, steps, places, i);
            i += 2 * V::N;
        }
        while i < n {
            pass::<V, PartialAccess, 1>(PartialAccess(V::N.min(n - i)), steps, places, i);
            i += V::N;
        }
    }
}
