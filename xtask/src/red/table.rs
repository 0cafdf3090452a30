//! What is weakened. The threats: T01 noise, T02 amplification, T03 floods, T04 forged messages, T06 addresses, T10
//! flipped bits, T11 replays, T12 keys, T13 downgrades, T14 identities, T16 lying receivers, T17 silence.

use super::Weakening;

const ROUTE: &str = "crates/net/src/route.rs";
const HALF_OPEN: &str = "crates/net/src/driver/half_open.rs";
const HANDSHAKE: &str = "crates/proto/src/handshake.rs";
const INPUT: &str = "crates/proto/src/connection/input.rs";
const MOVING: &str = "crates/proto/src/connection/moving.rs";
const ADDRESS: &str = "crates/proto/src/address.rs";
const KEYS: &str = "crates/proto/src/keys.rs";
const SENT: &str = "crates/proto/src/sent.rs";
const LIB: &[&str] = &["--lib"];
const ATTACK: &[&str] = &["--test", "attack"];
const RULES: &[&str] = &["--test", "rules"];
const OPS: &[&str] = &["--test", "ops"];

const fn net(
    name: &'static str,
    file: &'static str,
    (from, to): (&'static str, &'static str),
    test: &'static str,
) -> Weakening {
    Weakening { name, file, from, to, package: "hikyaku-net", target: LIB, test }
}

const fn proto(
    name: &'static str,
    file: &'static str,
    (from, to): (&'static str, &'static str),
    test: &'static str,
) -> Weakening {
    Weakening { name, file, from, to, package: "hikyaku-proto", target: LIB, test }
}

const fn sim(
    name: &'static str,
    file: &'static str,
    (from, to): (&'static str, &'static str),
    (target, test): (&'static [&'static str], &'static str),
) -> Weakening {
    Weakening { name, file, from, to, package: "hikyaku-sim", target, test }
}

const fn tls(
    name: &'static str,
    file: &'static str,
    (from, to): (&'static str, &'static str),
    test: &'static str,
) -> Weakening {
    Weakening { name, file, from, to, package: "hikyaku-crypto", target: LIB, test }
}

