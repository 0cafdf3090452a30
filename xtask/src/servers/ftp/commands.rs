//! The commands of one client.

use super::{PlainFtp, Style, dates};
use std::ffi::OsStr;
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Bytes that are read and written at once.
const PIECE_BYTES: usize = 64 << 10;

/// A control connection.
pub(super) struct Session {
    server: PlainFtp,
    style: Style,
    control: TcpStream,
    lines: BufReader<TcpStream>,
    /// The present directory: an absolute path, without a slash at its end.
    dir: Vec<u8>,
    passive: Option<TcpListener>,
    restart: u64,
    renamed: Option<PathBuf>,
}

impl Session {
    pub(super) fn new(server: PlainFtp, style: Style, control: TcpStream) -> io::Result<Self> {
        let lines = BufReader::new(control.try_clone()?);
        let (dir, passive, restart, renamed) = (Vec::new(), None, 0, None);
        Ok(Self { server, style, control, lines, dir, passive, restart, renamed })
    }

    pub(super) fn run(mut self) -> io::Result<()> {
        self.say("220 ready")?;
        let mut line = Vec::new();
        while self.lines.read_until(b'\n', &mut line)? > 0 {
            let text = line.strip_suffix(b"\r\n").unwrap_or(&line).to_vec();
            line.clear();
            self.server.heard(&text);
            let space = text.iter().position(|&byte| byte == b' ').unwrap_or(text.len());
            let (verb, rest) = (&text[..space], text.get(space + 1..).unwrap_or_default());
            let verb = String::from_utf8_lossy(verb).to_uppercase();
            // What the file system refuses is a reply.
            let done = self.carry_out(&verb, rest);
            if verb != "REST" {
                self.restart = 0;
            }
            if let Err(error) = done {
                self.say(&format!("550 {error}"))?;
            }
        }
        Ok(())
    }

    fn carry_out(&mut self, verb: &str, rest: &[u8]) -> io::Result<()> {
        let has_facts = self.style == Style::Facts;
        match verb {
            "USER" => self.say("331 password"),
            "PASS" => self.say("230 in"),
            "FEAT" if has_facts => self.say(
                "211-Features\r\n MLST type*;size*;modify*;UNIX.mode*;unique*;\r\n MFMT\r\n SIZE\r\n MDTM\r\n REST STREAM\r\n211 End",
            ),
            "FEAT" => self.say("211-Features\r\n SIZE\r\n MDTM\r\n REST STREAM\r\n211 End"),
            "TYPE" | "NOOP" => self.say("200 ok"),
            "PWD" => {
                let dir = String::from_utf8_lossy(&self.dir).replace('"', "\"\"");
                self.say(&format!("257 \"/{}\" is the directory", dir.trim_start_matches('/')))
            }
            "CWD" => {
                let path = self.path(rest);
                fs::read_dir(&path)?;
                let below = path.strip_prefix(&self.server.data).unwrap_or_else(|_| Path::new(""));
                self.dir = [b"/", below.as_os_str().as_bytes()].concat();
                self.say("250 ok")
            }
            "PASV" => {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
                let port = listener.local_addr()?.port();
                self.passive = Some(listener);
                self.say(&format!("227 ok (127,0,0,1,{},{})", port >> 8, port & 0xff))
            }
            "REST" => {
                self.restart = number(rest)?;
                self.say("350 next")
            }
            "SIZE" => {
                let meta = self.meta_of_file(rest)?;
                self.say(&format!("213 {}", meta.len()))
            }
            "MDTM" => {
                let meta = self.meta_of_file(rest)?;
                self.say(&format!("213 {}", dates::digits(meta.modified()?)))
            }
            "MLST" if has_facts => {
                let meta = fs::symlink_metadata(self.path(rest))?;
                let mut reply = format!("250-Listing\r\n {} ", facts(&meta)?).into_bytes();
                reply.extend_from_slice(rest);
                reply.extend_from_slice(b"\r\n250 End\r\n");
                self.control.write_all(&reply)
            }
            "MLSD" if has_facts => {
                let lines = self.entries(rest)?.into_iter().map(|(name, meta)| {
                    Ok([facts(&meta)?.as_bytes(), b" ", &name, b"\r\n"].concat())
                });
                let text = lines.collect::<io::Result<Vec<_>>>()?.concat();
                self.send(&mut text.as_slice(), None)
            }
            "LIST" => {
                let text = self.list(rest).unwrap_or_default();
                self.send(&mut text.as_slice(), None)
            }
            "RETR" => {
                let mut file = File::open(self.path(rest))?;
                if file.metadata()?.is_dir() {
                    return Err(io::ErrorKind::IsADirectory.into());
                }
                file.seek(SeekFrom::Start(std::mem::take(&mut self.restart)))?;
                let cut = self.server.take_cut();
                self.send(&mut file, cut)
            }
            "STOR" => {
                let at = std::mem::take(&mut self.restart);
                let mut options = OpenOptions::new();
                let mut file =
                    options.write(true).create(true).truncate(at == 0).open(self.path(rest))?;
                file.seek(SeekFrom::Start(at))?;
                self.receive(&mut file)
            }
            "MODE" if rest != b"S" => self.say("504 no such mode"),
            "MODE" => self.say("200 ok"),
            _ => self.change(verb, rest),
        }
    }

