//! Listings, those that are asked for ahead, and those that are out of date.

use super::*;
use hikyaku_store::{Identity, Owner, Time};

fn listed(name: &str, kind: Kind) -> (Listed, Places) {
    let found = Found {
        kind,
        size: 1,
        allocated: 1,
        mode: 0o644,
        owner: Owner::default(),
        modified: Time::default(),
        identity: Identity { device: 1, number: 1 },
        version: None,
    };
    (Listed { name: name.as_bytes().to_vec(), found, link: None }, Places::only(0))
}

fn path(text: &str) -> StorePath {
    StorePath::new(text.as_bytes()).unwrap()
}

fn when(asked: Instant) -> (Instant, Turn) {
    (asked, Turn::default())
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_listing_knows_what_is_there_and_what_is_not() {
    let now = Instant::now();
    let names = ["b", "a", "..", "c/d", "", "b"].map(|name| listed(name, Kind::File));
    let listing = Listing::new(names.to_vec(), when(now));
    let names: Vec<&[u8]> = listing.entries().iter().map(|item| item.name.as_bytes()).collect();
    assert_eq!(names, [b"a", b"b"]);
    assert!(listing.find(b"a").is_some() && listing.find(b"x").is_none());
}

#[test]
fn siblings_are_listed_ahead_from_the_second_directory_on() {
    let now = Instant::now();
    let mut listings = Listings::default();
    let names = (0..100).map(|n| listed(&format!("{n:02}"), Kind::Dir));
    let names = names.chain([listed("file", Kind::File)]).collect();
    listings.insert(path("top"), Arc::new(Listing::new(names, when(now))));
    let open = |listings: &mut Listings, at: &str| {
        listings.open(&path(at), (SECOND, now), |path| path.as_bytes() == b"top/07")
    };
    assert!(open(&mut listings, "top").is_empty());
    assert!(open(&mut listings, "top/05").is_empty());
    let ahead = open(&mut listings, "top/06");
    assert_eq!(ahead.len(), SIBLINGS - 1, "one is asked for already");
    assert_eq!(ahead[0], path("top/08"));
    let fresh = Arc::new(Listing::new(Vec::new(), when(now)));
    listings.insert(path("top/09"), fresh);
    let ahead = open(&mut listings, "top/08");
    assert!(!ahead.contains(&path("top/09")) && ahead.contains(&path("top/10")));
    // The last one goes on with those before it.
    assert!(open(&mut listings, "top/99").contains(&path("top/00")));
}

#[test]
fn old_listings_make_room() {
    let begin = Instant::now();
    let mut listings = Listings::default();
    for n in 0..500u32 {
        let names = (0..1000).map(|name| listed(&format!("{name}"), Kind::File)).collect();
        let listing = Listing::new(names, when(begin + SECOND * n));
        listings.insert(path(&format!("{n}")), Arc::new(listing));
        assert!(listings.entries <= ENTRIES_MAX + 1001);
    }
    assert!(listings.of(&path("499")).is_some() && listings.of(&path("0")).is_none());
}

#[test]
fn listings_below_a_directory_go_with_it() {
    let now = Instant::now();
    let mut listings = Listings::default();
    let all = ["a", "a/b", "a/b/c", "ab", ""];
    for dir in all {
        let listing = Listing::new(vec![listed("x", Kind::File)], when(now));
        listings.insert(path(dir), Arc::new(listing));
    }
    listings.remove_within(&path("a"));
    let left: Vec<bool> = all.iter().map(|dir| listings.of(&path(dir)).is_some()).collect();
    assert_eq!(left, [false, false, false, true, true]);
    assert_eq!(listings.entries, 4);
    listings.remove(&path("ab"));
    assert!(listings.of(&path("ab")).is_none() && listings.entries == 2);
}
