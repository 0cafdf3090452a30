//! No operation reaches a file outside of the directory, even while another thread exchanges
//! directories for symbolic links.

use super::*;
use crate::{Draft, Shown, Token, Zeros};
use std::io::{Read, Write};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A temporary directory, removed at the end of the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("hikyaku-fs-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(path.join("inside")).unwrap();
        std::fs::create_dir_all(path.join("outside")).unwrap();
        std::fs::write(path.join("outside/secret"), "secret").unwrap();
        Self(path)
    }

    fn inside(&self) -> Dir {
        Dir::open(&self.0.join("inside")).unwrap()
    }

    fn outside(&self) -> Vec<(String, String)> {
        let mut found: Vec<_> = std::fs::read_dir(self.0.join("outside"))
            .unwrap()
            .map(|entry| {
                let path = entry.unwrap().path();
                let text = std::fs::read_to_string(&path).unwrap_or_default();
                (path.file_name().unwrap().to_string_lossy().into_owned(), text)
            })
            .collect();
        found.sort();
        found
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn path(text: &str) -> PeerPath {
    PeerPath::new(text.as_bytes()).unwrap()
}

fn name(text: &str) -> Name {
    Name::new(text.as_bytes()).unwrap()
}

const METHODS: [Resolve; 2] = [Resolve::Kernel, Resolve::Stepwise];

#[test]
fn links_are_never_followed() {
    let scratch = Scratch::new("links");
    let real = scratch.0.join("inside");
    std::fs::create_dir(real.join("d")).unwrap();
    symlink(scratch.0.join("outside"), real.join("way")).unwrap();
    symlink(scratch.0.join("outside/secret"), real.join("file")).unwrap();
    symlink("../../outside", real.join("d/up")).unwrap();
    for resolve in METHODS {
        let dir = scratch.inside().with_resolve(resolve);
        for hostile in ["way", "way/secret", "file", "d/up/secret", "d/up"] {
            let error = dir.read(&path(hostile)).unwrap_err();
            assert!(matches!(error, FsError::Link { .. }), "{resolve:?} {hostile}: {error}");
            assert!(dir.write(&path(hostile)).is_err());
            assert!(dir.dir(&path(hostile)).is_err());
        }
        assert!(dir.create(&name("file")).is_err(), "the name of a link counts as in use");
        assert!(dir.make_dir(&name("way")).is_err());
        assert_eq!(dir.meta(&name("file")).unwrap().unwrap().kind, Kind::Link);
    }
    assert_eq!(scratch.outside(), [("secret".into(), "secret".into())]);
}

#[test]
fn a_rename_replaces_a_link_and_not_its_target() {
    let scratch = Scratch::new("rename");
    let real = scratch.0.join("inside");
    symlink(scratch.0.join("outside/secret"), real.join("a")).unwrap();
    let (dir, token) = (Arc::new(scratch.inside()), Token::random().unwrap());
    let written = || {
        let draft = Draft::create(dir.clone(), &name("a"), &token).unwrap();
        draft.write_at(0, b"new", Zeros::Written).unwrap();
        draft
    };
    assert!(written().name(Replace::Refused).is_err());
    written().name(Replace::Allowed).unwrap();
    assert_eq!(std::fs::read(real.join("a")).unwrap(), b"new");
    assert_eq!(scratch.outside(), [("secret".into(), "secret".into())]);
}

#[test]
fn files_are_private_until_they_get_their_mode_and_never_gain_rights() {
    let scratch = Scratch::new("modes");
    let dir = scratch.inside();
    let file = dir.create(&name("a")).unwrap();
    assert_eq!(Meta::of(&file).unwrap().mode, 0o600);
    Meta::set_mode(&file, 0o4755).unwrap();
    assert_eq!(Meta::of(&file).unwrap().mode, 0o755);
    Meta::set_modified(&file, (-5, 7)).unwrap();
    assert_eq!(Meta::of(&file).unwrap().modified, (-5, 7));
    let made = dir.make_dir(&name("d")).unwrap();
    assert_eq!(Meta::of(&made).unwrap().mode, 0o700);
    assert!(dir.make_dir(&name("d")).is_ok(), "an existing directory is opened");
    assert!(dir.make_dir(&name("a")).is_err(), "a file is no directory");
}

#[test]
fn a_directory_keeps_the_group_that_it_inherited() {
    let scratch = Scratch::new("group");
    let dir = scratch.inside();
    let made = dir.make_dir(&name("shared")).unwrap();
    rustix::fs::fchmod(&made, Mode::from_bits_truncate(0o2770)).unwrap();
    let below = made.make_dir(&name("d")).unwrap();
    assert_eq!(Meta::of(&below).unwrap().mode & 0o2000, 0o2000, "the kernel passes the bit on");
    Meta::set_dir_mode(&below, 0o5755).unwrap();
    assert_eq!(Meta::of(&below).unwrap().mode, 0o3755, "and the sticky bit is a peer's to set");
}

#[test]
fn a_link_that_cannot_be_made_costs_nothing() {
    let scratch = Scratch::new("long-link");
    let (dir, token) = (scratch.inside(), Token::random().unwrap());
    std::fs::write(scratch.0.join("inside/a"), "old").unwrap();
    assert!(dir.put_link(&name("a"), &[b'x'; 5000], &token).is_err());
    assert_eq!(std::fs::read(scratch.0.join("inside/a")).unwrap(), b"old");
    dir.put_link(&name("a"), b"elsewhere", &token).unwrap();
    assert_eq!(dir.read_link(&name("a")).unwrap(), b"elsewhere");
    std::fs::create_dir(scratch.0.join("inside/d")).unwrap();
    assert!(dir.put_link(&name("d"), b"elsewhere", &token).is_err());
    assert_eq!(dir.entries().unwrap().len(), 2, "no temporary file is left");
}

#[test]
fn a_directory_without_read_permission_can_be_written() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = Scratch::new("drop-box");
    let inside = scratch.0.join("inside");
    std::fs::set_permissions(&inside, std::fs::Permissions::from_mode(0o333)).unwrap();
    let (dir, token) = (Arc::new(scratch.inside()), Token::random().unwrap());
    let draft = Draft::create(dir.clone(), &name("a"), &token).unwrap();
    draft.name(Replace::Allowed).unwrap();
    dir.sync().unwrap();
    std::fs::set_permissions(&inside, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_path_longer_than_path_max_is_opened() {
    let scratch = Scratch::new("deep");
    for resolve in METHODS {
        let dir = scratch.inside().with_resolve(resolve);
        let long = "n".repeat(200);
        let mut at = dir.again().unwrap();
        for _ in 0..50 {
            at = at.make_dir(&name(&long)).unwrap();
        }
        let file = name(&format!("{resolve:?}"));
        at.create(&file).unwrap().write_all(b"deep").unwrap();
        let deep = [long.as_str()].repeat(50).join("/") + "/" + &format!("{resolve:?}");
        assert!(deep.len() > 10_000, "longer than one call takes");
        let mut text = String::new();
        dir.read(&path(&deep)).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "deep");
        let (parent, last) = dir.parent(&path(&deep)).unwrap();
        assert_eq!(last, file);
        assert!(parent.meta(&last).unwrap().is_some());
    }
}

#[test]
fn a_listing_is_sorted_and_reports_kinds() {
    let scratch = Scratch::new("list");
    let dir = scratch.inside();
    dir.create(&name("b")).unwrap();
    dir.make_dir(&name("c")).unwrap();
    dir.make_link(&name("a"), b"/nowhere").unwrap();
    let found = dir.entries().unwrap();
    let text: Vec<_> = found.iter().map(|entry| (entry.name.shown(), entry.kind)).collect();
    let shown = |text: &'static str| Shown::new(text.as_bytes());
    assert_eq!(
        text,
        [
            (shown("a"), Some(Kind::Link)),
            (shown("b"), Some(Kind::File)),
            (shown("c"), Some(Kind::Dir)),
        ]
    );
    assert_eq!(dir.read_link(&name("a")).unwrap(), b"/nowhere");
    dir.remove_file(&name("a")).unwrap();
    dir.remove_dir(&name("c")).unwrap();
    assert_eq!(dir.meta(&name("a")).unwrap(), None);
}

#[test]
fn unfinished_files_have_distinct_names() {
    let scratch = Scratch::new("partial");
    let (dir, token) = (Arc::new(scratch.inside()), Token::random().unwrap());
    let long = name(&"x".repeat(255));
    let begin = || Draft::create(dir.clone(), &long, &token).unwrap();
    let (a, b) = (begin(), begin());
    assert_ne!(a.partial(), b.partial());
    a.write_at(0, b"half", Zeros::Written).unwrap();
    let partial = a.partial().clone();
    assert!(
        Draft::take_up(dir.clone(), partial.clone(), &long).is_err(),
        "another draft holds the lock"
    );
    a.keep();
    drop(a);
    let again = Draft::take_up(dir.clone(), partial, &long).unwrap();
    again.sync().unwrap();
    again.name(Replace::Refused).unwrap();
    b.discard();
    assert_eq!(dir.entries().unwrap().len(), 1);
    assert_eq!(Meta::of(dir.read(&long.into()).unwrap()).unwrap().size, 4);
}

/// The race: one thread exchanges `sub` between a directory and a symbolic link to outside as fast
/// as it can, while another tries every operation beneath it. `FLIPS=1000000` repeats it more often
/// than the default of 20,000.
#[test]
fn a_race_between_directory_and_link_never_leaves_the_directory() {
    let flips = std::env::var("FLIPS").ok().and_then(|n| n.parse().ok()).unwrap_or(20_000_u64);
    for resolve in METHODS {
        let scratch = Scratch::new(&format!("race-{resolve:?}"));
        let real = scratch.0.join("inside");
        std::fs::create_dir(real.join("sub")).unwrap();
        symlink(scratch.0.join("outside"), real.join("other")).unwrap();
        let (done, flipped) = (AtomicBool::new(false), AtomicU64::new(0));
        let (mut went, mut refused) = (0_u64, 0_u64);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let dir = Dir::open(&real).unwrap();
                while !done.load(Ordering::Relaxed) {
                    let how = RenameFlags::EXCHANGE;
                    fs::renameat_with(&dir, "sub", &dir, "other", how).unwrap();
                    flipped.fetch_add(1, Ordering::Relaxed);
                }
            });
            let _stop = Stop(&done);
            let dir = scratch.inside().with_resolve(resolve);
            while flipped.load(Ordering::Relaxed) < flips {
                match attack(&dir) {
                    Ok(()) => went += 1,
                    Err(_) => refused += 1,
                }
            }
        });
        assert_eq!(scratch.outside(), [("secret".into(), "secret".into())], "{resolve:?}");
        assert!(went > 0 && refused > 0, "{resolve:?}: {went} went, {refused} were refused");
    }
}

