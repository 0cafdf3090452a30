//! The tables of `docs/coming-from.md`, row by row: each command is typed on `laptop`, and what it leaves is compared.
//! A row that cannot run on one machine is in the list with the reason, so that the page and the list have equal rows.

use super::hosts::{Host, Hosts};
use crate::common::{listing, skipped};
use How::{Copies, Elsewhere, Ends, Leaves, ListsOnly, Mounts, Runs};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The required effect of a command.
enum How {
    Ends,
    /// Both hosts have equal trees of this name afterwards, but for files of the second name.
    Copies(&'static str, &'static str),
    /// These files exist afterwards.
    Leaves(&'static [&'static str]),
    /// Nothing is written.
    ListsOnly,
    /// This file exists until the mount is removed.
    Mounts(&'static str),
    /// It prints this and runs until it is stopped.
    Runs(&'static str),
    /// It is not run here, for this reason.
    Elsewhere(&'static str),
}

/// The commands of a section of the page, in the order of its table.
type Section = &'static [(&'static str, How)];

const RSYNC: Section = &[
    ("hikyaku sync -av run7/ host:run7/", Copies("run7", "")),
    ("hikyaku sync -ani --delete run7/ host:run7/", ListsOnly),
    ("hikyaku sync -av run7/ host:run7/", Copies("run7", "")),
    ("hikyaku sync -a --exclude '*.tmp' run7/ host:run7/", Copies("run7", "t.tmp")),
    ("hikyaku sync -a --files-from list . host:d/", Leaves(&["node1/d/d/f2.dat"])),
    ("hikyaku sync -a -e 'ssh -p 2222' run7/ host:run7/", Copies("run7", "")),
    ("hikyaku sync -a --bwlimit 10m run7/ host:run7/", Copies("run7", "")),
    ("hikyaku sync -a run7/ host:run7/", Copies("run7", "")),
    ("hikyaku sync -a --max-delete 9 --delete d/ host:d/", Copies("d", "")),
    (
        "hikyaku cp -a run7 run8 host:data/",
        Leaves(&["node1/data/run7/f1.dat", "node1/data/run8/deep/f3.dat"]),
    ),
];

const RCLONE: Section = &[
    ("hikyaku cp -r d/. host:d", Copies("d", "")),
    ("hikyaku sync -rt --delete d/ host:d", Copies("d", "")),
    ("hikyaku cp --rate 10MiB -r d/. host:d", Copies("d", "")),
    ("hikyaku cp -r --exclude '*.tmp' d/. host:d", Copies("d", "t.tmp")),
    ("hikyaku cp -n -r d/. host:d", ListsOnly),
    ("hikyaku cp -r s3://bucket/run7 .", Elsewhere("needs a build with the feature s3")),
    (
        "hikyaku cp -r s3://bucket/run7 hikyaku://node1/d/",
        Elsewhere("needs a build with the feature s3"),
    ),
    (
        "hikyaku cp -r ftp://me@a.example.org/d/. hikyaku://node1/d/",
        Elsewhere("needs a server of FTP on the Internet"),
    ),
    ("hikyaku get -o x.tar https://a.example.org/x.tar", Leaves(&["laptop/x.tar"])),
    ("hikyaku mount hikyaku://node1/d /mnt", Mounts("/mnt/f1.dat")),
    ("hikyaku serve --root d", Runs("serving ")),
    ("hikyaku status hikyaku://node1", Ends),
];

const IPERF3: Section = &[
    ("hikyaku perf -s", Runs("listening on ")),
    ("hikyaku perf -c node1 -P 4 -R -t 30", Ends),
    ("hikyaku perf -c node1 --bidir -J", Ends),
    ("hikyaku perf -c node1 -b 500M -O 3", Ends),
    ("hikyaku perf -c node1 -b 500M", Ends),
    ("hikyaku perf -c node1 -n 10G", Ends),
    ("hikyaku perf user@node1", Ends),
    ("hikyaku perf -c node1 --sweep 10%..110%:8 -t 5", Ends),
    ("hikyaku perf --mesh node1,node2,node3 -t 5", Ends),
];

const SSHFS: Section = &[
    ("hikyaku mount hikyaku://node1/ /mnt", Mounts("/mnt/d/f1.dat")),
    ("hikyaku mount -o ro,allow_other hikyaku://node1/ /mnt", Mounts("/mnt/d/f1.dat")),
    ("hikyaku mount --timeout 60s hikyaku://node1/ /mnt", Mounts("/mnt/d/f1.dat")),
    ("hikyaku mount --attr-cache 60s hikyaku://node1/ /mnt", Mounts("/mnt/d/f1.dat")),
    ("hikyaku umount /mnt", Elsewhere("ends each of the mounts above")),
];

