//! `hikyaku guc` with a real GridFTP server, if its package is installed.

use super::{Begin, Ground, NAMING, READING, Records};
use crate::common::gridftp_folder;
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::process::Command;
use xtask::servers::gridftp::{self, GridFtp};

/// A server that is ended on drop.
struct Server(PathBuf, GridFtp);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = gridftp::down(&self.0);
    }
}

#[test]
fn guc_does_what_is_recorded() {
    let Some(folder) = gridftp_folder("recorded-guc") else { return };
    let mut ground = Ground::new("recorded-guc-here");
    let started = gridftp::up(&folder, IpAddr::V4(Ipv4Addr::LOCALHOST)).unwrap();
    let server = Server(folder.clone(), started);
    let Server(_, GridFtp { url, data, .. }) = &server;
    ground.name(url.trim_start_matches("ftp://"), "$SERVER");
    ground.name(data.display(), "$DATA");
    let ends = |name: &str| (format!("{url}/{name}"), data.join(name));
    let here = |name: &str| (ground.path(name), ground.at(name));
    let (far_from, far_to, here_from, here_to) =
        (ends("from"), ends("to"), here("from"), here("to"));
    let routes = [
        ("ftp to here", &far_from, &here_to, Some(NAMING)),
        ("here to ftp", &here_from, &far_to, Some(READING)),
        ("ftp to ftp", &far_from, &far_to, None),
    ];
    let mut records = Records::new();
    for (name, from, to, call) in routes {
        ground.lies(from.1.clone(), to.1.clone());
        let command = |options: &[&str], paths: (&str, &str)| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_hikyaku"));
            command.arg("guc").args(options).current_dir(ground.at(""));
            command.args([format!("{}/{}", from.0, paths.0), format!("{}/{}", to.0, paths.1)]);
            ground.is_home_of(&mut command);
            command
        };
        let mut add = |title: &str, begin: Begin, options: &[&str], paths: (&str, &str)| {
            let title = format!("guc {name}, {title}");
            records.add(&ground, &title, begin, &|| command(options, paths));
        };
        add("file", Begin::New, &["-json-lines"], ("f", "f"));
        add("file", Begin::Again, &["-json-lines"], ("f", "f"));
        add("file", Begin::Taken, &["-json-lines"], ("f", "f"));
        add("missing file", Begin::New, &["-json-lines"], ("nosuch", "f"));
        add("tree", Begin::New, &["-json-lines", "-r", "-cd"], ("t/", "t/"));
        add("tree", Begin::Again, &["-json-lines", "-r", "-cd"], ("t/", "t/"));
        add("tree without -r", Begin::New, &["-json-lines", "-cd"], ("t/", "t/"));
        if let Some(call) = call {
            add("file", Begin::Killed(call), &["-json-lines"], ("f", "f"));
        }
    }
    drop(server);
    let _ = fs::remove_dir_all(folder);
    records.check("guc");
}
