//! A line of the list: `OPTIONS KEY COMMENT`.
//!
//! An administrator writes options to forbid something. So a line that says something else than it may seem to say is an
//! error: an option that is unknown, empty, given twice, or without effect beside another one.

use super::Permit;
use hikyaku_crypto::{Fingerprint, NotAPublicKey, PublicKey};
use hikyaku_forward::Pattern;
use hikyaku_remote::Writes;
use hikyaku_store::StorePath;
use hikyaku_units::{Rate, parse_limit};
use std::str::FromStr;

/// How every key begins.
const KEY: &str = "ed25519:";

/// The option that forbids all forwarding.
const NO_FORWARD: &str = "no-forward";
/// The options that say something about what is forwarded.
const FORWARDING: [&str; 3] = ["forward", "listen", "max-flows"];
/// The options of which a line may have several.
const REPEATED: [&str; 2] = ["forward", "listen"];

/// Reads a line that is no comment: the key, and what its holder may do.
pub(super) fn parse(line: &str) -> Result<(Fingerprint, Permit), String> {
    let (options, rest) = match has_options(line) {
        true => split_options(line)?,
        false => (None, line),
    };
    let key = rest.split_whitespace().next().unwrap_or_default();
    let key: PublicKey = key.parse().map_err(|error: NotAPublicKey| error.to_string())?;
    let permit = options.map_or_else(|| Ok(Permit::default()), permit)?;
    Ok((key.fingerprint(), permit))
}

/// Whether a line has options in front of its key.
pub(super) fn has_options(line: &str) -> bool {
    !line.starts_with(KEY)
}

/// What the options of a line permit.
fn permit(options: &str) -> Result<Permit, String> {
    let mut permit = Permit::default();
    let mut seen: Vec<&str> = Vec::new();
    for option in split(options, ',') {
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, Some(unquoted(name, value)?)),
            None => (option, None),
        };
        set(&mut permit, name, value)?;
        if seen.contains(&name) && !REPEATED.contains(&name) {
            return Err(format!("{name} is given twice"));
        }
        seen.push(name);
    }
    let useless = FORWARDING.into_iter().find(|name| seen.contains(name));
    match useless {
        Some(useless) if seen.contains(&NO_FORWARD) => {
            Err(format!("{useless}= has no effect beside {NO_FORWARD}: remove one of them"))
        }
        _ => Ok(permit),
    }
}

/// Notes one option.
fn set(permit: &mut Permit, name: &str, value: Option<&str>) -> Result<(), String> {
    let given = || match value {
        Some("") | None => Err(format!("{name}= has no value")),
        Some(value) => Ok(value),
    };
    let none = || match value {
        Some(_) => Err(format!("{name} takes no value")),
        None => Ok(()),
    };
    match name {
        "root" => permit.root = Some(root(given()?)?),
        "max-rate" => permit.max_rate = Some(rate(given()?)?),
        "max-flows" => {
            let instead = "no-forward lets the client have none";
            permit.max_flows = Some(count(name, given()?, instead)?);
        }
        "max-sessions" => {
            let instead = "without the line the client has none";
            permit.max_sessions = Some(count(name, given()?, instead)?);
        }
        "ro" => {
            none()?;
            permit.writes = Writes::Refused;
        }
        "forward" => permit.forward.get_or_insert_default().push(pattern(name, given()?)?),
        "listen" => permit.listen.push(pattern(name, given()?)?),
        NO_FORWARD => {
            none()?;
            permit.forward = Some(Vec::new());
        }
        "" => return Err("an option is empty".to_owned()),
        // An option that is not understood may be meant to forbid something.
        _ => {
            return Err(format!(
                "unknown option '{name}': there are root=, ro, max-rate=, max-sessions=, max-flows=, forward=, no-forward and listen="
            ));
        }
    }
    Ok(())
}

/// The directory of `root=`, below that of the daemon; `/` is all of it.
fn root(value: &str) -> Result<StorePath, String> {
    let path = StorePath::new(value.trim_matches('/').as_bytes());
    path.map_err(|error| format!("root={value}: {error}"))
}

/// The limit of `max-rate=`.
fn rate(value: &str) -> Result<Rate, String> {
    parse_limit(value).map_err(|error| format!("max-rate={value}: {error}"))
}

/// A number that is more than nothing; `instead` says how to have nothing.
fn count<N: FromStr<Err: ToString> + PartialEq + Default>(
    name: &str,
    value: &str,
    instead: &str,
) -> Result<N, String> {
    let number: N =
        value.parse().map_err(|error: N::Err| format!("{name}={value}: {}", error.to_string()))?;
    if number == N::default() { Err(format!("{name}={value}: {instead}")) } else { Ok(number) }
}

fn pattern(name: &str, value: &str) -> Result<Pattern, String> {
    value.parse().map_err(|error| format!("{name}={value}: {error}"))
}

/// A value, which stands between two double quotes or has none.
fn unquoted<'a>(name: &str, value: &'a str) -> Result<&'a str, String> {
    let inner = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
    let inner = inner.unwrap_or(value);
    match inner.contains('"') {
        true => Err(format!("{name}={value}: double quotes stand around a whole value")),
        false => Ok(inner),
    }
}

/// The options, which end at the first blank outside of double quotes, and what comes behind them.
fn split_options(line: &str) -> Result<(Option<&str>, &str), String> {
    let mut is_quoted = false;
    let end = line.find(|c: char| {
        is_quoted ^= c == '"';
        c.is_whitespace() && !is_quoted
    });
    if is_quoted {
        return Err("a double quote is not closed".to_owned());
    }
    let (options, rest) = line.split_at(end.unwrap_or(line.len()));
    match options.ends_with(',') {
        true => {
            Err("an option is missing behind a comma: there are no blanks between options"
                .to_owned())
        }
        false => Ok((Some(options), rest)),
    }
}

/// The parts of a text between these characters, other than those between double quotes.
fn split(text: &str, at: char) -> Vec<&str> {
    let mut is_quoted = false;
    text.split(|c| {
        is_quoted ^= c == '"';
        c == at && !is_quoted
    })
    .collect()
}
