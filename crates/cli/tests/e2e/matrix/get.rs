//! `hikyaku get` to files and to an output, with servers that tell what they were asked.

use super::{Ends, noted, refused, words};
use crate::common::daemon::{Client, Daemon};
use crate::common::scratch;
use hikyaku_console::{Row, Table, Way};
use hikyaku_web_get::TABLE;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Output;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use xtask::servers::ftp::{PlainFtp, Style};

const CONTENT: &str = "what is fetched";
/// SHA-256 of `CONTENT`, as sha256sum(1) tells it.
const SUM: &str = "d7be2c691c6ea35141620f18ec9693e29c75923f52f969b34a90d64eef2c4145";

/// A server of one file. It answers as long as the test runs, a proxy's requests as well.
struct Server {
    port: u16,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn start(content: Vec<u8>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (port, heads) =
            (listener.local_addr().unwrap().port(), Arc::<Mutex<Vec<_>>>::default());
        let (seen, content) = (Arc::clone(&heads), Arc::new(content));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (seen, content) = (Arc::clone(&seen), Arc::clone(&content));
                thread::spawn(move || answer(&stream, &seen, &content));
            }
        });
        Self { port, heads }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/name", self.port)
    }

    /// What it was asked since the last call.
    fn heads(&self) -> String {
        self.heads.lock().unwrap().drain(..).collect()
    }
}

/// Answers one request with the whole file.
fn answer(stream: &TcpStream, seen: &Mutex<Vec<String>>, content: &[u8]) {
    let mut lines = BufReader::new(stream.try_clone().unwrap());
    let mut head = String::new();
    while lines.read_line(&mut head).is_ok_and(|bytes| bytes > 2) {}
    seen.lock().unwrap().push(head);
    let length = content.len();
    let answer =
        format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    // A client that has gone needs nothing.
    let _ = (&*stream).write_all(answer.as_bytes()).and_then(|()| (&*stream).write_all(content));
}

struct Rig {
    folder: PathBuf,
    server: Server,
    client: Client,
    daemon: Daemon,
    ftp: PlainFtp,
}

impl Rig {
    fn new(name: &str) -> Self {
        let folder = scratch(name);
        fs::create_dir_all(folder.join("dir")).unwrap();
        let netrc = "machine 127.0.0.1 login of password netrc\n";
        fs::write(folder.join(".netrc"), netrc).unwrap();
        fs::write(folder.join("jar"), "127.0.0.1\tFALSE\t/\tFALSE\t0\ta\tb\n").unwrap();
        for name in [".netrc", "jar"] {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
            fs::set_permissions(folder.join(name), mode).unwrap();
        }
        fs::copy(folder.join(".netrc"), folder.join("logins")).unwrap();
        let client = Client::new(&format!("{name}-client"));
        let (keys, root) = (client.authorized("keys", ""), client.at("root"));
        fs::create_dir(&root).unwrap();
        fs::write(root.join("name"), CONTENT).unwrap();
        let daemon = Daemon::start(&client, &root, &keys);
        let ftp = PlainFtp::start(&root, Style::Facts).unwrap();
        Self { folder, server: Server::start(CONTENT.into()), client, daemon, ftp }
    }

    /// The file on a way.
    fn address(&self, way: Way) -> String {
        match way {
            Way::FromDaemons => format!("hikyaku://{}/name", self.daemon.address),
            Way::FromFtp => format!("{}/name", self.ftp.url()),
            Way::FromGfarm => "gfarm:///name".to_owned(),
            Way::FromBucket => "s3://bucket/name".to_owned(),
            Way::FromGridFtp => "gsiftp://127.0.0.1:1/name".to_owned(),
            Way::FromHost => "no-such-host.invalid:name".to_owned(),
            _ => self.server.url(),
        }
    }

