//! `hikyaku view`: pictures of this machine and of a daemon, counted and on the page.
#![allow(clippy::unwrap_used, reason = "a test that cannot begin has failed")]

mod common;

use common::daemon::{Client, Daemon, said};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

const WIDTH: usize = 700;
const HEIGHT: usize = 500;

/// The bytes of a pixel of a frame.
fn pixel(frame: usize, x: usize, y: usize) -> [u8; 3] {
    [frame as u8, (x * 7 + y) as u8, (y * 3 + x / 5) as u8]
}

/// Pictures `a.00001.ppm` and so on.
fn make(dir: &Path, frames: usize) {
    fs::create_dir_all(dir).unwrap();
    for frame in 1..=frames {
        let mut file = format!("P6\n{WIDTH} {HEIGHT}\n255\n").into_bytes();
        let all = (0..HEIGHT).flat_map(|y| (0..WIDTH).flat_map(move |x| pixel(frame, x, y)));
        file.extend(all);
        fs::write(dir.join(format!("a.{frame:05}.ppm")), file).unwrap();
    }
}

/// Reads frames without showing them, and returns the figures.
fn bench(client: &Client, frames: u32, pictures: &str) -> Value {
    let count = frames.to_string();
    let window = "100,50,200x100";
    let arguments = ["view", "--json", "--bench", &count, "--window", window, pictures];
    let output = client.run(&arguments);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A daemon that serves `root` to this client.
fn daemon(client: &Client, root: &Path) -> Daemon {
    assert!(client.run(&["keys", "new"]).status.success());
    let shown = client.run(&["keys", "show"]);
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    let key = text.split_whitespace().find(|word| word.starts_with("ed25519:")).unwrap().to_owned();
    fs::write(client.at("keys"), key + "\n").unwrap();
    Daemon::start(client, root, &client.at("keys"))
}

/// The page, until it is dropped.
struct Page {
    child: Child,
    address: String,
}

impl Page {
    fn open(client: &Client, pictures: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_hikyaku"))
            .env("XDG_STATE_HOME", client.at("state"))
            .args(["view", "--web", "--json", pictures])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let told: Value = serde_json::from_str(&line).unwrap();
        Self { child, address: told["page"].as_str().unwrap().to_owned() }
    }

    /// The status and the content of an answer.
    fn ask(&self, path: &str) -> (String, Vec<u8>) {
        let (host, root) = self.address.strip_prefix("http://").unwrap().split_once('/').unwrap();
        let mut stream = TcpStream::connect(host).unwrap();
        let request = format!("GET /{root}{path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut reply = Vec::new();
        stream.read_to_end(&mut reply).unwrap();
        let end = reply.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap();
        let status = String::from_utf8_lossy(&reply[9..12]).into_owned();
        (status, reply.split_off(end + 4))
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn only_the_bytes_of_a_window_come_from_a_daemon() {
    let client = Client::new("view-bench");
    let root = client.at("root");
    make(&root.join("run"), 5);
    let served = daemon(&client, &root);
    let local = format!("{}/run/a.%05d.ppm", root.display());
    let far = format!("hikyaku://{}/run/*.ppm", served.address);
    for pictures in [local, far] {
        let figures = bench(&client, 12, &pictures);
        assert_eq!(figures["frames"], 12, "{figures}");
        assert_eq!(figures["window"], serde_json::json!([200, 100]), "{figures}");
        // The head of each file is read once.
        assert_eq!(figures["bytes"], 12 * 200 * 100 * 3 + 4 * 4096, "{figures}");
    }
    let none = client.run(&["view", "--bench", "1", &format!("{}/none*.png", root.display())]);
    assert_eq!(none.status.code(), Some(2), "{}", said(&none));
    assert!(said(&none).contains("no picture has such a name"), "{}", said(&none));
}

#[test]
fn the_page_gets_the_pixels_of_a_daemons_pictures() {
    let client = Client::new("view-page");
    let root = client.at("root");
    make(&root.join("run"), 3);
    let served = daemon(&client, &root);
    let page = Page::open(&client, &format!("hikyaku://{}/run", served.address));
    let (status, info) = page.ask("info");
    let info: Value = serde_json::from_slice(&info).unwrap();
    assert_eq!(
        (status.as_str(), &info["frames"], &info["width"]),
        ("200", &3.into(), &WIDTH.into())
    );
    let (status, pixels) = page.ask("frame?n=1&x=10&y=20&w=31&h=12&s=2&d=1");
    assert_eq!(status, "200");
    let mut wanted = Vec::new();
    for y in (20..32).step_by(2) {
        for x in (10..41).step_by(2) {
            wanted.extend(pixel(2, x, y));
            wanted.push(255);
        }
    }
    assert!(pixels == wanted, "{} bytes", pixels.len());
    assert!(page.ask("").1.starts_with(b"<!doctype html>"));
    for (path, wanted) in [("frame?n=3&x=0&y=0&w=1&h=1&s=1", "404"), ("frame?n=0", "404")] {
        assert_eq!(page.ask(path).0, wanted, "{path}");
    }
    fs::write(root.join("run/a.00003.ppm"), "P6 1 1 255\n...").unwrap();
    let (status, text) = page.ask("frame?n=2&x=0&y=0&w=9&h=9&s=1&d=0");
    assert_eq!(status, "500");
    assert!(String::from_utf8_lossy(&text).contains("a.00003.ppm"), "{text:?}");
}