    /// The commands that change names and metadata.
    fn change(&mut self, verb: &str, rest: &[u8]) -> io::Result<()> {
        let has_facts = self.style == Style::Facts;
        match verb {
            "DELE" => fs::remove_file(self.path(rest)).and_then(|()| self.say("250 ok")),
            "RMD" => fs::remove_dir(self.path(rest)).and_then(|()| self.say("250 ok")),
            "MKD" => fs::create_dir(self.path(rest)).and_then(|()| self.say("257 \"made\"")),
            "RNFR" => {
                let path = self.path(rest);
                fs::symlink_metadata(&path)?;
                self.renamed = Some(path);
                self.say("350 next")
            }
            "RNTO" => match self.renamed.take() {
                Some(from) => fs::rename(from, self.path(rest)).and_then(|()| self.say("250 ok")),
                None => self.say("503 RNFR first"),
            },
            "SITE" if has_facts && rest.starts_with(b"CHMOD ") => {
                let rest = &rest[6..];
                let space = rest.iter().position(|&byte| byte == b' ').unwrap_or(0);
                let mode = u32::from_str_radix(&String::from_utf8_lossy(&rest[..space]), 8);
                let mode = Permissions::from_mode(mode.map_err(io::Error::other)?);
                fs::set_permissions(self.path(&rest[space + 1..]), mode)?;
                self.say("200 ok")
            }
            "MFMT" if has_facts => {
                let (time, path) = rest.split_at_checked(15).unwrap_or((rest, b""));
                let time = dates::parse(&String::from_utf8_lossy(time));
                let time = time.ok_or(io::ErrorKind::InvalidInput)?;
                File::open(self.path(path))?.set_modified(time)?;
                self.say("213 ok")
            }
            _ => self.say("500 no such command"),
        }
    }

    fn say(&mut self, line: &str) -> io::Result<()> {
        self.control.write_all(format!("{line}\r\n").as_bytes())
    }

    /// The file that a client means.
    fn path(&self, path: &[u8]) -> PathBuf {
        let path = if path.starts_with(b"/") {
            path.to_vec()
        } else {
            [&self.dir, &b"/"[..], path].concat()
        };
        let names =
            path.split(|&byte| byte == b'/').filter(|name| !matches!(*name, b"" | b"." | b".."));
        names.fold(self.server.data.clone(), |path, name| path.join(OsStr::from_bytes(name)))
    }

    fn meta_of_file(&self, path: &[u8]) -> io::Result<Metadata> {
        let meta = fs::metadata(self.path(path))?;
        if meta.is_file() { Ok(meta) } else { Err(io::Error::other("not a plain file")) }
    }

