//! Tests of the parsing, admission and evaluation of competing flows.

use super::parts::{Look, Part, Tick, Timetable, Why, standing};
use super::*;
use crate::wait::Stop;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

fn parse(text: &str) -> Result<Compete, String> {
    text.parse()
}

#[test]
fn competitors_are_parsed_as_kind_number_and_congestion_control() {
    let compete = parse("tcp:4:cubic,hikyaku:1:fixed:2gbit,tcp:2").unwrap();
    assert_eq!((compete.count(Kind::Tcp), compete.count(Kind::Hikyaku)), (6, 1));
    assert_eq!(compete.all(), 7);
    let names: Vec<_> = compete.flows().map(Group::name).collect();
    assert_eq!(names[3..6], ["tcp cubic", "hikyaku fixed:2gbit", "tcp"]);
    // The printed form parses to the same value.
    assert_eq!(parse(&compete.to_string()).unwrap(), compete);
    for text in [
        "",
        "tcp",
        "tcp:",
        "tcp:0",
        "tcp:x",
        "udp:1",
        "tcp:1,",
        "tcp:1:",
        "tcp:1:a b",
        "tcp:-1",
        "tcp:1:sixteen_letters_",
        "hikyaku:1:greedy",
        "hikyaku:1:",
        "4:tcp",
    ] {
        assert!(parse(text).is_err(), "{text:?}");
    }
}

fn near(a: Option<f64>, b: f64) -> bool {
    a.is_some_and(|a| (a - b).abs() < 1e-9)
}

fn standing_of(competitors: &[(f64, f64)], measured: &[(f64, f64)]) -> Standing {
    let pairs = |of: &[(f64, f64)]| {
        of.iter().map(|&(alone, together)| Goodputs { alone, together }).collect()
    };
    Standing { competitors: pairs(competitors), measured: pairs(measured) }
}

#[test]
fn harm_is_the_fraction_of_the_goodput_alone_that_is_lost() {
    // Four flows that share evenly with a fifth lose a fifth of their goodput.
    let verdict = standing_of(&[(25.0, 20.0); 4], &[(100.0, 20.0)]).verdict();
    assert!(near(verdict.harm, 0.2) && near(verdict.harm_of_equal_shares, 0.2), "{verdict:?}");
    assert!(near(verdict.harm_to_measured, 0.8) && near(verdict.jain, 1.0), "{verdict:?}");
    assert_eq!(verdict.shares, [1.0; 5]);
    // The competing flow loses three quarters of its goodput.
    let verdict = standing_of(&[(80.0, 20.0)], &[(90.0, 60.0)]).verdict();
    assert!(near(verdict.harm, 0.75) && near(verdict.harm_of_equal_shares, 0.5), "{verdict:?}");
    assert_eq!(verdict.shares, [0.5, 1.5]);
    assert!(near(verdict.jain, 6400.0 / (2.0 * 4000.0)), "{verdict:?}");
    // A flow that gains has negative harm. Harm is undefined for a flow that had nothing alone.
    let verdict = standing_of(&[(10.0, 15.0)], &[(0.0, 0.0)]).verdict();
    assert!(near(verdict.harm, -0.5) && verdict.harm_to_measured.is_none(), "{verdict:?}");
    let verdict = standing_of(&[(0.0, 0.0)], &[(0.0, 0.0)]).verdict();
    assert!(verdict.jain.is_none() && verdict.shares == [0.0, 0.0], "{verdict:?}");
}

#[test]
fn the_omitted_start_of_each_part_is_not_judged() {
    let timetable = Timetable { part: 2.0, omit: 0.5, interval: 1.5 };
    let look = |at, why| Look { at, why };
    let (alone, together) = (Why::Report(Part::Alone), Why::Report(Part::Together));
    let expected = [
        look(0.5, Why::Border),
        look(1.5, alone),
        look(2.0, alone),
        look(2.0, Why::Border),
        look(2.5, Why::Border),
        look(3.5, together),
        look(4.0, together),
        look(4.0, Why::Border),
        look(4.5, Why::Border),
        look(6.0, Why::Border),
    ];
    assert_eq!(timetable.looks(), expected);
    let reports = |interval| {
        let looks = Timetable { interval, ..timetable }.looks();
        looks.iter().filter(|look| look.why != Why::Border).count()
    };
    // No interval has length zero, and an interval longer than a part is cut to the part.
    assert_eq!((reports(1.0), reports(2.0), reports(7.0)), (4, 2, 2));
}