    fn fetch(&self, way: Way, options: &[String], url: &str) -> (Output, String) {
        let mut command = self.client.command(&["get"]);
        command.args(options);
        if way == Way::WebToOutput {
            command.args(["-o", "-"]);
        }
        command.arg(url).current_dir(&self.folder).env("HOME", &self.folder);
        command.env_remove("http_proxy").env_remove("all_proxy");
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output, said)
    }

    /// Fetches the file, expects this exit code, and returns what has come of it.
    fn ends_with(&self, code: i32, way: Way, options: &[&str], url: &str) -> String {
        let (output, said) = self.fetch(way, &words(options), url);
        assert_eq!(output.status.code(), Some(code), "{way:?} {options:?}: {said}");
        match way {
            Way::WebToOutput => String::from_utf8(output.stdout).unwrap(),
            _ => fs::read_to_string(self.folder.join("name")).unwrap_or_default(),
        }
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Ends for Rig {
    fn table(&self) -> &Table {
        &TABLE
    }

    fn fill(&self) {
        self.made().iter().for_each(|path| fs::remove_file(path).unwrap());
    }

    fn made(&self) -> Vec<PathBuf> {
        let paths = ["name", "dir/name", "other"].map(|name| self.folder.join(name));
        paths.into_iter().filter(|path| path.exists()).collect()
    }

    fn value(&self, row: &Row) -> &'static str {
        match row.id {
            "jobs" => "2",
            "tuner" => "paper",
            "dir" => "dir",
            "connections" | "max_connections" | "retries" | "retry_wait" => "2",
            "header" => "X-One: two",
            "user" => "a:b",
            "user_agent" => "another",
            "netrc_file" | "ca" => "logins",
            "cookies" => "jar",
            "proxy" => "http://127.0.0.1:1",
            "timeout" => "5",
            "congestion" => "reno",
            _ => "",
        }
    }

    fn is_run(&self, row: &Row, _: Way) -> bool {
        // The command line itself does not take -d or -i beside -o, or -n beside --tuner. A mirror and a list are addresses.
        !["dir", "mirror", "connections", "input_file"].contains(&row.id)
    }

    fn has_end(&self, way: Way) -> bool {
        matches!(way, Way::FromWeb | Way::WebToOutput | Way::FromDaemons | Way::FromFtp)
    }

    fn run(&self, way: Way, options: &[String]) -> (Output, String) {
        self.fetch(way, options, &self.address(way))
    }
}

/// From web servers.
const WEB: [Way; 2] = [Way::FromWeb, Way::WebToOutput];

#[test]
fn an_option_that_protects_something_is_refused_by_name_where_it_cannot_be_had() {
    refused(&Rig::new("matrix-get-refused"));
}

#[test]
fn any_other_option_without_effect_is_noted_in_one_line() {
    noted(&Rig::new("matrix-get-noted"));
}

/// Options, and the words that the server gets with them and not without them.
const TOLD: [(&[&str], &str); 6] = [
    (&["-H", "X-One: two"], "X-One: two\r\n"),
    (&["-A", "another"], "User-Agent: another\r\n"),
    (&["-u", "a:b"], "Authorization: Basic YTpi\r\n"),
    (&["--netrc"], "Authorization: Basic b2Y6bmV0cmM=\r\n"),
    (&["--netrc-file", "logins"], "Authorization: Basic b2Y6bmV0cmM=\r\n"),
    (&["--cookies", "jar"], "Cookie: a=b\r\n"),
];

#[test]
fn what_a_server_is_told_is_what_the_options_say() {
    let rig = Rig::new("matrix-get-told");
    for way in WEB {
        rig.fill();
        assert_eq!(rig.ends_with(0, way, &[], &rig.server.url()), CONTENT, "{way:?}");
        let plain = rig.server.heads().to_lowercase();
        for (options, told) in TOLD {
            rig.fill();
            assert_eq!(rig.ends_with(0, way, options, &rig.server.url()), CONTENT, "{way:?}");
            let (heads, told) = (rig.server.heads().to_lowercase(), told.to_lowercase());
            assert!(heads.contains(&told), "{way:?} {options:?}: {heads}");
            assert!(!plain.contains(&told), "{way:?} {options:?}: {plain}");
        }
        rig.fill();
        let proxy = rig.server.url().strip_suffix("/name").unwrap().to_owned();
        let url = "http://no-such-host.invalid/name";
        assert_eq!(rig.ends_with(0, way, &["--proxy", &proxy], url), CONTENT, "{way:?}");
        assert!(rig.server.heads().contains(url), "{way:?}");
    }
}

