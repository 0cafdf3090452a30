//! A journal says what is proven, and never more, wherever it is torn.

use super::*;
use crate::geometry::SEGMENT;

const BOOT: [u8; 16] = [1; 16];
const LATER: [u8; 16] = [2; 16];

fn hashes(from: u8, count: u8) -> Vec<SegmentHash> {
    (from..from + count).map(|n| SegmentHash([n; 32])).collect()
}

fn records() -> Vec<Record> {
    let file = FileRecord {
        path: b"run/a".to_vec(),
        partial: b".a.x.hikyaku".to_vec(),
        size: 10 * SEGMENT,
        modified: (5, 7),
    };
    let segments = |first, count| Record::Segments {
        path: b"run/a".to_vec(),
        first: SegmentIndex(u32::from(first)),
        hashes: hashes(first, count),
    };
    let small = FileRecord { path: b"b".to_vec(), size: 3, ..file.clone() };
    let mut records =
        vec![Record::Begun { boot: BOOT }, Record::File(file), segments(0, 3), Record::File(small)];
    let length = written(&records).len() as u64;
    records.extend([
        // While the disk was asked, more was written.
        segments(5, 1),
        Record::Synced { length },
        segments(6, 1),
        Record::Done {
            path: b"b".to_vec(),
            size: 3,
            modified: (5, 7),
            hash: Some(FileHash([3; 32])),
        },
    ]);
    records
}

fn written(records: &[Record]) -> Vec<u8> {
    let mut bytes = Journal::magic().to_vec();
    bytes.extend(records.iter().flat_map(Journal::frame));
    bytes
}

fn proven(journal: &Journal) -> usize {
    journal.files.get(&b"run/a"[..]).map_or(0, |remains| match remains {
        Remains::Part(_, proven) => proven.runs().iter().map(|(_, run)| run.len()).sum(),
        Remains::Whole { .. } => usize::MAX,
    })
}

#[test]
fn a_killed_program_loses_nothing_and_a_power_failure_what_was_not_synced() {
    let bytes = written(&records());
    let here = Journal::read(&bytes, BOOT).unwrap();
    assert_eq!((proven(&here), here.whole), (5, bytes.len()));
    assert_eq!(
        here.files[&b"b"[..]],
        Remains::Whole { size: 3, modified: (5, 7), hash: Some(FileHash([3; 32])) }
    );
    let later = Journal::read(&bytes, LATER).unwrap();
    assert_eq!(proven(&later), 3);
    assert!(matches!(later.files[&b"b"[..]], Remains::Part(..)), "its name was not synced");
}

#[test]
fn torn_or_damaged_anywhere_it_ends_there() {
    let bytes = written(&records());
    let all = Journal::read(&bytes, BOOT).unwrap();
    for end in Journal::magic().len()..bytes.len() {
        let torn = Journal::read(&bytes[..end], BOOT).unwrap();
        assert!(torn.whole <= end && proven(&torn) <= proven(&all));
        let mut damaged = bytes.clone();
        damaged[end] ^= 0x10;
        let damaged = Journal::read(&damaged, BOOT).unwrap();
        assert!(damaged.whole <= end, "the record with the damage does not count");
    }
    assert_eq!(Journal::read(b"", BOOT), Ok(Journal::default()));
    assert_eq!(Journal::read(b"#!/bin/sh\n", BOOT), Err(JournalError::Unknown));
}

#[test]
fn a_file_begun_anew_is_unproven() {
    let mut records = records();
    let anew = records[1].clone();
    records.push(anew);
    assert_eq!(proven(&Journal::read(&written(&records), BOOT).unwrap()), 0);
}

#[test]
fn what_is_absurd_is_ignored() {
    let records = [
        Record::File(FileRecord {
            path: b"huge".to_vec(),
            partial: Vec::new(),
            size: u64::MAX,
            modified: (0, 0),
        }),
        Record::Segments {
            path: b"huge".to_vec(),
            first: SegmentIndex(u32::MAX),
            hashes: hashes(0, 3),
        },
    ];
    assert!(Journal::read(&written(&records), BOOT).unwrap().files.is_empty());
}
