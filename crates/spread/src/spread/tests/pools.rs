//! Scripts with pools: connections of which a number is awake.

use super::*;
use crate::{Asking, PoolId};

/// Connections that carry one range after the other, all in one pool, of which none is awake.
fn pool(rates: &[u64], files: &[u64]) -> (Script, PoolId) {
    let asking = Asking::Ranges(DataSize::from_bytes(16 * MIB));
    let settings = ServerSettings { asking, asks_max: 1, ..ServerSettings::default() };
    let mut script = script_with(&vec![settings; rates.len()], rates, files);
    let members: Vec<ServerId> = (0..rates.len()).map(server_id).collect();
    let pool = script.spread.add_pool(&members, script.now);
    script.obey();
    script.said.clear();
    (script, pool)
}

impl Script {
    fn wake(&mut self, pool: PoolId, count: usize) {
        self.spread.wake(pool, count, self.now);
        self.obey();
    }

    /// The servers that have work.
    fn working(&self) -> Vec<u16> {
        let asked = self.asks.values().filter(|ask| ask.left > 0);
        let mut servers: Vec<u16> = asked.map(|ask| ask.server.0).collect();
        servers.sort_unstable();
        servers
    }

    fn rested(&self) -> Vec<u16> {
        let rested = self.said.iter().filter_map(|(_, command)| match command {
            Command::Rest { server } => Some(server.0),
            _ => None,
        });
        rested.collect()
    }
}

#[test]
fn only_members_that_are_awake_get_work_and_one_range_at_a_time() {
    let (mut script, pool) = pool(&[2_000; 6], &[1_000]);
    assert!(script.working().is_empty());
    script.wake(pool, 2);
    assert_eq!(script.working(), [0, 1]);
    script.wake(pool, 4);
    script.pass(20_000);
    assert_eq!(script.working(), [0, 1, 2, 3]);
}

#[test]
fn the_only_connection_is_asked_for_all_at_once() {
    let size = 300 * MIB + 1000;
    let (mut script, pool) = pool(&[2_000], &[]);
    script.spread.add_file(DataSize::from_bytes(size), &[server_id(0)]).unwrap();
    script.wake(pool, 1);
    let asked: Vec<u64> = script.asks.values().map(|ask| ask.left).collect();
    assert_eq!(asked, [size]);
}

#[test]
fn members_that_are_woken_get_a_share_of_the_ceiling_at_once() {
    let (mut script, pool) = pool(&[2_000; 6], &[1_000]);
    let ceiling = Rate::from_bits_per_sec(80_000_000);
    script.spread.handle_ceiling(Some(ceiling));
    let mut shares = [None; 6];
    for awake in [2, 5, 1, 6] {
        script.wake(pool, awake);
        for (_, command) in script.said.drain(..) {
            match command {
                Command::Cap { server, rate } => shares[usize::from(server.0)] = rate,
                Command::Rest { server } => shares[usize::from(server.0)] = None,
                _ => {}
            }
        }
        let given: Vec<u64> = shares.iter().flatten().map(|rate| rate.bits_per_sec()).collect();
        assert_eq!(given.len(), awake, "{shares:?}");
        assert!(given.iter().sum::<u64>() <= ceiling.bits_per_sec(), "{shares:?}");
        script.pass(100);
        script.said.clear();
    }
}

#[test]
fn a_range_is_at_most_what_a_connection_sends_in_four_seconds_and_a_share_of_the_rest() {
    let (mut script, pool) = pool(&[10_000; 2], &[1_000]);
    script.wake(pool, 2);
    let sizes = |script: &Script| script.asks.values().map(|ask| ask.left).collect::<Vec<_>>();
    assert_eq!(sizes(&script), [16 * MIB; 2]);
    script.pass(3_000);
    let most = script.asks.values().map(|ask| ask.left + ask.sent).max().unwrap();
    assert!((30 * MIB..=39 * MIB).contains(&most), "{most}");
    let (mut script, pool) = self::pool(&[10_000; 4], &[16]);
    script.wake(pool, 4);
    assert!(sizes(&script).iter().all(|size| *size <= 3 * MIB), "{:?}", sizes(&script));
}

#[test]
fn a_member_that_rests_keeps_a_second_of_work_and_the_others_get_the_rest() {
    let (mut script, pool) = pool(&[2_000; 4], &[1_000]);
    script.wake(pool, 4);
    script.pass(1_000);
    let free = script.spread.stock.free_bytes();
    script.wake(pool, 1);
    // One segment beside that may be under way.
    assert!((1..4).all(|server| script.asked(server) <= 2_000_000 + MIB));
    assert!(script.spread.stock.free_bytes() > free);
    let mut rested = script.rested();
    rested.sort_unstable();
    assert_eq!(rested, [1, 2, 3]);
    script.pass(2_000);
    assert_eq!(script.working(), [0]);
}

#[test]
fn a_member_that_is_lost_is_replaced_by_one_that_rests() {
    let (mut script, pool) = pool(&[2_000; 3], &[1_000]);
    script.wake(pool, 1);
    script.spread.handle_lost(ServerId(0), script.now);
    script.asks.clear();
    script.obey();
    assert_eq!(script.working(), [1]);
    // It comes back, and rests.
    script.spread.handle_up(ServerId(0), RTT, script.now);
    script.obey();
    assert_eq!(script.working(), [1]);
    assert_eq!(script.spread.stranded().count(), 0);
}

#[test]
fn an_idle_connection_takes_over_what_a_stalled_one_has() {
    let (mut script, pool) = pool(&[2_000, 2_000], &[8]);
    script.wake(pool, 2);
    script.rates[1] = None;
    let stalled = script.asks.values().find(|ask| ask.server == ServerId(1)).unwrap();
    let (begin, end) = (stalled.at, stalled.at + stalled.left);
    script.spread.handle_proven(FileId(0), 0..begin);
    script.spread.handle_proven(FileId(0), end..8 * MIB);
    script.pass(5_000);
    let is_cut =
        |(_, command): &(u64, Command)| matches!(command, Command::Cut { server: ServerId(1), .. });
    assert!(script.said.iter().any(is_cut), "{:?}", script.said);
}

#[test]
fn pools_and_members_that_are_not_known_do_no_harm() {
    let (mut script, pool) = pool(&[2_000], &[10]);
    let other = script.spread.add_pool(&[ServerId(9)], script.now);
    script.wake(other, 3);
    script.wake(PoolId(7), 3);
    assert!(script.working().is_empty());
    script.wake(pool, usize::MAX);
    assert_eq!(script.working(), [0]);
}
