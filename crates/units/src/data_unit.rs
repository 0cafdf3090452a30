//! Units of data: a prefix, and whether it counts bits or bytes.

/// The quantity that a unit of data counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Counts {
    /// The unit does not show it: `10`, `10m`.
    Unsaid,
    /// Bits: `10mbit`, `10Mb`.
    Bits,
    /// Bytes: `10MB`.
    Bytes,
    /// `10mb`, which some write for bits and some for bytes.
    Unclear,
}

/// A unit of data, such as `m`, `Mbit`, `kB` or `GiB`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DataUnit {
    /// The power of its prefix: 1 is kilo.
    power: u32,
    /// Whether its prefix has the `i` of 1024.
    is_binary: bool,
    pub(crate) counts: Counts,
}

impl DataUnit {
    /// Parses a unit, which may be empty. Only the case of `b` has a meaning: `B` is bytes; `b` is bits, unless the prefix
    /// is a small letter, too.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut letters = text.chars();
        let prefix = letters.clone().next().filter(|letter| !matches!(letter, 'b' | 'B'));
        let power = match prefix {
            None => 0,
            Some(letter) => {
                letters.next();
                match letter.to_ascii_lowercase() {
                    'k' => 1,
                    'm' => 2,
                    'g' => 3,
                    't' => 4,
                    _ => return None,
                }
            }
        };
        let rest = letters.as_str();
        let (is_binary, rest) = match rest.strip_prefix(['i', 'I']) {
            Some(rest) if power > 0 => (true, rest),
            _ => (false, rest),
        };
        let is_small = prefix.is_some_and(|letter| letter.is_ascii_lowercase());
        let counts = match rest {
            "" => Counts::Unsaid,
            "b" if is_small => Counts::Unclear,
            "b" => Counts::Bits,
            "B" => Counts::Bytes,
            word if ["bit", "bits"].iter().any(|bit| word.eq_ignore_ascii_case(bit)) => {
                Counts::Bits
            }
            _ => return None,
        };
        Some(Self { power, is_binary, counts })
    }

    /// A number of these units as a number of units without a prefix, which is 1000 unless the unit has an `i`.
    pub(crate) const fn decimal(self) -> u64 {
        if self.is_binary { self.binary() } else { 1000_u64.pow(self.power) }
    }

    /// As `decimal`, but a prefix without `b` or `B` behind it is one of 1024.
    pub(crate) const fn binary_if_unsaid(self) -> u64 {
        match self.counts {
            Counts::Unsaid => self.binary(),
            Counts::Bits | Counts::Bytes | Counts::Unclear => self.decimal(),
        }
    }

    pub(crate) const fn has_prefix(self) -> bool {
        self.power > 0
    }

    const fn binary(self) -> u64 {
        1024_u64.pow(self.power)
    }
}
