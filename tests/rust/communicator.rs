//! Communicators over ranks that are threads: collectives against plain sums.

mod failed_runs;
mod faults;
mod programs;
mod synchronized;
mod training;
mod two_communicators;
mod views;

use nnrs::communicator::{AllReduceOptions, CallbackOptions, Communicator, GradientReduction, Threads, WORLD};
use nnrs::dtype::Element;
use nnrs::{DType, ErrorKind, NdArray, Result, with_dtype};

/// Small numbers that each type has, and whose sums it has too; unsigned types have no others.
fn values(dtype: DType, n: usize, rank: usize) -> Vec<f64> {
    let is_unsigned = matches!(dtype, DType::Bool | DType::U8 | DType::U16 | DType::U32 | DType::U64);
    let number = |i: usize| ((i * 7 + rank * 3 + i / 5) % 13) as f64 - 6.0;
    let typed = |v: f64| match dtype {
        DType::Bool => (v > 4.0) as u8 as f64,
        _ if is_unsigned => v.abs(),
        _ if dtype.is_float() => v / 8.0,
        _ => v,
    };
    (0..n).map(|i| typed(number(i))).collect()
}

fn array(dtype: DType, values: &[f64]) -> NdArray {
    let a = NdArray::from_slice(values, [values.len()].into()).unwrap();
    a.cast(dtype).unwrap();
    a
}

fn own(dtype: DType, n: usize, rank: usize) -> NdArray {
    array(dtype, &values(dtype, n, rank))
}

/// The sum over some ranks, in the type to sum in, as the array's type has it.
fn sum(dtype: DType, n: usize, ranks: &[usize], division: bool) -> Vec<f64> {
    let rows: Vec<_> = ranks.iter().map(|&r| values(dtype, n, r)).collect();
    let count = if division && dtype != DType::Bool { ranks.len() as f64 } else { 1.0 };
    let divided = |v: f64| if dtype == DType::F64 { v / count } else { (v as f32 / count as f32) as f64 };
    let sum = |i: usize| divided(rows.iter().map(|r| r[i]).sum());
    with_dtype!(dtype, T => (0..n).map(|i| T::from_f64(sum(i)).to_f64()).collect())
}

fn numbers(a: &NdArray) -> Vec<f64> {
    a.to_vec().unwrap()
}

/// What `work` gives on each of `size` ranks.
fn on<R: Send>(size: usize, work: impl Fn(&Communicator) -> R + Sync) -> Vec<R> {
    Threads::run(size, |comm| Ok(work(&comm))).unwrap()
}

fn mean() -> AllReduceOptions<'static> {
    AllReduceOptions { division: true, ..Default::default() }
}

#[test]
fn all_types_go_to_other_threads() {
    fn yes<T: Send + Sync>() {}
    yes::<(Communicator, GradientReduction, Threads, AllReduceOptions, CallbackOptions)>();
}

#[test]
fn sums_of_all_types_and_sizes() {
    for size in 1..=4 {
        let world: Vec<usize> = (0..size).collect();
        for dtype in DType::ALL {
            for n in [0, 1, 7, 2049, 40_001] {
                let seen = on(size, |comm| {
                    let (x, y) = (own(dtype, n, comm.rank()), own(dtype, n, comm.rank()));
                    comm.all_reduce(&[&x], AllReduceOptions::default()).unwrap();
                    comm.all_reduce(&[&y], AllReduceOptions { inplace: true, ..mean() }).unwrap();
                    assert!(x.dtype() == dtype || n == 0);
                    (numbers(&x), numbers(&y))
                });
                let one = size == 1; // whose arrays are left alone
                let expected = (sum(dtype, n, &world, false), sum(dtype, n, &world, !one));
                assert!(seen.iter().all(|s| *s == expected), "{dtype} {n} {size}");
            }
        }
    }
}

#[test]
fn a_million_numbers_are_summed_in_the_order_of_ranks() {
    let n = 1_000_003;
    let own = |rank: usize| (0..n).map(move |i| ((i * 2_654_435_761usize + rank * 977) % 100_003) as f32 * 0.37e-3);
    for size in 2..=4 {
        let mut expected: Vec<f32> = own(0).collect();
        (1..size).for_each(|r| expected.iter_mut().zip(own(r)).for_each(|(sum, v)| *sum += v));
        let seen = on(size, |comm| {
            let x = NdArray::from_slice(&own(comm.rank()).collect::<Vec<_>>(), [n].into()).unwrap();
            comm.all_reduce(&[&x], AllReduceOptions::default()).unwrap();
            x.to_vec::<f32>().unwrap()
        });
        assert!(seen.iter().all(|s| *s == expected), "{size}");
    }
}

