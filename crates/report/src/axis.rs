//! Units and ticks of axes.

/// The unit of the numbers of a chart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unit {
    /// Bits a second.
    Rate,
    /// Bytes.
    Bytes,
    /// Percent.
    Percent,
    /// Milliseconds.
    Millis,
    /// Seconds.
    Seconds,
}

/// The numbers that stand at an axis from 0 on.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Axis {
    /// The end of the axis.
    pub(crate) end: f64,
    /// The name of the unit in which the labels are.
    pub(crate) unit: &'static str,
    /// Places and labels of ticks.
    pub(crate) ticks: Vec<(f64, String)>,
}

impl Unit {
    /// The scale for numbers up to `most`: the number that is one, and its name.
    fn scale(self, most: f64) -> (f64, &'static str) {
        let of = |names: [&'static str; 5]| {
            let power = (0..4).rev().find(|power| most >= 1e3_f64.powi(power + 1));
            let power = power.map_or(0, |power| power as usize + 1);
            (1e3_f64.powi(power as i32), names[power])
        };
        match self {
            Self::Rate => of(["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"]),
            Self::Bytes => of(["B", "kB", "MB", "GB", "TB"]),
            Self::Percent => (1.0, "%"),
            Self::Millis => (1.0, "ms"),
            Self::Seconds if most >= 7200.0 => (3600.0, "h"),
            Self::Seconds if most >= 300.0 => (60.0, "min"),
            Self::Seconds => (1.0, "s"),
        }
    }

    /// A number with its unit.
    pub(crate) fn shown(self, value: f64) -> String {
        let (one, name) = self.scale(value.abs());
        format!("{} {name}", short(value / one))
    }
}

impl Axis {
    /// An axis to at least `most`, that ends at a tick.
    pub(crate) fn to_tick(unit: Unit, most: f64) -> Self {
        let most = if most.is_finite() && most > 0.0 { most } else { 1.0 };
        let (one, name) = unit.scale(most);
        let step = step(most / one, 4.0);
        let count = ((most / one) / step - 1e-9).ceil().max(1.0);
        Self { end: count * step * one, unit: name, ticks: ticks(count as usize, step, one) }
    }

    /// An axis that ends at `most` exactly.
    pub(crate) fn to(unit: Unit, most: f64) -> Self {
        let most = if most.is_finite() && most > 0.0 { most } else { 1.0 };
        let (one, name) = unit.scale(most);
        let step = step(most / one, 5.0);
        let count = ((most / one) / step + 1e-9).floor() as usize;
        Self { end: most, unit: name, ticks: ticks(count, step, one) }
    }
}

fn ticks(count: usize, step: f64, one: f64) -> Vec<(f64, String)> {
    (0..=count)
        .map(|number| {
            let value = number as f64 * step;
            (value * one, short(value))
        })
        .collect()
}

/// The smallest of 1, 2 and 5 times a power of ten of which at most `count` reach `most`.
fn step(most: f64, count: f64) -> f64 {
    let power = 10_f64.powf((most / count).log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
    steps.into_iter().find(|step| most / step <= count + 1e-9).unwrap_or(steps[3])
}

/// A number with three digits that matter.
fn short(value: f64) -> String {
    let decimals = match value.abs() {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        _ => 2,
    };
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_numbers_in_a_fitting_unit() {
        for (unit, most, name, end, labels) in [
            (Unit::Rate, 6.99e9, "Gbit/s", 8e9, vec!["0", "2", "4", "6", "8"]),
            (Unit::Rate, 1e6, "Mbit/s", 1e6, vec!["0", "0.5", "1"]),
            (Unit::Percent, 100.0, "%", 100.0, vec!["0", "50", "100"]),
            (Unit::Bytes, 0.0, "B", 1.0, vec!["0", "0.5", "1"]),
            (Unit::Millis, f64::NAN, "ms", 1.0, vec!["0", "0.5", "1"]),
        ] {
            let axis = Axis::to_tick(unit, most);
            let told: Vec<&str> = axis.ticks.iter().map(|(_, label)| label.as_str()).collect();
            assert_eq!((axis.unit, axis.end, told), (name, end, labels), "{unit:?} {most}");
        }
        let time = Axis::to(Unit::Seconds, 400.0);
        assert_eq!((time.unit, time.end), ("min", 400.0));
        assert_eq!(time.ticks.last().unwrap().1, "6");
        assert_eq!(Unit::Rate.shown(123_456_789.0), "123 Mbit/s");
    }
}
