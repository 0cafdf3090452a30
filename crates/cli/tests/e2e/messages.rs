//! The messages of commands that fail: every verb with no such host, a refused port, no such file, no permission and a
//! mistake of the command line. The list of verbs is the program's own, so that a new verb needs rows here.

mod rows;

use crate::common::Sshd;
use crate::common::daemon::{Client, Daemon};
use rows::{Case, EXEMPT, ROWS, Row, Shape};
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::thread;

/// Texts of Rust and of the C library that users cannot understand, and words for places that depend on the reader.
const BANNED: [&str; 12] = [
    "os error",
    "entity not found",
    "failed to lookup address information",
    "failed to fill whole buffer",
    "unexpected end of file",
    "ENOENT",
    "EACCES",
    "ECONNREFUSED",
    "\\r\\n",
    "required arguments were not provided: --stdio",
    " there",
    " here",
];

/// Hosts, daemons, servers and files that the rows name.
struct Places {
    ssh: Sshd,
    client: Client,
    served: Daemon,
    closed: Daemon,
    http: u16,
    ftp: u16,
}

impl Places {
    fn new() -> Self {
        let (ssh, client) = (Sshd::with_home("messages"), Client::new("messages-client"));
        fs::create_dir_all(client.at("root/dir")).unwrap();
        fs::create_dir_all(client.at("work/dir")).unwrap();
        fs::create_dir_all(client.at("bin")).unwrap();
        fs::create_dir_all(client.at("config/hikyaku")).unwrap();
        fs::write(client.at("root/f"), "text").unwrap();
        fs::write(client.at("work/f"), "text").unwrap();
        for name in ["work/locked", "root/locked"] {
            fs::write(client.at(name), "text").unwrap();
            fs::set_permissions(client.at(name), fs::Permissions::from_mode(0o0)).unwrap();
        }
        fs::create_dir(client.at("work/shut")).unwrap();
        fs::set_permissions(client.at("work/shut"), fs::Permissions::from_mode(0o555)).unwrap();
        let keys = client.authorized("keys", "");
        fs::write(client.at("no-keys"), "").unwrap();
        let served = Daemon::start(&client, &client.at("root"), &keys);
        let closed = Daemon::start(&client, &client.at("root"), &client.at("no-keys"));
        let (http, ftp) = (server(http), server(ftp));
        let places = Self { ssh, client, served, closed, http, ftp };
        places.make_ssh();
        places
    }

