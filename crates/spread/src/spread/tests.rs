//! Scripts: the commands of the scheduler when servers send, fall silent, return or slow down.

use super::*;
use alloc::collections::BTreeMap;

mod pools;

const MIB: u64 = 1 << 20;
const RTT: Duration = Duration::from_millis(100);

/// A scheduler with servers that send at given rates, asks in order.
struct Script {
    spread: Spread,
    now: Instant,
    /// The real round-trip time.
    rtt: Duration,
    /// Bytes a millisecond; `None`: the server is silent.
    rates: Vec<Option<u64>>,
    asks: BTreeMap<AskId, Sending>,
    /// Commands other than asks, with their time in ms.
    said: Vec<(u64, Command)>,
}

/// An ask at its server.
#[derive(Clone, Copy)]
struct Sending {
    server: ServerId,
    file: FileId,
    at: u64,
    /// Bytes that were not sent.
    left: u64,
    /// Bytes that were sent.
    sent: u64,
    /// When the first byte can be here.
    due: Instant,
}

/// Files of these MiB on all servers.
fn script(rates: &[u64], files: &[u64]) -> Script {
    script_with(&vec![ServerSettings::default(); rates.len()], rates, files)
}

fn script_with(settings: &[ServerSettings], rates: &[u64], files: &[u64]) -> Script {
    let mut spread = Spread::new(Settings::default());
    let now = Instant::from_millis(1_000_000);
    let servers: Vec<ServerId> =
        settings.iter().map(|one| spread.add_server(*one).unwrap()).collect();
    servers.iter().for_each(|&server| spread.handle_up(server, RTT, now));
    for mib in files {
        spread.add_file(DataSize::from_bytes(mib * MIB), &servers).unwrap();
    }
    let rates = rates.iter().map(|&rate| Some(rate)).collect();
    Script { spread, now, rtt: RTT, rates, asks: BTreeMap::new(), said: Vec::new() }
}

impl Script {
    fn obey(&mut self) {
        while let Some(command) = self.spread.poll_command(self.now) {
            match command {
                Command::Ask { server, ask, work: Work::Ranges { file, ranges } } => {
                    let (at, left) = (ranges[0].start, ranges[0].end - ranges[0].start);
                    let due = self.now + self.rtt;
                    self.asks.insert(ask, Sending { server, file, at, left, sent: 0, due });
                }
                Command::Ask { .. } => panic!("there are no small files"),
                Command::Cut { ask, from, .. } => {
                    if let Some(found) = self.asks.get_mut(&ask) {
                        found.left = found.left.min(from.bytes().saturating_sub(found.sent));
                    }
                    self.said.push((self.millis(), command));
                }
                other => self.said.push((self.millis(), other)),
            }
        }
    }

    fn millis(&self) -> u64 {
        self.now.as_micros() / 1000 - 1_000_000
    }

    /// Lets time pass in steps of 10 ms, in which each server sends of its first ask.
    fn pass(&mut self, millis: u64) {
        self.obey();
        for _ in 0..millis / 10 {
            self.now += Duration::from_millis(10);
            for server in 0..self.rates.len() {
                self.send(server);
            }
            self.obey();
        }
    }

    fn send(&mut self, server: usize) {
        let Some(rate) = self.rates[server] else { return };
        let id = server_id(server);
        let mut bytes = rate * 10;
        while let Some((&ask, sending)) =
            self.asks.iter_mut().find(|(_, found)| found.server == id && found.due <= self.now)
        {
            let sent = bytes.min(sending.left);
            sending.left -= sent;
            sending.sent += sent;
            bytes -= sent;
            let is_over = sending.left == 0;
            self.spread.handle_progress(id, ask, DataSize::from_bytes(sent), self.now);
            if !is_over {
                return;
            }
            // Nothing is proven, so that the work never ends.
            self.asks.remove(&ask);
            self.spread.handle_end(id, ask, self.now);
        }
    }

    /// Bytes that a server is asked for and has not sent.
    fn asked(&self, server: u16) -> u64 {
        let of_server = self.asks.values().filter(|found| found.server == ServerId(server));
        of_server.map(|found| found.left).sum()
    }

    fn retries(&self) -> Vec<u64> {
        let is_retry = |(at, command): &(u64, Command)| {
            matches!(command, Command::Retry { .. }).then_some(*at)
        };
        self.said.iter().filter_map(is_retry).collect()
    }
}

