//! Each rule chooses as it is defined, and never a server without room.

use super::*;
use alloc::vec;

const GIB: u64 = 1 << 30;

fn candidate(server: u16, mbit: Option<u64>, free_gib: u64) -> Candidate {
    Candidate {
        server: ServerId(server),
        rate: mbit.map(|mbit| Rate::from_bits_per_sec(mbit * 1_000_000)),
        queued: DataSize::ZERO,
        total: DataSize::from_bytes(100 * GIB),
        free: DataSize::from_bytes(free_gib * GIB),
        reserved: DataSize::ZERO,
        strain: Strain::Light,
    }
}

fn upload(bytes: u64) -> Upload {
    Upload { size: DataSize::from_bytes(bytes), name_hash: 0 }
}

fn one(rule: Placement, bytes: u64, candidates: &[Candidate]) -> Result<ServerId, PlaceError> {
    Placer::new(rule).choose(&upload(bytes), candidates)
}

#[test]
fn auto_chooses_the_server_that_is_done_first() {
    let mut all = [candidate(0, Some(100), 50), candidate(1, Some(150), 50)];
    assert_eq!(one(Placement::Auto, GIB, &all), Ok(ServerId(1)));
    all[1].strain = Strain::Heavy;
    assert_eq!(one(Placement::Auto, GIB, &all), Ok(ServerId(0)));
    all[0].queued = DataSize::from_bytes(GIB);
    assert_eq!(one(Placement::Auto, GIB, &all), Ok(ServerId(1)));
}

#[test]
fn an_unknown_rate_is_the_median_of_the_known_ones() {
    let known = |mbit| candidate(0, Some(mbit), 50);
    let unknown = candidate(9, None, 50);
    assert_eq!(
        one(Placement::Auto, GIB, &[known(10), known(20), known(30), unknown]),
        Ok(ServerId(0))
    );
    let slow = [candidate(0, Some(10), 50), candidate(1, Some(30), 50), candidate(2, Some(30), 50)];
    let queued = |mut found: Candidate| {
        found.queued = DataSize::from_bytes(GIB);
        found
    };
    let all = [slow[0], queued(slow[1]), queued(slow[2]), unknown];
    assert_eq!(one(Placement::Auto, GIB, &all), Ok(ServerId(9)));
}

#[test]
fn no_rule_chooses_a_full_server() {
    // Of 100 GiB five stay free.
    let full = candidate(0, Some(1000), 6);
    let roomy = candidate(1, Some(1), 7);
    for rule in [Placement::Auto, Placement::RoundRobin, Placement::Space, Placement::Hash] {
        assert_eq!(one(rule, GIB + 1, &[full, roomy]), Ok(ServerId(1)), "{rule:?}");
        let size = DataSize::from_bytes(3 * GIB);
        assert_eq!(one(rule, 3 * GIB, &[full, roomy]), Err(PlaceError::NoRoom { size }));
        assert_eq!(one(rule, 1, &[]), Err(PlaceError::NoServer));
    }
    let mut promised = candidate(2, None, 50);
    promised.reserved = DataSize::from_bytes(45 * GIB);
    assert!(one(Placement::Auto, 1, &[promised]).is_err());
    assert!(one(Placement::Auto, u64::MAX, &[full, roomy]).is_err());
}

#[test]
fn round_robin_goes_round_whoever_joins_or_leaves() {
    let mut placer = Placer::new(Placement::RoundRobin);
    let mut next = |servers: &[u16]| {
        let all: Vec<Candidate> = servers.iter().map(|&id| candidate(id, None, 50)).collect();
        placer.choose(&upload(1), &all).unwrap().0
    };
    let chosen = [next(&[0, 1, 2]), next(&[2, 1, 0]), next(&[0, 2]), next(&[0, 1, 2]), next(&[1])];
    assert_eq!(chosen, [0, 1, 2, 0, 1]);
}

#[test]
fn a_hash_moves_only_the_files_of_a_server_that_left() {
    let all: Vec<Candidate> = (0..5).map(|id| candidate(id, None, 50)).collect();
    let place = |name_hash, candidates: &[Candidate]| {
        let upload = Upload { name_hash, ..upload(1) };
        Placer::new(Placement::Hash).choose(&upload, candidates).unwrap()
    };
    let mut counts = vec![0; 5];
    for name in 0..5_000 {
        let before = place(name, &all);
        counts[usize::from(before.0)] += 1;
        let after = place(name, &all[1..]);
        assert!(before == after || before == ServerId(0), "{name}");
    }
    assert!(counts.iter().all(|&count| (850..1150).contains(&count)), "{counts:?}");
}

#[test]
fn space_and_pin_do_what_they_say() {
    let all = [candidate(0, None, 20), candidate(1, None, 40), candidate(2, None, 40)];
    assert_eq!(one(Placement::Space, GIB, &all), Ok(ServerId(1)));
    assert_eq!(one(Placement::Pin(ServerId(2)), GIB, &all), Ok(ServerId(2)));
    assert_eq!(one(Placement::Pin(ServerId(3)), GIB, &all), Err(PlaceError::PinnedAway));
    let size = DataSize::from_bytes(36 * GIB);
    let error = Err(PlaceError::PinnedFull { size });
    assert_eq!(one(Placement::Pin(ServerId(2)), 36 * GIB, &all), error);
}

#[test]
fn load_above_the_cores_or_a_busy_disk_is_heavy() {
    let of = |load, busy| Strain::of(load, 4, Probability::new(busy));
    assert_eq!(
        (of(4.0, 0.9), of(4.1, 0.0), of(0.0, 0.91)),
        (Strain::Light, Strain::Heavy, Strain::Heavy)
    );
}
