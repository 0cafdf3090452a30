//! Limits as rsync takes them.

use hikyaku_units::{Rate, RateRule};

/// A limit of the rate (`--bwlimit`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Limit {
    /// `0`: there is none.
    Unlimited,
    To(Rate),
}

impl Limit {
    pub(crate) const fn rate(self) -> Option<Rate> {
        match self {
            Self::Unlimited => None,
            Self::To(rate) => Some(rate),
        }
    }
}

/// The least limit that rsync takes.
const LIMIT_MIN: Rate = Rate::from_bits_per_sec(8 * 512);

/// rsync's limit: a bare number is KiB a second, and 0 is no limit.
pub(super) fn limit(text: &str) -> Result<Limit, String> {
    match Rate::parse(text, RateRule::Rsync).map_err(|error| error.to_string())? {
        Rate::ZERO => Ok(Limit::Unlimited),
        rate if rate < LIMIT_MIN => {
            Err("a limit is 512 bytes a second or more, or 0 for none".to_owned())
        }
        rate => Ok(Limit::To(rate)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_rsyncs() {
        let to = |bits| Ok(Limit::To(Rate::from_bits_per_sec(bits)));
        assert_eq!(limit("100"), to(819_200));
        assert_eq!(limit("1.5m"), to(12 << 20));
        assert_eq!(limit("0.5"), to(4096));
        assert_eq!((limit("0"), limit("0k")), (Ok(Limit::Unlimited), Ok(Limit::Unlimited)));
        for text in ["0.1", "511b", "x", "", "8191p"] {
            assert!(limit(text).is_err(), "{text}");
        }
    }
}
