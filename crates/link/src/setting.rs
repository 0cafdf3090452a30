//! One change to a path, as users write it: a key such as `rate-up` and a value such as `300mbit`.

use crate::codel::{CodelSpec, Signal};
use crate::path::{PathSpec, QueueRule};
use crate::policer::PoliceSpec;
use crate::spec::{LinkSpec, LossModel, Outage, Reorder};
use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;
use core::str::FromStr;
use core::time::Duration;
use hikyaku_units::{DataSize, Instant, Probability, Rate, parse_duration};

/// One change to a path.
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
    /// Without a start, from when the setting is applied.
    Outage(Option<Instant>, Duration),
    Ecn(Option<DataSize>),
    Aqm(Option<CodelSpec>),
    Police(Option<PoliceSpec>),
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
    /// The keys; each but `rtt` also ends in `-up` or `-down` for one direction alone.
    pub const KEYS: [&'static str; 15] = [
        "rate", "rtt", "delay", "queue", "loss", "burst", "jitter", "reorder", "dup", "corrupt",
        "mtu", "outage", "ecn", "aqm", "police",
    ];

    /// Reads a key and its value.
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
            "rtt" if sides == Sides::Both => Change::Rtt(text(parse_duration(value))?),
            "delay" => Change::Delay(text(parse_duration(value))?),
            "queue" => Change::Queue(text(value.parse())?),
            "loss" => Change::Loss(loss(value)?),
            "burst" => Change::Burst(burst(value)?),
            "jitter" => Change::Jitter(text(parse_duration(value))?),
            "reorder" => Change::Reorder(reorder(value)?),
            "dup" => Change::Duplicate(text(value.parse())?),
            "corrupt" => Change::Corrupt(text(value.parse())?),
            "mtu" => Change::Mtu(unless("none", value, mtu)?),
            "outage" => outage(value)?,
            "ecn" => Change::Ecn(unless("off", value, str::parse)?),
            "aqm" => Change::Aqm(unless("none", value, codel)?),
            "police" => Change::Police(unless("none", value, police)?),
            _ => {
                let keys = Self::KEYS.join(", ");
                return Err(SettingError(format!("'{key}' is not a setting; there are {keys}")));
            }
        };
        Ok(Self { sides, change })
    }

    /// Makes the change to `path`; `now` is when an outage without a start begins.
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
        }
    }
}

/// A new loss rate keeps the length of the bursts.
fn with_loss(old: LossModel, new: LossModel) -> LossModel {
    match (old, new) {
        (LossModel::Bursts { mean_burst, .. }, LossModel::Bernoulli(loss)) => {
            LossModel::Bursts { loss, mean_burst }
        }
        _ => new,
    }
}

/// A new length of bursts keeps the loss rate.
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
        None => text(value.parse()).map(LossModel::Bernoulli),
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
    Ok(Reorder { probability: text(share.parse())?, extra: text(parse_duration(extra))? })
}

fn mtu(value: &str) -> Result<u32, String> {
    match value.parse::<u32>() {
        Ok(mtu) if (68..=65_535).contains(&mtu) => Ok(mtu),
        _ => Err(format!("'{value}' is not an MTU (68 to 65535)")),
    }
}

/// `codel[:TARGET[:INTERVAL]]`, or `codel-ecn` for one that marks.
fn codel(value: &str) -> Result<CodelSpec, String> {
    let mut parts = value.split(':');
    let mut spec = match parts.next() {
        Some("codel") => CodelSpec::usual(Signal::Drop),
        Some("codel-ecn") => CodelSpec::usual(Signal::Mark),
        _ => {
            return Err(format!(
                "'{value}' is no way to manage a queue (codel, codel-ecn:5ms:100ms)"
            ));
        }
    };
    for time in [&mut spec.target, &mut spec.interval] {
        if let Some(part) = parts.next() {
            *time = parse_duration(part).map_err(|error| error.to_string())?;
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
    let (rate, burst) = (rate.parse::<Rate>(), burst.parse::<DataSize>());
    let text = |error: &dyn ToString| error.to_string();
    Ok(PoliceSpec {
        rate: rate.map_err(|error| text(&error))?,
        burst: burst.map_err(|error| text(&error))?,
    })
}

fn outage(value: &str) -> Result<Change, SettingError> {
    match value.split_once('+') {
        Some((from, lasts)) => {
            let from = Instant::ZERO + text(parse_duration(from))?;
            Ok(Change::Outage(Some(from), text(parse_duration(lasts))?))
        }
        None => text(parse_duration(value)).map(|lasts| Change::Outage(None, lasts)),
    }
}

/// `None` if the value is `word`.
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
    /// `rate-up 300mbit`.
    fn from_str(line: &str) -> Result<Self, SettingError> {
        match line.split_whitespace().collect::<alloc::vec::Vec<_>>()[..] {
            [key, value] => Self::parse(key, value),
            _ => Err(SettingError(format!("'{line}' is not a key and a value"))),
        }
    }
}
