//! Sources that somebody writes to while they are copied: what would be a mixture gets no name.

use super::{LOOPBACK, Stage, names, names_of_state};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::spawn;
use std::time::{Duration, SystemTime};
use xtask::servers::gridftp::GridFtp;

/// Does something before the client hears that a part is complete.
type Act = Box<dyn FnOnce() + Send>;

/// What is done when.
struct Gate {
    /// So many parts are complete before. Listings come over the control connection.
    before: usize,
    act: Option<Act>,
}

/// The URL of a server behind a gate: before the client hears that a part is complete, behind `before` others, `act` is
/// done.
fn gated(server: &GridFtp, before: usize, act: impl FnOnce() + Send + 'static) -> String {
    let rest = server.url.strip_prefix("ftp://").unwrap();
    let (address, path) = rest.split_at(rest.find('/').unwrap());
    let (address, gate) =
        (address.to_owned(), Arc::new(Mutex::new(Gate { before, act: Some(Box::new(act)) })));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("ftp://{}{path}", listener.local_addr().unwrap());
    spawn(move || {
        for client in listener.incoming().flatten() {
            let (server, gate) = (TcpStream::connect(&address).unwrap(), Arc::clone(&gate));
            let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            // Both end with either connection.
            spawn(move || {
                let _ = std::io::copy(&mut from, &mut to);
                let _ = to.shutdown(std::net::Shutdown::Both);
            });
            spawn(move || pass(server, client, &gate));
        }
    });
    url
}

fn pass(from: TcpStream, mut to: TcpStream, gate: &Mutex<Gate>) {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    while from.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
        if line.starts_with(b"226 ") {
            let mut gate = gate.lock().unwrap_or_else(PoisonError::into_inner);
            match gate.before.checked_sub(1) {
                Some(left) => gate.before = left,
                None => gate.act.take().into_iter().for_each(|act| act()),
            }
        }
        if to.write_all(&line).is_err() {
            break;
        }
        line.clear();
    }
    let _ = to.shutdown(std::net::Shutdown::Both);
}

/// Other bytes in place of those of a file, in the same number, with a time of another second.
fn overwrite(path: &Path) {
    let length = fs::metadata(path).unwrap().len() as usize;
    let file = fs::File::options().write(true).open(path).unwrap();
    (&file).write_all(&vec![9; length]).unwrap();
    file.set_modified(SystemTime::now() + Duration::from_secs(100)).unwrap();
}

/// The same, with the time that the file had.
fn overwrite_secretly(path: &Path) {
    let time = fs::metadata(path).unwrap().modified().unwrap();
    overwrite(path);
    fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

/// Large ones by themselves, and small ones in a batch.
const SIZES: [(&str, usize); 2] = [("large", 3_000_000), ("small", 5_000)];

#[test]
fn a_source_that_changes_at_the_server_is_not_copied() {
    let Some(mut stage) = Stage::new("guc-changes-down") else { return };
    let (server, other) = (stage.server("one", LOOPBACK), stage.server("two", LOOPBACK));
    for (name, bytes) in SIZES {
        for target in ["got/", &format!("{}/got/", other.url)] {
            let folder = server.data.join("t");
            fs::create_dir_all(&folder).unwrap();
            for file in [name, "quiet"] {
                fs::write(folder.join(file), vec![7; bytes]).unwrap();
            }
            let path = folder.join(name);
            let url = gated(&server, 0, move || overwrite(&path));
            let words = ["-r", "-cd", "-c", &format!("{url}/t/"), target];
            let said = stage.fails(&words, 5);
            assert!(said.contains(name) && said.contains("changed while it was read"), "{said}");
            let got = if target == "got/" { stage.here("got") } else { other.data.join("got") };
            assert_eq!(names(&got), ["quiet"], "{words:?}");
            // The same command copies what is there now.
            stage.does(&words);
            assert!(fs::read(got.join(name)).unwrap() == vec![9; bytes], "{words:?}");
            assert_eq!(names_of_state(&stage), [""; 0]);
            fs::remove_dir_all(&folder).unwrap();
            fs::remove_dir_all(got).unwrap();
        }
    }
}

#[test]
fn a_source_that_changes_here_is_not_copied_whatever_time_it_gets() {
    let Some(mut stage) = Stage::new("guc-changes-up") else { return };
    let server = stage.server("one", LOOPBACK);
    let got = server.data.join("got");
    // So large that it is still read when the server has stored the first parts of it.
    let (name, bytes) = ("large", 200_000_000);
    for change in [overwrite, overwrite_secretly] {
        fs::create_dir_all(stage.here("t")).unwrap();
        fs::write(stage.here("t").join(name), vec![7; bytes]).unwrap();
        fs::write(stage.here("t/quiet"), vec![7; 2_000_000]).unwrap();
        let path = stage.here("t").join(name);
        let url = gated(&server, 2, move || change(&path));
        let words = ["-r", "-cd", "-c", "t/", &format!("{url}/got/")];
        let said = stage.fails(&words, 5);
        assert!(said.contains(name) && said.contains("changed while it was read"), "{said}");
        assert_eq!(names(&got), ["quiet"], "{words:?}");
        stage.does(&words);
        assert!(fs::read(got.join(name)).unwrap() == vec![9; bytes], "{words:?}");
        assert_eq!(names_of_state(&stage), [""; 0]);
        fs::remove_dir_all(stage.here("t")).unwrap();
        fs::remove_dir_all(&got).unwrap();
    }
}
