//! What is made of what servers tell.

use super::*;
use crate::tests::same_names;
use hikyaku_store::{Identity, Owner, Time};

fn entry(path: &str, kind: Kind, size: u64) -> Entry {
    let found = Found {
        kind,
        size,
        allocated: size,
        mode: 0o644,
        owner: Owner::default(),
        modified: Time::default(),
        identity: Identity { device: 1, number: 1 },
        version: None,
    };
    let link = (kind == Kind::Link).then(|| b"to".to_vec());
    Entry { path: path.as_bytes().to_vec(), found: Ok(found), link }
}

#[test]
fn replicas_are_files_of_one_name_size_and_time() {
    let first = vec![
        entry("", Kind::Dir, 0),
        entry("d", Kind::Dir, 0),
        entry("d/a", Kind::File, 7),
        entry("d/b", Kind::File, 8),
        entry("l", Kind::Link, 2),
        entry("fifo", Kind::Special, 0),
        entry("../x", Kind::File, 1),
    ];
    let second = vec![
        entry("d", Kind::Dir, 0),
        entry("d/a", Kind::File, 7),
        entry("d/b", Kind::File, 9),
        entry("d/c", Kind::File, 1),
    ];
    let lost = Err(RemoteError::Closed(None));
    let census = merge(vec![Ok(first), lost, Ok(second)]);
    let at = |name: &str| {
        let mut files = census.files.iter();
        files.find(|file| file.path.as_bytes() == name.as_bytes()).map(|file| &file.at[..])
    };
    assert_eq!(at("d/a"), Some(&[ServerId(0), ServerId(2)][..]));
    assert_eq!(at("d/b"), None);
    assert_eq!(at("d/c"), Some(&[ServerId(2)][..]));
    let why = |name: &str| {
        let mut all = census.left_out.iter();
        all.find(|left| left.path == name.as_bytes()).map(|left| left.why)
    };
    assert_eq!(why("d/b"), Some(Why::Differs));
    assert_eq!(why("fifo"), Some(Why::Special));
    assert_eq!(why("../x"), Some(Why::BadName));
    assert_eq!(
        (census.dirs.len(), census.links.len(), same_names(census.clone()).bytes()),
        (1, 1, 8)
    );
    assert_eq!(census.lost.len(), 1);
}

#[test]
fn a_directory_that_is_not_listed_to_its_end_is_told() {
    let unreadable = |path: &str| Entry {
        path: path.as_bytes().to_vec(),
        found: Err(ErrorKind::Denied),
        link: None,
    };
    for root in ["", "run7"] {
        let told = vec![entry(root, Kind::Dir, 0), unreadable(root)];
        let census = merge(vec![Ok(told), Ok(vec![entry(root, Kind::Dir, 0)])]);
        let shown = if root.is_empty() { "." } else { root };
        let wanted =
            LeftOut { path: shown.as_bytes().to_vec(), why: Why::Server(ErrorKind::Denied) };
        assert_eq!(census.left_out, [wanted]);
    }
    // A file that one server cannot read comes from another one.
    let census = merge(vec![Ok(vec![unreadable("f")]), Ok(vec![entry("f", Kind::File, 7)])]);
    assert_eq!((census.left_out.len(), census.files.len()), (0, 1));
}

#[test]
fn unfinished_files_of_others_are_no_part_of_a_tree_whoever_tells_of_them() {
    let tree = || {
        vec![
            entry("run7", Kind::Dir, 0),
            entry("run7/.a.abcdefghabcde.hikyaku", Kind::File, 9),
            entry("run7/.d.abcdefghabcde.hikyaku", Kind::Dir, 0),
            entry("run7/.d.abcdefghabcde.hikyaku/a", Kind::File, 9),
            entry("run7/a", Kind::File, 7),
            entry("run7/b.hikyaku", Kind::File, 8),
        ]
    };
    let all = tree().into_iter().map(|entry| (entry.path, entry.found.unwrap())).collect();
    let surveyed = |entry: Entry| hikyaku_store_gfarm::Surveyed {
        path: entry.path,
        found: entry.found,
        link: None,
        at: vec![0],
    };
    let survey = Survey { all: tree().into_iter().map(surveyed).collect(), ..Survey::default() };
    let censuses =
        [merge(vec![Ok(tree())]), store_census(&all, 1), gfarm_census(&survey, &[ServerId(0)])];
    for census in censuses {
        let names: Vec<&[u8]> = census.files.iter().map(|file| file.path.as_bytes()).collect();
        assert_eq!(names, [&b"run7/a"[..], b"run7/b.hikyaku"]);
        assert_eq!((census.dirs.len(), census.left_out.len()), (1, 0));
    }
    // One that is named itself is not taken for nothing.
    let named = merge(vec![Ok(vec![entry("d/.a.abcdefghabcde.hikyaku", Kind::File, 9)])]);
    assert_eq!(named.files.len(), 1);
}

#[test]
fn a_name_at_the_target_belongs_to_the_first_source_that_has_it() {
    let name = |path: &StorePath| StorePath::ROOT.join(&path.split().unwrap().1).unwrap();
    let mut claims = Claims::default();
    // Where a source is from, its path, and whether it is copied and told to be left out.
    for (origin, path, is_copied, is_left_out) in [
        ("one", "a/f", true, false),
        ("one", "a/f", false, false),
        ("two", "a/f", false, true),
        ("one", "b/f", false, true),
        ("two", "b/g", true, false),
    ] {
        for kind in [Kind::File, Kind::Link] {
            let path = format!("{path}-{kind:?}");
            let mut plan = same_names(merge(vec![Ok(vec![entry(&path, kind, 1)])]));
            plan.files.iter_mut().for_each(|file| file.to = name(&file.to));
            for (to, link) in &mut plan.links {
                link.text = to.as_bytes().to_vec();
                *to = name(to);
            }
            claims.take(origin, &mut plan);
            let copied = plan.files.len() + plan.links.len();
            assert_eq!(copied, usize::from(is_copied), "{origin} {path}");
            assert_eq!(plan.left_out.len(), usize::from(is_left_out), "{origin} {path}");
        }
    }
}
