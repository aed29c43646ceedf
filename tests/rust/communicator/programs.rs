//! Random programs of collectives on three ranks, against what they do to plain lists.

use nnrs::communicator::{AllReduceOptions, Communicator, Threads, WORLD};
use nnrs::{NdArray, Result};

const RANKS: usize = 3;
const SIZES: [usize; 4] = [1, 9, 12_000, 0];
const GROUPS: [(&str, &[usize]); 3] = [(WORLD, &[0, 1, 2]), ("first", &[0, 1]), ("turned", &[2, 0])];

#[derive(Clone, Copy, Debug)]
enum Op {
    Barrier,
    AllReduce {
        slots: [usize; 2],
        division: bool,
        inplace: bool,
    },
    Reduce {
        slot: usize,
        to: usize,
    },
    Broadcast {
        slot: usize,
        from: usize,
    },
    /// The slot becomes the sum of what comes, each times its place and one.
    Gather {
        slot: usize,
    },
    /// Rank i of the group gets the sum of the slots plus i.
    Scatter {
        slot: usize,
    },
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        ((self.0 >> 33) as usize) % n
    }

    fn program(&mut self, length: usize) -> Vec<(usize, Op)> {
        (0..length).map(|_| self.operation()).collect()
    }

    fn operation(&mut self) -> (usize, Op) {
        let group = self.below(GROUPS.len());
        let (slot, members) = (self.below(SIZES.len()), GROUPS[group].1);
        let rank = members[self.below(members.len())];
        let op = match self.below(6) {
            0 => Op::Barrier,
            1 => Op::AllReduce {
                slots: [slot, self.below(SIZES.len())],
                division: self.below(2) == 0,
                inplace: self.below(2) == 0,
            },
            2 => Op::Reduce { slot, to: rank },
            3 => Op::Broadcast { slot, from: rank },
            4 => Op::Gather { slot },
            _ => Op::Scatter { slot },
        };
        (group, op)
    }
}

type Slots = Vec<Vec<i64>>;

fn first(rank: usize) -> Slots {
    let number = |slot: usize, i: usize| ((i * 31 + slot * 7 + rank * 1009) % 2003) as i64 - 1001;
    SIZES.iter().enumerate().map(|(slot, &n)| (0..n).map(|i| number(slot, i)).collect()).collect()
}

fn total(all: &[Slots], members: &[usize], slot: usize) -> Vec<i64> {
    let sum = |i: usize| members.iter().fold(0i64, |sum, &r| sum.wrapping_add(all[r][slot][i]));
    (0..SIZES[slot]).map(sum).collect()
}

/// What an operation does to the lists of all ranks.
fn simulate(all: &mut [Slots], group: usize, op: Op) {
    let members = GROUPS[group].1;
    match op {
        Op::Barrier => {}
        Op::AllReduce { slots, division, .. } => {
            let count = if division { members.len() as i64 } else { 1 };
            let distinct = if slots[0] == slots[1] { &slots[..1] } else { &slots[..] };
            for &slot in distinct {
                let sum: Vec<i64> = total(all, members, slot).iter().map(|v| v / count).collect();
                members.iter().for_each(|&r| all[r][slot] = sum.clone());
            }
        }
        Op::Reduce { slot, to } => all[to][slot] = total(all, members, slot),
        Op::Broadcast { slot, from } => {
            let sent = all[from][slot].clone();
            members.iter().for_each(|&r| all[r][slot] = sent.clone());
        }
        Op::Gather { slot } => {
            let times = |i: usize, v: i64| v.wrapping_mul(i as i64 + 1);
            let sum = |k: usize| {
                let parts = members.iter().enumerate().map(|(i, &r)| times(i, all[r][slot][k]));
                parts.fold(0i64, i64::wrapping_add)
            };
            let sum: Vec<i64> = (0..SIZES[slot]).map(sum).collect();
            members.iter().for_each(|&r| all[r][slot] = sum.clone());
        }
        Op::Scatter { slot } => {
            let sum = total(all, members, slot);
            for (i, &r) in members.iter().enumerate() {
                let more = (i * members.len()) as i64;
                all[r][slot] = sum.iter().map(|v| v.wrapping_add(more)).collect();
            }
        }
    }
}

fn array(values: &[i64]) -> Result<NdArray> {
    NdArray::from_slice(values, [values.len()].into())
}

/// The same over a communicator.
fn execute(comm: &Communicator, own: &[NdArray], group: usize, op: Op) -> Result<()> {
    let (name, members) = GROUPS[group];
    let options = AllReduceOptions { group: name, ..Default::default() };
    let is_member = members.contains(&comm.rank());
    match op {
        Op::Barrier => comm.barrier(),
        Op::AllReduce { slots, division, inplace } => {
            comm.all_reduce(&slots.map(|s| &own[s]), AllReduceOptions { division, inplace, ..options })
        }
        Op::Reduce { slot, to } => comm.reduce(&[&own[slot]], to, options),
        Op::Broadcast { slot, from } => comm.bcast(&[&own[slot]], from, name),
        Op::Gather { slot } => {
            let empty = || array(&vec![0; SIZES[slot]]);
            let ys = members.iter().map(|_| empty()).collect::<Result<Vec<_>>>()?;
            comm.all_gather(&own[slot], &ys, name)?;
            let mut sum = vec![0i64; SIZES[slot]];
            for (i, y) in ys.iter().enumerate() {
                let times = y.to_vec::<i64>()?.into_iter().map(|v| v.wrapping_mul(i as i64 + 1));
                sum.iter_mut().zip(times).for_each(|(s, v)| *s = s.wrapping_add(v));
            }
            if is_member { own[slot].write(&sum) } else { Ok(()) }
        }
        Op::Scatter { slot } => {
            let values = own[slot].to_vec::<i64>()?;
            let plus = |i: usize| array(&values.iter().map(|v| v.wrapping_add(i as i64)).collect::<Vec<_>>());
            let xs = (0..members.len()).map(plus).collect::<Result<Vec<_>>>()?;
            comm.reduce_scatter(&xs, &own[slot], options)
        }
    }
}

#[test]
fn random_programs_do_what_they_do_to_lists() {
    for seed in 0..60 {
        let program = Dice(seed * 7919 + 1).program(30);
        let mut expected: Vec<Slots> = (0..RANKS).map(first).collect();
        program.iter().for_each(|&(group, op)| simulate(&mut expected, group, op));
        let seen = Threads::run(RANKS, |comm| {
            GROUPS[1..].iter().try_for_each(|(name, ranks)| comm.new_group(name, ranks))?;
            let own = first(comm.rank()).iter().map(|values| array(values)).collect::<Result<Vec<_>>>()?;
            program.iter().try_for_each(|&(group, op)| execute(&comm, &own, group, op))?;
            own.iter().map(NdArray::to_vec::<i64>).collect::<Result<Vec<_>>>()
        });
        assert!(seen.unwrap() == expected, "seed {seed}: {program:?}");
    }
}
