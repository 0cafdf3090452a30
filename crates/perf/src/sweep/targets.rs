//! The target rates of a sweep, as typed.

use hikyaku_units::Rate;
use std::str::FromStr;

/// The target rates of a sweep.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Targets(Vec<Target>);

#[derive(Clone, Copy, PartialEq, Debug)]
enum Target {
    Rate(Rate),
    /// Of what a test without a target receives.
    Percent(f64),
}

/// Tests of one sweep.
const TARGETS_MAX: usize = 200;
/// The smallest and the largest target in bits a second.
const RATES: std::ops::RangeInclusive<u64> = 8000..=1_000_000_000_000;

impl FromStr for Targets {
    type Err = String;
    // fuzz: none, input comes from the local user
    fn from_str(text: &str) -> Result<Self, String> {
        let mut targets = Vec::new();
        for item in text.split(',') {
            match item.split_once("..") {
                None => targets.push(target(item)?),
                Some((from, rest)) => targets.extend(range(item, from, rest)?),
            }
        }
        match targets.len() {
            0..=TARGETS_MAX => Ok(Self(targets)),
            _ => Err(format!("at most {TARGETS_MAX} targets")),
        }
    }
}

impl Targets {
    /// Whether some are shares of what the path can carry.
    pub(crate) fn needs_capacity(&self) -> bool {
        self.0.iter().any(|target| matches!(target, Target::Percent(_)))
    }

    /// The rates, none twice. 100 % is `capacity`.
    pub(super) fn rates(&self, capacity: Option<Rate>) -> Vec<Rate> {
        let capacity = capacity.unwrap_or_default();
        let rate = |target: &Target| match *target {
            Target::Rate(rate) => rate,
            Target::Percent(percent) => {
                let bits = capacity.scaled(percent / 100.0).bits_per_sec();
                Rate::from_bits_per_sec(bits.clamp(*RATES.start(), *RATES.end()))
            }
        };
        let mut rates: Vec<Rate> = self.0.iter().map(rate).collect();
        rates.sort();
        rates.dedup();
        rates
    }
}

/// `RATE` or `PERCENT%`.
fn target(text: &str) -> Result<Target, String> {
    if let Some(percent) = text.strip_suffix('%') {
        return match percent.parse::<f64>() {
            Ok(percent) if (0.1..=1000.0).contains(&percent) => Ok(Target::Percent(percent)),
            _ => Err(format!("'{text}': percent from 0.1 to 1000")),
        };
    }
    match text.parse::<Rate>() {
        Ok(rate) if RATES.contains(&rate.bits_per_sec()) => Ok(Target::Rate(rate)),
        Ok(_) => Err(format!("'{text}' is not from 8 kbit/s to 1 Tbit/s")),
        Err(error) => Err(format!("{error}; or percent (50%)")),
    }
}

/// `FROM..TO:COUNT`, in equal steps.
fn range(item: &str, from: &str, rest: &str) -> Result<Vec<Target>, String> {
    let error = || format!("'{item}': expected FROM..TO:COUNT (100M..1G:10, 10%..110%:8)");
    let (to, count) = rest.split_once(':').ok_or_else(error)?;
    let count: usize = count.parse().map_err(|_| error())?;
    if !(2..=TARGETS_MAX).contains(&count) {
        return Err(error());
    }
    let at =
        |number: usize, from: f64, to: f64| from + (to - from) * number as f64 / (count - 1) as f64;
    match (target(from)?, target(to)?) {
        (Target::Rate(from), Target::Rate(to)) => {
            let (from, to) = (from.bits_per_sec() as f64, to.bits_per_sec() as f64);
            let rate = |number| Target::Rate(Rate::from_bits_per_sec(at(number, from, to) as u64));
            Ok((0..count).map(rate).collect())
        }
        (Target::Percent(from), Target::Percent(to)) => {
            Ok((0..count).map(|number| Target::Percent(at(number, from, to))).collect())
        }
        _ => Err(error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn megabits(text: &str, capacity: Option<u64>) -> Vec<u64> {
        let capacity = capacity.map(|mega| Rate::from_bits_per_sec(mega * 1_000_000));
        let rates = text.parse::<Targets>().unwrap().rates(capacity);
        rates.iter().map(|rate| rate.bits_per_sec() / 1_000_000).collect()
    }

    #[test]
    fn targets_are_rates_shares_and_ranges() {
        assert_eq!(megabits("400M,200M,1G,200M", None), [200, 400, 1000]);
        assert_eq!(megabits("100M..1G:10", None)[..3], [100, 200, 300]);
        assert_eq!(megabits("10%..110%:3,5M", Some(200)), [5, 20, 120, 220]);
        for text in ["", "x", "1", "10%..1G:3", "1M..2M", "1M..2M:1", "1M..2M:999", "0%", "1M,"] {
            assert!(text.parse::<Targets>().is_err(), "{text}");
        }
    }
}
