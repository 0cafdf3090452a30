//! One rate for all servers together.

use hikyaku_units::Rate;

/// Delays senders so that all of them together keep a rate, if there is one.
pub(crate) struct Pace(Option<hikyaku_reach::Pace>);

impl Pace {
    pub(crate) fn new(rate: Option<Rate>) -> Self {
        Self(rate.map(hikyaku_reach::Pace::new))
    }

    /// Waits until this many bytes may be sent, or `is_over` holds.
    pub(crate) fn wait(&self, bytes: u64, is_over: impl Fn() -> bool) {
        if let Some(pace) = &self.0 {
            pace.wait(bytes, is_over);
        }
    }
}
