//! `hikyaku guc` on every way that a copy may go, with a real GridFTP server, if its package is there.

use super::{Ends, noted, refused, words};
use crate::common::gridftp_folder;
use hikyaku_console::{Row, Table, Way};
use hikyaku_guc::TABLE;
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use xtask::servers::gridftp::{self, GridFtp};

/// A server, which sends and receives. It ends with the value.
struct Rig {
    folder: PathBuf,
    server: GridFtp,
}

impl Rig {
    /// `None` without the server's package.
    fn new(name: &str) -> Option<Self> {
        let folder = gridftp_folder(name)?;
        fs::create_dir(folder.join("here")).unwrap();
        let server = gridftp::up(&folder.join("server"), IpAddr::V4(Ipv4Addr::LOCALHOST)).unwrap();
        Some(Self { folder, server })
    }

    fn here(&self) -> PathBuf {
        self.folder.join("here")
    }

    /// The two ends of a way: URLs or paths, and the directories that they are.
    fn ends(&self, way: Way) -> ((String, PathBuf), (String, PathBuf)) {
        let here = || (self.here().display().to_string(), self.here());
        let ftp = || (self.server.url.clone(), self.server.data.clone());
        let certified = || (self.server.gsi_url.clone(), self.server.data.clone());
        match way {
            Way::FromFtp => (ftp(), here()),
            Way::ToFtp => (here(), ftp()),
            Way::BetweenFtp => (ftp(), ftp()),
            Way::FromGridFtp => (certified(), here()),
            Way::ToGridFtp => (here(), certified()),
            Way::BetweenGridFtp => (certified(), certified()),
            other => unreachable!("guc does not go {other:?}"),
        }
    }

    /// Copies from a path at the one end to a path at the other.
    fn copies(&self, way: Way, options: &[String], paths: (&str, &str)) -> (Output, String) {
        let ((source, _), (target, _)) = self.ends(way);
        let mut command = Command::new(env!("CARGO_BIN_EXE_hikyaku"));
        command.arg("guc").args(options);
        command.args([format!("{source}/{}", paths.0), format!("{target}/{}", paths.1)]);
        command.env("XDG_STATE_HOME", self.folder.join("state")).current_dir(self.here());
        let keys = &self.server.keys;
        command.env("X509_USER_CERT", &keys.user.0).env("X509_USER_KEY", &keys.user.1);
        command.env("X509_CERT_DIR", &keys.authorities).env_remove("X509_USER_PROXY");
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output, said)
    }

    /// Copies, expects this exit code, and returns what was said.
    fn ends_with(&self, code: i32, way: Way, options: &[&str], paths: (&str, &str)) -> String {
        let (output, said) = self.copies(way, &words(options), paths);
        assert_eq!(output.status.code(), Some(code), "{way:?} {options:?}: {said}");
        said
    }

    fn read(&self, way: Way, path: &str) -> String {
        let (_, (_, dir)) = self.ends(way);
        fs::read_to_string(dir.join(path)).unwrap_or_default()
    }

    fn roots(&self) -> [PathBuf; 2] {
        [self.here(), self.server.data.clone()]
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        let _ = gridftp::down(&self.folder.join("server"));
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn remove(path: &Path) {
    let _ = fs::remove_dir_all(path).or_else(|_| fs::remove_file(path));
}

impl Ends for Rig {
    fn table(&self) -> &Table {
        &TABLE
    }

    fn fill(&self) {
        self.made().iter().for_each(|path| remove(path));
        for root in self.roots() {
            fs::create_dir_all(root.join("tree/dir")).unwrap();
            for name in ["source", "tree/a", "tree/c", "tree/dir/b"] {
                fs::write(root.join(name), "0123456789").unwrap();
            }
        }
    }

    fn made(&self) -> Vec<PathBuf> {
        let names = ["target", "new"];
        let paths = self.roots().into_iter().flat_map(|root| names.map(|name| root.join(name)));
        paths.filter(|path| path.exists()).collect()
    }

    fn value(&self, row: &Row) -> &'static str {
        match row.id {
            "bs" => "65536",
            "rate" => "10MB",
            _ => "",
        }
    }

    fn is_run(&self, _: &Row, _: Way) -> bool {
        true
    }

    fn has_end(&self, _: Way) -> bool {
        true
    }

    fn run(&self, way: Way, options: &[String]) -> (Output, String) {
        self.copies(way, options, ("source", "target"))
    }
}

