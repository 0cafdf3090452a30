//! The amount of messages on standard error beside errors. It is chosen once for the process, by `-q` and `-v`.

use crate::paint::Tone;
use clap::{ArgAction, Args};
use std::sync::atomic::{AtomicU8, Ordering};

/// The noise of the process: 0 is [`Noise::Quiet`], and the others are the number of flags `-v` and 1.
static CHOSEN: AtomicU8 = AtomicU8::new(1);

/// Options for the amount of messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Args)]
pub struct NoiseArgs {
    /// Print how each server is reached; twice and three times also log lines
    #[arg(short, long, action = ArgAction::Count, conflicts_with = "quiet")]
    verbose: u8,
    /// Leave out notes, and whatever is as it should be
    #[arg(short, long)]
    quiet: bool,
}

impl NoiseArgs {
    /// The messages on standard error.
    pub const fn noise(&self) -> Noise {
        Noise::new(self.quiet, self.verbose)
    }
}

/// The amount of messages of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Noise {
    /// Errors and warnings.
    Quiet,
    /// Notes as well.
    #[default]
    Usual,
    /// Details as well: the number of flags `-v`.
    Detailed(u8),
}

impl Noise {
    /// The noise for `-q` and a number of flags `-v`. Any flag `-v` has priority over `-q`.
    pub const fn new(is_quiet: bool, verbosity: u8) -> Self {
        match (is_quiet, verbosity) {
            (true, 0) => Self::Quiet,
            (false, 0) => Self::Usual,
            (_, verbosity) => Self::Detailed(verbosity),
        }
    }

    /// The noise of this process.
    pub fn chosen() -> Self {
        let chosen = CHOSEN.load(Ordering::Relaxed);
        Self::new(chosen == 0, chosen.saturating_sub(1))
    }

    /// Chooses it for this process.
    pub(crate) fn choose(self) {
        let number = if self == Self::Quiet { 0 } else { self.verbosity().saturating_add(1) };
        CHOSEN.store(number, Ordering::Relaxed);
    }

    /// The number of flags `-v`.
    pub const fn verbosity(self) -> u8 {
        match self {
            Self::Detailed(verbosity) => verbosity,
            Self::Quiet | Self::Usual => 0,
        }
    }

    /// Whether a text of this role is printed.
    pub(crate) fn has(self, tone: Tone) -> bool {
        match tone {
            Tone::Detail => self.verbosity() > 0,
            Tone::Note => self != Self::Quiet,
            Tone::Error | Tone::Warning | Tone::Good | Tone::Command => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_always_said_and_details_on_request() {
        let said = |noise: Noise| [Tone::Error, Tone::Note, Tone::Detail].map(|t| noise.has(t));
        assert_eq!(said(Noise::new(true, 0)), [true, false, false]);
        assert_eq!(said(Noise::new(false, 0)), [true, true, false]);
        assert_eq!(said(Noise::new(false, 1)), [true; 3]);
        assert_eq!(Noise::new(true, 2), Noise::Detailed(2));
    }

    #[test]
    fn what_was_chosen_is_found() {
        assert_eq!(Noise::chosen(), Noise::Usual);
        for noise in [Noise::Detailed(3), Noise::Quiet, Noise::Usual] {
            noise.choose();
            assert_eq!(Noise::chosen(), noise);
        }
    }
}
