//! How long servers take.

use hikyaku_remote::Pace;

/// What a server has to do, and how fast it is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(in crate::upload) struct Load {
    /// Bytes of files that it was given and that are not written.
    pub(in crate::upload) backlog: u64,
    /// Bytes a second, if that is known.
    pub(in crate::upload) rate: Option<f64>,
    /// Whether the rate can be compared with others.
    pub(in crate::upload) pace: Pace,
    /// Files of this size or more do not fit there.
    pub(in crate::upload) full_from: u64,
}

/// Seconds until a server would be done with a file of this size beside what it has; `None` if it is gone or full.
pub(super) fn seconds(loads: &[Option<Load>], server: usize, size: u64) -> Option<f64> {
    let load = loads.get(server).copied().flatten().filter(|load| size < load.full_from)?;
    let rate = load.rate.unwrap_or_else(|| usual_rate(loads));
    Some((load.backlog + size) as f64 / rate.max(1.0))
}

/// Seconds until all servers together would be done with what they have and so many bytes more.
pub(super) fn end(loads: &[Option<Load>], more: u64) -> f64 {
    let usual = usual_rate(loads);
    let there = || loads.iter().flatten();
    let left = there().map(|load| load.backlog).sum::<u64>() + more;
    let rate: f64 = there().map(|load| load.rate.unwrap_or(usual)).sum();
    left as f64 / rate.max(1.0)
}

/// The median of the known rates, for a server whose rate is not known. Without any, all count as equal.
fn usual_rate(loads: &[Option<Load>]) -> f64 {
    let mut rates: Vec<f64> = loads.iter().flatten().filter_map(|load| load.rate).collect();
    rates.sort_unstable_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied().unwrap_or(1.0)
}
