//! Limits of the rate: each place that takes one, on each way and in both directions.
//!
//! A limit that is not kept sends the bytes of a test in a fraction of the time that they may take, on loopback. How exactly a
//! limit is kept is measured by an ignored test.

use crate::common::Sshd;
use crate::common::daemon::{Client, Daemon, said};
use crate::common::proxy::{Proxy, read_all, server, to};
use std::fs;
use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The limit of every place: 16 Mbit/s.
const LIMIT: &str = "16m";
const LIMIT_BYTES: f64 = 2e6;

/// Which way payload goes, as the user sees it.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Way {
    Down,
    Up,
}

const WAYS: [Way; 2] = [Way::Down, Way::Up];

/// One place and one way: what moves the bytes.
struct Cell<'a> {
    name: String,
    work: Box<dyn Fn() + Send + 'a>,
}

/// Runs all cells at once. Returns how long each took.
fn run(cells: Vec<Cell<'_>>) -> Vec<(String, Duration)> {
    thread::scope(|scope| {
        let started = cells.into_iter().map(|Cell { name, work }| {
            scope.spawn(move || {
                let begin = Instant::now();
                work();
                (name, begin.elapsed())
            })
        });
        let started: Vec<_> = started.collect();
        started.into_iter().map(|cell| cell.join().unwrap()).collect()
    })
}

/// Each of the cells moved so many bytes, and no faster than the limit allows.
fn assert_kept(cells: Vec<Cell<'_>>, bytes: usize) {
    assert!(!cells.is_empty());
    let least = Duration::from_secs_f64(0.9 * bytes as f64 / LIMIT_BYTES);
    let mut wrong = Vec::new();
    for (name, took) in run(cells) {
        println!("{name}: {took:.1?}");
        if took < least {
            wrong.push(format!("{name}: {took:.1?}"));
        }
    }
    assert!(wrong.is_empty(), "faster than {LIMIT}, which takes {least:.1?}: {wrong:#?}");
}

fn is_done(output: &Output) {
    assert!(output.status.success(), "{}", said(output));
}

/// `hikyaku cp` with a daemon, from or to it. Each cell has files of its own.
fn copy<'a>(
    client: &'a Client,
    daemon: &'a Daemon,
    (name, way, bytes): (&str, Way, usize),
    options: &[&str],
) -> Cell<'a> {
    let word: String = name.chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect();
    let (here, there) = (client.at(&format!("{word}-{way:?}")), format!("{word}-{way:?}"));
    let far = format!("hikyaku://{}/{there}", daemon.address);
    let from = if way == Way::Down { client.at("root").join(&there) } else { here.clone() };
    fs::write(from, vec![7; bytes]).unwrap();
    let here = here.to_str().unwrap().to_owned();
    let [from, to] = if way == Way::Down { [far, here] } else { [here, far] };
    let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
    let work = move || {
        let mut command = client.command(&["cp", "-q"]);
        is_done(&command.args(&options).args([&from, &to]).output().unwrap());
    };
    Cell { name: format!("{name}, {way:?}"), work: Box::new(work) }
}

/// A client and its root directory.
fn client(name: &str) -> Client {
    let client = Client::new(name);
    fs::create_dir(client.at("root")).unwrap();
    client
}