/// Ends the exchanging thread even if this one panics.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Tries every operation once beneath `sub`.
fn attack(dir: &Dir) -> Result<(), FsError> {
    assert!(dir.read(&path("sub/secret")).is_err(), "read a file outside of the directory");
    let (sub, file) = dir.parent(&path("sub/f"))?;
    let sub = Arc::new(sub);
    let draft = Draft::create(sub, &file, &Token::random()?)?;
    draft.with(|file| Meta::set_mode(file, 0o644))?;
    draft.name(Replace::Allowed)?;
    let mut file = dir.write(&path("sub/f"))?;
    file.write_all(b"x").ok();
    dir.dir(&path("sub"))?.make_dir(&name("d"))?;
    let token = Token::random()?;
    dir.dir(&path("sub"))?.put_link(&name("l"), b"../../outside/secret", &token).ok();
    let sub = dir.dir(&path("sub"))?;
    sub.remove_dir(&name("d")).ok();
    sub.remove_file(&name("l")).ok();
    sub.remove_file(&name("f")).ok();
    Ok(())
}

#[test]
fn the_owner_id_minus_one_changes_nothing() {
    let scratch = Scratch::new("owner");
    let dir = scratch.inside();
    let file = dir.create(&name("a")).unwrap();
    let nobody = Owner { user: u32::MAX, group: u32::MAX };
    Meta::set_owner(&file, nobody).unwrap();
    dir.make_link(&name("l"), b"a").unwrap();
    Meta::set_link_owner(&dir, &name("l"), nobody).unwrap();
    assert_eq!(Meta::of(&file).unwrap().owner.user, rustix::process::geteuid().as_raw());
}
