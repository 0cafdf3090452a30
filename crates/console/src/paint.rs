//! Colours. Every colour of the program's own texts comes from here; clap colours its help by the same choice.

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Effects, Style};
use clap::ValueEnum;
use std::env;
use std::fmt::Display;
use std::io::{Stderr, Stdout, stderr, stdout};

/// The role of a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tone {
    /// Why a command failed, or will.
    Error,
    /// Something that the user should look at.
    Warning,
    /// Something is as it should be.
    Good,
    /// A command that the user can copy.
    Command,
    /// Anything else: it has no colour.
    Note,
    /// A detail, printed with `-v`.
    Detail,
}

/// When texts are coloured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum Color {
    /// On a terminal, unless `NO_COLOR` is set and not empty, or `TERM` is `dumb`.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Where a text is printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stream {
    /// Standard output.
    Output,
    /// Standard error.
    Error,
    /// No terminal: nothing is coloured.
    Plain,
}

impl Color {
    /// Colours all texts of this process in this way from now on.
    pub fn choose(self) {
        let choice = match self {
            // anstream colours a terminal without abilities where CI is set.
            Self::Auto if env::var_os("TERM").is_some_and(|term| term == "dumb") => {
                ColorChoice::Never
            }
            Self::Auto => ColorChoice::Auto,
            Self::Always => ColorChoice::Always,
            Self::Never => ColorChoice::Never,
        };
        choice.write_global();
    }
}

impl Stream {
    /// `text`, coloured if this stream has colours.
    pub fn paint(self, tone: Tone, text: impl Display) -> String {
        match self.is_coloured() {
            true => tone.paint(text),
            false => text.to_string(),
        }
    }

    fn is_coloured(self) -> bool {
        let choice = match self {
            Self::Output => AutoStream::<Stdout>::choice(&stdout()),
            Self::Error => AutoStream::<Stderr>::choice(&stderr()),
            Self::Plain => ColorChoice::Never,
        };
        choice != ColorChoice::Never
    }
}

impl Tone {
    fn paint(self, text: impl Display) -> String {
        let style = match self {
            Self::Error => AnsiColor::Red.on_default().effects(Effects::BOLD),
            Self::Warning => AnsiColor::Yellow.on_default().effects(Effects::BOLD),
            Self::Good => AnsiColor::Green.on_default(),
            Self::Command => Style::new().effects(Effects::BOLD),
            Self::Note | Self::Detail => Style::new(),
        };
        format!("{style}{text}{style:#}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tone_begins_with_its_colour_and_ends_it() {
        for tone in [Tone::Error, Tone::Warning, Tone::Good, Tone::Command] {
            let text = tone.paint("x");
            assert!(text.starts_with("\u{1b}[") && text.ends_with("x\u{1b}[0m"), "{text:?}");
        }
        assert_eq!(Tone::Note.paint("x"), "x");
    }
}
