//! Columns that lie in parts, as the points of images do.

/// B's and C's columns in parts of `each`, which begin so many numbers apart.
#[derive(Clone, Copy)]
pub(crate) struct ColumnParts {
    pub count: usize,
    pub each: usize,
    pub b: usize,
    pub c: usize,
}

impl ColumnParts {
    /// All columns side by side.
    pub const ONE: ColumnParts = ColumnParts { count: 1, each: usize::MAX, b: 0, c: 0 };
}

/// The order of columns in parts: first those of each part that fill panels, then those that are left of all parts.
#[derive(Clone, Copy)]
pub(crate) struct ColumnOrder {
    each: usize,
    /// Columns of a part, and of all, that fill panels.
    whole: usize,
    all_whole: usize,
}

/// Columns side by side in one part: its number, the first one there, and how many.
#[derive(Clone, Copy)]
pub(crate) struct ColumnRun {
    pub part: usize,
    pub first: usize,
    pub count: usize,
}

impl ColumnOrder {
    /// For panels of `width` columns.
    pub fn new(parts: ColumnParts, width: usize) -> ColumnOrder {
        let whole = parts.each / width * width;
        ColumnOrder { each: parts.each, whole, all_whole: parts.count * whole }
    }

    /// The run of columns from `column` on, `many` at most.
    #[inline(always)]
    pub fn run(&self, column: usize, many: usize) -> ColumnRun {
        let (part, first, end) = match column.checked_sub(self.all_whole) {
            None => (column / self.whole, column % self.whole, self.whole),
            Some(left) => (left / (self.each - self.whole), self.whole + left % (self.each - self.whole), self.each),
        };
        ColumnRun { part, first, count: many.min(end - first) }
    }

    /// The run after one that reaches to the end of its part, from `column` on.
    #[inline(always)]
    fn after(&self, run: ColumnRun, column: usize, many: usize) -> ColumnRun {
        let part = if column == self.all_whole { 0 } else { run.part + 1 };
        let (first, end) = if column < self.all_whole { (0, self.whole) } else { (self.whole, self.each) };
        ColumnRun { part, first, count: many.min(end - first) }
    }
}

/// Columns of a panel, walked through in runs.
#[derive(Clone, Copy)]
pub(super) struct PanelColumns {
    pub order: ColumnOrder,
    pub column: usize,
    pub n: usize,
    /// The run now, and where that is among these columns.
    pub run: ColumnRun,
    pub at: usize,
}

impl PanelColumns {
    /// `n` columns from `column` on.
    pub fn new(order: ColumnOrder, column: usize, n: usize) -> PanelColumns {
        PanelColumns { order, column, n, run: order.run(column, n), at: 0 }
    }

    /// Whether they lie side by side.
    pub fn is_one(&self) -> bool {
        self.run.count == self.n
    }

    /// Goes to the next run, if there is one.
    #[inline(always)]
    pub fn step(&mut self) -> bool {
        self.at += self.run.count;
        let is_more = self.at < self.n;
        if is_more {
            self.run = self.order.after(self.run, self.column + self.at, self.n - self.at);
        }
        is_more
    }
}

impl ColumnRun {
    /// How far it is from the first column of all, with parts `apart`.
    #[inline(always)]
    pub fn place(&self, apart: usize, step: isize) -> isize {
        (self.part * apart) as isize + self.first as isize * step
    }
}
