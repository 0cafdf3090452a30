//! A host with an address that does not answer, in a network namespace.

use crate::server::{Reply, Server};
use crate::{Folder, got};
use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The environment variable that makes [`a_host_in_a_namespace`] run.
const INSIDE: &str = "HIKYAKU_GET_TEST_FAMILIES";
/// Files that are fetched, each by a connection of its own.
const FILES: usize = 12;

/// Packets to the IPv6 address of the host end in a device without a network: nothing answers.
const SCRIPT: &str = "set -e
ip link set lo up
ip link add hole type dummy
ip addr add 2001:db8::1/64 dev hole nodad
ip link set hole up
ip -6 neigh add 2001:db8::2 lladdr 02:00:00:00:00:02 dev hole nud permanent
printf '2001:db8::2 both.test\\n127.0.0.1 both.test\\n' >\"$1\"
mount --bind \"$1\" /etc/hosts
exec \"$2\" --exact families::a_host_in_a_namespace";

#[test]
fn a_family_that_gets_no_answer_delays_the_first_connection_only() {
    let folder = Folder::new();
    let mut unshare = Command::new("unshare");
    unshare.args(["-n", "-m", "sh", "-c", SCRIPT, "sh"]).arg(folder.path("hosts"));
    unshare.arg(std::env::current_exe().unwrap()).env(INSIDE, "1").stdout(Stdio::piped());
    let done = unshare.output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    if !done.status.success() && !said.contains("running 1 test") {
        eprintln!("\n*** SKIPPED, because a namespace of the network needs root ***\n");
        return;
    }
    assert!(done.status.success(), "{said}");
}

/// The test above starts this one. Without its variable it does nothing.
#[test]
fn a_host_in_a_namespace() {
    if std::env::var(INSIDE).is_err() {
        return;
    }
    let folder = Folder::new();
    // Each answer ends its connection.
    let server = Server::start(|_| Reply::whole(b"x").with("Connection", "close"));
    let urls: Vec<String> =
        (0..FILES).map(|at| format!("http://both.test:{}/{at}", server.port)).collect();
    let begin = Instant::now();
    got(&folder, &format!("-j 1 -d DIR {}", urls.join(" ")));
    // An attempt is given up after 10 s; the second family begins long before that.
    let took = begin.elapsed();
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), FILES);
}