    fn entries(&self, path: &[u8]) -> io::Result<Vec<(Vec<u8>, Metadata)>> {
        let entry = |entry: io::Result<fs::DirEntry>| {
            let entry = entry?;
            io::Result::Ok((
                entry.file_name().as_bytes().to_vec(),
                entry.path().symlink_metadata()?,
            ))
        };
        // One that was removed meanwhile is left out.
        Ok(fs::read_dir(self.path(path))?.filter_map(|found| entry(found).ok()).collect())
    }

    /// Lines as `ls -l` prints them. As vsftpd it lists names that begin with a dot for `-a` only.
    fn list(&self, rest: &[u8]) -> io::Result<Vec<u8>> {
        let (path, is_all) = match rest.strip_prefix(b"-a ") {
            Some(path) => (path, true),
            None => (rest, false),
        };
        let mut entries = self.entries(path)?;
        if is_all {
            let itself = fs::metadata(self.path(path))?;
            entries.push((b".".to_vec(), itself.clone()));
            entries.push((b"..".to_vec(), itself));
        } else {
            entries.retain(|(name, _)| !name.starts_with(b"."));
        }
        let mut text = Vec::new();
        for (name, meta) in entries {
            let kind = match meta.file_type() {
                kind if kind.is_dir() => 'd',
                kind if kind.is_symlink() => 'l',
                kind if kind.is_file() => '-',
                _ => 'p',
            };
            let mode = meta.mode();
            let letters = (0..9).map(|at| match mode & (0o400 >> at) {
                0 => '-',
                _ => ['r', 'w', 'x'][at % 3],
            });
            let letters: String = letters.collect();
            let (size, date) = (meta.len(), dates::of_listing(meta.modified()?));
            text.extend_from_slice(
                format!("{kind}{letters}    1 ftp      ftp  {size:12} {date} ").as_bytes(),
            );
            text.extend_from_slice(&name);
            if kind == 'l' {
                text.extend_from_slice(b" -> somewhere");
            }
            text.extend_from_slice(b"\r\n");
        }
        Ok(text)
    }

    /// Sends what `source` has to the client, which has connected; up to `cut`.
    fn send(&mut self, source: &mut dyn Read, cut: Option<u64>) -> io::Result<()> {
        let Some(listener) = self.passive.take() else { return self.say("425 PASV first") };
        self.say("150 begins")?;
        let (mut data, _) = listener.accept()?;
        let copied = match cut {
            Some(bytes) => io::copy(&mut source.take(bytes), &mut data),
            None => io::copy(source, &mut data),
        };
        drop(data);
        match (copied, cut) {
            (Ok(_), None) => self.say("226 done"),
            _ => self.say("426 Failure writing network stream."),
        }
    }

    fn receive(&mut self, file: &mut File) -> io::Result<()> {
        let Some(listener) = self.passive.take() else { return self.say("425 PASV first") };
        let mut left = self.server.take_cut();
        self.say("150 begins")?;
        let (mut data, _) = listener.accept()?;
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            let most = left.map_or(piece.len(), |left| piece.len().min(left as usize));
            let read = match data.read(&mut piece[..most]) {
                Ok(0) if left.is_none() => return self.say("226 done"),
                Ok(0) | Err(_) => return self.say("426 Failure reading network stream."),
                Ok(read) => read,
            };
            file.write_all(&piece[..read])?;
            left = left.map(|left| left - read as u64);
        }
    }
}

fn number(text: &[u8]) -> io::Result<u64> {
    String::from_utf8_lossy(text).parse().map_err(io::Error::other)
}

fn facts(meta: &Metadata) -> io::Result<String> {
    let kind = match meta.file_type() {
        kind if kind.is_dir() => "dir",
        kind if kind.is_file() => "file",
        kind if kind.is_symlink() => "OS.unix=slink",
        _ => "OS.unix=other",
    };
    let (size, mode) = (meta.len(), meta.mode() & 0o7777);
    let (time, dev, ino) = (dates::digits(meta.modified()?), meta.dev(), meta.ino());
    Ok(format!(
        "type={kind};size={size};modify={time};UNIX.mode={mode:04o};unique={dev:x}-{ino:x};"
    ))
}
