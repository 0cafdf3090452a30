//! Trees that `hikyaku cp` copies by SFTP: links that lead back, permission bits, times of links, and what is in the way.

use crate::common::Sshd;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::{Command, Output};

fn server(name: &str) -> Sshd {
    Sshd::with_lines(name, "Subsystem sftp internal-sftp\n")
}

fn cp(sshd: &Sshd, arguments: &[&str]) -> (Output, String) {
    let output = sshd.cp(&[&["--via", "sftp"], arguments].concat()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, said)
}

fn mode(sshd: &Sshd, name: &str) -> u32 {
    fs::metadata(sshd.at(name)).unwrap().mode() & 0o7777
}

fn set_mode(sshd: &Sshd, name: &str, mode: u32) {
    fs::set_permissions(sshd.at(name), Permissions::from_mode(mode)).unwrap();
}

/// The source and the target of a copy to the server, and of one from it.
fn both_ways(sshd: &Sshd, source: &str, target: &str) -> [[String; 2]; 2] {
    let here = |name: &str| sshd.at(name).display().to_string();
    let (put, got) = (format!("{target}-put"), format!("{target}-got"));
    [[here(source), sshd.far(&put)], [sshd.far(source), here(&got)]]
}

#[test]
fn a_link_that_leads_back_is_told_once_and_not_followed() {
    let sshd = server("sftp-loops");
    fs::create_dir_all(sshd.at("run7/deep")).unwrap();
    fs::create_dir_all(sshd.at("beside")).unwrap();
    fs::write(sshd.at("run7/deep/a"), "a").unwrap();
    fs::write(sshd.at("beside/b"), "b").unwrap();
    for (text, link) in [
        (".", "run7/self"),
        (".", "run7/deep/self"),
        ("..", "run7/deep/up"),
        ("../../run7", "run7/deep/top"),
        ("../run7", "beside/back"),
        // This one leads elsewhere, and twice.
        ("../beside", "run7/beside"),
        ("../../beside", "run7/deep/beside"),
    ] {
        symlink(text, sshd.at(link)).unwrap();
    }
    for [source, target] in both_ways(&sshd, "run7", "copy") {
        let (output, said) = cp(&sshd, &["-r", &source, &target]);
        assert_eq!(output.status.code(), Some(6), "{said}");
        let told = said.matches("a link leads back to a directory above it").count();
        // Those of `beside` are met twice.
        assert_eq!(told, 6, "{said}");
    }
    for copy in ["copy-put", "copy-got"] {
        for (name, text) in [("deep/a", "a"), ("beside/b", "b"), ("deep/beside/b", "b")] {
            let path = sshd.at(copy).join(name);
            assert_eq!(fs::read_to_string(path).unwrap(), text, "{copy}/{name}");
        }
        for name in ["self", "deep/self", "deep/up", "deep/top", "beside/back"] {
            assert!(!sshd.at(copy).join(name).exists(), "{copy}/{name}");
        }
    }
}

#[test]
fn directories_and_files_get_the_permission_bits_that_cp_gives() {
    let sshd = server("sftp-bits");
    fs::create_dir_all(sshd.at("run7/closed")).unwrap();
    fs::create_dir_all(sshd.at("run7/open")).unwrap();
    fs::write(sshd.at("run7/closed/a"), "a").unwrap();
    fs::write(sshd.at("run7/program"), "a").unwrap();
    set_mode(&sshd, "run7/program", 0o4755);
    set_mode(&sshd, "run7/closed", 0o555);
    set_mode(&sshd, "run7/open", 0o1777);
    for [source, target] in both_ways(&sshd, "run7", "new") {
        let (output, said) = cp(&sshd, &["-r", &source, &target]);
        assert!(output.status.success(), "{said}");
    }
    for copy in ["new-put", "new-got"] {
        // The usual umask takes the right to write from others.
        let is = |name: &str| mode(&sshd, &format!("{copy}/{name}"));
        assert_eq!(is("closed"), 0o555, "{copy}");
        assert_eq!(is("program") & 0o7700, 0o700, "{copy}: no set-id bit");
        // What is there keeps its own without -p.
        set_mode(&sshd, &format!("{copy}/open"), 0o710);
        set_mode(&sshd, &format!("{copy}/program"), 0o640);
        set_mode(&sshd, &format!("{copy}/closed"), 0o755);
    }
    for (option, wanted) in [("-r", 0o710), ("-rp", 0o1777)] {
        for ([source, target], copy) in
            both_ways(&sshd, "run7/.", "new").into_iter().zip(["new-put", "new-got"])
        {
            let (output, said) = cp(&sshd, &[option, &source, &target]);
            assert!(output.status.success(), "{said}");
            assert_eq!(mode(&sshd, &format!("{copy}/open")), wanted, "{copy} {option}");
            let program = mode(&sshd, &format!("{copy}/program"));
            assert_eq!(program & 0o777, if option == "-r" { 0o640 } else { 0o755 }, "{copy}");
        }
    }
}