#[test]
fn an_option_that_protects_something_is_refused_by_name_where_it_cannot_be_had() {
    let Some(rig) = Rig::new("matrix-guc-refused") else { return };
    refused(&rig);
}

#[test]
fn any_other_option_without_effect_is_noted_in_one_line() {
    let Some(rig) = Rig::new("matrix-guc-noted") else { return };
    noted(&rig);
}

#[test]
fn what_is_written_is_what_the_options_say_on_every_way() {
    let Some(rig) = Rig::new("matrix-guc-written") else { return };
    for way in TABLE.ways.iter().copied() {
        rig.fill();
        rig.ends_with(0, way, &[], ("source", "target"));
        assert_eq!(rig.read(way, "target"), "0123456789", "{way:?}");
        let (_, (_, dir)) = rig.ends(way);
        fs::write(dir.join("target"), "abcdefghij").unwrap();
        rig.ends_with(0, way, &["-off", "3", "-len", "4"], ("source", "target"));
        assert_eq!(rig.read(way, "target"), "abc3456hij", "{way:?}");
        // Directories and trees are made only if that is asked for.
        rig.ends_with(6, way, &[], ("source", "new/a/b"));
        assert!(!dir.join("new").exists(), "{way:?}");
        rig.ends_with(0, way, &["-cd"], ("source", "new/a/b"));
        assert_eq!(rig.read(way, "new/a/b"), "0123456789", "{way:?}");
        rig.ends_with(6, way, &["-cd"], ("tree/", "new/tree/"));
        rig.ends_with(0, way, &["-cd", "-r"], ("tree/", "new/tree/"));
        assert_eq!(rig.read(way, "new/tree/dir/b"), "0123456789", "{way:?}");
        // Something stands in the way of two files: the second one and the others are tried with -c only.
        for (options, failures) in [(&["-r"][..], 1), (&["-r", "-c"], 2)] {
            remove(&dir.join("new/tree"));
            for name in ["a", "dir/b"] {
                fs::create_dir_all(dir.join("new/tree").join(name)).unwrap();
            }
            let said = rig.ends_with(6, way, options, ("tree/", "new/tree/"));
            let told = ["tree/a", "tree/dir/b"].iter().filter(|name| said.contains(**name));
            assert_eq!(told.count(), failures, "{way:?} {options:?}: {said}");
            assert!(
                failures == 1 || rig.read(way, "new/tree/c") == "0123456789",
                "{way:?}: {said}"
            );
        }
        for option in ["-off", "-len"] {
            let said = rig.ends_with(1, way, &["-r", option, "1"], ("tree/", "new/tree/"));
            assert!(said.contains("-off and -len"), "{way:?}: {said}");
        }
    }
}

/// Options, and what the servers are told with them and not without them.
const TOLD: [(&[&str], &str); 4] = [
    (&["-tcp-bs", "65536"], "> SBUF 65536"),
    (&["-cksm", "sha256"], "> CKSM SHA256 0 "),
    (&["-rst-retries", "1"], ""),
    (&["--trust-pasv"], ""),
];

/// The same, for certificates.
const TOLD_WITH_A_CERTIFICATE: [(&[&str], &str); 3] =
    [(&["-dcpriv"], "> PROT P"), (&["-dcsafe"], "> PROT S"), (&["-nodcau"], "> DCAU N")];

