//! `hikyaku view`: pictures of this machine and of a daemon, counted and on the page.

use crate::common::daemon::{Client, Daemon, said};
use hikyaku_image_source::{Hints, Part, Picture, Pixels};
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
    daemon_with(client, root, &[])
}

fn daemon_with(client: &Client, root: &Path, more: &[&str]) -> Daemon {
    assert!(client.run(&["keys", "new"]).status.success());
    let shown = client.run(&["keys", "show"]);
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    let key = text.split_whitespace().find(|word| word.starts_with("ed25519:")).unwrap().to_owned();
    fs::write(client.at("keys"), key + "\n").unwrap();
    Daemon::start_with(client, root, &client.at("keys"), more)
}

/// The page, until it is dropped.
struct Page {
    child: Child,
    address: String,
}

impl Page {
    fn open(client: &Client, pictures: &str) -> Self {
        Self::open_with(client, pictures, &[])
    }

    fn open_with(client: &Client, pictures: &str, more: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_hikyaku"))
            .env("XDG_STATE_HOME", client.at("state"))
            .args(["view", "--web", "--json", pictures])
            .args(more)
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
        let (status, _, content) = self.ask_all(path);
        (status, content)
    }

    /// The status, the head and the content of an answer.
    fn ask_all(&self, path: &str) -> (String, String, Vec<u8>) {
        let (host, root) = self.address.strip_prefix("http://").unwrap().split_once('/').unwrap();
        let mut stream = TcpStream::connect(host).unwrap();
        let request = format!("GET /{root}{path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut reply = Vec::new();
        stream.read_to_end(&mut reply).unwrap();
        let end = reply.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap();
        let status = String::from_utf8_lossy(&reply[9..12]).into_owned();
        let content = reply.split_off(end + 4);
        (status, String::from_utf8_lossy(&reply).into_owned(), content)
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
    assert_eq!(none.status.code(), Some(6), "{}", said(&none));
    assert!(said(&none).contains("none*.png: no such picture"), "{}", said(&none));
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
    // Before a window a coarse one can be had, of one pixel of 8 x 8 where the window has all of them.
    let (status, pixels) = page.ask("coarse?n=1&x=10&y=20&w=31&h=12&s=1");
    let wanted = [20, 28]
        .into_iter()
        .flat_map(|y| (10..41).step_by(8).flat_map(move |x| shown(pixel(2, x, y))));
    assert_eq!((status.as_str(), pixels), ("200", wanted.collect()));
    assert_eq!(page.ask("coarse?n=3&x=0&y=0&w=9&h=9&s=1").0, "404");
    assert!(page.ask("").1.starts_with(b"<!doctype html>"));
    for (path, wanted) in [("frame?n=3&x=0&y=0&w=1&h=1&s=1", "404"), ("frame?n=0", "404")] {
        assert_eq!(page.ask(path).0, wanted, "{path}");
    }
    fs::write(root.join("run/a.00003.ppm"), "P6 1 1 255\n...").unwrap();
    let (status, text) = page.ask("frame?n=2&x=0&y=0&w=9&h=9&s=1&d=0");
    assert_eq!(status, "500");
    assert!(String::from_utf8_lossy(&text).contains("a.00003.ppm"), "{text:?}");
}

/// The mean difference that a JPEG of quality 90 may make.
const LOSS_MAX: f64 = 8.0;

/// A pixel as it is shown.
fn shown([red, green, blue]: [u8; 3]) -> [u8; 4] {
    [red, green, blue, 255]
}

#[test]
fn a_server_with_images_sends_jpeg_while_it_plays_and_exact_pixels_when_it_stands() {
    let client = Client::new("view-images");
    let root = client.at("root");
    make(&root.join("run"), 3);
    fs::write(root.join("run/b.ppm"), "P6 1 1 255\n...").unwrap();
    let served = daemon_with(&client, &root, &["--images", "2"]);
    let pictures = format!("hikyaku://{}/run/a*.ppm", served.address);
    let wanted: Vec<u8> =
        (20..52).flat_map(|y| (10..106).flat_map(move |x| shown(pixel(2, x, y)))).collect();
    let decoded = |bytes: Vec<u8>| {
        let (picture, mut pixels) =
            (Picture::open(&bytes, Hints::default()).unwrap(), Pixels::default());
        picture.window(&bytes, Part::exact(picture.size().all()), &mut pixels).unwrap();
        pixels.rgba
    };
    let page = Page::open(&client, &pictures);
    let exact = Page::open_with(&client, &pictures, &["--exact"]);
    for (page, stride, kind) in [(&page, 1, "jpeg"), (&page, 0, "png"), (&exact, 1, "png")] {
        let path = format!("frame?n=1&x=10&y=20&w=96&h=32&s=1&d={stride}&f=1000");
        let (status, head, bytes) = page.ask_all(&path);
        assert_eq!(status, "200");
        assert!(head.contains(&format!("Content-Type: image/{kind}")), "{head}");
        let got = decoded(bytes);
        assert_eq!(got.len(), wanted.len());
        let differences = got.iter().zip(&wanted).map(|(got, wanted)| got.abs_diff(*wanted));
        let mean = differences.map(f64::from).sum::<f64>() / wanted.len() as f64;
        assert!(if kind == "jpeg" { mean > 0.0 && mean < LOSS_MAX } else { mean == 0.0 }, "{mean}");
    }
    let (status, head, bytes) = page.ask_all("coarse?n=1&x=10&y=20&w=96&h=32&s=1");
    assert!(status == "200" && head.contains("Content-Type: image/jpeg"), "{head}");
    assert_eq!(decoded(bytes).len(), 4 * 12 * 4);
    // Smaller windows are averages.
    let (_, _, bytes) = page.ask_all("frame?n=1&x=10&y=20&w=2&h=2&s=2&d=0");
    let squares = [(10, 20), (11, 20), (10, 21), (11, 21)].map(|(x, y)| pixel(2, x, y));
    let average = [0, 1, 2].map(|at| {
        let sum: u32 = squares.iter().map(|pixel| u32::from(pixel[at])).sum();
        ((sum + 2) / 4) as u8
    });
    assert_eq!(decoded(bytes), shown(average));
    let figures = bench(&client, 6, &pictures);
    assert_eq!(
        (&figures["quality"], &figures["window"]),
        (&90.into(), &serde_json::json!([200, 100]))
    );
    assert!(figures["bytes"].as_u64().unwrap() < 6 * 200 * 100 * 3 / 2, "{figures}");
}
