//! Log lines for those who look for the cause of something: events of crates that use `tracing`, on standard error.
//!
//! Nothing is logged unless the user asks for it, by `HIKYAKU_LOG` or by `-v`.

use crate::noise::Noise;
use std::env;
use std::io::{self, IsTerminal, Write};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// What is logged: a level, or levels of crates, such as `info,hikyaku_net=debug`.
const VARIABLE: &str = "HIKYAKU_LOG";

/// Log lines cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The value of `HIKYAKU_LOG` is neither a level nor a list of levels of crates.
    #[error("{VARIABLE}: '{0}' is neither a level nor a list such as info,hikyaku_net=debug")]
    Value(String),
}

impl LogError {
    /// What the user can do, as a line that begins with `try: `.
    pub fn remedy(&self) -> String {
        format!("try: {VARIABLE}=debug (error, warn, info, debug or trace)")
    }
}

/// Sets the noise of this process, and begins to log at the level of `HIKYAKU_LOG`, or without it at that of the flags `-v`:
/// none for one flag, which makes the command itself print more, `debug` for two and `trace` for three. Only the first call
/// begins to log.
///
/// # Errors
/// The value of `HIKYAKU_LOG` cannot be read.
pub fn start_logging(noise: Noise) -> Result<(), LogError> {
    noise.choose();
    let asked = env::var_os(VARIABLE).map(|value| value.to_string_lossy().into_owned());
    let Some(targets) = targets(asked.as_deref(), noise.verbosity())? else { return Ok(()) };
    let is_seen = io::stderr().is_terminal();
    let lines = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(move || {
        if is_seen {
            // The line of a meter may stand there.
            let _ = io::stderr().write_all(b"\r\x1b[K");
        }
        io::stderr()
    });
    // It fails if there is a subscriber already, which then logs as it was told to.
    let _ = tracing_subscriber::registry().with(lines).with(targets).try_init();
    Ok(())
}

/// What is logged, if anything is.
fn targets(asked: Option<&str>, verbosity: u8) -> Result<Option<Targets>, LogError> {
    match (asked.filter(|asked| !asked.is_empty()), verbosity) {
        (Some(asked), _) => {
            let targets = asked.parse().map_err(|_| LogError::Value(asked.to_owned()))?;
            Ok(Some(targets))
        }
        (None, 0 | 1) => Ok(None),
        (None, 2) => Ok(Some(Targets::new().with_default(LevelFilter::DEBUG))),
        (None, _) => Ok(Some(Targets::new().with_default(LevelFilter::TRACE))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing::Level;

    #[test]
    fn the_variable_wins_over_the_flags() {
        let logs = |asked, verbosity, target: &str, level: &Level| {
            let targets = targets(asked, verbosity).unwrap();
            targets.is_some_and(|targets| targets.would_enable(target, level))
        };
        let net = "hikyaku_net";
        assert!(!logs(None, 0, net, &Level::ERROR) && !logs(None, 1, net, &Level::ERROR));
        assert!(logs(None, 2, net, &Level::DEBUG) && !logs(None, 2, net, &Level::TRACE));
        assert!(logs(None, 3, net, &Level::TRACE));
        assert!(logs(Some(""), 2, net, &Level::DEBUG));
        assert!(logs(Some("info"), 3, net, &Level::INFO));
        assert!(!logs(Some("info"), 3, net, &Level::DEBUG));
        let one = Some("warn,hikyaku_net=debug");
        assert!(logs(one, 0, net, &Level::DEBUG) && !logs(one, 0, "other", &Level::INFO));
        assert!(!logs(Some("off"), 3, net, &Level::ERROR));
    }

    #[test]
    fn a_value_that_means_nothing_is_named() {
        let error = targets(Some("hikyaku_net=loud"), 0).unwrap_err();
        assert!(error.to_string().contains("hikyaku_net=loud"), "{error}");
    }
}
