//! Targets as a person names them.

use super::*;
use std::fs;
use std::os::unix::fs::symlink;

const FILE: Arriving<'_> = Arriving {
    renamed: Renamed::Allowed,
    kind: FileKind::File,
    pass: Pass::Copy,
    streams: &Streams::Refused,
    origin: None,
};
const DIR: Arriving<'_> = Arriving { kind: FileKind::Dir, ..FILE };
const LIST: Arriving<'_> = Arriving { renamed: Renamed::Contents, ..DIR };
const BESIDE: Arriving<'_> = Arriving { renamed: Renamed::ContentsBeside, ..DIR };

#[test]
fn what_takes_bytes_in_order_takes_a_single_file_only() {
    let root = StorePath::new(b"run7/a").unwrap();
    let streams = &Streams::Written(Patience::endless());
    for (arriving, is_taken) in [
        (FILE, true),
        (DIR, false),
        (LIST, false),
        (Arriving { renamed: Renamed::Never, ..FILE }, false),
    ] {
        let landing =
            Landing::new((&root, &root), Path::new("/dev/null"), Arriving { streams, ..arriving });
        match landing {
            Ok(landing) => assert!(is_taken && landing.taking == Taking::InOrder, "{arriving:?}"),
            Err(error) => {
                assert!(!is_taken && error.to_string().contains("not a directory"), "{error}");
            }
        }
    }
}

#[test]
fn a_target_is_a_directory_a_file_or_a_new_name() {
    let scratch = std::env::temp_dir().join(format!("hikyaku-arriving-{}", std::process::id()));
    fs::create_dir_all(scratch.join("dir")).unwrap();
    fs::write(scratch.join("file"), "old").unwrap();
    symlink("../file", scratch.join("dir/link")).unwrap();
    symlink("nothing", scratch.join("dangling")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        scratch.join("fifo"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    let root = StorePath::new(b"run7/a").unwrap();
    let found = PeerPath::new(b"run7/a/b").unwrap();
    // The target, what comes, and where `b` of the source goes; or a word of the refusal.
    let table: [(&str, Arriving<'_>, Result<&str, &str>); 16] = [
        ("dir", DIR, Ok("a/b")),
        ("new", DIR, Ok("new/b")),
        ("new/", DIR, Ok("new/b")),
        ("new/", FILE, Err("no such directory")),
        ("file/", FILE, Err("not a directory")),
        ("file", DIR, Err("not a directory")),
        ("file", FILE, Ok("file/b")),
        ("dir/link", FILE, Ok("file/b")),
        ("dangling", FILE, Err("leads nowhere")),
        ("fifo", FILE, Err("left unchanged")),
        ("gone/new", FILE, Err("gone")),
        ("gone", Arriving { renamed: Renamed::Never, ..FILE }, Err("no such directory")),
        ("made", Arriving { pass: Pass::DryRun, ..LIST }, Ok("made/b")),
        ("gone", BESIDE, Err("no such directory")),
        ("made", LIST, Ok("made/b")),
        ("dir", BESIDE, Ok("b")),
    ];
    for (target, arriving, wanted) in table {
        let landing = Landing::new((&root, &root), &scratch.join(target), arriving);
        match (landing, wanted) {
            (Ok(landing), Ok(place)) => {
                let is_new = landing.new_dir().is_some_and(|dir| dir.as_bytes() == b"made");
                assert_eq!(is_new, target == "made", "{target}");
                assert_eq!(landing.of(&found).unwrap().as_bytes(), place.as_bytes(), "{target}");
            }
            (Err(error), Err(words)) => {
                assert!(error.to_string().contains(words), "{target}: {error}");
            }
            (Ok(_), Err(words)) => panic!("{target} is not refused: {words}"),
            (Err(error), Ok(_)) => panic!("{target}: {error}"),
        }
    }
    // A link led to the source, which has the name of the link where it keeps its own.
    let link = StorePath::new(b"l").unwrap();
    for (target, arriving, wanted) in
        [("dir", DIR, "l/b"), ("new", DIR, "new/b"), ("dir", LIST, "b")]
    {
        let landing = Landing::new((&root, &link), &scratch.join(target), arriving).unwrap();
        assert_eq!(landing.of(&found).unwrap().as_bytes(), wanted.as_bytes(), "{target}");
    }
    assert!(!scratch.join("made").exists() && !scratch.join("new").exists());
    fs::remove_dir_all(scratch).unwrap();
}
