//! No journal yields more proven segments than were synced, wherever it is torn or damaged.

use super::*;
use crate::geometry::SEGMENT;

fn hashes(from: u8, count: u8) -> Vec<SegmentHash> {
    (from..from + count).map(|n| SegmentHash([n; 32])).collect()
}

fn segments(first: u8, count: u8) -> Record {
    Record::Segments {
        path: b"run/a".to_vec(),
        first: SegmentIndex(u32::from(first)),
        hashes: hashes(first, count),
    }
}

fn begun() -> Begun {
    Begun {
        token: b"abcdefgh".to_vec(),
        dir: b"/data".to_vec(),
        name: None,
        from: "host:/run".to_owned(),
    }
}

fn done() -> Done {
    Done {
        path: b"b".to_vec(),
        size: 3,
        version: Version([1; 32]),
        made: Version([2; 32]),
        hash: Some(FileHash([3; 32])),
        reached: Reached::Disk,
    }
}

fn records() -> Vec<Record> {
    let file = FileRecord {
        path: b"run/a".to_vec(),
        partial: b".a.x.hikyaku".to_vec(),
        size: 10 * SEGMENT,
        version: Version([7; 32]),
    };
    let small = FileRecord { path: b"b".to_vec(), size: 3, ..file.clone() };
    let mut records =
        vec![Record::Begun(begun()), Record::File(file), segments(0, 3), Record::File(small)];
    let length = written(&records).len() as u64;
    records.extend([
        // More was written while the sync was in progress.
        segments(5, 1),
        Record::Synced { length, stamps: vec![(b"run/a".to_vec(), (9, 9))] },
        segments(6, 1),
        Record::Done(done()),
    ]);
    records
}

fn written(records: &[Record]) -> Vec<u8> {
    let mut bytes = Journal::magic().to_vec();
    bytes.extend(records.iter().flat_map(Journal::frame));
    bytes
}

/// The counts of proven and claimed segments of the large file.
fn counts(journal: &Journal) -> (usize, usize) {
    let count = |proven: &Proven| proven.runs().iter().map(|(_, run)| run.len()).sum();
    match journal.files.get(&b"run/a"[..]) {
        Some(Remains::Part(part)) => (count(&part.proven), count(&part.claimed)),
        _ => (0, 0),
    }
}

#[test]
fn only_what_a_sync_covers_is_proven() {
    let bytes = written(&records());
    let journal = Journal::read(&bytes).unwrap();
    assert_eq!((counts(&journal), journal.whole), ((3, 2), bytes.len()));
    assert_eq!(journal.files[&b"b"[..]], Remains::Whole(done()));
    assert_eq!(journal.begun, Some(begun()));
    let Remains::Part(part) = &journal.files[&b"run/a"[..]] else { panic!() };
    assert_eq!(part.stamp, Some((9, 9)));
}

#[test]
fn after_a_failed_sync_nothing_of_the_file_counts() {
    let mut records = records();
    // A later successful sync does not make them count, nor do records that were already on their
    // way.
    records.extend([Record::Void { path: b"run/a".to_vec() }, segments(7, 1)]);
    let length = written(&records).len() as u64;
    records.push(Record::Synced { length, stamps: Vec::new() });
    let journal = Journal::read(&written(&records)).unwrap();
    assert!(matches!(&journal.files[&b"run/a"[..]], Remains::Void(record) if record.size > 0));
    // Once the file is begun again, its segments count again.
    records.extend([records[1].clone(), segments(0, 2)]);
    let journal = Journal::read(&written(&records)).unwrap();
    assert_eq!(counts(&journal), (0, 2));
}

#[test]
fn a_torn_or_damaged_journal_ends_before_the_damage() {
    let bytes = written(&records());
    let (proven, claimed) = counts(&Journal::read(&bytes).unwrap());
    for end in Journal::magic().len()..bytes.len() {
        let torn = Journal::read(&bytes[..end]).unwrap();
        let (here, also) = counts(&torn);
        assert!(torn.whole <= end && here <= proven && here + also <= proven + claimed);
        let mut damaged = bytes.clone();
        damaged[end] ^= 0x10;
        let damaged = Journal::read(&damaged).unwrap();
        assert!(damaged.whole <= end, "the record with the damage does not count");
    }
    assert_eq!(Journal::read(b""), Ok(Journal::default()));
    for other in [&b"#!/bin/sh\n"[..], b"hikyaku1"] {
        assert_eq!(Journal::read(other), Err(JournalError::Unknown));
    }
}

#[test]
fn a_file_begun_anew_is_unproven() {
    let mut records = records();
    let anew = records[1].clone();
    records.push(anew);
    assert_eq!(counts(&Journal::read(&written(&records)).unwrap()), (0, 0));
}

#[test]
fn a_file_of_an_impossible_size_is_ignored() {
    let records = [
        Record::File(FileRecord {
            path: b"huge".to_vec(),
            partial: Vec::new(),
            size: u64::MAX,
            version: Version([0; 32]),
        }),
        Record::Segments {
            path: b"huge".to_vec(),
            first: SegmentIndex(u32::MAX),
            hashes: hashes(0, 3),
        },
        Record::Void { path: b"huge".to_vec() },
    ];
    assert!(Journal::read(&written(&records)).unwrap().files.is_empty());
}

#[test]
fn the_last_heads_of_a_file_count_until_it_begins_anew() {
    let head = |index, length: usize| Head::new(SegmentIndex(index), &vec![7; length]).unwrap();
    let heads = |heads: &[Head]| Record::Heads { path: b"run/a".to_vec(), heads: heads.to_vec() };
    let mut records = records();
    records.extend([heads(&[head(7, 5)]), heads(&[head(7, 9), head(8, 3)])]);
    let found = |records: &[Record]| {
        let journal = Journal::read(&written(records)).unwrap();
        let Some(Remains::Part(part)) = journal.files.get(&b"run/a"[..]) else { panic!() };
        part.heads.clone()
    };
    assert_eq!(found(&records), [head(7, 9), head(8, 3)]);
    records.push(records[1].clone());
    assert_eq!(found(&records), []);
}