const WEB: Section = &[
    ("hikyaku get https://a.example.org/x.tar", Leaves(&["laptop/x.tar"])),
    ("hikyaku get -o x.tar https://a.example.org/x.tar", Leaves(&["laptop/x.tar"])),
    ("hikyaku get -o - https://a.example.org/x.tgz | tar xz", Leaves(&["laptop/x"])),
    ("hikyaku get https://a.example.org/x.tar", Leaves(&["laptop/x.tar"])),
    (
        "hikyaku get -j 8 -d data https://a.example.org/1 https://a.example.org/2",
        Leaves(&["laptop/data/1", "laptop/data/2"]),
    ),
    (
        "hikyaku get -o x.tar https://a.example.org/x.tar https://b.example.org/x.tar",
        Leaves(&["laptop/x.tar"]),
    ),
    ("hikyaku get --sha256 HEX https://a.example.org/x.tar", Leaves(&["laptop/x.tar"])),
    ("hikyaku get -c https://a.example.org/x.tar", Leaves(&["laptop/x.tar"])),
    ("hikyaku get -u me:secret -H 'A: b' https://a.example.org/x.tar", Leaves(&["laptop/x.tar"])),
    ("hikyaku get --limit-rate 10M https://a.example.org/x.tar", Leaves(&["laptop/x.tar"])),
    ("hikyaku get -i list", Leaves(&["laptop/1", "laptop/2"])),
    ("hikyaku get --cookies cookies.txt https://a.example.org/x.tar", Leaves(&["laptop/x.tar"])),
];

const SSH: Section = &[
    ("hikyaku proxy host -D 1080", Runs("listening on ")),
    ("hikyaku proxy host -L 5432:db:5432", Runs("listening on ")),
    ("hikyaku proxy host -R 8080:web:80", Runs("listening on ")),
    ("hikyaku proxy host -f -D 1080", Elsewhere("runs in the background: proxy.rs")),
    ("hikyaku proxy host -J jump -p 2222 -D 1080", Runs("listening on ")),
    ("hikyaku proxy host -D 1080", Runs("listening on ")),
    (
        "sudo hikyaku proxy host --for-command -- git clone https://a.example.org/x.git",
        Elsewhere("proxy_transparent.rs runs a command"),
    ),
    ("hikyaku web host https://a.example.org/", Elsewhere("starts a browser")),
];

/// Parts of commands that would take long, and what stands for them here.
const SHORTER: [(&str, &str); 9] = [
    (" -t 30", " -t 0.2"),
    (" -t 5", " -t 0.2"),
    (" -n 10G", " -n 10M"),
    (" -O 3", " -O 0.1"),
    (" --bidir -J", " --bidir -J -t 0.2"),
    ("perf -c node1 -b 500M", "perf -c node1 -b 500M -t 0.2"),
    ("user@node1", "user@node1 -t 0.2"),
    // The web server of the test has no certificate.
    ("https://", "http://"),
    // The digest of what it sends.
    ("HEX", super::web::DIGEST),
];

#[test]
fn commands_for_users_of_rsync_run() {
    follow("rsync", RSYNC);
}

#[test]
fn commands_for_users_of_rclone_run() {
    follow("rclone", RCLONE);
}

#[test]
fn commands_for_users_of_iperf3_run() {
    follow("iperf3", IPERF3);
}

#[test]
fn commands_for_users_of_sshfs_run() {
    follow("sshfs", SSHFS);
}

#[test]
fn commands_for_users_of_aria2_curl_and_wget_run() {
    follow("aria2, curl and wget", WEB);
}

#[test]
fn commands_for_users_of_ssh_run() {
    follow("ssh -D and -L", SSH);
}

#[test]
fn every_table_of_the_page_is_followed() {
    let titles: Vec<_> =
        page().lines().filter_map(|line| line.strip_prefix("## ")).map(str::to_owned).collect();
    let followed = ["rsync", "rclone", "iperf3", "sshfs", "aria2, curl and wget", "ssh -D and -L"];
    // guc/ and servers/ run commands of globus-url-copy with its own server.
    let others: Vec<_> =
        titles.iter().filter(|title| !followed.contains(&title.as_str())).collect();
    assert_eq!(others, ["globus-url-copy"]);
}

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/coming-from.md");
    fs::read_to_string(path).unwrap()
}

/// The commands of the second column of the table of a section.
fn commands(title: &str) -> Vec<String> {
    let page = page();
    let (_, section) = page.split_once(&format!("\n## {title}\n")).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| `") || line.starts_with("| a "));
    let cells = rows.map(|row| row.replace("\\|", "\u{1}"));
    let second = cells.map(|row| row.split('|').nth(2).unwrap().trim().replace('\u{1}', "|"));
    second.map(|cell| cell.trim_matches('`').to_owned()).collect()
}

