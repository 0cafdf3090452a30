//! The arithmetic of the published algorithm, on real numbers: what follows from what was tried.

use crate::screen::Point;

#[cfg(test)]
mod tests;

/// The golden section, (3 - sqrt 5) / 2.
const NU: f64 = 0.381_966_011_250_105_15;

/// The first part: the number grows until goodput falls.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Growth {
    alpha: f64,
    cap: f64,
    last: Option<Point>,
    before_last: Option<Point>,
}

/// The step after a chunk of the first part.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Grown {
    /// Goodput has not fallen: try `n`.
    Larger {
        /// The number to try.
        n: f64,
        /// Its expected goodput, in bytes a second.
        expected: f64,
    },
    /// The best number lies within.
    Bracket(Bracket),
}

/// Three numbers of which the middle one gave most.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Bracket {
    pub(crate) left: Point,
    pub(crate) middle: Point,
    pub(crate) right: Point,
}

impl Growth {
    pub(crate) const fn new(alpha: f64, cap: f64) -> Self {
        Self { alpha, cap, last: None, before_last: None }
    }

    /// `tried` is the number of the chunk that ended, and its goodput.
    pub(crate) fn grow(&mut self, tried: Point) -> Grown {
        if let Some(last) = self.last
            && tried.goodput < last.goodput
        {
            return Grown::Bracket(Bracket {
                left: self.before_last.unwrap_or_else(|| self.below(last)),
                middle: last,
                right: tried,
            });
        }
        let larger = self.alpha * tried.n;
        if larger > self.cap {
            let left = self.last.unwrap_or_else(|| self.below(tried));
            return Grown::Bracket(Bracket { left, middle: tried, right: tried });
        }
        let factor = match self.last {
            Some(last) if last.goodput > 0.0 => tried.goodput / last.goodput,
            _ => self.alpha,
        };
        self.before_last = self.last;
        self.last = Some(tried);
        Grown::Larger { n: larger, expected: tried.goodput * factor }
    }

    /// No more than `n` are to be had.
    pub(crate) const fn cap_at(&mut self, n: f64) {
        self.cap = n;
    }

    /// A number below the first one, which was not tried.
    fn below(&self, first: Point) -> Point {
        let n = first.n / self.alpha;
        Point { n: if n < 1.0 { 1.0 } else { n }, goodput: first.goodput / 2.0 }
    }
}

impl Bracket {
    /// The next number to try: a golden section of the longer side, from its left end, as the paper prints it.
    pub(crate) fn candidate(&self) -> f64 {
        let (l, m, r) = (self.left.n, self.middle.n, self.right.n);
        if m - l > r - m { l + (m - l) * NU } else { m + (r - m) * NU }
    }

    /// The expected goodput of `n`, in bytes a second: a straight line between the two numbers beside it.
    pub(crate) fn expected(&self, n: f64) -> f64 {
        let (a, b) =
            if n < self.middle.n { (self.left, self.middle) } else { (self.middle, self.right) };
        if b.n <= a.n {
            return a.goodput;
        }
        let xi = (n - a.n) / (b.n - a.n);
        (1.0 - xi) * a.goodput + xi * b.goodput
    }

    /// The bracket after `tried`. A tie with the middle is no improvement.
    pub(crate) fn narrowed(self, tried: Point) -> Self {
        let Self { left, middle, right } = self;
        match (tried.goodput > middle.goodput, middle.n < tried.n) {
            (true, true) => Self { left: middle, middle: tried, right },
            (true, false) => Self { left, middle: tried, right: middle },
            (false, true) => Self { left, middle, right: tried },
            (false, false) => Self { left: tried, middle, right },
        }
    }

    /// Whether `n` was tried, or nothing is left between the ends.
    pub(crate) fn is_over(&self, n: f64) -> bool {
        self.right.n - self.left.n <= 2.0 || [self.left.n, self.middle.n, self.right.n].contains(&n)
    }
}