#[test]
fn a_server_has_a_round_trip_and_half_a_second_of_work() {
    let mut script = script(&[40_000], &[2_000]);
    script.pass(3_000);
    let (asked, wanted) = (script.asked(0), 40_000 * 600);
    // Beyond that there is at most one piece, of a quarter of a second.
    assert!((wanted - 2 * MIB..wanted + 40_000 * 250).contains(&asked), "{asked}");
}

#[test]
fn the_sink_limits_what_is_asked_for_in_all() {
    let mut script = script(&[40_000, 40_000], &[2_000]);
    script.spread.handle_sink(Some(DataSize::from_bytes(5 * MIB)));
    script.pass(1_000);
    for _ in 0..100 {
        script.pass(10);
        let asked = script.asked(0) + script.asked(1);
        assert!((4 * MIB..=5 * MIB).contains(&asked), "{asked}");
    }
    // Less than a segment is enough for one.
    script.spread.handle_sink(Some(DataSize::from_bytes(1)));
    script.pass(1_000);
    assert!((1..=MIB).contains(&(script.asked(0) + script.asked(1))));
}

#[test]
fn a_slower_server_gives_unsent_work_back() {
    let mut script = script(&[40_000, 40_000], &[2_000]);
    script.pass(3_000);
    script.rates[0] = Some(1_000);
    script.pass(2_000);
    assert!(script.asked(0) <= 1_000 * 1_100 + MIB, "{}", script.asked(0));
    let is_cut = |(_, command): &(u64, Command)| matches!(command, Command::Cut { server: ServerId(0), from, .. } if from.bytes() < MIB * 100);
    assert!(script.said.iter().any(is_cut), "{:?}", script.said);
    assert_eq!(script.retries(), []);
}

#[test]
fn a_changed_rate_is_planned_for_within_a_tenth_of_a_second() {
    let mut script = script(&[2_000, 2_000], &[2_000]);
    script.pass(10_000);
    let next = script.spread.poll_timeout().unwrap();
    assert_eq!(next.reason, WakeReason::Plan);
    script.pass((next.at - script.now).as_millis() as u64);
    // The next plan is half a second away, unless something changes.
    let planned = script.spread.plan.next_at();
    assert_eq!(planned - script.now, Duration::from_millis(500));
    script.pass(100);
    assert_eq!(script.spread.plan.next_at(), planned);
    script.rates[0] = Some(40_000);
    script.pass(300);
    assert_ne!(script.spread.plan.next_at(), planned);
}

#[test]
fn a_silent_server_is_quiet_after_two_seconds_and_others_get_its_work() {
    let mut script = script(&[4_000, 4_000], &[2_000]);
    script.pass(2_000);
    script.rates[0] = None;
    script.pass(1_990);
    assert!(script.asked(0) > 0);
    script.pass(20);
    assert_eq!((script.asked(0), script.spread.servers[0].is_up()), (0, false));
    let is_last_cut = script.said.iter().any(|(at, said)| *at == 4_000 && is_cut_off(said));
    assert!(is_last_cut, "{:?}", script.said);
    // Retries come 5, 15, 35, 75, 135 s later, each with one segment.
    script.pass(140_000);
    assert_eq!(script.retries(), [9_000, 19_000, 39_000, 79_000, 139_000]);
    assert_eq!(script.asked(0), MIB);
    // The segment is a copy: its end gives nothing back.
    let free = script.spread.stock.free_bytes();
    let (&ask, _) = script.asks.iter().find(|(_, found)| found.server == ServerId(0)).unwrap();
    script.spread.handle_end(ServerId(0), ask, script.now);
    assert_eq!(script.spread.stock.free_bytes(), free);
    assert!(script.spread.servers[0].is_up());
}

fn is_cut_off(command: &Command) -> bool {
    matches!(command, Command::Cut { server: ServerId(0), from: DataSize::ZERO, .. })
}

