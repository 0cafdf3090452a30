//! The pairs of sites, numbered 0-1, 0-2, .., 1-2, and so on. Each has a link; "up" is the
//! direction from the site with the lower index.

/// Number of pairs of this many sites.
pub(crate) fn count(sites: u32) -> usize {
    let sites = sites as usize;
    sites * sites.saturating_sub(1) / 2
}

/// The index of the pair of two different sites.
pub(crate) fn index(sites: u32, one: u32, other: u32) -> usize {
    let (low, high) = (one.min(other) as usize, one.max(other) as usize);
    low * (2 * sites as usize - low - 1) / 2 + (high - low - 1)
}

/// All pairs in the order of their indices.
pub(crate) fn all(sites: u32) -> impl Iterator<Item = (u32, u32)> {
    (0..sites).flat_map(move |low| (low + 1..sites).map(move |high| (low, high)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_numbered_in_order() {
        for sites in 2..40 {
            let all: Vec<_> = all(sites).collect();
            assert_eq!(all.len(), count(sites));
            for (number, (low, high)) in all.into_iter().enumerate() {
                assert_eq!(index(sites, low, high), number);
                assert_eq!(index(sites, high, low), number);
            }
        }
    }
}
