//! The word with which each collective begins: ranks that ask for different things, or for different shapes, get an error
//! that says so, and no hang.

use super::run_number::RunNumber;
use super::standing::{LateRun, Standing};
use super::transport::{Transport, block_cuts};
use nnrs_kernels::error::{Error, ErrorKind, Result};
use std::collections::BTreeSet;

/// How much of a text is shown to the others.
const MOST_TEXT: usize = 1 << 16;
/// How many letters of an error the other ranks are told.
const MOST_WHY: usize = 300;
const NOTICE: &str = "nothing more of ";

/// What a rank says, in the place of a collective, that has given a backward run up.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Notice {
    rank: usize,
    /// Which run: the numbers of those around it, and its own.
    pub(super) path: Vec<RunNumber>,
    /// Those that the rank is in.
    pub(super) groups: BTreeSet<usize>,
    why: String,
}

impl Notice {
    /// What [`agree`] says of a run that has been given up here.
    pub(super) fn text(path: &[RunNumber], groups: &BTreeSet<usize>, why: &str) -> String {
        let path: Vec<String> = path.iter().map(RunNumber::to_string).collect();
        let groups: Vec<String> = groups.iter().map(usize::to_string).collect();
        let why: String = why.chars().take(MOST_WHY).collect();
        format!("{NOTICE}{}; {}; {why}", path.join("/"), groups.join(" "))
    }

    pub(super) fn read(rank: usize, text: &str) -> Option<Notice> {
        let (path, rest) = text.split_once(" of ")?.1.strip_prefix(NOTICE)?.split_once("; ")?;
        let (groups, why) = rest.split_once("; ")?;
        let path = path.split('/').map(RunNumber::read).collect::<Option<_>>()?;
        let groups = groups.split(' ').map(|group| group.parse().ok()).collect::<Option<_>>()?;
        Some(Notice { rank, path, groups, why: why.to_string() })
    }

    /// What a collective of that group ends with that meets it.
    pub(super) fn error(&self, name: &str, group: &str) -> Error {
        given_up(self.rank, &self.why, name, group)
    }

    /// The end, where it cannot be said whether a collective that meets it belongs to that run.
    pub(super) fn unclear(&self, name: &str, group: &str) -> Error {
        let (rank, why) = (self.rank, &self.why);
        let text = format!(
            "rank {rank} of group '{group}' has given a backward run up ({why}). It has no callbacks' group in common with \
             this rank, and made another number of runs: whether this collective is of it is unknown"
        );
        Error::new(ErrorKind::Communicator, text)
            .function(format!("Communicator::{name}"))
            .hint("give both a callback of one group, which may have no gradients")
    }
}

impl LateRun<'_> {
    /// What a collective of that group ends with, of those who are within the run.
    pub(super) fn error(&self, name: &str, group: &str) -> Error {
        given_up(self.rank, self.why, name, group)
    }
}

fn given_up(rank: usize, why: &str, name: &str, group: &str) -> Error {
    let text = format!("rank {rank} of group '{group}' has given its backward run up: {why}");
    Error::new(ErrorKind::Argument, text)
        .function(format!("Communicator::{name}"))
        .hint("gradients of this run are missing: leave the step out on all ranks")
}

/// Why a collective stops.
pub(super) enum Stop {
    /// Calls differ between ranks: all of them get it, and may go on.
    Disagreement(Error),
    /// The end of the communicator.
    Failure(Error),
}

impl From<Error> for Stop {
    fn from(e: Error) -> Stop {
        Stop::Failure(e)
    }
}

/// Returns when all ranks have come to this collective; an error where they do not all say the same of it.
///
/// What another rank says of a run that it has given up takes the place of one of its collectives, which any of the others
/// may meet. `hear` notes it, and gives the error for a collective that belongs to that run; one that does not is said once
/// more. Where there is no such notice, `hear` notes how many runs each rank had begun when it asked. Those that have not told
/// of a failed run say so with their next collective: who is in a run then that is over for them ends it, and who is not says
/// the same once more.
pub(super) fn agree(
    t: &dyn Transport,
    name: &str,
    said: &str,
    standing: &Standing,
    hear: impl Fn(&[Notice], Option<&LateRun>, &[Standing]) -> Result<Option<Error>>,
) -> Result<(), Stop> {
    if t.size() == 1 {
        return Ok(());
    }
    loop {
        let Some(both) = exchange_texts(t, &format!("{name} of {said}"), standing)? else { return Ok(()) };
        let (texts, standings): (Vec<String>, Vec<Standing>) = both.into_iter().unzip();
        let others = texts.iter().enumerate().filter(|(rank, _)| *rank != t.rank());
        let notices: Vec<Notice> = others.filter_map(|(rank, text)| Notice::read(rank, text)).collect();
        let is_said = notices.is_empty() && !said.starts_with(NOTICE);
        let late = if is_said { LateRun::find(name, &standings)? } else { None };
        let error = hear(&notices, late.as_ref(), if notices.is_empty() { &standings } else { &[] })?;
        if said.starts_with(NOTICE) {
            return Ok(());
        }
        if is_said && late.is_none() {
            if texts.iter().all(|text| *text == texts[0]) {
                return Ok(());
            }
            return Err(Stop::Disagreement(disagreement(t.rank(), name, texts)));
        }
        if let Some(error) = error {
            return Err(Stop::Disagreement(error));
        }
    }
}