#[test]
fn the_end_of_a_copy_gives_nothing_back() {
    let mut script = script(&[4_000, 4_000], &[1]);
    script.spread.handle_lost(ServerId(1), script.now);
    script.rates = vec![None, None];
    script.pass(7_000);
    assert_eq!((script.retries(), script.asked(0)), (vec![5_000, 7_000], MIB));
    script.spread.handle_up(ServerId(1), RTT, script.now);
    script.pass(100);
    assert_eq!(script.asked(1), MIB);
    let (&copy, _) = script.asks.iter().rfind(|(_, found)| found.server == ServerId(0)).unwrap();
    script.spread.handle_end(ServerId(0), copy, script.now);
    script.pass(100);
    assert_eq!((script.asks.len(), script.spread.stock.free_bytes()), (3, 0));
}

#[test]
fn a_silent_server_is_quiet_although_as_many_bytes_came_as_it_was_asked_for() {
    let mut script = script(&[4_000], &[1]);
    script.obey();
    let bytes = DataSize::from_bytes(MIB);
    script.spread.handle_progress(ServerId(0), AskId(0), bytes, script.now);
    script.rates = vec![None];
    script.pass(2_010);
    assert!(!script.spread.servers[0].is_up());
}

#[test]
fn without_a_plan_what_goes_back_is_asked_for_soon() {
    // Server 0 sends as fast as it is taken to be, so that there is no other reason for a new plan.
    let mut script = script(&[2_000, 0], &[]);
    script.spread.settings.planned_groups_max = 0;
    let mut add = |mib: u64, server| {
        script.spread.add_file(DataSize::from_bytes(mib * MIB), &[ServerId(server)]).unwrap()
    };
    let (_, small) = (add(2_000, 0), add(1, 1));
    script.rates[1] = None;
    script.pass(620);
    let of_small = |(_, found): &(&AskId, &Sending)| found.file == small;
    let (&ask, _) = script.asks.iter().find(of_small).unwrap();
    script.spread.handle_end(ServerId(1), ask, script.now);
    script.asks.remove(&ask);
    script.pass(100);
    assert!(script.asks.iter().any(|found| of_small(&found)));
}

#[test]
fn a_quiet_server_that_says_anything_gets_work_again() {
    let mut script = script(&[4_000, 4_000], &[2_000]);
    script.pass(2_000);
    script.rates[0] = None;
    script.pass(3_000);
    assert_eq!(script.asked(0), 0);
    // Late bytes belong to an ask that was cancelled.
    script.spread.handle_progress(ServerId(0), AskId(0), DataSize::from_bytes(1), script.now);
    script.obey();
    assert!(script.asked(0) >= MIB);
}

#[test]
fn a_far_server_may_be_silent_for_four_round_trips() {
    let mut script = script(&[4_000], &[200]);
    script.spread.handle_rtt(ServerId(0), Duration::from_secs(1));
    script.pass(2_000);
    script.rates[0] = None;
    script.pass(3_990);
    assert!(script.asked(0) > 0);
    script.pass(20);
    assert_eq!(script.asked(0), 0);
}

#[test]
fn after_a_gap_in_the_clock_nobody_is_quiet_for_two_seconds() {
    let mut script = script(&[4_000, 4_000], &[2_000]);
    script.pass(2_000);
    script.now += Duration::from_secs(3600);
    script.rates = vec![None, None];
    script.obey();
    assert_eq!(script.said, []);
    script.pass(1_990);
    assert!(script.asked(0) > 0 && script.asked(1) > 0, "{:?}", script.said);
    script.pass(20);
    assert_eq!((script.asked(0), script.asked(1)), (0, 0));
}

#[test]
fn a_busy_target_makes_nobody_quiet_and_nothing_is_taken_back() {
    let mut script = script(&[4_000, 4_000], &[2_000]);
    script.pass(2_000);
    script.spread.handle_target(Target::Busy, script.now);
    script.rates = vec![None, None];
    script.pass(20_000);
    assert_eq!(script.said, []);
    // From now on silence counts again.
    script.spread.handle_target(Target::Ready, script.now);
    script.pass(1_990);
    assert!(script.asked(0) > 0 && script.asked(1) > 0, "{:?}", script.said);
    script.pass(20);
    assert_eq!((script.asked(0), script.asked(1)), (0, 0));
}

#[test]
fn a_lost_server_is_retried_and_its_work_goes_on_elsewhere() {
    let mut script = script(&[4_000, 4_000], &[2_000]);
    script.pass(1_000);
    script.spread.handle_lost(ServerId(0), script.now);
    script.asks.retain(|_, found| found.server != ServerId(0));
    script.pass(100_000);
    assert_eq!(script.retries(), [6_000, 16_000, 36_000, 76_000]);
    assert_eq!((script.asked(0), script.said.iter().any(|(_, said)| is_cut_off(said))), (0, false));
    script.spread.handle_up(ServerId(0), RTT, script.now);
    script.obey();
    assert!(script.asked(0) > 0);
}