#[test]
fn what_is_written_is_what_the_options_say() {
    let rig = Rig::new("matrix-get-written");
    let url = rig.server.url();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    for way in WEB {
        rig.fill();
        assert_eq!(rig.ends_with(0, way, &["--sha256", SUM], &url), CONTENT, "{way:?}");
        rig.fill();
        let wrong = "0".repeat(64);
        let got = rig.ends_with(2, way, &["--sha256", &wrong], &url);
        // What an output has taken cannot be taken back.
        assert!(got.is_empty() || way == Way::WebToOutput, "{way:?}");
        rig.fill();
        let gone = format!("http://127.0.0.1:{closed}/name");
        assert_eq!(rig.ends_with(0, way, &["--mirror", &url], &gone), CONTENT, "{way:?}");
    }
    fs::write(rig.folder.join("name"), "own").unwrap();
    assert_eq!(rig.ends_with(6, Way::FromWeb, &[], &url), "own");
    assert_eq!(rig.ends_with(0, Way::FromWeb, &["--force"], &url), CONTENT);
    for (options, name) in [(&["-d", "dir"][..], "dir/name"), (&["-o", "other"], "other")] {
        rig.fill();
        rig.ends_with(0, Way::FromWeb, options, &url);
        assert_eq!(rig.made(), [rig.folder.join(name)], "{options:?}");
    }
    // A kernel that has no such congestion control is not asked again.
    for way in WEB {
        rig.fill();
        rig.ends_with(6, way, &["--congestion", "nosuch"], &url);
        rig.ends_with(0, way, &["--congestion", "reno"], &url);
    }
    // What cannot be had for an output is refused.
    for options in [&["-n", "2"][..], &["--json"], &["--json-lines"]] {
        rig.fill();
        assert_eq!(rig.ends_with(1, Way::WebToOutput, options, &url), "", "{options:?}");
    }
    // What is about one file is refused for several, before anything is fetched.
    for options in [&["-o", "other", "x.meta4"][..], &["--sha256", SUM, &url]] {
        let (output, said) = rig.fetch(Way::FromWeb, &words(options), &url);
        assert_ne!(output.status.code(), Some(0), "{options:?}: {said}");
        assert_eq!(rig.made(), Vec::<PathBuf>::new(), "{options:?}: {said}");
    }
}

#[test]
fn a_limit_holds_for_a_file_and_for_an_output() {
    let rig = Rig::new("matrix-get-limited");
    let large = Server::start(vec![b'7'; 3_000_000]);
    for way in WEB {
        rig.fill();
        let begin = Instant::now();
        let got = rig.ends_with(0, way, &["--limit-rate", "1m"], &large.url());
        // Three seconds, less what may go at once.
        assert!(begin.elapsed() > Duration::from_secs(1), "{way:?}: {:?}", begin.elapsed());
        assert_eq!(got.len(), 3_000_000, "{way:?}");
    }
}

#[test]
fn places_that_no_download_has_are_refused_by_name() {
    let rig = Rig::new("matrix-get-places");
    for place in [
        "-",
        "name",
        "foo://u:secret@far/x",
        "file:///etc/hostname",
        "hikyaku://",
        "s3://",
        "ftp://",
    ] {
        for way in WEB {
            let (output, said) = rig.fetch(way, &[], place);
            assert_eq!(output.status.code(), Some(1), "{way:?} {place}: {said}");
            assert!(
                said.contains("\ntry: ") && !said.contains("secret"),
                "{way:?} {place}: {said}"
            );
            assert_eq!(rig.made(), Vec::<PathBuf>::new(), "{way:?} {place}");
        }
    }
}