/// Each cell has a daemon of its own, because the sessions of a key share its rate.
fn of_daemons(client: &Client, bytes: usize, check: impl Fn(Vec<Cell<'_>>, usize)) {
    let root = client.at("root");
    let free = client.authorized("free", "");
    let capped = client.authorized("capped", &format!("max-rate={LIMIT}"));
    let by: [(&str, &[&str]); 3] = [
        ("udp", &["--via", "udp"]),
        ("tcp", &["--via", "tcp"]),
        ("tcp, four pipes", &["--via", "tcp", "--pipes", "4"]),
    ];
    let places: [(&str, &Path, &[&str], &[&str]); 4] = [
        ("serve --rate", &free, &["--rate", LIMIT], &[]),
        ("max-rate=", &capped, &[], &[]),
        ("cp -l", &free, &[], &["-l", LIMIT]),
        ("cp --server-rate", &free, &[], &["--server-rate", LIMIT]),
    ];
    let mut wanted = Vec::new();
    for (place, keys, of_serve, of_cp) in places {
        for (carrier, via) in by {
            // `--server-rate` is what a server sends.
            for way in WAYS
                .into_iter()
                .filter(|way| !(of_cp.contains(&"--server-rate") && *way == Way::Up))
            {
                let options = [&["--writable"], of_serve].concat();
                let daemon = Daemon::start_with(client, &root, keys, &options);
                wanted.push((daemon, format!("{place}, {carrier}"), way, [via, of_cp].concat()));
            }
        }
    }
    let cells = wanted
        .iter()
        .map(|(daemon, name, way, options)| copy(client, daemon, (name, *way, bytes), options));
    check(cells.collect(), bytes);
}

#[test]
fn daemons_and_their_clients_keep_every_limit_on_every_way() {
    of_daemons(&client("rates-daemons"), 3_000_000, assert_kept);
}

#[test]
fn the_sessions_of_a_key_keep_its_limit_together() {
    let client = client("rates-together");
    let keys = client.authorized("keys", &format!("max-rate={LIMIT}"));
    let daemon = Daemon::start_with(&client, &client.at("root"), &keys, &["--writable"]);
    for way in WAYS {
        // Four copies of which each would take a quarter of the time alone.
        let cells = ["udp", "tcp", "udp again", "tcp again"].map(|name| {
            let via = name.split(' ').next().unwrap();
            copy(&client, &daemon, (name, way, 1_000_000), &["--via", via])
        });
        let last = run(cells.into()).into_iter().map(|(_, took)| took).max().unwrap();
        assert!(last > Duration::from_secs_f64(0.9 * 4e6 / LIMIT_BYTES), "{way:?}: {last:?}");
    }
}

/// A server that sends so many bytes, and one that takes what comes and then says so.
fn servers(bytes: usize) -> [u16; 2] {
    let sends = server(move |mut socket: TcpStream| {
        let _ = socket.write_all(&vec![7; bytes]);
        let _ = socket.shutdown(Shutdown::Write);
        read_all(&mut socket);
    });
    let takes = server(|mut socket: TcpStream| {
        let got = read_all(&mut socket).0.len();
        let _ = write!(socket, "{got}");
        let _ = socket.shutdown(Shutdown::Write);
    });
    [sends, takes]
}

/// Moves the bytes through the listeners of a gateway: the first leads to the server that sends.
fn carried(proxy: &Proxy, (name, way, bytes): (&str, Way, usize)) -> Cell<'static> {
    let port = proxy.ports[usize::from(way == Way::Up)];
    let work = move || {
        let mut socket = TcpStream::connect(port).unwrap();
        if way == Way::Up {
            socket.write_all(&vec![7; bytes]).unwrap();
        }
        socket.shutdown(Shutdown::Write).unwrap();
        let (got, error) = read_all(&mut socket);
        let wanted = if way == Way::Up { bytes.to_string().into_bytes() } else { vec![7; bytes] };
        assert!(error.is_none() && got == wanted, "{} bytes, {error:?}", got.len());
    };
    Cell { name: format!("{name}, {way:?}"), work: Box::new(work) }
}

