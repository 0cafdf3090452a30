//! A test case: an entry of the source, and what exists under its name in the target.

use fastrand::Rng;

/// Sizes of files. The two larger sizes are transferred in different ways.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Size {
    Empty,
    Small,
    Large,
}

impl Size {
    pub(crate) const fn bytes(self) -> usize {
        match self {
            Self::Empty => 0,
            Self::Small => 700,
            Self::Large => 300_000,
        }
    }
}

/// Kinds of source entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    File(Size),
    LinkToFile(Size),
    LinkToDir,
    LinkToNothing,
    Dir,
    Fifo,
}

impl Source {
    pub(crate) const ALL: [Self; 9] = [
        Self::File(Size::Empty),
        Self::File(Size::Small),
        Self::File(Size::Large),
        Self::LinkToFile(Size::Small),
        Self::LinkToFile(Size::Large),
        Self::LinkToDir,
        Self::LinkToNothing,
        Self::Dir,
        Self::Fifo,
    ];

    pub(crate) const fn is_link(self) -> bool {
        matches!(self, Self::LinkToFile(_) | Self::LinkToDir | Self::LinkToNothing)
    }

    /// Whether it may contain other entries.
    const fn has_children(self) -> bool {
        matches!(self, Self::Dir | Self::LinkToDir)
    }
}

/// Age of the existing entry relative to the source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Age {
    Older,
    Same,
    Newer,
}

impl Age {
    const ALL: [Self; 3] = [Self::Older, Self::Same, Self::Newer];
}

/// Size of the existing entry relative to the source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Length {
    Same,
    Other,
}

/// What exists under the name in the target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Target {
    Absent,
    File(Age, Length),
    LinkToFile(Age),
    LinkToDir(Age),
    LinkToNothing(Age),
    /// A symbolic link with the same text as the source's, but older.
    SameLink,
    EmptyDir,
    /// A directory with one file of its own, and with what the child cases require.
    FullDir,
    Fifo,
    Socket,
}

impl Target {
    pub(crate) fn all() -> Vec<Self> {
        let mut all = vec![
            Self::Absent,
            Self::SameLink,
            Self::EmptyDir,
            Self::FullDir,
            Self::Fifo,
            Self::Socket,
        ];
        for age in Age::ALL {
            all.extend([Self::File(age, Length::Same), Self::File(age, Length::Other)]);
            all.extend([Self::LinkToFile(age), Self::LinkToDir(age), Self::LinkToNothing(age)]);
        }
        all
    }

    /// Age of the existing entry, where it matters.
    pub(crate) const fn age(self) -> Option<Age> {
        match self {
            Self::File(age, _)
            | Self::LinkToFile(age)
            | Self::LinkToDir(age)
            | Self::LinkToNothing(age) => Some(age),
            Self::SameLink => Some(Age::Older),
            Self::Absent | Self::EmptyDir | Self::FullDir | Self::Fifo | Self::Socket => None,
        }
    }
}

/// A case and its child cases.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// A unique name, so that a message identifies the case.
    pub(crate) name: String,
    pub(crate) source: Source,
    pub(crate) target: Target,
    pub(crate) children: Vec<Self>,
    /// Content and time of the files are derived from this number.
    pub(crate) seed: u64,
}

impl Case {
    pub(crate) fn count(&self) -> usize {
        1 + self.children.iter().map(Self::count).sum::<usize>()
    }
}

/// Generates cases.
pub(crate) struct Maker {
    rng: Rng,
    made: u64,
    targets: Vec<Target>,
}

/// Depth of nested directories.
const DEPTH_MAX: usize = 3;

impl Maker {
    pub(crate) fn new(seed: u64) -> Self {
        Self { rng: Rng::with_seed(seed), made: 0, targets: Target::all() }
    }

    /// Every kind of source with every kind of target.
    pub(crate) fn product(&mut self) -> Vec<Case> {
        let targets = self.targets.clone();
        let pairs = Source::ALL.iter().flat_map(|source| {
            targets.iter().map(|target| (*source, *target)).filter(|pair| is_possible(*pair))
        });
        let pairs: Vec<_> = pairs.collect();
        pairs.into_iter().map(|(source, target)| self.case(source, target, 1)).collect()
    }

    /// A case with this source and target.
    pub(crate) fn one(&mut self, source: Source, target: Target) -> Case {
        self.case(source, target, DEPTH_MAX)
    }

    /// This many random cases.
    pub(crate) fn any(&mut self, count: usize) -> Vec<Case> {
        (0..count).map(|_| self.any_one(0, None)).collect()
    }

    fn any_one(&mut self, depth: usize, target: Option<Target>) -> Case {
        loop {
            let source = Source::ALL[self.rng.usize(..Source::ALL.len())];
            let target =
                target.unwrap_or_else(|| self.targets[self.rng.usize(..self.targets.len())]);
            if is_possible((source, target)) {
                return self.case(source, target, depth);
            }
        }
    }

    fn case(&mut self, source: Source, target: Target, depth: usize) -> Case {
        self.made += 1;
        let name = format!("e{}q", self.made);
        let count =
            if source.has_children() && depth < DEPTH_MAX { self.rng.usize(..4) } else { 0 };
        // Nothing can exist below an entry that is not a directory.
        let below = if target == Target::FullDir { None } else { Some(Target::Absent) };
        let children = (0..count).map(|_| self.any_one(depth + 1, below)).collect();
        Case { name, source, target, children, seed: self.rng.u64(..) }
    }
}

fn is_possible((source, target): (Source, Target)) -> bool {
    target != Target::SameLink || source.is_link()
}