#[test]
fn how_arrays_are_packed_changes_no_bit() {
    let make = |k: usize| {
        move |rank: usize| {
            let values: Vec<f32> = (0..k).map(|i| ((i * 37 + rank * 101) % 97) as f32 * 0.013).collect();
            NdArray::from_slice(&values, [k].into()).unwrap()
        }
    };
    let sizes = [1, 3, 5000, 33_000];
    let seen = on(3, |comm| {
        let bits = |arrays: Vec<NdArray>| arrays.iter().flat_map(|a| a.to_vec::<f32>().unwrap()).collect::<Vec<_>>();
        let arrays = || sizes.iter().map(|&k| make(k)(comm.rank())).collect::<Vec<_>>();
        let (together, apart) = (arrays(), arrays());
        comm.all_reduce(&together, mean()).unwrap();
        apart.iter().for_each(|a| comm.all_reduce(&[a], AllReduceOptions { inplace: true, ..mean() }).unwrap());
        (bits(together), bits(apart))
    });
    assert!(seen.iter().all(|(a, b)| a == b && *a == seen[0].0));
}

#[test]
fn one_array_given_twice_is_summed_once() {
    let seen = on(2, |comm| {
        let (x, y) = (own(DType::F32, 3, comm.rank()), own(DType::I16, 2, comm.rank()));
        comm.all_reduce(&[&x, &y, &x], AllReduceOptions::default()).unwrap();
        (numbers(&x), numbers(&y))
    });
    assert_eq!(seen[1], (sum(DType::F32, 3, &[0, 1], false), sum(DType::I16, 2, &[0, 1], false)));
}

#[test]
fn reductions_to_one_rank_leave_the_others_alone() {
    for (size, dtype) in [(2, DType::BF16), (3, DType::F32), (4, DType::I64)] {
        for n in [0, 1, 9, 40_001] {
            let (world, to): (Vec<usize>, _) = ((0..size).collect(), size - 1);
            let seen = on(size, |comm| {
                let x = own(dtype, n, comm.rank());
                comm.reduce(&[&x], to, mean()).unwrap();
                numbers(&x)
            });
            for (rank, s) in seen.iter().enumerate() {
                let expected = if rank == to { sum(dtype, n, &world, true) } else { values(dtype, n, rank) };
                assert_eq!(*s, expected, "{dtype} {n} {rank}");
            }
        }
    }
}

#[test]
fn broadcasts() {
    for size in 1..=4 {
        for dtype in DType::ALL {
            let (src, n) = (size / 2, 40_001);
            let seen = on(size, |comm| {
                let (large, small) = (own(dtype, n, comm.rank()), own(dtype, 3, comm.rank()));
                comm.bcast(&[&large, &small], src, WORLD).unwrap();
                (numbers(&large), numbers(&small))
            });
            assert!(seen.iter().all(|s| *s == (values(dtype, n, src), values(dtype, 3, src))), "{dtype} {size}");
        }
    }
}

#[test]
fn gathering_and_scattering() {
    for size in 1..=4 {
        for (dtype, n) in [(DType::Bool, 5), (DType::F16, 1), (DType::F64, 0), (DType::U64, 10_001)] {
            let world: Vec<usize> = (0..size).collect();
            let seen = on(size, |comm| {
                let ys: Vec<NdArray> = world.iter().map(|_| array(dtype, &vec![0.0; n])).collect();
                comm.all_gather(&own(dtype, n, comm.rank()), &ys, WORLD).unwrap();
                // What rank r gives rank i has the numbers of rank r + i.
                let xs: Vec<NdArray> = world.iter().map(|i| own(dtype, n, comm.rank() + i)).collect();
                let y = array(dtype, &vec![0.0; n]);
                comm.reduce_scatter(&xs, &y, AllReduceOptions::default()).unwrap();
                assert!(n == 0 || (y.dtype() == dtype && ys[0].dtype() == dtype));
                (ys.iter().map(numbers).collect::<Vec<_>>(), numbers(&y))
            });
            for (i, (gathered, scattered)) in seen.iter().enumerate() {
                assert!(world.iter().all(|&r| gathered[r] == values(dtype, n, r)));
                let ranks: Vec<usize> = world.iter().map(|r| r + i).collect();
                assert_eq!(*scattered, sum(dtype, n, &ranks, false), "{dtype} {n}");
            }
        }
    }
}

