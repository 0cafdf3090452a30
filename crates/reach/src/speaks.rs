//! What the two ends of a session can say to each other: versions of the protocol, and features within one.
//!
//! Each end says the range of versions that it speaks and the names of its features. Both compute the same result
//! from the two ranges: the highest version in both, and the features that both name.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// A range of versions, in JSON as `[min, max]`. A plain number, as protocols up to 4 wrote it, is read as a range of
/// one version.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(into = "(u32, u32)", try_from = "Written")]
pub struct Versions {
    min: u32,
    max: u32,
}

/// The versions that this program speaks.
pub const PROTOCOL: Versions = Versions { min: 6, max: 6 };

/// Features of this program that an older one of the same protocol may lack.
const FEATURES: [&str; 1] = [TIMES_ALONE];

/// The feature of a far side of a copy that keeps times without modes.
// spec: copy-feature-1
pub const TIMES_ALONE: &str = "times-alone";

/// What one end says of itself.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Speaks {
    /// Its versions.
    pub protocol: Versions,
    /// Its features. Names that the other end does not know are ignored.
    #[serde(default)]
    pub features: BTreeSet<String>,
}

/// What both ends can say.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Agreed {
    /// The version that they speak.
    pub protocol: u32,
    /// The features that both have.
    pub features: BTreeSet<String>,
}

impl Versions {
    /// Those from `min` to `max`; `None` if there are none.
    pub const fn new(min: u32, max: u32) -> Option<Self> {
        if min <= max { Some(Self { min, max }) } else { None }
    }

    /// One version.
    pub const fn only(version: u32) -> Self {
        Self { min: version, max: version }
    }

    /// Whether the version is one of them.
    pub const fn contains(self, version: u32) -> bool {
        self.min <= version && version <= self.max
    }

    /// The highest version that both have.
    pub fn common(self, other: Self) -> Option<u32> {
        let highest = self.max.min(other.max);
        (highest >= self.min.max(other.min)).then_some(highest)
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self { min, max } if min == max => min.fmt(f),
            Self { min, max } => write!(f, "{min} to {max}"),
        }
    }
}

impl Speaks {
    /// What this program says of itself.
    pub fn ours() -> Self {
        Self { protocol: PROTOCOL, features: FEATURES.into_iter().map(str::to_owned).collect() }
    }

    /// What both ends can say; `None` if they have no version in common.
    pub fn agree(&self, other: &Self) -> Option<Agreed> {
        let protocol = self.protocol.common(other.protocol)?;
        let features = self.features.intersection(&other.features).cloned().collect();
        Some(Agreed { protocol, features })
    }
}

impl Agreed {
    /// Whether both ends have a feature.
    pub fn has(&self, feature: &str) -> bool {
        self.features.contains(feature)
    }

    /// What two ends of this program agree on.
    pub(crate) fn with_itself() -> Self {
        let Speaks { protocol, features } = Speaks::ours();
        Self { protocol: protocol.max, features }
    }
}

/// The forms in which versions are written.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    One(u32),
    Range(u32, u32),
}

/// The first version of a range is higher than the last.
#[derive(Debug, thiserror::Error)]
#[error("a range of versions begins with the lowest")]
struct Reversed;

impl TryFrom<Written> for Versions {
    type Error = Reversed;
    fn try_from(written: Written) -> Result<Self, Reversed> {
        let (min, max) = match written {
            Written::One(one) => (one, one),
            Written::Range(min, max) => (min, max),
        };
        Self::new(min, max).ok_or(Reversed)
    }
}

impl From<Versions> for (u32, u32) {
    fn from(versions: Versions) -> Self {
        (versions.min, versions.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn speaks(min: u32, max: u32, features: &[&str]) -> Speaks {
        let protocol = Versions::new(min, max).unwrap();
        Speaks { protocol, features: features.iter().map(|name| (*name).to_owned()).collect() }
    }

    #[test]
    fn both_ends_choose_the_highest_common_version() {
        for (a, b, wanted) in [
            ((5, 5), (5, 5), Some(5)),
            ((5, 7), (6, 9), Some(7)),
            ((5, 7), (7, 9), Some(7)),
            ((5, 9), (6, 7), Some(7)),
            ((5, 5), (4, 4), None),
            ((5, 6), (7, 9), None),
        ] {
            let (a, b) = (speaks(a.0, a.1, &[]), speaks(b.0, b.1, &[]));
            let protocol = |agreed: Option<Agreed>| agreed.map(|agreed| agreed.protocol);
            assert_eq!(protocol(a.agree(&b)), wanted, "{a:?} {b:?}");
            assert_eq!(protocol(b.agree(&a)), wanted, "{b:?} {a:?}");
        }
    }

    #[test]
    fn unknown_features_are_ignored() {
        let (a, b) = (speaks(5, 5, &["x", "old"]), speaks(5, 6, &["new", "x"]));
        let agreed = a.agree(&b).unwrap();
        assert_eq!(agreed.features.into_iter().collect::<Vec<_>>(), ["x"]);
    }

    #[test]
    fn a_number_is_a_range_of_one_version() {
        let read = |text: &str| serde_json::from_str::<Speaks>(text);
        assert_eq!(read("{\"protocol\":4}").unwrap(), speaks(4, 4, &[]));
        assert_eq!(
            read("{\"protocol\":[4,6],\"features\":[\"x\"]}").unwrap(),
            speaks(4, 6, &["x"])
        );
        for nonsense in ["[6,4]", "[]", "[1]", "-1", "\"4\"", "null", "[1,2,3]", "4294967296"] {
            assert!(read(&format!("{{\"protocol\":{nonsense}}}")).is_err(), "{nonsense}");
        }
        let text = serde_json::to_string(&speaks(5, 7, &[])).unwrap();
        assert_eq!(text, "{\"protocol\":[5,7],\"features\":[]}");
    }
}