#[test]
fn an_idle_server_takes_over_its_share_of_the_slowest_ones_work() {
    let mut script = script(&[8_000, 8_000], &[]);
    script.spread.handle_lost(ServerId(1), script.now);
    let both = [ServerId(0), ServerId(1)];
    let add = |script: &mut Script, mib: u64| {
        script.spread.add_file(DataSize::from_bytes(mib * MIB), &both).unwrap()
    };
    let first = add(&mut script, 100);
    script.pass(3_000);
    // Server 0 is asked for the whole second file, and for nothing else.
    let second = add(&mut script, 6);
    script.spread.handle_proven(first, 0..100 * MIB);
    script.asks.clear();
    script.spread.servers[0].asks.clear();
    script.spread.servers[0].left = 0;
    script.obey();
    assert_eq!((script.asked(0), script.spread.stock.free_bytes()), (6 * MIB, 0));
    script.said.clear();
    script.spread.handle_up(ServerId(1), RTT, script.now);
    script.obey();
    // Server 0 counts with 8 MB/s and server 1 with 2: of the 5.5 MB that have not left, that is one segment.
    assert_eq!((script.asked(0), script.asked(1)), (5 * MIB, MIB), "{:?}", script.said);
    let taken = script.asks.values().find(|found| found.server == ServerId(1)).unwrap();
    assert_eq!((taken.file, taken.at), (second, 5 * MIB));
}

#[test]
fn an_arrival_before_its_time_does_not_look_like_a_fast_server() {
    let mut script = script(&[4_000], &[2_000]);
    script.rtt = Duration::ZERO;
    script.pass(200);
    let rate = script.spread.rate(ServerId(0), script.now).unwrap().bytes_per_sec();
    assert!((3e6..4.5e6).contains(&rate), "{rate}");
}

#[test]
fn a_ceiling_is_divided_and_lifted() {
    let mut script = script(&[40_000, 1_000], &[2_000]);
    let ceiling = Rate::from_bits_per_sec(100_000_000);
    script.spread.handle_ceiling(Some(ceiling));
    script.pass(3_000);
    let cap = |server: u16| {
        let of_server = script.said.iter().rev().find_map(|(_, said)| match said {
            Command::Cap { server: ServerId(of), rate } if *of == server => Some(*rate),
            _ => None,
        });
        of_server.unwrap().unwrap().bits_per_sec()
    };
    // Server 1 sends 8 Mbit/s and has room for a quarter more.
    assert_eq!((cap(0) / 1_000_000, cap(1) / 1_000_000), (90, 10));
    script.spread.handle_ceiling(None);
    script.said.clear();
    script.pass(1_000);
    let lifted = |server| Command::Cap { server: ServerId(server), rate: None };
    let said: Vec<&Command> = script.said.iter().map(|(_, said)| said).collect();
    assert_eq!(said, [&lifted(0), &lifted(1)]);
}

#[test]
fn a_missing_file_is_asked_for_once_elsewhere() {
    let mut script = script(&[4_000, 4_000], &[1]);
    script.obey();
    let (&ask, &Sending { server, .. }) = script.asks.first_key_value().unwrap();
    script.spread.handle_missing(server, FileId(0));
    script.rates = vec![None, None];
    script.pass(100);
    assert_eq!(script.asks.len(), 2);
    script.spread.handle_end(server, ask, script.now);
    script.pass(100);
    assert_eq!((script.asks.len(), script.spread.stock.free_bytes()), (2, 0));
    assert_eq!(script.spread.stranded().count(), 0);
}

#[test]
fn a_file_without_a_living_replica_is_stranded_and_not_lost() {
    let mut script = script(&[4_000], &[1]);
    script.spread.handle_lost(ServerId(0), script.now);
    assert_eq!(script.spread.stranded().collect::<Vec<_>>(), [FileId(0)]);
    script.spread.handle_up(ServerId(0), RTT, script.now);
    assert_eq!(script.spread.stranded().count(), 0);
}

