//! `hikyaku guc` with a real GridFTP server, if its package is there.

use super::ground::{Ground, Kind};
use super::{Outcome, by_requests, in_tree, judge, native, program, text};
use crate::common::gridftp_folder;
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use xtask::servers::gridftp;

/// A server. It ends with the value.
struct Server {
    folder: PathBuf,
    url: String,
    /// A scratch name that lies in what it serves.
    ground: String,
}

impl Server {
    /// `None` without the server's package.
    fn start(name: &str) -> Option<Self> {
        let folder = gridftp_folder(name)?;
        let ip = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let server = gridftp::up(&folder.join("server"), ip).unwrap();
        let url = server.url.strip_suffix(&server.data.display().to_string()).unwrap().to_owned();
        let own = folder.file_name().unwrap().to_str().unwrap();
        let ground = format!("{}/server/data/ground", own.strip_prefix("hikyaku-").unwrap());
        Some(Self { folder, url, ground })
    }

    fn at(&self, path: impl AsRef<Path>) -> String {
        format!("{}{}", self.url, path.as_ref().display())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = gridftp::down(&self.folder.join("server"));
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// `guc` to this machine: what takes bytes in order is written into or refused.
const fn here(kind: Kind) -> Outcome {
    match kind {
        Kind::Fifo | Kind::Device => Outcome::IntoOrLeft,
        other => native(other),
    }
}

#[test]
fn a_named_target_of_guc_is_written_as_the_table_says() {
    let Some(server) = Server::start("targets-guc") else { return };
    let guc = |g: &Ground, more: &[&str], from: String, to: String| {
        program(&[&["guc"], more, &[&from, &to]].concat(), g)
    };
    let (from, to) = (|g: &Ground| text(&g.source()), |g: &Ground| text(&g.target()));
    judge(
        &server.ground,
        &[
            ("guc get", here, &|g| guc(g, &[], server.at(from(g)), to(g))),
            ("guc get -cd", here, &|g| guc(g, &["-cd"], server.at(from(g)), to(g))),
            ("guc put", by_requests, &|g| guc(g, &[], from(g), server.at(to(g)))),
            ("guc put -cd", by_requests, &|g| guc(g, &["-cd"], from(g), server.at(to(g)))),
            ("guc put -inplace", by_requests, &|g| {
                guc(g, &["-inplace"], from(g), server.at(to(g)))
            }),
            ("guc between servers", by_requests, &|g| {
                guc(g, &[], server.at(from(g)), server.at(to(g)))
            }),
            ("guc between servers -inplace", by_requests, &|g| {
                guc(g, &["-inplace"], server.at(from(g)), server.at(to(g)))
            }),
        ],
    );
}

/// A name below the target that is written in place.
const fn in_place(kind: Kind) -> Outcome {
    match kind {
        Kind::Link => Outcome::Behind,
        other => in_tree(other),
    }
}

#[test]
fn what_is_no_file_in_a_tree_of_guc_is_left_alone() {
    let Some(server) = Server::start("targets-guc-tree") else { return };
    let guc = |g: &Ground, more: &[&str], from: String, to: String| {
        program(&[&["guc", "-r"], more, &[&from, &to]].concat(), g)
    };
    let from = |g: &Ground| format!("{}/", text(&g.tree()));
    let to = |g: &Ground| format!("{}/tree/", text(&g.above()));
    judge(
        &server.ground,
        &[
            ("guc -r get", in_tree, &|g| guc(g, &[], server.at(from(g)), to(g))),
            ("guc -r get -pp=1", in_tree, &|g| guc(g, &["-pp=1"], server.at(from(g)), to(g))),
            ("guc -r put", in_tree, &|g| guc(g, &[], from(g), server.at(to(g)))),
            ("guc -r put -pp=1", in_tree, &|g| guc(g, &["-pp=1"], from(g), server.at(to(g)))),
            ("guc -r put -inplace", in_place, &|g| {
                guc(g, &["-inplace"], from(g), server.at(to(g)))
            }),
            ("guc -r between servers", in_tree, &|g| {
                guc(g, &[], server.at(from(g)), server.at(to(g)))
            }),
            ("guc of a pattern", in_tree, &|g| {
                guc(g, &[], format!("{}n*", from(g)), server.at(to(g)))
            }),
            ("guc to a slash", in_tree, &|g| {
                guc(g, &[], format!("{}name", from(g)), server.at(to(g)))
            }),
        ],
    );
}
