//! `hikyaku proxy`: what programs see through it is what they would see without it.

use crate::common::proxy::{Proxy, echo, own_address, read_all, server, to};
use crate::common::{Sshd, random, wait_until};
use rustix::net::sockopt::{set_socket_linger, set_socket_recv_buffer_size};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

const WILL_FAIL: i32 = 6;
const MAY_PASS: i32 = 5;

/// Resets a connection when the other end's kernel has everything that was written.
fn reset(socket: TcpStream) {
    while hikyaku_tcp::unacknowledged(&socket).unwrap() > 0 {
        thread::sleep(Duration::from_millis(1));
    }
    set_socket_linger(&socket, Some(Duration::ZERO)).unwrap();
}

#[test]
fn an_end_of_one_direction_leaves_the_other_one_open() {
    let sshd = Sshd::start("proxy-half");
    // The server replies when it has read to the end.
    let port = server(|mut socket| {
        let mut all = Vec::new();
        socket.read_to_end(&mut all).unwrap();
        socket.write_all(&all).unwrap();
    });
    // This one ends its direction at once, and then counts what comes.
    let (counted, counts) = std::sync::mpsc::channel();
    let counter = server(move |mut socket| {
        socket.shutdown(Shutdown::Write).unwrap();
        let mut all = Vec::new();
        socket.read_to_end(&mut all).unwrap();
        counted.send(all.len()).unwrap();
    });
    for carrier in [None, Some("--no-udp")] {
        let (to, to_counter) = (to(port), to(counter));
        let options = ["-L", &to, "-L", &to_counter].into_iter().chain(carrier);
        let proxy = Proxy::start(&sshd, &options.collect::<Vec<_>>());
        for length in [0, 1, 3_000_000] {
            let bytes = random(1, length);
            let mut socket = proxy.connect();
            socket.write_all(&bytes).unwrap();
            socket.shutdown(Shutdown::Write).unwrap();
            let (reply, error) = read_all(&mut socket);
            assert!(reply == bytes && error.is_none(), "{carrier:?} {length} {error:?}");
            let mut socket = TcpStream::connect(proxy.ports[1]).unwrap();
            assert_eq!(read_all(&mut socket), (Vec::new(), None));
            socket.write_all(&bytes).unwrap();
            drop(socket);
            assert_eq!(counts.recv().unwrap(), length, "{carrier:?}");
        }
    }
}

#[test]
fn a_reset_is_a_reset_after_the_bytes_before_it() {
    const LENGTHS: [usize; 4] = [0, 1, 65_536, 10_000_000];
    let sshd = Sshd::start("proxy-reset");
    // The first byte of the program says how many bytes the server sends before it resets the connection.
    let sends = server(|mut socket| {
        let mut wanted = [0];
        socket.read_exact(&mut wanted).unwrap();
        socket.write_all(&random(1, LENGTHS[usize::from(wanted[0])])).unwrap();
        reset(socket);
    });
    let (told, hears) = std::sync::mpsc::channel();
    // A program that resets its connection before the gateway has taken it in was never connected.
    let reads = server(move |mut socket| {
        socket.write_all(b"x").unwrap();
        told.send(read_all(&mut socket)).unwrap();
    });
    for carrier in [None, Some("--no-udp")] {
        let (to_sends, to_reads) = (to(sends), to(reads));
        let options = ["-L", &to_sends, "-L", &to_reads].into_iter().chain(carrier);
        let proxy = Proxy::start(&sshd, &options.collect::<Vec<_>>());
        for (which, length) in LENGTHS.into_iter().enumerate() {
            let wanted = (random(1, length), Some(ErrorKind::ConnectionReset));
            let mut socket = proxy.connect();
            socket.write_all(&[which as u8]).unwrap();
            assert!(read_all(&mut socket) == wanted, "{carrier:?} from the server {length}");
            let mut socket = TcpStream::connect(proxy.ports[1]).unwrap();
            socket.read_exact(&mut [0]).unwrap();
            socket.write_all(&wanted.0).unwrap();
            reset(socket);
            assert!(hears.recv().unwrap() == wanted, "{carrier:?} from the program {length}");
        }
    }
}

