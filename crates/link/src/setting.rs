//! A change to a path as users type it: a key such as `rate-up` and a value such as `300mbit`.

use crate::background::BackgroundSpec;
use crate::codel::{CodelSpec, Signal};
use crate::path::{PathSpec, QueueRule};
use crate::policer::PoliceSpec;
use crate::quantity::{parse_share, parse_time};
use crate::spec::{LinkSpec, LossModel, Outage, Reorder};
use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;
use core::str::FromStr;
use core::time::Duration;
use hikyaku_units::{DataSize, Instant, Probability, Rate};

/// A change to one or both directions of a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setting {
    sides: Sides,
    change: Change,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sides {
    Both,
    Up,
    Down,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Change {
    Rate(Option<Rate>),
    Rtt(Duration),
    Delay(Duration),
    Queue(QueueRule),
    Loss(LossModel),
    Burst(f64),
    Jitter(Duration),
    Reorder(Reorder),
    Duplicate(Probability),
    Corrupt(Probability),
    Mtu(Option<u32>),
    /// Start and length. Without a start, the outage begins when the setting is applied.
    Outage(Option<Instant>, Duration),
    Ecn(Option<DataSize>),
    Aqm(Option<CodelSpec>),
    Police(Option<PoliceSpec>),
    Background(Option<BackgroundSpec>),
}

/// Why a text is not a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingError(String);

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for SettingError {}

impl SettingError {
    pub(crate) fn missing(key: &str) -> Self {
        Self(format!("'{key}' needs a value"))
    }
}

impl Setting {
    /// The keys. Each but `rtt` also exists with `-up` or `-down` appended, for one direction only.
    pub const KEYS: [&'static str; 16] = [
        "rate",
        "rtt",
        "delay",
        "queue",
        "loss",
        "burst",
        "jitter",
        "reorder",
        "dup",
        "corrupt",
        "mtu",
        "outage",
        "ecn",
        "aqm",
        "police",
        "background",
    ];

    /// Parses a key and its value.
    pub fn parse(key: &str, value: &str) -> Result<Self, SettingError> {
        let (name, sides) = if let Some(name) = key.strip_suffix("-up") {
            (name, Sides::Up)
        } else if let Some(name) = key.strip_suffix("-down") {
            (name, Sides::Down)
        } else {
            (key, Sides::Both)
        };
        let change = match name {
            "rate" => Change::Rate(unless("unlimited", value, str::parse)?),
            "rtt" if sides == Sides::Both => Change::Rtt(text(parse_time(value))?),
            "delay" => Change::Delay(text(parse_time(value))?),
            "queue" => Change::Queue(text(value.parse())?),
            "loss" => Change::Loss(loss(value)?),
            "burst" => Change::Burst(burst(value)?),
            "jitter" => Change::Jitter(text(parse_time(value))?),
            "reorder" => Change::Reorder(reorder(value)?),
            "dup" => Change::Duplicate(text(parse_share(value))?),
            "corrupt" => Change::Corrupt(text(parse_share(value))?),
            "mtu" => Change::Mtu(unless("none", value, mtu)?),
            "outage" => outage(value)?,
            "ecn" => Change::Ecn(unless("off", value, str::parse)?),
            "aqm" => Change::Aqm(unless("none", value, codel)?),
            "police" => Change::Police(unless("none", value, police)?),
            "background" => Change::Background(unless("none", value, background)?),
            _ => {
                let keys = Self::KEYS.join(", ");
                return Err(SettingError(format!("'{key}' is not a setting; there are {keys}")));
            }
        };
        Ok(Self { sides, change })
    }

    /// The same change seen from the other end: up and down are exchanged.
    pub fn mirrored(self) -> Self {
        let sides = match self.sides {
            Sides::Both => Sides::Both,
            Sides::Up => Sides::Down,
            Sides::Down => Sides::Up,
        };
        Self { sides, ..self }
    }

    /// Applies the change to `path`. `now` is the start of an outage without a start of its own.
    pub fn apply(&self, path: &mut PathSpec, now: Instant) {
        if self.sides != Sides::Down {
            self.change.apply(&mut path.up, &mut path.queue_up, now);
        }
        if self.sides != Sides::Up {
            self.change.apply(&mut path.down, &mut path.queue_down, now);
        }
    }
}

impl Change {
    fn apply(self, link: &mut LinkSpec, queue: &mut QueueRule, now: Instant) {
        match self {
            Self::Rate(rate) => link.rate = rate,
            Self::Rtt(rtt) => link.delay = rtt / 2,
            Self::Delay(delay) => link.delay = delay,
            Self::Queue(rule) => *queue = rule,
            Self::Loss(model) => link.loss = with_loss(link.loss, model),
            Self::Burst(mean_burst) => link.loss = with_burst(link.loss, mean_burst),
            Self::Jitter(jitter) => link.jitter = jitter,
            Self::Reorder(reorder) => link.reorder = reorder,
            Self::Duplicate(share) => link.duplicate = share,
            Self::Corrupt(share) => link.corrupt = share,
            Self::Mtu(mtu) => link.mtu = mtu,
            Self::Outage(from, lasts) => {
                link.outages.push(Outage { from: from.unwrap_or(now), lasts });
            }
            Self::Ecn(threshold) => link.ecn = threshold,
            Self::Aqm(aqm) => link.aqm = aqm,
            Self::Police(police) => link.police = police,
            Self::Background(background) => link.background = background,
        }
    }
}

/// A new loss rate keeps the mean burst length.
fn with_loss(old: LossModel, new: LossModel) -> LossModel {
    match (old, new) {
        (LossModel::Bursts { mean_burst, .. }, LossModel::Bernoulli(loss)) => {
            LossModel::Bursts { loss, mean_burst }
        }
        _ => new,
    }
}

/// A new mean burst length keeps the loss rate.
fn with_burst(old: LossModel, mean_burst: f64) -> LossModel {
    match old {
        LossModel::Bernoulli(loss) | LossModel::Bursts { loss, .. } => {
            LossModel::Bursts { loss, mean_burst }
        }
        LossModel::None => LossModel::Bursts { loss: Probability::ZERO, mean_burst },
        LossModel::Periodic(_) => old,
    }
}

fn loss(value: &str) -> Result<LossModel, SettingError> {
    match value.strip_prefix("every:") {
        Some(every) => match every.parse() {
            Ok(every) if every > 0 => Ok(LossModel::Periodic(every)),
            _ => Err(SettingError(format!("'{value}' is not a loss (1%, every:100)"))),
        },
        None => text(parse_share(value)).map(LossModel::Bernoulli),
    }
}

fn burst(value: &str) -> Result<f64, SettingError> {
    match value.parse::<f64>() {
        Ok(length) if length.is_finite() && length >= 1.0 => Ok(length),
        _ => Err(SettingError(format!("'{value}' is not a mean burst of 1 or more segments"))),
    }
}

fn reorder(value: &str) -> Result<Reorder, SettingError> {
    let Some((share, extra)) = value.split_once(':') else {
        return Err(SettingError(format!("'{value}' is not a reordering (1%:20ms)")));
    };
    Ok(Reorder { probability: text(parse_share(share))?, extra: text(parse_time(extra))? })
}

fn mtu(value: &str) -> Result<u32, String> {
    match value.parse::<u32>() {
        Ok(mtu) if (68..=65_535).contains(&mtu) => Ok(mtu),
        _ => Err(format!("'{value}' is not an MTU (68 to 65535)")),
    }
}

/// Parses `codel[:TARGET[:INTERVAL]]`, or `codel-ecn...` to mark ECN-capable packets.
fn codel(value: &str) -> Result<CodelSpec, String> {
    let mut parts = value.split(':');
    let mut spec = match parts.next() {
        Some("codel") => CodelSpec::usual(Signal::Drop),
        Some("codel-ecn") => CodelSpec::usual(Signal::Mark),
        _ => {
            return Err(format!(
                "'{value}' is not an active queue management (codel, codel-ecn:5ms:100ms)"
            ));
        }
    };
    for time in [&mut spec.target, &mut spec.interval] {
        if let Some(part) = parts.next() {
            *time = parse_time(part)?;
        }
    }
    match parts.next() {
        None => Ok(spec),
        Some(_) => Err(format!("'{value}' has more than a target and an interval")),
    }
}

fn police(value: &str) -> Result<PoliceSpec, String> {
    let (rate, burst) = value
        .split_once(':')
        .ok_or_else(|| format!("'{value}' is not a rate and a burst (500mbit:1MB)"))?;
    let burst = burst.parse::<DataSize>().map_err(|error| error.to_string())?;
    let rate = rate.parse::<Rate>().map_err(|error| error.to_string())?;
    Ok(PoliceSpec { rate, burst })
}

fn background(value: &str) -> Result<BackgroundSpec, String> {
    let share = value.strip_prefix("udp:").ok_or_else(|| {
        format!("'{value}' is not cross traffic as a share of the rate (udp:30%)")
    })?;
    Ok(BackgroundSpec { share: parse_share(share)? })
}

fn outage(value: &str) -> Result<Change, SettingError> {
    match value.split_once('+') {
        Some((from, lasts)) => {
            let from = Instant::ZERO + text(parse_time(from))?;
            Ok(Change::Outage(Some(from), text(parse_time(lasts))?))
        }
        None => text(parse_time(value)).map(|lasts| Change::Outage(None, lasts)),
    }
}

/// `None` if the value equals `word`, otherwise the parsed value.
fn unless<T, E: ToString>(
    word: &str,
    value: &str,
    parse: impl Fn(&str) -> Result<T, E>,
) -> Result<Option<T>, SettingError> {
    if value == word { Ok(None) } else { text(parse(value)).map(Some) }
}

fn text<T, E: ToString>(result: Result<T, E>) -> Result<T, SettingError> {
    result.map_err(|error| SettingError(error.to_string()))
}

impl FromStr for Setting {
    type Err = SettingError;
    /// Parses a key and a value separated by blanks: `rate-up 300mbit`.
    fn from_str(line: &str) -> Result<Self, SettingError> {
        match line.split_whitespace().collect::<alloc::vec::Vec<_>>()[..] {
            [key, value] => Self::parse(key, value),
            _ => Err(SettingError(format!("'{line}' is not a key and a value"))),
        }
    }
}