/// Compares the rows of a section with the list, and runs them.
fn follow(title: &str, section: Section) {
    let listed: Vec<_> = section.iter().map(|(line, _)| (*line).to_owned()).collect();
    assert_eq!(commands(title), listed, "rows of '{title}' in docs/coming-from.md");
    let name = title.split(|c: char| !c.is_alphanumeric()).next().unwrap();
    let Some(mut hosts) = Hosts::start(&format!("coming-from-{name}")) else { return };
    hosts.install();
    let web = super::web::Server::start(&hosts);
    for (line, how) in section {
        if let Elsewhere(reason) = how {
            println!("{line}: not run: {reason}");
            continue;
        }
        if matches!(how, Mounts(_)) && !Path::new("/dev/fuse").exists() {
            skipped(line, "/dev/fuse does not exist");
            continue;
        }
        follow_one(&mut hosts, line, how);
        if line.contains("me:secret") {
            let head = web.last_request().to_ascii_lowercase();
            assert!(
                head.contains("\r\na: b\r\n") && head.contains("\r\nauthorization: basic "),
                "{head}"
            );
        }
    }
}

fn follow_one(hosts: &mut Hosts, line: &str, how: &How) {
    prepare(hosts, line);
    let typed =
        SHORTER.iter().fold(line.to_owned(), |line, (long, short)| line.replace(long, short));
    start_servers(hosts, &typed);
    hosts.print_anew();
    let failed = |hosts: &Hosts, what: &str| panic!("{typed}: {what}\n{}", hosts.printed());
    if let Runs(text) = how {
        if let Err(status) = hosts.serve(Host::Laptop, &typed, text) {
            failed(hosts, &status.to_string());
        }
    } else if let Err(status) = hosts.run(Host::Laptop, &typed) {
        failed(hosts, &status.to_string());
    }
    match how {
        Copies(tree, without) => {
            let mut expected = listing(&hosts.at("laptop").join(tree));
            expected.retain(|(path, _)| path != Path::new(without));
            let copied = hosts.at("node1").join(tree);
            if !copied.is_dir() || listing(&copied) != expected {
                failed(hosts, "the trees differ");
            }
        }
        Leaves(files) => {
            if let Some(file) = files.iter().find(|file| !hosts.at(file).is_file()) {
                failed(hosts, &format!("no file {file}"));
            }
        }
        ListsOnly => {
            let printed = hosts.printed();
            let names = ["f1.dat", "deep/f3.dat"];
            let is_listed =
                names.iter().all(|name| printed.lines().any(|line| line.ends_with(name)));
            if !is_listed || hosts.at("node1/d").exists() || hosts.at("node1/run7").exists() {
                failed(hosts, "not a list alone");
            }
        }
        Mounts(file) => {
            for line in [&format!("test -s {file}"), "hikyaku umount /mnt"] {
                if hosts.run(Host::Laptop, line).is_err() {
                    failed(hosts, line);
                }
            }
        }
        Ends | Runs(_) | Elsewhere(_) => {}
    }
    hosts.stop_servers();
}

/// Files on both hosts as before the first row.
fn prepare(hosts: &Hosts, line: &str) {
    for name in ["laptop/data", "node1/run7", "node1/d", "node1/data"] {
        let _ = fs::remove_dir_all(hosts.at(name));
    }
    for name in ["x.tar", "x", "1", "2"] {
        let _ = fs::remove_file(hosts.at("laptop").join(name));
    }
    for tree in ["run7", "run8", "d"] {
        hosts.files(&format!("laptop/{tree}"));
        fs::write(hosts.at("laptop").join(tree).join("t.tmp"), "unneeded").unwrap();
    }
    let list = match line.contains("-i list") {
        true => "http://a.example.org/1\nhttp://a.example.org/2\n",
        false => "d/f2.dat\n",
    };
    fs::write(hosts.at("laptop/list"), list).unwrap();
    let cookies = hosts.at("laptop/cookies.txt");
    fs::write(&cookies, "a.example.org\tFALSE\t/\tTRUE\t0\tname\tvalue\n").unwrap();
    fs::set_permissions(cookies, fs::Permissions::from_mode(0o600)).unwrap();
    // Directories that the page requires.
    fs::create_dir_all(hosts.at("laptop/data")).unwrap();
    fs::create_dir_all(hosts.at("node1/data")).unwrap();
    if line.contains("hikyaku://node1") {
        hosts.files("node1/d");
    }
}

/// Starts the servers that a command needs on node1.
fn start_servers(hosts: &mut Hosts, line: &str) {
    hosts.print_anew();
    if line.contains("hikyaku://node1") {
        hosts.serve(Host::Node1, "hikyaku serve --root .", "serving ").unwrap();
        hosts.run(Host::Laptop, "hikyaku keys install node1").unwrap();
    }
    if line.contains("perf -c node1") {
        hosts.serve(Host::Node1, "hikyaku perf -s", "listening on ").unwrap();
    }
}