pub(super) const WEAKENINGS: &[Weakening] = &[
    net(
        "T01, short packets",
        ROUTE,
        ("if !is_long(datagram) || datagram.len() < MIN_INITIAL_LEN {", "if !is_long(datagram) {"),
        "noise_draws_only_the_two_short_answers",
    ),
    net(
        "T01, no invitation",
        ROUTE,
        (
            "if entrance == Entrance::Invited {",
            "if entrance == Entrance::Invited && header.version == Version::CURRENT {",
        ),
        "who_has_no_invitation_hears_nothing",
    ),
    sim(
        "T02, hs-3",
        HANDSHAKE,
        ("pub(crate) const AMPLIFICATION: u64 = 3;", "pub(crate) const AMPLIFICATION: u64 = 6;"),
        (ATTACK, "no_seed_makes_a_listener_say_more"),
    ),
    net(
        "T03, proof",
        ROUTE,
        (
            "let must_prove = load.half_open >= load.prove_from;",
            "let must_prove = load.prove_from > 1 << 40;",
        ),
        "a_flood_of_first_packets",
    ),
    net(
        "T03, one host",
        HALF_OPEN,
        ("const MOST_OF_HOST: usize = 64;", "const MOST_OF_HOST: usize = 6400;"),
        "a_host_that_only_begins_keeps_nobody_out",
    ),
    net(
        "T03, one invitation",
        HALF_OPEN,
        ("const MOST_OF_ID: usize = 4;", "const MOST_OF_ID: usize = 400;"),
        "an_invitation_that_was_seen_is_of_no_use_to_many",
    ),
    sim(
        "T04, forged ends",
        HANDSHAKE,
        (
            "let is_weak = level == Level::Initial && self.levels[1].keys.is_some();",
            "let is_weak = level == Level::Initial && self.received == 0;",
        ),
        (ATTACK, "forged"),
    ),
    proto(
        "T06, path-1",
        ADDRESS,
        ("_ if order == Order::Overtaken => {}", "_ if order > Order::Newest => {}"),
        "what_was_overtaken_moves_nobody",
    ),
    sim(
        "T06, path-2",
        ADDRESS,
        (
            "Some(claim) if claim.credit >= bytes => {\n                claim.credit -= bytes;",
            "Some(claim) => {\n                claim.credit = claim.credit.saturating_sub(bytes);",
        ),
        (OPS, "every_story_ends_well"),
    ),
    sim(
        "T06, path-4",
        MOVING,
        ("bytes * AMPLIFICATION", "bytes * AMPLIFICATION * 4"),
        (OPS, "every_story_ends_well"),
    ),
    net(
        "F07, path-4",
        MOVING,
        ("bytes * AMPLIFICATION", "bytes * AMPLIFICATION / 100"),
        "an_address_that_changes_in_the_handshake_ends_nothing",
    ),
    sim(
        "T10, auth-1",
        INPUT,
        (
            "            self.tally.undecryptable += 1;",
            "            self.tally.undecryptable += 1;\n            self.receipts.set_rtt(Duration::from_millis(1));",
        ),
        (ATTACK, "flipped_bits_change_nothing_but_a_counter"),
    ),
    sim(
        "T11, pn-2",
        "crates/proto/src/receive.rs",
        ("} else if self.has(pn) {", "} else if self.has(pn) && self.packets == 0 {"),
        (ATTACK, "a_capture_that_is_played_again_ten_times"),
    ),
    sim(
        "T12, key-1",
        KEYS,
        (
            "if self.sealed >= self.limit && self.confirmed {",
            "if self.sealed >= self.limit && self.confirmed && self.updates < 5 {",
        ),
        (ATTACK, "a_thousand_key_updates"),
    ),
    sim(
        "T12, forgeries",
        KEYS,
        (
            "self.forgeries >= self.most_forgeries",
            "self.forgeries > self.most_forgeries + (1 << 40)",
        ),
        (ATTACK, "more_forgeries_than_a_key_bears"),
    ),
    tls(
        "T13, hs-5, client's id",
        HANDSHAKE,
        (
            "let bound = params.original_destination == self.initial_destination.0;",
            "let bound = params.original_destination != 0;",
        ),
        "a_first_id_that_was_changed_on_the_way_is_noticed",
    ),
    sim(
        "T13, hs-5, peer's id",
        HANDSHAKE,
        ("if self.remote != Some(ConnectionId(params.source_id)) {", "if self.remote.is_none() {"),
        (RULES, "ids_that_are_not_those_of_the_packets"),
    ),
    net(
        "T14, pinned keys",
        "crates/crypto/src/trust.rs",
        (
            "Expected::Pin(pinned) if *pinned != shown => {",
            "Expected::Pin(pinned) if *pinned != shown && self.peer.to_string().is_empty() => {",
        ),
        "another_key_is_refused_with_a_remedy",
    ),
    sim(
        "T16, ack-6",
        SENT,
        (
            "out.forged |= self.skipped.iter().any(|pn| (from..end).contains(pn));",
            "out.forged |= self.skipped.is_empty() && from > end;",
        ),
        (ATTACK, "who_acknowledges_what_has_not_come_is_caught"),
    ),
    sim(
        "T17, loss-5",
        "crates/proto/src/recovery.rs",
        (
            "const OUTAGE_AFTER: Duration = Duration::from_secs(1);",
            "const OUTAGE_AFTER: Duration = Duration::from_secs(100);",
        ),
        (ATTACK, "who_hears_of_nothing_that_arrives_stops_to_probes"),
    ),
    sim(
        "T17, ever less",
        "crates/proto/src/recovery.rs",
        ("const OUTAGE_PROBES: u32 = 12;", "const OUTAGE_PROBES: u32 = 12_000;"),
        (RULES, "a_path_that_is_silent_gets_no_data"),
    ),
    sim(
        "ack-7, idle",
        "crates/proto/src/recovery.rs",
        (
            "self.log.in_flight() == 0 && self.repairs.is_empty()",
            "self.next_pn == 0 && self.repairs.is_empty()",
        ),
        (RULES, "places"),
    ),
    proto(
        "flow-1",
        "crates/proto/src/streams/incoming.rs",
        ("        if end > self.limit {", "        if end > self.limit + (1 << 40) {"),
        "limits_and_ends_are_enforced",
    ),
    proto(
        "tiny pieces",
        "crates/proto/src/run.rs",
        ("const SMALL: usize = 1024;", "const SMALL: usize = 0;"),
        "who_sends_a_byte_a_packet",
    ),
    sim(
        "rate-4, in step",
        "crates/cc/src/controller/others.rs",
        ("self.sights = self.sights.saturating_sub(1);", "self.sights = 0;"),
        (&["--test", "crowd"], "tcp_is_seen_though_its_cuts"),
    ),
];