#[test]
fn bytes_that_are_left_out_of_a_request_are_no_measurement_of_its_server() {
    let mut script = script(&[100], &[8]);
    let ask = |script: &mut Script| match script.spread.poll_command(script.now) {
        Some(Command::Ask { ask, .. }) => ask,
        other => panic!("{other:?}"),
    };
    let (server, now) = (ServerId(0), script.now);
    let first = ask(&mut script);
    let (missing, rate) = (script.spread.missing_bytes(), script.spread.rate(server, now));
    script.spread.handle_left_out(server, first, DataSize::from_bytes(MIB / 2));
    assert_eq!(script.spread.missing_bytes().bytes(), missing.bytes() - MIB / 2);
    assert_eq!(script.spread.rate(server, now), rate);
    // More than was requested, and an unknown ask.
    script.spread.handle_left_out(server, first, DataSize::from_bytes(u64::MAX));
    script.spread.handle_left_out(server, AskId(99), DataSize::from_bytes(1));
    script.spread.handle_left_out(ServerId(9), first, DataSize::from_bytes(1));
    script.spread.handle_end(server, first, now);
    assert_eq!(script.spread.missing_bytes().bytes(), 8 * MIB, "nothing was proven");
}

#[test]
fn what_an_earlier_run_has_proven_is_not_asked_for() {
    let mut script = script(&[4_000], &[3, 1]);
    script.spread.handle_proven(FileId(0), 0..2 * MIB);
    script.spread.handle_proven(FileId(1), 0..MIB);
    script.obey();
    let asked: Vec<_> =
        script.asks.values().map(|found| (found.file, found.at, found.left)).collect();
    assert_eq!(asked, [(FileId(0), 2 * MIB, MIB)]);
    assert_eq!(script.said, [(0, Command::Done { file: FileId(1) })]);
}

#[test]
fn an_empty_file_is_done_at_once_and_what_does_not_fit_is_refused() {
    let mut script = script(&[4_000], &[0]);
    script.obey();
    assert_eq!(script.said, [(0, Command::Done { file: FileId(0) })]);
    let add = |spread: &mut Spread, size, server| {
        spread.add_file(DataSize::from_bytes(size), &[ServerId(server)])
    };
    assert_eq!(add(&mut script.spread, 1, 9), Err(AddFileError::NoServer(ServerId(9))));
    assert_eq!(add(&mut script.spread, u64::MAX, 0), Err(AddFileError::TooMuch));
    let more =
        (1..SERVERS_MAX).all(|_| script.spread.add_server(ServerSettings::default()).is_ok());
    let last = script.spread.add_server(ServerSettings::default());
    assert!(more && last == Err(TooManyServersError));
}

#[test]
fn absurd_reports_do_no_harm() {
    let mut script = script(&[4_000, 4_000], &[20]);
    script.spread.handle_rtt(ServerId(0), Duration::MAX);
    script.spread.handle_up(ServerId(9), Duration::MAX, script.now);
    script.spread.handle_capacity(Some(Rate::ZERO));
    script.spread.handle_ceiling(Some(Rate::from_bits_per_sec(u64::MAX)));
    script.obey();
    let asks: Vec<(AskId, ServerId)> =
        script.asks.iter().map(|(&ask, found)| (ask, found.server)).collect();
    for (ask, server) in asks {
        for _ in 0..3 {
            let bytes = DataSize::from_bytes(u64::MAX);
            script.spread.handle_progress(server, ask, bytes, script.now);
            script.pass(100);
        }
    }
    script.spread.handle_proven(FileId(0), u64::MAX - 1..u64::MAX);
    #[expect(clippy::reversed_empty_ranges, reason = "a caller may compute one")]
    script.spread.handle_proven(FileId(0), 9 * MIB..2 * MIB);
    assert_eq!(script.spread.unfinished(), 1);
    script.spread.handle_proven(FileId(0), 0..20 * MIB);
    assert_eq!(script.spread.unfinished(), 0);
}