#[test]
fn what_goes_over_the_network_is_what_the_options_say_on_every_way() {
    let Some(rig) = Rig::new("matrix-guc-told") else { return };
    rig.fill();
    for name in rig.roots().map(|root| root.join("large")) {
        fs::write(name, vec![7; 9 << 20]).unwrap();
    }
    for way in TABLE.ways.iter().copied() {
        let plain = rig.ends_with(0, way, &["-dbg"], ("source", "target"));
        let is_certified = matches!(way, Way::FromGridFtp | Way::ToGridFtp | Way::BetweenGridFtp);
        let certified = TOLD_WITH_A_CERTIFICATE.iter().filter(|_| is_certified);
        for (options, told) in TOLD.iter().chain(certified) {
            let options = [&["-dbg"], *options].concat();
            let said = rig.ends_with(0, way, &options, ("source", "target"));
            assert!(said.contains(told), "{way:?} {options:?}: {said}");
            assert!(told.is_empty() || !plain.contains(told), "{way:?} {options:?}: {plain}");
            assert_eq!(rig.read(way, "target"), "0123456789", "{way:?} {options:?}");
        }
        let is_up = !matches!(way, Way::FromFtp | Way::FromGridFtp);
        assert_eq!(plain.contains("> RNTO "), is_up, "{way:?}: {plain}");
        let said = rig.ends_with(0, way, &["-dbg", "-inplace"], ("source", "target"));
        assert!(!said.contains("> RNTO "), "{way:?}: {said}");
        // An upload asks for no connection to this end, which a firewall may not let through.
        if matches!(way, Way::ToFtp | Way::ToGridFtp) {
            rig.ends_with(0, way, &["-cd", "-r"], ("tree/", "new/tree/"));
            let said = rig.ends_with(0, way, &["-dbg", "-r"], ("tree/", "new/tree/"));
            let asked = ["> MLSD", "> PORT", "> EPRT"].iter().any(|word| said.contains(word));
            assert!(!asked && said.contains("> MLST"), "{way:?}: {said}");
        }
        // The sender is told how many connections it opens; this end opens them for an upload.
        for (options, n) in [
            (&["-dbg", "-p", "3"][..], 3),
            (&["-dbg", "-p", "3", "--max-connections", "2"], 2),
            (&["-dbg", "--max-connections", "1"], 1),
        ] {
            let said = rig.ends_with(0, way, options, ("large", "target"));
            let told = format!("Parallelism={n},{n},{n};");
            let is_sent = !matches!(way, Way::ToFtp | Way::ToGridFtp);
            assert!(!is_sent || said.contains(&told), "{way:?} {options:?}: {said}");
        }
    }
}

#[test]
fn a_server_without_a_certificate_is_not_mixed_with_one_of_which_data_are_guarded() {
    let Some(rig) = Rig::new("matrix-guc-mixed") else { return };
    rig.fill();
    let (one, two) = (&rig.server.url, &rig.server.gsi_url);
    for (source, target) in [(one, two), (two, one)] {
        let run = |options: &[&str]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_hikyaku"));
            command.arg("guc").args(options);
            command.args([format!("{source}/source"), format!("{target}/target")]);
            command.env("XDG_STATE_HOME", rig.folder.join("state"));
            let keys = &rig.server.keys;
            command.env("X509_USER_CERT", &keys.user.0).env("X509_USER_KEY", &keys.user.1);
            command.env("X509_CERT_DIR", &keys.authorities).env_remove("X509_USER_PROXY");
            let output = command.output().unwrap();
            (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
        };
        for options in [&[][..], &["-dcpriv"], &["-dcsafe"]] {
            let (code, said) = run(options);
            assert_eq!(code, Some(1), "{options:?}: {said}");
            assert!(said.contains("gsiftp://") && said.contains("try: "), "{options:?}: {said}");
            assert_eq!(rig.made(), Vec::<PathBuf>::new(), "{options:?}: {said}");
        }
        let (code, said) = run(&["-nodcau"]);
        assert_eq!(code, Some(0), "{said}");
        rig.fill();
    }
}

#[test]
fn places_that_other_commands_copy_are_refused_with_the_command() {
    let Some(rig) = Rig::new("matrix-guc-places") else { return };
    rig.fill();
    let server = format!("{}/source", rig.server.url);
    for place in [
        "-",
        "far:x",
        "far:/x",
        "hikyaku://far/x",
        "s3://bucket/x",
        "gfarm:///x",
        "sftp://far/x",
        "http://far/x",
    ] {
        for (source, target) in [(&*server, place), (place, &*server)] {
            let mut command = Command::new(env!("CARGO_BIN_EXE_hikyaku"));
            command.args(["guc", source, target]).current_dir(rig.here());
            let output = command.output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{source} {target}: {said}");
            assert!(said.contains("\ntry: "), "{source} {target}: {said}");
            let mut names: Vec<_> =
                fs::read_dir(rig.here()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            assert_eq!(names, ["source", "tree"], "{source} {target}");
        }
    }
}
