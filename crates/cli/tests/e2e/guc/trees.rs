//! Trees with what is no plain file or directory, and what a copy makes of a target that is there.

use super::{LOOPBACK, Stage, names};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use xtask::servers::gridftp::GridFtp;

/// Names that would be patterns if a user had typed them.
const ODD: [&str; 5] = ["a*b", "c?", "e[f", "g{h}", "i{j"];

/// A tree with a link to a directory above it, one that leads nowhere, a FIFO, and odd names.
fn odd_tree(folder: &Path) {
    fs::create_dir_all(folder.join("d/deep")).unwrap();
    for name in ODD {
        fs::write(folder.join("d").join(name), name).unwrap();
    }
    fs::write(folder.join("z"), "z").unwrap();
    symlink("../..", folder.join("d/deep/up")).unwrap();
    symlink("nothing", folder.join("d/broken")).unwrap();
    mknodat(CWD, folder.join("d/pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

fn check_odd_tree(folder: &Path) {
    for name in ODD {
        assert_eq!(fs::read_to_string(folder.join("d").join(name)).unwrap(), name);
    }
    assert_eq!(fs::read(folder.join("z")).unwrap(), b"z");
    let mut wanted = ODD.map(str::to_owned).to_vec();
    wanted.push("deep".to_owned());
    wanted.sort();
    assert_eq!(names(&folder.join("d")), wanted);
    assert_eq!(names(&folder.join("d/deep")), [""; 0]);
}

#[test]
fn what_is_no_file_is_left_out_and_the_rest_is_copied() {
    let Some(mut stage) = Stage::new("guc-odd") else { return };
    let (server, other) = (stage.server("one", LOOPBACK), stage.server("two", LOOPBACK));
    odd_tree(&stage.here("t"));
    odd_tree(&server.data.join("t"));
    let (from, between) = (format!("{}/t/", server.url), format!("{}/t/", other.url));
    let up = format!("{}/up/", server.url);
    for (source, target, got) in [
        ("t/", &*up, server.data.join("up")),
        (&*from, "got/", stage.here("got")),
        (&*from, &*between, other.data.join("t")),
    ] {
        for options in [&["-r", "-cd"][..], &["-r", "-cd", "-pp=1"], &["-r", "-cd", "-cc", "2"]] {
            let said = stage.fails(&[options, &[source, target]].concat(), 6);
            // This server does not list links that lead nowhere.
            let broken = (source == "t/").then_some("d/broken");
            for name in ["d/deep/up", "d/pipe"].into_iter().chain(broken) {
                assert!(said.contains(name), "{source} {target}: {said}");
            }
            check_odd_tree(&got);
            fs::remove_dir_all(&got).unwrap();
        }
    }
}

#[test]
fn a_name_that_is_there_is_no_pattern() {
    let Some(mut stage) = Stage::new("guc-literal") else { return };
    let server = stage.server("one", LOOPBACK);
    for name in ODD {
        fs::write(server.data.join(name), name).unwrap();
        fs::write(stage.here(name), name).unwrap();
        let url = format!("{}/{}", server.url, name.replace('?', "%3f"));
        stage.does(&[&url, "got"]);
        assert_eq!(fs::read_to_string(stage.here("got")).unwrap(), name);
        stage.does(&[name, &format!("{}/up", server.url)]);
        assert_eq!(fs::read_to_string(server.data.join("up")).unwrap(), name);
    }
    fs::create_dir(stage.here("some")).unwrap();
    stage.does(&[&format!("{}/[ac]*", server.url), "some/"]);
    assert_eq!(names(&stage.here("some")), ["a*b", "c?"]);
}

#[test]
fn a_tree_is_not_copied_into_itself() {
    let Some(mut stage) = Stage::new("guc-into-itself") else { return };
    let server = stage.server("one", LOOPBACK);
    fs::create_dir_all(server.data.join("src/sub/deep")).unwrap();
    fs::write(server.data.join("src/f"), "f").unwrap();
    let at = |path: &str| format!("{}/{path}", server.url);
    for (from, to) in
        [("src/", "src/sub/"), ("src/", "src/new/"), ("src/", "src//./sub/"), ("", "src/")]
    {
        let said = stage.fails(&["-r", "-cd", &at(from), &at(to)], 6);
        assert!(said.contains("into itself"), "{from} {to}: {said}");
        assert_eq!(names(&server.data.join("src")), ["f", "sub"], "{from} {to}");
        assert_eq!(names(&server.data.join("src/sub")), ["deep"], "{from} {to}");
    }
    // Files may go there, and a directory may go beside itself.
    stage.does(&[&at("src/f*"), &at("src/sub/")]);
    stage.does(&["-r", "-cd", &at("src/"), &at("src2/")]);
    assert_eq!(names(&server.data.join("src2")), ["f", "sub"]);
}

#[test]
fn a_file_that_is_replaced_keeps_its_mode() {
    let Some(mut stage) = Stage::new("guc-modes") else { return };
    let (server, other) = (stage.server("one", LOOPBACK), stage.server("two", LOOPBACK));
    let at = |server: &GridFtp, path: &str| format!("{}/{path}", server.url);
    let folders = [stage.here("got"), server.data.join("up"), other.data.join("t")];
    for (name, bytes) in [("a", 10), ("b", 20), ("large", 2_000_000)] {
        for source in [stage.here("t"), server.data.join("t")] {
            fs::create_dir_all(&source).unwrap();
            fs::write(source.join(name), vec![7; bytes]).unwrap();
        }
        for folder in &folders {
            fs::create_dir_all(folder).unwrap();
            fs::write(folder.join(name), "old").unwrap();
            fs::set_permissions(folder.join(name), Permissions::from_mode(0o600)).unwrap();
        }
    }
    let check = |way: &str| {
        for (folder, name) in
            folders.iter().flat_map(|at| ["a", "b", "large"].map(|name| (at, name)))
        {
            let meta = fs::metadata(folder.join(name)).unwrap();
            assert_eq!(meta.mode() & 0o7777, 0o600, "{way}: {}", folder.join(name).display());
            assert!(meta.len() >= 10, "{way}: {}", folder.join(name).display());
        }
    };
    let (from, up, between) = (at(&server, "t/"), at(&server, "up/"), at(&other, "t/"));
    for (source, target) in [(&*from, "got/"), ("t/", &*up), (&*from, &*between)] {
        stage.does(&["-r", source, target]);
    }
    check("trees");
    for (source, target) in [
        (at(&server, "t/a"), "got/a".to_owned()),
        ("t/a".to_owned(), at(&server, "up/a")),
        (at(&server, "t/a"), at(&other, "t/a")),
    ] {
        stage.does(&[&source, &target]);
    }
    check("single files");
}

#[test]
fn a_file_that_is_written_in_place_is_the_same_file() {
    let Some(mut stage) = Stage::new("guc-in-place") else { return };
    let (server, other) = (stage.server("one", LOOPBACK), stage.server("two", LOOPBACK));
    for bytes in [0, 5, 3_000_000] {
        fs::write(stage.here("new"), vec![7; bytes]).unwrap();
        fs::write(other.data.join("new"), vec![7; bytes]).unwrap();
        for source in ["new", &format!("{}/new", other.url)] {
            let there = server.data.join("there");
            fs::write(&there, vec![1; 1_000_000]).unwrap();
            fs::set_permissions(&there, Permissions::from_mode(0o640)).unwrap();
            let before = fs::metadata(&there).unwrap();
            stage.does(&["-inplace", source, &format!("{}/there", server.url)]);
            let after = fs::metadata(&there).unwrap();
            assert_eq!((before.ino(), before.mode()), (after.ino(), after.mode()), "{source}");
            assert!(fs::read(&there).unwrap() == vec![7; bytes], "{source} {bytes}");
        }
        let here = stage.here("here");
        fs::write(&here, vec![1; 1_000_000]).unwrap();
        let before = fs::metadata(&here).unwrap();
        stage.does(&["-inplace", &format!("{}/new", other.url), "here"]);
        assert_eq!(before.ino(), fs::metadata(&here).unwrap().ino(), "{bytes}");
        assert!(fs::read(&here).unwrap() == vec![7; bytes], "{bytes}");
    }
}
