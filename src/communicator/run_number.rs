//! Which backward run ranks speak of: the how many-th it is.

use std::collections::BTreeMap;
use std::fmt;

/// For each group, by its place among all.
pub(super) type OfGroups = BTreeMap<usize, u64>;

/// Which run is meant among those that begin within another one, or within none; in a word of a group.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct RunNumber {
    /// How many collectives of that group come before it.
    pub(super) place: u64,
    /// How many runs have begun behind these, before it.
    pub(super) since: u64,
    /// How many runs have begun before it.
    pub(super) of_all: u64,
    /// For the groups whose callbacks it has: the how many-th it is of those that have such ones.
    pub(super) of_groups: OfGroups,
}

impl RunNumber {
    /// Whether another rank's run is this one; `None` where what has met the word may belong to it, or not. `both`: whether both
    /// ranks are in a group, and so have its callbacks in the same runs. `is_met`: whether a collective of the run has met the
    /// word: then its place counts, too.
    pub(super) fn means(&self, told: &RunNumber, both: impl Fn(usize) -> bool, is_met: bool) -> Option<bool> {
        let same = |(group, own): (&usize, &u64)| told.of_groups.get(group).map(|theirs| own == theirs);
        let common: Vec<bool> = self.of_groups.iter().filter_map(same).collect();
        if !common.is_empty() {
            return Some(common.contains(&true));
        }
        let mut groups = self.of_groups.keys().chain(told.of_groups.keys());
        if !is_met || self.place != told.place || groups.any(|&group| both(group)) {
            return Some(false);
        }
        if self.since == told.since {
            return Some(true);
        }
        // Where both had begun as many when they came to that place, an earlier one is over here.
        let is_over = told.since < self.since && self.of_all - self.since == told.of_all.wrapping_sub(told.since);
        is_over.then_some(false)
    }

    /// What `Display` has written.
    pub(super) fn read(text: &str) -> Option<RunNumber> {
        let mut parts = text.splitn(4, ' ');
        let mut number = || parts.next()?.parse().ok();
        let (place, since, of_all) = (number()?, number()?, number()?);
        Some(RunNumber { place, since, of_all, of_groups: read_groups(parts.next().unwrap_or(""))? })
    }
}

impl fmt::Display for RunNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} {}", self.place, self.since, self.of_all, groups_text(&self.of_groups))
    }
}

/// Numbers of groups as a text.
pub(super) fn groups_text(numbers: &OfGroups) -> String {
    let each: Vec<String> = numbers.iter().map(|(group, number)| format!("{group}:{number}")).collect();
    each.join(" ")
}

/// What [`groups_text`] has made.
pub(super) fn read_groups(text: &str) -> Option<OfGroups> {
    let one = |part: &str| {
        let (group, number) = part.split_once(':')?;
        Some((group.parse().ok()?, number.parse().ok()?))
    };
    text.split(' ').filter(|part| !part.is_empty()).map(one).collect()
}

/// How many runs have begun within another one, or within none.
#[derive(Default)]
pub(super) struct RunCounts {
    pub(super) of_all: u64,
    /// With callbacks of each group.
    pub(super) of_groups: OfGroups,
    /// Whose first callback is one of a group that this rank is not in.
    pub(super) beside: OfGroups,
    behind: BTreeMap<usize, (u64, u64)>,
}

/// Where a run begins in a group: how many collectives and how many runs behind these come before, and how many in all.
pub(super) type Begun = (u64, u64, u64);

impl RunCounts {
    /// How many behind so many collectives of a group.
    pub(super) fn behind(&self, group: usize, place: u64) -> u64 {
        self.behind.get(&group).map_or(0, |&(last, count)| if last == place { count } else { 0 })
    }

    /// One more; gives for each group where it begins.
    pub(super) fn begin(&mut self, places: &OfGroups) -> BTreeMap<usize, Begun> {
        let at = |(&group, &place): (&usize, &u64)| (group, (place, self.behind(group, place), self.of_all));
        let found: BTreeMap<usize, Begun> = places.iter().map(at).collect();
        self.behind = found.iter().map(|(&group, &(place, count, _))| (group, (place, count + 1))).collect();
        self.of_all += 1;
        found
    }

    /// The larger numbers count.
    pub(super) fn catch_up(&mut self, others: &OfGroups) {
        for (&group, &number) in others {
            let own = self.of_groups.entry(group).or_default();
            *own = number.max(*own);
        }
    }
}

#[cfg(feature = "emulate")]
mod tests {
    use super::*;

    fn number(text: &str) -> RunNumber {
        RunNumber::read(text).unwrap()
    }

    nnrs_kernels::unit_test!(groups_in_common_count_and_else_places);
    fn groups_in_common_count_and_else_places() {
        let yes = Some(true);
        let no = Some(false);
        for (own, told, unmet, met) in [
            ("7 2 5 0:3", "9 0 5 0:3", yes, yes),
            ("7 2 5 0:3", "7 2 5 0:2", no, no),
            ("7 2 5 0:3 2:1", "7 2 5 1:5 2:1", yes, yes),
            ("7 2 5 0:3", "7 2 6 1:4", no, yes),
            ("7 2 5 0:3", "7 1 4 1:4", no, no), // both had begun 3 runs behind the seventh collective
            ("7 2 5 0:3", "7 1 5 1:4", no, None),
            ("7 2 5 0:3", "7 3 6 1:4", no, None),
            ("7 2 5 0:3", "7 1 0 1:4", no, None),
            ("7 2 5 0:3", "6 2 5 1:4", no, no),
            ("7 2 5 9:3", "7 2 5 1:4", no, no), // both are in group 9, and the run of the other one has no callbacks of it
            ("7 2 5 ", "7 2 5 9:4", no, no),
        ] {
            let means = |is_met| number(own).means(&number(told), |group| group == 9, is_met);
            assert_eq!([means(false), means(true)], [unmet, met], "{own}, {told}");
        }
    }

    nnrs_kernels::unit_test!(runs_are_counted_behind_the_collectives_of_a_group);
    fn runs_are_counted_behind_the_collectives_of_a_group() {
        let mut counts = RunCounts::default();
        let mut begin = |place| counts.begin(&OfGroups::from([(3, place)]))[&3];
        let found = [begin(0), begin(0), begin(4), begin(4), begin(5)];
        assert_eq!(found, [(0, 0, 0), (0, 1, 1), (4, 0, 2), (4, 1, 3), (5, 0, 4)]);
        assert_eq!([counts.behind(3, 5), counts.behind(3, 6), counts.behind(1, 5)], [1, 0, 0]);
    }

    nnrs_kernels::unit_test!(what_is_no_number_is_none);
    fn what_is_no_number_is_none() {
        for text in ["", "x", "1 0", "1 0 0 a:1", "1 0 0 0:-1", "1 0  0:1"] {
            assert_eq!(RunNumber::read(text), None, "{text}");
        }
        for text in ["17 4 5 0:17 2:3", "1 0 0 "] {
            assert_eq!(number(text).to_string(), text);
        }
    }
}