#[test]
fn goodput_is_counted_between_the_borders_of_each_part() {
    let tick = |at, rivals, ours| Tick { at, rivals: vec![rivals], ours: vec![ours] };
    let borders = [
        tick(1.0, 100, 0),
        tick(2.0, 350, 0),
        tick(3.0, 400, 50),
        tick(4.0, 500, 75),
        tick(5.0, 500, 80),
        tick(7.0, 500, 280),
    ];
    let expected = standing_of(&[(2000.0, 800.0)], &[(800.0, 200.0)]);
    assert_eq!(standing(&borders), Some(expected));
    assert_eq!(standing(&borders[..5]), None);
}

/// Opens a listener. Returns it with its address and token.
fn open() -> (Meeting, SocketAddr, String) {
    let meeting = Meeting::open(&[SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0)]).unwrap();
    let address = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), meeting.port().unwrap());
    let token = meeting.token().to_owned();
    (meeting, address, token)
}

fn show(address: SocketAddr, token: &str, number: u16) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(token.as_bytes()).unwrap();
    stream.write_all(&number.to_be_bytes()).unwrap();
    stream
}

/// Connections that are not admitted: with a wrong token, with a number out of range, and silent.
fn strangers(address: SocketAddr, token: &str) -> Vec<TcpStream> {
    let (mut guess, last) = (token.to_owned(), token.ends_with('0'));
    guess.pop();
    guess.push(if last { '1' } else { '0' });
    let mute = TcpStream::connect(address).unwrap();
    vec![show(address, &guess, 1), show(address, token, 2), mute]
}

/// Whether the other end has closed the connection without sending anything.
fn is_closed(mut stream: TcpStream) -> bool {
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    match stream.read(&mut [0; 8]) {
        Ok(read) => read == 0,
        Err(error) => error.kind() == ErrorKind::ConnectionReset,
    }
}

#[test]
fn connections_with_the_token_are_returned_in_order() {
    let (meeting, address, token) = open();
    let strangers = strangers(address, &token);
    let late = thread::spawn(move || {
        let mut first = TcpStream::connect(address).unwrap();
        for half in [&token[..9], &token[9..], "\0\0first"] {
            first.write_all(half.as_bytes()).unwrap();
            thread::sleep(Duration::from_millis(30));
        }
        show(address, &token, 1).write_all(b"second").unwrap();
    });
    let streams = meeting.gather(2, Duration::from_secs(30), &Stop::default()).unwrap();
    late.join().unwrap();
    for (mut stream, expected) in streams.into_iter().zip(["first", "second"]) {
        let mut said = String::new();
        stream.read_to_string(&mut said).unwrap();
        assert_eq!(said, expected);
    }
    assert!(strangers.into_iter().all(is_closed));
}

#[test]
fn connections_without_the_token_are_closed_without_an_answer() {
    let (meeting, address, token) = open();
    let strangers = strangers(address, &token);
    let _first = show(address, &token, 0);
    let met = meeting.gather(2, Duration::from_millis(300), &Stop::default());
    let error = met.unwrap_err().to_string();
    assert!(error.contains("1 of 2"), "{error}");
    assert!(strangers.into_iter().all(is_closed));
}

#[test]
fn an_unknown_congestion_control_is_refused_with_a_list_of_the_known() {
    let mut compete = parse("tcp:1:no_such_law").unwrap();
    let error = resolve(&mut compete, "fair").unwrap_err().to_string();
    assert!(error.contains("'no_such_law'") && error.contains("reno"), "{error}");
    let mut compete = parse("tcp:2,hikyaku:1").unwrap();
    resolve(&mut compete, "fair").unwrap();
    // Whatever the default of this machine is, its name is filled in.
    let names: Vec<_> = compete.flows().map(Group::name).collect();
    assert!(names[0].len() > "tcp ".len() && names[2] == "hikyaku fair", "{names:?}");
}