#[test]
fn what_is_in_the_way_of_a_directory_is_told_once() {
    let sshd = server("sftp-way");
    fs::create_dir_all(sshd.at("run7/d/deep")).unwrap();
    for name in ["run7/a", "run7/d/b", "run7/d/c", "run7/d/deep/e"] {
        fs::write(sshd.at(name), "new").unwrap();
    }
    fs::write(sshd.at("list"), "a\nd/b\nd/c\nd/deep/e\n").unwrap();
    let list = sshd.at("list").display().to_string();
    for copy in ["copy-put", "copy-got"] {
        fs::create_dir(sshd.at(copy)).unwrap();
        fs::write(sshd.at(copy).join("d"), "a file").unwrap();
    }
    for options in [&["-r", "-n"][..], &["-r"], &["--files-from", &list]] {
        let source = if options[0] == "-r" { "run7/." } else { "run7" };
        for [source, target] in both_ways(&sshd, source, "copy") {
            let (output, said) = cp(&sshd, &[options, &["-q", &source, &target]].concat());
            assert_eq!(output.status.code(), Some(6), "{options:?}: {said}");
            assert_eq!(said.lines().count(), 1, "{options:?}: {said}");
            assert!(said.contains("d: not a directory"), "{options:?}: {said}");
        }
        for copy in ["copy-put", "copy-got"] {
            assert_eq!(fs::read_to_string(sshd.at(copy).join("d")).unwrap(), "a file");
            assert_eq!(sshd.at(copy).join("a").exists(), options.len() < 2 || options[1] != "-n");
        }
    }
}

#[test]
fn a_list_makes_its_target() {
    let sshd = server("sftp-list-new");
    fs::create_dir_all(sshd.at("run7/d")).unwrap();
    fs::write(sshd.at("run7/a"), "a").unwrap();
    fs::write(sshd.at("run7/d/b"), "b").unwrap();
    fs::write(sshd.at("list"), "a\nd/b\n").unwrap();
    let list = sshd.at("list").display().to_string();
    for (target, options) in [("new", &["-n"][..]), ("new", &[]), ("slash", &[])] {
        for [source, mut place] in both_ways(&sshd, "run7", target) {
            if target == "slash" {
                place.push('/');
            }
            let words = [options, &["--files-from", &list, &source, &place]].concat();
            let (output, said) = cp(&sshd, &words);
            assert!(output.status.success(), "{words:?}: {said}");
        }
        for way in ["put", "got"] {
            let copy = sshd.at(&format!("{target}-{way}"));
            assert_eq!(copy.join("d/b").exists(), options.is_empty(), "{}", copy.display());
            assert_eq!(copy.exists(), options.is_empty(), "{}", copy.display());
        }
    }
}

#[test]
fn links_keep_their_times() {
    let sshd = server("sftp-link-times");
    fs::create_dir(sshd.at("run7")).unwrap();
    symlink("nowhere", sshd.at("run7/link")).unwrap();
    let link = sshd.at("run7/link").display().to_string();
    let touched = Command::new("touch").args(["-h", "-d", "@1000000000", &link]).status();
    assert!(touched.unwrap().success());
    for [source, target] in both_ways(&sshd, "run7", "copy") {
        let (output, said) = cp(&sshd, &["-a", &source, &target]);
        assert!(output.status.success(), "{said}");
    }
    for copy in ["copy-put", "copy-got"] {
        let meta = fs::symlink_metadata(sshd.at(copy).join("link")).unwrap();
        assert_eq!(meta.mtime(), 1_000_000_000, "{copy}");
    }
    // A target that is a link which leads nowhere is no name of a file.
    fs::write(sshd.at("a"), "a").unwrap();
    let a = sshd.at("a").display().to_string();
    let (output, said) = cp(&sshd, &[&a, &sshd.far("run7/link")]);
    assert_eq!(output.status.code(), Some(6), "{said}");
    assert!(said.contains("run7/link: is a symbolic link that leads nowhere"), "{said}");
    assert!(!sshd.at("run7/nowhere").exists());
}