    /// An `ssh` that knows the hosts `far`, `stranger` (which does not know the user's key), `nowhere` and `closed`.
    fn make_ssh(&self) {
        let config = self.ssh.at("ssh_config");
        let of_far = fs::read_to_string(&config).unwrap();
        let start = of_far.find("Host broken").unwrap();
        let of_far = of_far[..start].replace("IdentityFile", "IdentityAgent none\n IdentityFile");
        let stranger = of_far.replace("Host far other", "Host stranger");
        let user = self.ssh.at("user").display().to_string();
        let other = self.client.at("other-key").display().to_string();
        let made = Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-f", &other])
            .status();
        assert!(made.unwrap().success());
        let text = format!(
            "{of_far}{}\
             Host nowhere\n HostName nosuch.invalid\n LogLevel ERROR\n\
             Host refusing\n HostName 127.0.0.1\n Port 1\n LogLevel ERROR\n",
            stranger.replace(&format!("{user}\n"), &format!("{other}\n")),
        );
        fs::write(self.client.at("ssh_config"), text).unwrap();
        let ssh = self.client.at("bin/ssh");
        let config = self.client.at("ssh_config");
        fs::write(&ssh, format!("#!/bin/sh\nexec /usr/bin/ssh -F {} \"$@\"\n", config.display()))
            .unwrap();
        fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// A command line with the places in it.
    fn words(&self, line: &str) -> Vec<String> {
        let [far, work] = ["root", "work"].map(|name| self.client.at(name).display().to_string());
        line.split_whitespace()
            .map(|word| {
                word.replace("$ROOT", &far)
                    .replace("$WORK", &work)
                    .replace("$SERVED", &self.served.address)
                    .replace("$CLOSED", &self.closed.address)
                    .replace("$HTTP", &format!("127.0.0.1:{}", self.http))
                    .replace("$FTP", &format!("127.0.0.1:{}", self.ftp))
                    .replace("$PROGRAM", env!("CARGO_BIN_EXE_hikyaku"))
            })
            .collect()
    }

    /// Runs the program as a user who may not read what the mode of a file forbids.
    fn run(&self, line: &str) -> Output {
        let program = env!("CARGO_BIN_EXE_hikyaku");
        let mut command = match rustix::process::geteuid().is_root() {
            true => {
                let mut command = Command::new("setpriv");
                command.args(["--bounding-set=-all", "--inh-caps=-all", program]);
                command
            }
            false => Command::new(program),
        };
        let path = std::env::var("PATH").unwrap_or_default();
        command
            .args(self.words(line))
            .current_dir(self.client.at("work"))
            .env("PATH", format!("{}:{path}", self.client.at("bin").display()))
            .env("XDG_STATE_HOME", self.client.at("state"))
            .env("XDG_CONFIG_HOME", self.client.at("config"))
            .env("XDG_CACHE_HOME", self.client.at("cache"))
            .stdin(Stdio::null());
        command.output().unwrap()
    }

    /// The mistakes in the output of a row.
    fn faults(&self, row: &Row) -> Vec<String> {
        let output = self.run(row.line);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut faults = Vec::new();
        if output.status.code() != Some(row.code()) {
            faults.push(format!("code {:?}, expected {}", output.status.code(), row.code()));
        }
        let is_parsers = row.shape == Shape::Usage && !said.starts_with("hikyaku");
        for banned in BANNED.iter().filter(|banned| !is_parsers || !banned.starts_with(' ')) {
            let has = |text: &str| is_word(text, banned);
            if has(&own(&said)) || has(&printed) {
                faults.push(format!("has '{banned}'"));
            }
        }
        if said.contains('\u{1b}') || printed.contains('\u{1b}') {
            faults.push("has an escape byte on a pipe".to_owned());
        }
        let wanted = self.words(row.place).join(" ");
        faults.extend(match row.shape {
            Shape::Line => shape(&own(&said), &wanted),
            Shape::Usage => usage(&own(&said)),
            Shape::Report => None,
        });
        if !faults.is_empty() {
            faults.push(format!("{}{}", said, printed));
        }
        faults
    }
}

impl Row {
    /// The exit code. Whether the name of no host is not known, or no name server answers, depends on the machine.
    fn code(&self) -> i32 {
        let is_unanswered = || {
            let found = "nosuch.invalid:1".to_socket_addrs();
            found.is_err_and(|error| error.to_string().contains("emporary"))
        };
        match self.code {
            6 if self.line.contains("nosuch.invalid") && is_unanswered() => 5,
            code => code,
        }
    }
}

/// Whether `text` has these words, and no longer word that begins with them.
fn is_word(text: &str, words: &str) -> bool {
    let mut rest = text;
    while let Some(at) = rest.find(words) {
        rest = &rest[at + words.len()..];
        if !words.starts_with(' ') || !rest.starts_with(|c: char| c.is_alphanumeric() || c == '\'')
        {
            return true;
        }
    }
    false
}

/// The lines that are the program's own, and neither those of ssh nor notes that a failure may follow.
fn own(said: &str) -> String {
    let is_ssh = |line: &str| {
        ["ssh: ", "Warning: Permanently added"].iter().any(|start| line.starts_with(start))
            || line.contains("Permission denied (publickey")
            || line.starts_with("kex_exchange_identification")
    };
    let is_note = |line: &str| {
        line.starts_with("hikyaku: sysctl ")
            || line.contains(" is new, its key is ")
            || line.contains("can read the password for ")
    };
    said.lines()
        .filter(|line| !is_ssh(line) && !is_note(line))
        .map(|line| format!("{line}\n"))
        .collect()
}

/// `hikyaku: WHERE: cause`, and at most one line `try: `.
fn shape(said: &str, place: &str) -> Option<String> {
    let mut lines = said.lines();
    let first = lines.next().unwrap_or_default();
    let begin = format!("hikyaku: {place}: ");
    let Some(cause) = first.strip_prefix(&begin) else {
        return Some(format!("does not begin with '{begin}'"));
    };
    let rest: Vec<&str> = lines.collect();
    if rest.len() > 1 || rest.iter().any(|line| !line.starts_with("try: ")) {
        return Some("more than one line and one line 'try:'".to_owned());
    }
    let begins = cause.chars().next();
    if begins.is_none_or(char::is_uppercase) || cause.ends_with('.') || cause.contains("try: ") {
        return Some(format!("the cause is no cause: '{cause}'"));
    }
    None
}

/// One line of the program, and what to do; or the parser's text.
fn usage(said: &str) -> Option<String> {
    let lines: Vec<&str> = said.lines().collect();
    let is_own = lines.first().is_some_and(|line| line.starts_with("hikyaku"));
    let is_parsers = said.contains("Usage: ") || said.contains("try '--help'");
    let is_short = lines.len() <= 2 && lines.iter().skip(1).all(|line| line.starts_with("try: "));
    match is_own && is_short || is_parsers {
        true => None,
        false => Some("is no usage error".to_owned()),
    }
}

/// Listens on loopback and answers each connection by `answer` on a thread of its own. Returns the port.
fn server(answer: fn(TcpStream) -> std::io::Result<()>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || answer(stream));
        }
    });
    port
}

