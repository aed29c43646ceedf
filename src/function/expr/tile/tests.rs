//! Tile programs against evaluation in double precision, and fused steps against single loops.

use super::*;
use crate::function::expr::Formula;

fn run(f: &Formula, x: &[Vec<f32>], shapes: &[Shape], over: &Shape) -> Vec<Vec<f32>> {
    let mut ssa = Ssa::default();
    let args: Vec<Id> = (0..f.inputs()).map(|k| ssa.push(Ins::Input(k as u32))).collect();
    let outs: Vec<Id> = f.apply(&mut ssa, &args).into_iter().flatten().collect();
    let p = Program::<f32>::compile(&ssa, f.inputs(), 0, &outs);
    let sources: Vec<Source> = x
        .iter()
        .zip(shapes)
        .map(|(x, s)| Source { ptr: x.as_ptr() as *const u8, dtype: DType::F32, walk: Walk::new(s, over) })
        .collect();
    let mut y = vec![vec![0f32; over.size()]; outs.len()];
    let sinks: Vec<Sink> =
        y.iter_mut().map(|y| Sink { ptr: y.as_mut_ptr() as *mut u8, dtype: DType::F32 }).collect();
    // SAFETY: sizes match.
    unsafe { p.run(over.size(), &sources, &sinks, &[]) };
    y
}

#[test]
fn programs_match_evaluation_with_broadcasting() {
    let f = Formula::new(2, |x| {
        vec![Some((&x[0] * 2.0 + &x[1]).tanh()), Some(x[1].clone()), Some(x[0].gt(&x[1]).select(1.5, &x[0]))]
    });
    let cases: [(&[usize], &[usize]); 5] =
        [(&[7, 300], &[7, 300]), (&[5, 1, 3], &[1, 4, 3]), (&[2, 3, 1], &[3, 700]), (&[], &[9]), (&[0, 2], &[2])];
    for (sa, sb) in cases {
        let (sa, sb) = (Shape::from(sa), Shape::from(sb));
        let over = sa.broadcast(&sb).unwrap();
        let make = |n: usize, k: f32| (0..n).map(|i| ((i as f32) * k).sin()).collect::<Vec<_>>();
        let x = [make(sa.size(), 0.7), make(sb.size(), 1.3)];
        let y = run(&f, &x, &[sa.clone(), sb.clone()], &over);
        let (st_a, st_b) = (sa.strides(), sb.strides());
        #[allow(clippy::needless_range_loop)]
        for flat in 0..over.size() {
            let at = |s: &Shape, st: &[usize]| {
                let (mut rest, mut o) = (flat, 0);
                for ax in (0..over.ndim()).rev() {
                    let i = rest % over[ax];
                    rest /= over[ax];
                    if ax + s.ndim() >= over.ndim() && s[ax + s.ndim() - over.ndim()] != 1 {
                        o += i * st[ax + s.ndim() - over.ndim()];
                    }
                }
                o
            };
            let want = f.eval(&[x[0][at(&sa, &st_a)] as f64, x[1][at(&sb, &st_b)] as f64]);
            for k in 0..3 {
                assert!((y[k][flat] as f64 - want[k].unwrap()).abs() < 1e-6, "{sa} {sb} {flat} {k}");
            }
        }
    }
}