#[test]
fn gateways_keep_every_limit_on_every_way() {
    let bytes = 3_000_000;
    let client = client("rates-gateways");
    let keys = client.authorized("keys", "");
    let capped = client.authorized("capped", &format!("max-rate={LIMIT}"));
    let [sends, takes] = servers(bytes);
    let (sends_at, takes_at) = (to(sends), to(takes));
    let listeners = ["-L", &sends_at, "-L", &takes_at];
    let sshd = Sshd::with_lines("rates-gateways", LINES);
    let mut gateways = Vec::new();
    for (carrier, by) in [("udp", None), ("no udp", Some("--no-udp"))] {
        let places: [(&str, &Path, &[&str], &[&str]); 3] = [
            ("serve --allow --rate", &keys, &["--rate", LIMIT], &[]),
            ("max-rate= of flows", &capped, &[], &[]),
            ("proxy --rate to a daemon", &keys, &[], &["--rate", LIMIT]),
        ];
        for (place, keys, of_serve, of_proxy) in places {
            for way in WAYS {
                let options = [&["--allow", "127.0.0.1:*"], of_serve].concat();
                let daemon = Daemon::with(&client, &options, keys);
                let mut command = client.command(&["proxy"]);
                command.env("XDG_CACHE_HOME", client.at("cache"));
                command.arg(format!("hikyaku://{}", daemon.address)).args(listeners);
                let proxy = Proxy::of(command.args(by).args(of_proxy).stderr(Stdio::null()));
                gateways.push((Some(daemon), proxy, format!("{place}, {carrier}"), way));
            }
        }
        for way in WAYS {
            let options: Vec<&str> =
                listeners.into_iter().chain(["--rate", LIMIT]).chain(by).collect();
            let proxy = Proxy::of(sshd.proxy(&options).stderr(Stdio::null()));
            gateways.push((None, proxy, format!("proxy --rate through ssh, {carrier}"), way));
        }
    }
    let cells = gateways.iter().map(|(_, proxy, name, way)| carried(proxy, (name, *way, bytes)));
    assert_kept(cells.collect(), bytes);
}

/// `hikyaku cp` with the host `far`.
fn through_ssh<'a>(
    sshd: &'a Sshd,
    (name, way, bytes): (&str, Way, usize),
    options: &[&str],
) -> Cell<'a> {
    let word: String = name.chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect();
    let [from, target] = ["from", "to"].map(|end| format!("{word}-{way:?}-{end}"));
    fs::write(sshd.at(&from), vec![7; bytes]).unwrap();
    let here = |name: &str| sshd.at(name).display().to_string();
    let [from, target] = match way {
        Way::Down => [sshd.far(&from), here(&target)],
        Way::Up => [here(&from), sshd.far(&target)],
    };
    let mut command: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
    command.extend(["-q".to_owned(), from, target]);
    let work = move || {
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        let mut copy: Command = sshd.cp(&words);
        is_done(&copy.env("XDG_CONFIG_HOME", sshd.at("config")).output().unwrap());
    };
    Cell { name: format!("{name}, {way:?}"), work: Box::new(work) }
}

/// The server admits as many logins at once as the test needs.
const LINES: &str = "Subsystem sftp internal-sftp\nMaxStartups 100\n";

#[test]
fn copies_through_ssh_keep_every_limit_on_every_way() {
    let (sshd, bytes) = (Sshd::with_lines("rates-ssh", LINES), 3_000_000);
    fs::create_dir_all(sshd.at("config/hikyaku")).unwrap();
    let settings = format!("[host.far]\nrate = \"{LIMIT}\"\n");
    let settings_at = sshd.at("config/hikyaku/config.toml");
    for (place, has_settings) in [("cp -l", false), ("the settings", true)] {
        fs::write(&settings_at, if has_settings { &*settings } else { "" }).unwrap();
        let limit: &[&str] = if has_settings { &[] } else { &["-l", LIMIT] };
        let mut cells = Vec::new();
        for via in ["udp", "tcp", "ssh", "sftp"] {
            for way in WAYS {
                let options = [&["--via", via], limit].concat();
                cells.push(through_ssh(&sshd, (&format!("{place} {via}"), way, bytes), &options));
            }
        }
        assert_kept(cells, bytes);
    }
}

/// What is sent in 10 s differs from the limit by at most a twentieth. One cell after the other, on a quiet machine.
#[test]
#[ignore = "measures: needs a quiet machine, and takes five minutes"]
fn limits_are_kept_to_a_twentieth() {
    let check = |cells: Vec<Cell<'_>>, bytes: usize| {
        let due = bytes as f64 / LIMIT_BYTES;
        for cell in cells {
            for (name, took) in run(vec![cell]) {
                let ratio = due / took.as_secs_f64();
                println!("{name}: {ratio:.3} of the limit");
                assert!((0.95..=1.05).contains(&ratio), "{name}: {took:?} for {due} s");
            }
        }
    };
    of_daemons(&client("rates-exact"), 20_000_000, check);
}