#[test]
fn groups_reduce_on_their_own() {
    let seen = on(4, |comm| {
        comm.new_group("pair", &[3, 1]).unwrap();
        comm.new_group("rest", &[0, 2]).unwrap();
        let x = own(DType::F32, 5, comm.rank());
        let y = own(DType::F32, 5, comm.rank());
        for group in ["pair", "rest"] {
            comm.all_reduce(&[&x], AllReduceOptions { group, ..mean() }).unwrap();
        }
        comm.bcast(&[&y], 3, "pair").unwrap();
        let names: Vec<String> = comm.list_groups().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, [WORLD, "pair", "rest"]);
        comm.barrier().unwrap();
        (numbers(&x), numbers(&y))
    });
    for (rank, (x, y)) in seen.iter().enumerate() {
        let group = if rank % 2 == 1 { [1, 3] } else { [0, 2] };
        assert_eq!(*x, sum(DType::F32, 5, &group, true));
        assert_eq!(*y, values(DType::F32, 5, if rank == 1 { 3 } else { rank }));
    }
}

#[test]
fn lazy_arrays_and_parts_of_arrays() {
    let seen = on(2, |comm| {
        let (filled, whole) = (NdArray::new([4].into()), NdArray::from_slice(&[1i32, 2, 3, 4], [4].into()).unwrap());
        filled.fill(comm.rank() as f64 + 0.5).unwrap();
        let part = whole.narrow(0, 1, 2).unwrap();
        comm.all_reduce(&[&filled, &part, &NdArray::new([3].into())], AllReduceOptions::default()).unwrap();
        (numbers(&filled), numbers(&whole))
    });
    assert_eq!(seen[0], (vec![2.0; 4], vec![1.0, 4.0, 6.0, 4.0]));
}

#[test]
fn a_world_of_one_does_nothing() {
    let comm = Communicator::alone();
    let (x, y) = (array(DType::I8, &[7.0, -7.0]), NdArray::new([2].into()));
    comm.all_reduce(&[&x], mean()).unwrap();
    comm.reduce(&[&x], 0, mean()).unwrap();
    comm.bcast(&[&x], 0, WORLD).unwrap();
    comm.barrier().unwrap();
    assert_eq!(numbers(&x), [7.0, -7.0]);
    comm.all_gather(&x, &[&y], WORLD).unwrap();
    assert_eq!((numbers(&y), y.dtype()), (vec![7.0, -7.0], DType::F32));
    comm.reduce_scatter(&[&y], &x, mean()).unwrap();
    assert_eq!((numbers(&x), x.dtype()), (vec![7.0, -7.0], DType::I8));
    comm.new_group("me", &[0]).unwrap();
    comm.all_reduce(&[&x], AllReduceOptions { group: "me", ..mean() }).unwrap();
    assert_eq!((comm.find_group("me"), comm.local_rank()), (Some(vec![0]), 0));
}

#[test]
fn mistakes() {
    let (comm, x) = (Communicator::alone(), array(DType::F32, &[1.0, 2.0]));
    let other = AllReduceOptions { group: "there", ..Default::default() };
    let wrong_shape = NdArray::new([3].into());
    let cases: Vec<(Result<()>, &str)> = vec![
        (comm.all_reduce(&[&x], other), "all_reduce: argument 'group': expected one of 'world', got 'there'"),
        (comm.reduce(&[&x], 1, mean()), "reduce: argument 'dst': expected a rank of group 'world', [0], got 1"),
        (comm.bcast(&[&x], 2, WORLD), "bcast: argument 'src'"),
        (comm.all_gather(&x, &[&x, &x], WORLD), "expected 1 arrays of shape (2,), one for each rank of the group"),
        (comm.all_gather(&x, &[&wrong_shape], WORLD), "argument 'ys'"),
        (comm.reduce_scatter(&[&wrong_shape], &x, mean()), "argument 'xs'"),
        (comm.new_group("world", &[0]), "argument 'name': expected a name that is not taken"),
        (comm.new_group("a", &[]), "different ranks below 1"),
        (comm.new_group("a", &[0, 0]), "different ranks below 1"),
        (comm.new_group("a", &[1]), "different ranks below 1"),
        (
            comm.all_reduce_callback(&[&x], CallbackOptions { pack_size: 0, ..Default::default() }).map(drop),
            "argument 'pack_size': expected 1 or more, got 0",
        ),
    ];
    for (result, says) in cases {
        let error = result.unwrap_err();
        assert!(error.kind() == ErrorKind::Argument && error.to_string().contains(says), "{error}");
        assert!(error.to_string().starts_with("Communicator::"), "{error}");
    }
    assert_eq!(numbers(&x), [1.0, 2.0]);
}