/// A web server that has no file, and shows none of those in `/locked`.
fn http(mut stream: TcpStream) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let mut status = "404 Not Found";
    while let Some(line) = lines.next().transpose()? {
        if line.contains("/locked") {
            status = "403 Forbidden";
        }
        if line.is_empty() {
            write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n")?;
            status = "404 Not Found";
        }
    }
    Ok(())
}

/// An FTP server that admits only `anna`, and has no files.
fn ftp(mut stream: TcpStream) -> std::io::Result<()> {
    stream.write_all(b"220 ready\r\n")?;
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let mut is_anna = false;
    while let Some(line) = lines.next().transpose()? {
        let answer = match line.split(' ').next().unwrap_or_default() {
            "USER" => {
                is_anna = line.contains("anna");
                "331 password"
            }
            "PASS" if is_anna => "230 welcome",
            "PASS" => "530 not logged in",
            "TYPE" | "MODE" | "NOOP" => "200 yes",
            "QUIT" => "221 bye",
            "SIZE" | "MLST" | "RETR" | "MDTM" | "CWD" => "550 no such file",
            _ => "502 not known",
        };
        write!(stream, "{answer}\r\n")?;
    }
    Ok(())
}

/// The verbs that the help shows.
fn verbs(places: &Places) -> BTreeSet<String> {
    let folder: PathBuf = places.client.at("man");
    let output = places.run(&format!("man --all {}", folder.display()));
    assert!(output.status.success(), "{output:?}");
    let pages = fs::read_dir(folder).unwrap().flatten();
    let names = pages.filter_map(|page| {
        let name = page.file_name().into_string().ok()?;
        Some(name.strip_prefix("hikyaku-")?.strip_suffix(".1")?.to_owned())
    });
    let names: BTreeSet<String> = names.collect();
    let is_below = |name: &&String| !names.iter().any(|verb| name.starts_with(&format!("{verb}-")));
    names.iter().filter(is_below).cloned().collect()
}

#[test]
fn a_command_that_fails_names_the_place_and_the_cause() {
    let places = Places::new();
    let verbs = verbs(&places);
    assert!(verbs.contains("cp") && verbs.contains("lab"), "{verbs:?}");
    for verb in &verbs {
        for case in Case::ALL {
            let has_row = ROWS.iter().any(|row| row.verb() == verb && row.case == case);
            let is_exempt =
                EXEMPT.iter().any(|(name, cases)| name == verb && cases.contains(&case));
            assert!(has_row != is_exempt, "{verb} needs a row or an exemption for {case:?}");
        }
    }
    assert!(ROWS.len() >= 60, "{}", ROWS.len());
    let mut bad = Vec::new();
    for row in ROWS {
        let faults = places.faults(row);
        if !faults.is_empty() {
            bad.push(format!("--- {}\n{}", row.line, faults.join("\n")));
        }
    }
    assert!(bad.is_empty(), "{} of {}:\n{}", bad.len(), ROWS.len(), bad.join("\n"));
}
