//! Changes to a path over time, from a text file:
//!
//! ```text
//! # a handover
//! at 10s  rate 300mbit
//! at 20s  rtt 50ms  loss 0.1%
//! at 30s  outage 5s
//! ```

use crate::quantity::parse_time;
use crate::setting::{Setting, SettingError};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;
use hikyaku_units::Instant;

/// A list of changes, ordered by time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schedule {
    steps: Vec<Step>,
}

/// One change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Its time since the start of the link.
    pub at: Instant,
    /// The change.
    pub setting: Setting,
}

impl Schedule {
    /// The changes, earliest first.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }
}

/// Why a line is not a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleError {
    line: usize,
    reason: String,
}

impl fmt::Display for ScheduleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "schedule line {}: {}", self.line, self.reason)
    }
}

impl core::error::Error for ScheduleError {}

impl FromStr for Schedule {
    type Err = ScheduleError;
    fn from_str(text: &str) -> Result<Self, ScheduleError> {
        let mut steps = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default();
            let words: Vec<&str> = line.split_whitespace().collect();
            let fail = |reason| ScheduleError { line: index + 1, reason };
            steps_of(&words, &mut steps).map_err(fail)?;
        }
        // The sort is stable, so changes of the same time are applied in the order of the file.
        steps.sort_by_key(|step: &Step| step.at);
        Ok(Self { steps })
    }
}

fn steps_of(words: &[&str], steps: &mut Vec<Step>) -> Result<(), String> {
    let settings = match words {
        [] => return Ok(()),
        ["at", _, settings @ ..] if !settings.is_empty() => settings,
        _ => return Err(format!("'{}' is not like 'at 10s rate 300mbit'", words.join(" "))),
    };
    let at = parse_time(words[1])?;
    for pair in settings.chunks(2) {
        let setting = match pair {
            [key, value] => Setting::parse(key, value),
            _ => Err(SettingError::missing(pair[0])),
        };
        let setting = setting.map_err(|error| error.to_string())?;
        steps.push(Step { at: Instant::ZERO + at, setting });
    }
    Ok(())
}
