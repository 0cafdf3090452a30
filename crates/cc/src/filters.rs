//! Small filters: a windowed minimum and quantiles.

use core::time::Duration;
use hikyaku_units::Instant;

/// The minimum over a sliding window of time, in constant space: it keeps the best of each quarter
/// of the window, so the true window is between three quarters of it and all of it.
#[derive(Clone, Debug)]
pub(crate) struct WindowedMin {
    window: Duration,
    slots: [Option<(Instant, i64)>; 4],
    slot_began: Instant,
}

impl WindowedMin {
    pub(crate) const fn new(window: Duration) -> Self {
        Self { window, slots: [None; 4], slot_began: Instant::ZERO }
    }

    /// From now on what is older than `window` is forgotten.
    pub(crate) const fn remember_for(&mut self, window: Duration) {
        self.window = window;
    }

    pub(crate) fn update(&mut self, now: Instant, value: i64) {
        if now - self.slot_began >= self.window / 4 {
            self.slots.rotate_right(1);
            self.slots[0] = None;
            self.slot_began = now;
        }
        if self.slots[0].is_none_or(|(_, v)| value <= v) {
            self.slots[0] = Some((now, value));
        }
        for slot in &mut self.slots[1..] {
            if slot.is_some_and(|(at, _)| now - at > self.window) {
                *slot = None;
            }
        }
    }

    /// The minimum and when it was last seen.
    pub(crate) fn get(&self) -> Option<(Instant, i64)> {
        self.slots.iter().flatten().copied().min_by_key(|&(_, v)| v)
    }

    /// Moves every remembered value: the path itself became longer or shorter.
    pub(crate) fn shift(&mut self, by: i64) {
        self.slots.iter_mut().flatten().for_each(|(_, v)| *v = v.saturating_add(by));
    }
}

/// The value below which `share` of `values` lies; reorders them.
pub(crate) fn quantile(values: &mut [f64], share: f64) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let at = ((values.len() - 1) as f64 * share + 0.5) as usize;
    let (_, value, _) = values.select_nth_unstable_by(at, f64::total_cmp);
    Some(*value)
}

#[cfg(test)]
mod tests;
