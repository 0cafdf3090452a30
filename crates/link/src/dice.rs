//! Random impairments. Each kind has an independent seeded source, so that enabling one kind does
//! not change which packets another one hits.

use crate::spec::LossModel;
use fastrand::Rng;
use hikyaku_units::Probability;

/// A random event of a fixed probability.
#[derive(Debug)]
pub(crate) struct Die {
    rng: Rng,
    chance: Chance,
}

#[derive(Clone, Copy, Debug)]
enum Chance {
    Never,
    /// The event happens if the next 64 random bits are below this number.
    Below(u64),
    Always,
}

impl Die {
    pub(crate) fn new(probability: Probability, seed: u64, kind: u64) -> Self {
        Self { rng: rng(seed, kind), chance: Chance::of(probability.get()) }
    }

    pub(crate) fn set(&mut self, probability: Probability) {
        self.chance = Chance::of(probability.get());
    }

    /// Draws whether the event happens.
    #[inline]
    pub(crate) fn roll(&mut self) -> bool {
        self.chance.roll(&mut self.rng)
    }

    /// Random bits from the same source.
    pub(crate) fn bits(&mut self) -> u32 {
        self.rng.u32(..)
    }
}

impl Chance {
    fn of(probability: f64) -> Self {
        if probability <= 0.0 {
            Self::Never
        } else if probability >= 1.0 {
            Self::Always
        } else {
            // 2^64 as a float. The product is below it because the probability is below 1.
            Self::Below((probability * 18_446_744_073_709_551_616.0) as u64)
        }
    }

    #[inline]
    fn roll(self, rng: &mut Rng) -> bool {
        match self {
            Self::Never => false,
            Self::Below(limit) => rng.u64(..) < limit,
            Self::Always => true,
        }
    }
}

/// The random process of losses.
#[derive(Debug)]
pub(crate) struct Losses {
    rng: Rng,
    process: Process,
}

#[derive(Debug)]
enum Process {
    Independent(Chance),
    Bursts { begin: Chance, end: Chance, in_burst: bool },
    Periodic { every: u64, passed: u64 },
}

impl Losses {
    pub(crate) fn new(model: LossModel, seed: u64, kind: u64) -> Self {
        Self { rng: rng(seed, kind), process: Process::of(model) }
    }

    pub(crate) fn set(&mut self, model: LossModel) {
        self.process = Process::of(model);
    }

    /// Draws whether the next packet is lost.
    #[inline]
    pub(crate) fn next(&mut self) -> bool {
        match &mut self.process {
            Process::Independent(chance) => chance.roll(&mut self.rng),
            Process::Bursts { begin, end, in_burst } => {
                if *in_burst {
                    *in_burst = !end.roll(&mut self.rng);
                } else {
                    *in_burst = begin.roll(&mut self.rng);
                }
                *in_burst
            }
            Process::Periodic { every, passed } => {
                *passed += 1;
                let lost = *passed == *every;
                if lost {
                    *passed = 0;
                }
                lost
            }
        }
    }
}

impl Process {
    fn of(model: LossModel) -> Self {
        match model {
            LossModel::None | LossModel::Periodic(0) => Self::Independent(Chance::Never),
            LossModel::Bernoulli(loss) => Self::Independent(Chance::of(loss.get())),
            LossModel::Periodic(every) => Self::Periodic { every, passed: 0 },
            LossModel::Bursts { loss, mean_burst } => {
                let (loss, mean_burst) = (loss.get(), mean_burst.max(1.0));
                // In equilibrium as many bursts begin as end: (1 - loss) x begin = loss x end.
                let end = 1.0 / mean_burst;
                let begin = if loss < 1.0 { loss * end / (1.0 - loss) } else { 1.0 };
                let end = if loss < 1.0 { end } else { 0.0 };
                Self::Bursts { begin: Chance::of(begin), end: Chance::of(end), in_burst: false }
            }
        }
    }
}

/// The random source of one kind of impairment.
pub(crate) fn rng(seed: u64, kind: u64) -> Rng {
    let mut rng = Rng::with_seed(seed ^ kind.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    // Neighbouring seeds give similar first outputs; a second seeding separates them.
    Rng::with_seed(rng.u64(..))
}
