//! The control files of aria2c and axel: which bytes of a file exist.

use std::ops::Range;

/// The parts in a control file of aria2c (`NAME.aria2`), as its technical notes describe it: a bit for each complete piece. Pieces
/// under way are left out. `None` if it is not of a file of this size.
// fuzz: none, the user's own file
pub(super) fn aria2(bytes: &[u8], total: u64) -> Option<Vec<Range<u64>>> {
    let mut fields = Fields(bytes);
    // Version 1 has the order of the network. Version 0, that of the machine, is of 2008.
    if fields.array()? != [0, 1] {
        return None;
    }
    let _extension = fields.take(4)?;
    let hash_bytes = u32::from_be_bytes(fields.array()?);
    let _hash = fields.take(hash_bytes as usize)?;
    let piece_bytes = u64::from(u32::from_be_bytes(fields.array()?));
    let size = u64::from_be_bytes(fields.array()?);
    let _uploaded = fields.take(8)?;
    let map_bytes = u32::from_be_bytes(fields.array()?) as usize;
    if piece_bytes == 0
        || size != total
        || map_bytes as u64 != total.div_ceil(piece_bytes).div_ceil(8)
    {
        return None;
    }
    let map = fields.take(map_bytes)?;
    let has = |piece: u64| map[(piece / 8) as usize] & (0x80 >> (piece % 8)) != 0;
    let pieces = (0..total.div_ceil(piece_bytes)).filter(|piece| has(*piece));
    let ranges = pieces.map(|piece| piece * piece_bytes..total.min((piece + 1) * piece_bytes));
    Some(joined(ranges))
}

/// The parts in a control file of axel (`NAME.st`): everything but what its connections have before them. `None` if it is not of
/// a file of this size.
// fuzz: none, the user's own file
pub(super) fn axel(bytes: &[u8], total: u64) -> Option<Vec<Range<u64>>> {
    let mut fields = Fields(bytes);
    let count = u16::from_ne_bytes(fields.array()?);
    let done = u64::from_ne_bytes(fields.array()?);
    let mut missing = Vec::new();
    for _ in 0..count {
        let next = u64::from_ne_bytes(fields.array()?);
        let end = u64::from_ne_bytes(fields.array()?);
        if end > total {
            return None;
        }
        missing.extend((next < end).then_some(next..end));
    }
    missing.sort_by_key(|range| range.start);
    let (mut parts, mut at) = (Vec::new(), 0);
    for range in missing {
        if range.start < at {
            return None;
        }
        parts.push(at..range.start);
        at = range.end;
    }
    parts.push(at..total);
    let bytes: u64 = parts.iter().map(|part| part.end - part.start).sum();
    (fields.0.is_empty() && bytes == done).then(|| joined(parts.into_iter()))
}

/// Ranges in order, those that follow each other as one.
fn joined(ranges: impl Iterator<Item = Range<u64>>) -> Vec<Range<u64>> {
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in ranges.filter(|range| !range.is_empty()) {
        match joined.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => joined.push(range),
        }
    }
    joined
}

/// The rest of a control file.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (field, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(field)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "a list of one range is meant")]
mod tests {
    use super::*;

    fn aria2_file(size: u64, map: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
        bytes.extend(10_u32.to_be_bytes());
        bytes.extend(size.to_be_bytes());
        bytes.extend(0_u64.to_be_bytes());
        bytes.extend((map.len() as u32).to_be_bytes());
        bytes.extend(map);
        bytes.extend([0; 4]);
        bytes
    }

    fn axel_file(done: u64, connections: &[(u64, u64)]) -> Vec<u8> {
        let mut bytes = (connections.len() as u16).to_ne_bytes().to_vec();
        bytes.extend(done.to_ne_bytes());
        for (next, end) in connections {
            bytes.extend(next.to_ne_bytes());
            bytes.extend(end.to_ne_bytes());
        }
        bytes
    }

    #[test]
    fn aria2c_has_a_bit_for_each_piece() {
        let file = aria2_file(95, &[0b1100_0000, 0b0100_0000]);
        assert_eq!(aria2(&file, 95).unwrap(), [0..20, 90..95]);
        assert_eq!(aria2(&file, 96), None, "of another file");
        assert_eq!(aria2(&aria2_file(95, &[0xff]), 95), None, "bits are missing");
        for length in 0..30 {
            assert_eq!(aria2(&file[..length], 95), None, "{length}");
        }
        assert!(aria2(&aria2_file(95, &[0, 0]), 95).unwrap().is_empty());
        let mut older = file.clone();
        older[1] = 0;
        assert_eq!(aria2(&older, 95), None, "of another version");
    }

    #[test]
    fn axel_has_what_is_not_before_a_connection() {
        // The second connection was done, and has taken over the end of the first.
        let file = axel_file(70, &[(10, 30), (35, 40), (90, 95)]);
        assert_eq!(axel(&file, 100).unwrap(), [0..10, 30..35, 40..90, 95..100]);
        let other = axel_file(70, &[(90, 95), (10, 30), (35, 40)]);
        assert_eq!(axel(&other, 100), axel(&file, 100), "in any order");
        assert_eq!(axel(&axel_file(100, &[(50, 50), (100, 100)]), 100).unwrap(), [0..100]);
        for wrong in [
            axel_file(71, &[(10, 30), (35, 40), (90, 95)]),
            axel_file(60, &[(10, 30), (20, 40)]),
            axel_file(90, &[(95, 105)]),
            [file.as_slice(), b"x"].concat(),
            file[..file.len() - 1].to_vec(),
        ] {
            assert_eq!(axel(&wrong, 100), None, "{wrong:?}");
        }
    }
}