/// What all say, and where they are, where that is not the same.
fn exchange_texts(t: &dyn Transport, text: &str, standing: &Standing) -> Result<Option<Vec<(String, Standing)>>> {
    let told = standing.failed.as_ref().map(|_| format!("{text}\n{:?}", standing.position));
    let digests = exchange(t, digest(told.as_deref().unwrap_or(text).as_bytes()))?;
    if digests.iter().all(|d| *d == digests[0]) {
        return Ok(None);
    }
    let mut own = format!("{}\n", standing.text()).into_bytes();
    own.extend_from_slice(&text.as_bytes()[..text.len().min(MOST_TEXT)]);
    let lengths = exchange(t, own.len() as u64)?;
    let longest = lengths.iter().copied().max().unwrap_or(0).min(2 * MOST_TEXT as u64) as usize;
    let mut texts = vec![0; longest * t.size()];
    texts[t.rank() * longest..][..own.len()].copy_from_slice(&own);
    t.all_gather(&mut texts, &block_cuts(longest, t.size()))?;
    let shown = |rank: usize| {
        let length = longest.min(lengths[rank] as usize);
        let both = String::from_utf8_lossy(&texts[rank * longest..][..length]);
        let (standing, text) = both.split_once('\n').unwrap_or_default();
        (text.to_string(), Standing::read(standing).unwrap_or_default())
    };
    Ok(Some((0..t.size()).map(shown).collect()))
}

/// The numbers of all ranks.
fn exchange(t: &dyn Transport, own: u64) -> Result<Vec<u64>> {
    let mut bytes = vec![0; 8 * t.size()];
    bytes[8 * t.rank()..][..8].copy_from_slice(&own.to_le_bytes());
    t.all_gather(&mut bytes, &block_cuts(8, t.size()))?;
    Ok(bytes.as_chunks().0.iter().map(|b| u64::from_le_bytes(*b)).collect())
}

/// FNV-1a: texts that differ are told apart with certainty enough.
fn digest(text: &[u8]) -> u64 {
    text.iter().fold(0xcbf2_9ce4_8422_2325, |h, &b| (h ^ b as u64).wrapping_mul(0x0000_0100_0000_01b3))
}

fn disagreement(rank: usize, name: &str, texts: Vec<String>) -> Error {
    let other = texts.iter().position(|text| *text != texts[rank]).unwrap_or(rank);
    let [own, theirs] = around_the_difference([texts[rank].clone(), texts[other].clone()]);
    Error::new(
        ErrorKind::Argument,
        format!("the same call on all ranks; rank {rank} of the group has {own}"),
    )
    .actual(format!("on rank {other} {theirs}"))
    .function(format!("Communicator::{name}"))
    .hint("each rank of a group calls the same collectives in the same order, with arrays of the same shapes and types")
}

/// Long texts cut to what is around their first difference.
fn around_the_difference(texts: [String; 2]) -> [String; 2] {
    const BEFORE: usize = 60;
    const LENGTH: usize = 240;
    let letters = texts.each_ref().map(|t| t.chars().collect::<Vec<_>>());
    let longest = letters.iter().map(Vec::len).max().unwrap_or(0);
    let same = letters[0].iter().zip(&letters[1]).take_while(|(a, b)| a == b).count();
    let start = if longest > LENGTH { same.saturating_sub(BEFORE) } else { 0 };
    letters.map(|letters| {
        let cut: String = letters.iter().skip(start).take(LENGTH).collect();
        let (before, after) = (start > 0, start + LENGTH < letters.len());
        format!("{}{cut}{}", if before { "..." } else { "" }, if after { "..." } else { "" })
    })
}

#[cfg(feature = "emulate")]
mod tests {
    use super::*;

    nnrs_kernels::unit_test!(long_texts_are_cut_around_the_difference);
    fn long_texts_are_cut_around_the_difference() {
        let long = |c: char| format!("{}{c}{}", "x".repeat(100), "y".repeat(400));
        let [a, b] = around_the_difference([long('1'), long('2')]);
        let expected = |c: char| format!("...{}{c}{}...", "x".repeat(60), "y".repeat(179));
        assert_eq!((a, b), (expected('1'), expected('2')));
        let short = ["all_reduce of a".to_string(), "barrier of all".to_string()];
        assert_eq!(around_the_difference(short.clone()), short);
    }

    nnrs_kernels::unit_test!(a_notice_is_read_as_it_was_said);
    fn a_notice_is_read_as_it_was_said() {
        let (path, groups) = (["17 1 2 0:17 2:3", "1 0 0 "].map(|text| RunNumber::read(text).unwrap()), [0, 2].into());
        let text = format!("all_reduce of {}", Notice::text(&path, &groups, "a; b of c: "));
        let notice = Notice { rank: 1, path: path.into(), groups, why: "a; b of c: ".into() };
        assert_eq!(Notice::read(1, &text), Some(notice));
        for other in ["barrier of all", "new_group of 'nothing more of 0:1; x'", "x of nothing more of a:b; c", ""] {
            assert_eq!(Notice::read(1, other), None);
        }
    }
}