#[test]
fn a_reset_waits_for_a_reader_with_a_small_buffer() {
    // Such a reader gets some kilobytes a round of the kernel's timer.
    let bytes = random(1, 200_000);
    let sent = bytes.clone();
    let sshd = Sshd::start("proxy-small-buffer");
    let to = to(server(move |mut socket| {
        socket.read_exact(&mut [0]).unwrap();
        socket.write_all(&sent).unwrap();
        reset(socket);
    }));
    let proxy = Proxy::start(&sshd, &["-L", &to]);
    let mut socket = proxy.connect();
    // Most of the bytes are in the gateway's kernel when the reset comes.
    set_socket_recv_buffer_size(&socket, 4096).unwrap();
    socket.write_all(b"x").unwrap();
    thread::sleep(Duration::from_millis(500));
    assert!(read_all(&mut socket) == (bytes, Some(ErrorKind::ConnectionReset)));
}

#[test]
fn a_reset_after_an_end_is_noticed() {
    let sshd = Sshd::start("proxy-late-reset");
    // The server ends its direction; when the program has seen that, the server resets the connection.
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let wait = std::sync::Arc::new(std::sync::Mutex::new(wait));
    let port = server(move |socket| {
        socket.shutdown(Shutdown::Write).unwrap();
        wait.lock().unwrap().recv().unwrap();
        reset(socket);
    });
    let to = to(port);
    let proxy = Proxy::start(&sshd, &["-L", &to]);
    let mut socket = proxy.connect();
    assert_eq!(read_all(&mut socket), (Vec::new(), None));
    go.send(()).unwrap();
    // Nothing is written, so only the state of the socket tells.
    wait_until("the reset", || socket.take_error().unwrap().is_some());
}

#[test]
fn a_target_that_cannot_be_reached_is_told_by_its_reason() {
    let sshd = Sshd::start("proxy-refused");
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let to = to(closed);
    let options = ["-L", &to, "-D", "127.0.0.1:0", "--http", "127.0.0.1:0", "--far-loopback"];
    let proxy = Proxy::start(&sshd, &options);
    assert_eq!(read_all(&mut proxy.connect()), (Vec::new(), Some(ErrorKind::ConnectionReset)));
    let socks = |host: &str, port: u16| socks5(proxy.ports[1], host, port).1;
    assert_eq!(socks("127.0.0.1", closed), 5);
    assert_eq!(socks("no.such.host.invalid", 80), 4);
    assert_eq!(socks("169.254.169.254", 80), 2);
    let http = |request: &str| {
        let mut socket = TcpStream::connect(proxy.ports[2]).unwrap();
        socket.write_all(request.as_bytes()).unwrap();
        let (reply, error) = read_all(&mut socket);
        assert_eq!(error, None);
        String::from_utf8(reply).unwrap()
    };
    for (request, status, reason) in [
        (format!("CONNECT 127.0.0.1:{closed} HTTP/1.1\r\n\r\n"), 502, "connection refused"),
        (format!("GET http://127.0.0.1:{closed}/ HTTP/1.1\r\n\r\n"), 502, "connection refused"),
        ("CONNECT no.such.host.invalid:80 HTTP/1.1\r\n\r\n".into(), 502, "name not found"),
        ("CONNECT [fe80::1]:80 HTTP/1.1\r\n\r\n".into(), 403, "link-local"),
        ("GET / HTTP/1.1\r\nHost: x\r\n\r\n".into(), 400, "this is an HTTP proxy"),
    ] {
        let reply = http(&request);
        let begin = format!("HTTP/1.1 {status} ");
        assert!(reply.starts_with(&begin) && reply.contains(reason), "{request}: {reply}");
    }
}