#[test]
fn servers_that_cannot_be_told_to_stop_have_one_piece_each_and_keep_it() {
    let asking = crate::Asking::Pieces(DataSize::from_bytes(8 * MIB));
    let settings = ServerSettings { asking, asks_max: 1, ..ServerSettings::default() };
    let mut script = script_with(&[settings; 2], &[1000, 1], &[40]);
    script.obey();
    let first: Vec<u64> = script.asks.values().map(|ask| ask.left).collect();
    assert_eq!(first, [8 * MIB, 8 * MIB]);
    // One is silent for a minute, in which the other one gets to the end several times: nothing is taken back, and nothing of
    // what the silent one has is asked for a second time.
    let silent = |script: &Script| {
        let mut asks = script.asks.values().filter(|ask| ask.server == ServerId(1));
        (asks.next().map(|ask| (ask.at, ask.left)), asks.count())
    };
    script.rates[1] = None;
    let (held, _) = silent(&script);
    let begin = held.unwrap().0;
    for _ in 0..60 {
        script.pass(1_000);
        assert_eq!(silent(&script), (Some((begin, 8 * MIB)), 0));
        let others: Vec<&Sending> =
            script.asks.values().filter(|ask| ask.server == ServerId(0)).collect();
        let [other] = others.as_slice() else { panic!("{} asks", others.len()) };
        let end = other.at + other.sent + other.left;
        assert!(end <= begin || other.at >= begin + 8 * MIB, "{} - {end}", other.at);
    }
    assert!(script.said.is_empty(), "{:?}", script.said);
}

#[test]
fn a_server_that_keeps_its_work_serves_beside_one_that_gives_it_back() {
    let asking = crate::Asking::Pieces(DataSize::from_bytes(8 * MIB));
    let keeps = ServerSettings { asking, asks_max: 2, ..ServerSettings::default() };
    let mut script = script_with(&[ServerSettings::default(), keeps], &[4000, 4000], &[2_000]);
    let of = |script: &Script, server| {
        let asks = script.asks.values().filter(|ask| ask.server == ServerId(server));
        asks.map(|ask| (ask.at, ask.left)).collect::<Vec<_>>()
    };
    script.pass(3_000);
    assert_eq!(of(&script, 1).len(), 2);
    // Both are silent. One loses its work, the other one keeps it.
    let kept = of(&script, 1);
    script.rates = vec![None, None];
    script.pass(4_000);
    assert_eq!((of(&script, 1), script.asked(0)), (kept, 0));
    let is_cut =
        |(_, command): &(u64, Command)| matches!(command, Command::Cut { server: ServerId(1), .. });
    assert!(!script.said.iter().any(is_cut), "{:?}", script.said);
}

#[test]
fn a_slow_server_that_keeps_its_work_does_not_begin_the_end_of_a_transfer() {
    let asking = crate::Asking::Pieces(DataSize::from_bytes(8 * MIB));
    let keeps = ServerSettings { asking, asks_max: 1, ..ServerSettings::default() };
    let mut script = script_with(&[ServerSettings::default(), keeps], &[40_000, 100], &[10]);
    script.spread.handle_rtt(ServerId(1), Duration::from_secs(10));
    script.obey();
    assert_eq!((script.asked(1), script.asked(0) > 0), (0, true));
}

#[test]
fn no_server_has_more_asks_than_it_may_have() {
    let few = ServerSettings { asks_max: 3, ..ServerSettings::default() };
    let mut script = script_with(&[few; 2], &[40_000, 1_000], &[2; 200]);
    for _ in 0..100 {
        script.pass(10);
        for server in [ServerId(0), ServerId(1)] {
            let asks = script.asks.values().filter(|ask| ask.server == server && ask.left > 0);
            assert!(asks.count() <= 3);
        }
    }
}

#[test]
fn nothing_out_of_reach_is_asked_for_and_everything_comes_once_it_is_in_reach() {
    let mut script = script(&[4000, 1000], &[40]);
    let reach = |script: &mut Script, mib| {
        script.spread.handle_reach(FileId(0), DataSize::from_bytes(mib * MIB));
    };
    let asked = |script: &Script| {
        script.asks.values().map(|ask| ask.at + ask.left).max().unwrap_or_default()
    };
    let mut furthest = 0;
    for end in (4..=40).step_by(4) {
        reach(&mut script, end);
        // Segments behind the reach stay unavailable.
        reach(&mut script, end - 2);
        for _ in 0..200 {
            script.pass(10);
            furthest = furthest.max(asked(&script));
            assert!(furthest <= end * MIB, "{furthest} of {end}");
        }
        assert_eq!(furthest, end * MIB, "all that is in reach is asked for");
    }
}