/// Asks a SOCKS proxy for a connection. Returns the socket and the code of the reply.
fn socks5(proxy: SocketAddr, host: &str, port: u16) -> (TcpStream, u8) {
    let mut socket = TcpStream::connect(proxy).unwrap();
    socket.write_all(&[5, 1, 0]).unwrap();
    let mut greeting = [0; 2];
    socket.read_exact(&mut greeting).unwrap();
    assert_eq!(greeting, [5, 0]);
    let mut request = vec![5, 1, 0, 3, host.len() as u8];
    request.extend_from_slice(host.as_bytes());
    request.extend_from_slice(&port.to_be_bytes());
    socket.write_all(&request).unwrap();
    let mut reply = [0; 10];
    socket.read_exact(&mut reply).unwrap();
    (socket, reply[1])
}

#[test]
fn programs_ask_in_socks_and_in_http() {
    let sshd = Sshd::start("proxy-fronts");
    let echo_port = server(echo);
    let web = server(|mut socket| {
        // The server says what it has read, and leaves the connection open: the request has an end of its own.
        let (mut head, mut byte) = (Vec::new(), [0]);
        while !head.ends_with(b"\r\n\r\nhello") && socket.read(&mut byte).unwrap() > 0 {
            head.push(byte[0]);
        }
        let length = head.len();
        write!(socket, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n").unwrap();
        socket.write_all(&head).unwrap();
    });
    let options = ["-D", "127.0.0.1:0", "--http", "127.0.0.1:0", "--far-loopback"];
    let proxy = Proxy::start(&sshd, &options);
    let speak = |mut socket: TcpStream| {
        socket.write_all(b"over there").unwrap();
        socket.shutdown(Shutdown::Write).unwrap();
        assert_eq!(read_all(&mut socket), (b"over there".to_vec(), None));
    };
    for host in ["127.0.0.1", "localhost"] {
        let (socket, code) = socks5(proxy.ports[0], host, echo_port);
        assert_eq!(code, 0);
        speak(socket);
    }
    // Version 4a.
    let mut socket = TcpStream::connect(proxy.ports[0]).unwrap();
    let mut request = vec![4, 1];
    request.extend_from_slice(&echo_port.to_be_bytes());
    request.extend_from_slice(b"\0\0\0\x01me\0localhost\0");
    socket.write_all(&request).unwrap();
    let mut reply = [0; 8];
    socket.read_exact(&mut reply).unwrap();
    assert_eq!(reply[..2], [0, 90]);
    speak(socket);
    let mut socket = TcpStream::connect(proxy.ports[1]).unwrap();
    write!(socket, "CONNECT localhost:{echo_port} HTTP/1.1\r\n\r\n").unwrap();
    let wanted = b"HTTP/1.1 200 Connection established\r\n\r\n";
    let mut reply = vec![0; wanted.len()];
    socket.read_exact(&mut reply).unwrap();
    assert_eq!(reply, wanted);
    speak(socket);
    // What follows a request on its connection is not for its server.
    let mut socket = TcpStream::connect(proxy.ports[1]).unwrap();
    let body = "Connection: keep-alive\r\nContent-Length: 5\r\n\r\nhelloGET http://x/ HTTP/1.1";
    write!(socket, "POST http://localhost:{web}/a?b HTTP/1.1\r\nHost: y\r\n{body}").unwrap();
    let reply = String::from_utf8(read_all(&mut socket).0).unwrap();
    let host = format!("POST /a?b HTTP/1.1\r\nHost: localhost:{web}\r\nContent-Length: 5\r\n");
    assert!(reply.starts_with("HTTP/1.1 200 OK\r\n") && reply.contains(&host), "{reply}");
    assert!(reply.ends_with("Connection: close\r\n\r\nhello"), "{reply}");
}

#[test]
fn loopback_of_the_far_side_is_reached_only_if_it_is_named() {
    let sshd = Sshd::start("proxy-loopback");
    let port = server(echo);
    let proxy = Proxy::start(&sshd, &["-D", "127.0.0.1:0"]);
    for host in ["127.0.0.1", "localhost"] {
        assert_eq!(socks5(proxy.ports[0], host, port).1, 2);
    }
}

#[test]
fn a_slow_reader_does_not_stop_the_other_flows() {
    let sshd = Sshd::start("proxy-slow");
    let endless = server(|mut socket| {
        let bytes = vec![7; 1 << 20];
        while socket.write_all(&bytes).is_ok() {}
    });
    let (to_endless, to_echo) = (to(endless), to(server(echo)));
    for carrier in [None, Some("--no-udp")] {
        let options = ["-L", &to_endless, "-L", &to_echo].into_iter().chain(carrier);
        let proxy = Proxy::start(&sshd, &options.collect::<Vec<_>>());
        // Nobody reads these. What they are sent stops growing when all buffers are full.
        let unread: Vec<TcpStream> = (0..4).map(|_| proxy.connect()).collect();
        for seed in 0..5 {
            let bytes = random(seed, 3_000_000);
            let mut socket = TcpStream::connect(proxy.ports[1]).unwrap();
            let mut writer = socket.try_clone().unwrap();
            let sent = bytes.clone();
            let writes = thread::spawn(move || {
                writer.write_all(&sent).unwrap();
                writer.shutdown(Shutdown::Write).unwrap();
            });
            socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
            assert!(read_all(&mut socket) == (bytes, None), "{carrier:?} {seed}");
            writes.join().unwrap();
        }
        drop(unread);
    }
}

/// The far side of this server.
fn far_side(sshd: &Sshd) -> Option<i32> {
    let state = format!("XDG_STATE_HOME={}", sshd.at("state").display());
    let mut processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let process = processes.find(|process| {
        let has = |file: &str, wanted: &[u8]| {
            let words = fs::read(process.join(file)).unwrap_or_default();
            words.split(|byte| *byte == 0).any(|word| word == wanted)
        };
        has("cmdline", b"--stdio") && has("environ", state.as_bytes())
    })?;
    process.file_name()?.to_str()?.parse().ok()
}

#[test]
fn programs_see_a_reset_when_either_gateway_is_killed() {
    let sshd = Sshd::start("proxy-killed");
    // The server must not see a clean end either.
    let (told, hears) = std::sync::mpsc::channel();
    let port = server(move |mut socket| {
        socket.read_exact(&mut [0]).unwrap();
        socket.write_all(b"x").unwrap();
        told.send(read_all(&mut socket)).unwrap();
    });
    let to = to(port);
    for killed in ["near", "near by Ctrl-C", "far"] {
        let mut command = sshd.proxy(&["-L", &to]);
        let mut proxy = Proxy::of(command.stderr(Stdio::piped()));
        let greet = |socket: &mut TcpStream| {
            socket.write_all(b"y").and_then(|()| socket.read_exact(&mut [0])).is_ok()
        };
        let mut socket = proxy.connect();
        assert!(greet(&mut socket));
        let mut stderr = proxy.child.stderr.take().unwrap();
        let far = far_side(&sshd).unwrap();
        let kill_far = || kill_process(Pid::from_raw(far).unwrap(), Signal::KILL).unwrap();
        let (left, status) = match killed {
            "far" => {
                kill_far();
                (Some(proxy), None)
            }
            "near" => (None, Some(proxy.end(Signal::KILL))),
            _ => (None, Some(proxy.end(Signal::INT))),
        };
        let end = read_all(&mut socket);
        assert_eq!(end, (Vec::new(), Some(ErrorKind::ConnectionReset)), "{killed}");
        assert_eq!(hears.recv().unwrap(), end, "{killed}");
        wait_until("the end of the far side", || far_side(&sshd) != Some(far));
        let mut said = String::new();
        match (killed, status) {
            ("near", status) => assert_eq!(status.and_then(|status| status.signal()), Some(9)),
            (_, Some(status)) => {
                stderr.read_to_string(&mut said).unwrap();
                assert_eq!((status.signal(), said.as_str()), (Some(2), ""));
            }
            (_, None) => {
                let proxy = left.unwrap();
                // The near gateway starts another one.
                wait_until("the next far side", || greet(&mut proxy.connect()));
                proxy.end(Signal::INT);
                stderr.read_to_string(&mut said).unwrap();
                let (lost, again) = ("nothing is heard of far", "connected to far again");
                assert!(said.contains(lost) && said.contains(again), "{said}");
            }
        }
    }
}

/// A process that is killed at the end of the test.
struct Gateway(std::process::Child);

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn listeners_of_the_far_side_and_unix_sockets_carry_what_ports_carry() {
    let sshd = Sshd::start("proxy-remote");
    let port = server(echo);
    let at = |name: &str| sshd.at(name).display().to_string();
    let (served, near, far) = (at("served.sock"), at("near.sock"), at("far.sock"));
    let listener = UnixListener::bind(&served).unwrap();
    thread::spawn(move || {
        for socket in listener.incoming().map_while(Result::ok) {
            let mut reader = socket.try_clone().unwrap();
            thread::spawn(move || {
                let mut writer = socket;
                let _ = std::io::copy(&mut reader, &mut writer);
                let _ = writer.shutdown(Shutdown::Write);
            });
        }
    });
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    for carrier in [None, Some("--no-udp")] {
        let (to_port, to_served) =
            (format!("{near}:127.0.0.1:{port}"), format!("127.0.0.1:0:{served}"));
        let (back, back_closed) = (format!("0:127.0.0.1:{port}"), format!("0:localhost:{closed}"));
        let back_socket = format!("{far}:{served}");
        let remote = ["-R", &back, "-R", &back_closed, "-R", &back_socket, "-R", "0"];
        let options = ["-L", &to_port, "-L", &to_served].into_iter().chain(remote).chain(carrier);
        let mut command = sshd.proxy(&options.collect::<Vec<_>>());
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let lines: Vec<String> = lines.take(6).collect();
        let gateway = Gateway(child);
        let number = |line: &str| -> u16 {
            let word = line.split(' ').nth(2).unwrap();
            word.rsplit(':').next().unwrap().parse().unwrap()
        };
        // The Unix socket of the near side is told behind its ports, and the far side's listeners last.
        assert!(lines[1].contains(&near) && lines[4].contains(&far), "{lines:?}");
        let bytes = random(3, 300_000);
        for (what, port) in [("-L", number(&lines[0])), ("-R", number(&lines[2]))] {
            let mut socket = TcpStream::connect(("127.0.0.1", port)).unwrap();
            let sent = bytes.clone();
            let mut writer = socket.try_clone().unwrap();
            let writes = thread::spawn(move || {
                writer.write_all(&sent).unwrap();
                writer.shutdown(Shutdown::Write).unwrap();
            });
            assert!(read_all(&mut socket) == (bytes.clone(), None), "{what} {carrier:?}");
            writes.join().unwrap();
        }
        for path in [&near, &far] {
            let mut socket = UnixStream::connect(path).unwrap();
            assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
            socket.write_all(b"by a path").unwrap();
            socket.shutdown(Shutdown::Write).unwrap();
            let mut reply = Vec::new();
            socket.read_to_end(&mut reply).unwrap();
            assert_eq!(reply, b"by a path", "{path} {carrier:?}");
        }
        // Nobody listens at the target.
        let mut socket = TcpStream::connect(("127.0.0.1", number(&lines[3]))).unwrap();
        let reset = (Vec::new(), Some(ErrorKind::ConnectionReset));
        assert_eq!(read_all(&mut socket), reset, "{carrier:?}");
        assert!(lines[5].ends_with("of far (SOCKS proxy)"), "{lines:?}");
        by_socks_of_the_far_side(number(&lines[5]), port);
        kill_process(Pid::from_child(&gateway.0), Signal::INT).unwrap();
        for (end, path) in [("near", &near), ("far", &far)] {
            wait_until(&format!("the end of the socket of the {end} side"), || {
                !std::path::Path::new(path).exists()
            });
        }
    }
}

/// A SOCKS proxy of the far side connects from the near side, but not to its loopback.
fn by_socks_of_the_far_side(proxy: u16, loopback: u16) {
    let ask = |address: Ipv4Addr, port: u16| {
        let mut socket = TcpStream::connect(("127.0.0.1", proxy)).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let (octets, [high, low]) = (address.octets(), port.to_be_bytes());
        // The greeting, the request and the first bytes at once.
        socket
            .write_all(
                &[[5, 1, 0].as_slice(), &[5, 1, 0, 1], &octets, &[high, low], b"early"].concat(),
            )
            .unwrap();
        let mut reply = [0; 12];
        socket.read_exact(&mut reply).unwrap();
        assert_eq!(&reply[..3], [5, 0, 5]);
        (socket, reply[3])
    };
    const NOT_ALLOWED: u8 = 2;
    let (mut socket, code) = ask(Ipv4Addr::LOCALHOST, loopback);
    assert_eq!((code, read_all(&mut socket)), (NOT_ALLOWED, (Vec::new(), None)));
    let Some(IpAddr::V4(own)) = own_address() else {
        eprintln!("\n*** SKIPPED in part, because this machine has no address but loopback ***\n");
        return;
    };
    let listener = TcpListener::bind((own, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || echo(listener.accept().unwrap().0));
    let (mut socket, code) = ask(own, port);
    socket.write_all(b" and late").unwrap();
    socket.shutdown(Shutdown::Write).unwrap();
    assert_eq!((code, read_all(&mut socket)), (0, (b"early and late".to_vec(), None)));
}

#[test]
fn a_gateway_goes_to_the_background_when_it_is_ready() {
    let sshd = Sshd::start("proxy-background");
    let to = to(server(echo));
    // ssh keeps standard error, which would not end.
    let output = sshd.proxy(&["-f", "-L", &to]).stderr(Stdio::null()).output().unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{told}");
    let process = told.lines().last().unwrap().strip_prefix("in the background: process ").unwrap();
    let process = Pid::from_raw(process.parse().unwrap()).unwrap();
    let address = told.split(' ').nth(2).unwrap();
    let mut socket = TcpStream::connect(address).unwrap();
    socket.write_all(b"still there").unwrap();
    socket.shutdown(Shutdown::Write).unwrap();
    let reply = read_all(&mut socket);
    kill_process(process, Signal::INT).unwrap();
    assert_eq!(reply, (b"still there".to_vec(), None));
    // What fails is told at once, with the same exit code.
    let output = sshd.proxy(&["-f", "-D", "*:0"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}

#[test]
fn mistakes_are_told_with_a_remedy() {
    let sshd = Sshd::start("proxy-mistakes");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    for (options, code, wanted) in [
        (vec!["-D", &port], MAY_PASS, "try: another port"),
        (vec!["-D", "*:0"], 1, "try: -g"),
        (
            vec!["-D", "0", "-R", "0.0.0.0:0:a:80"],
            WILL_FAIL,
            "far does not listen on *:0: the far side listens on loopback only",
        ),
        (
            vec!["-N"],
            1,
            "missing: -L or -R or -D or --http or --transparent or --for-command\ntry: hikyaku help proxy",
        ),
        (vec!["-L", "80:a"], 1, "expected [BIND:]PORT:HOST:HOSTPORT"),
    ] {
        let output = sshd.proxy(&options).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{options:?}: {said}");
        assert!(said.contains(wanted) && output.stdout.is_empty(), "{options:?}: {said}");
    }
}
