//! Defences of the transport that are weakened. A name begins with the threat that the weakened code prevents, and ends
//! with the rule of the protocol or the detail.

use super::Weakening;

const ROUTE: &str = "crates/net/src/route.rs";
const HALF_OPEN: &str = "crates/net/src/driver/half_open.rs";
const HANDSHAKE: &str = "crates/proto/src/handshake.rs";
const INPUT: &str = "crates/proto/src/connection/input.rs";
const MOVING: &str = "crates/proto/src/connection/moving.rs";
const ADDRESS: &str = "crates/proto/src/address.rs";
const KEYS: &str = "crates/proto/src/keys.rs";
const BUDGET: &str = "crates/proto/src/connection/budget.rs";
const SENT: &str = "crates/proto/src/sent.rs";
const SOCKET: &str = "crates/udp/src/configure/linux.rs";

/// A package and the tests of it: `--lib`, or `--test` and a name.
pub(super) type Tests = (&'static str, &'static [&'static str]);

const NET: Tests = ("hikyaku-net", &["--lib"]);
const PROTO: Tests = ("hikyaku-proto", &["--lib"]);
const TLS: Tests = ("hikyaku-crypto", &["--lib"]);
const SIM: Tests = ("hikyaku-sim", &["--test", "sim"]);
const CC: Tests = ("hikyaku-cc", &["--lib"]);
const COPY: Tests = ("hikyaku-copy", &["--lib"]);
const PAIR: Tests = ("hikyaku-pair", &["--lib"]);
const REMOTE: Tests = ("hikyaku-remote", &["--lib"]);
const SECRETS: Tests = ("hikyaku-cli", &["--test", "e2e"]);

pub(super) const fn weak(
    name: &'static str,
    file: &'static str,
    (from, to): (&'static str, &'static str),
    (package, target): Tests,
    test: &'static str,
) -> Weakening {
    Weakening { name, file, from, to, package, target, test }
}

pub(super) const WEAKENINGS: &[Weakening] = &[
    weak(
        "noise, short packets",
        ROUTE,
        ("if !is_long(datagram) || datagram.len() < MIN_INITIAL_LEN {", "if !is_long(datagram) {"),
        NET,
        "noise_draws_only_the_two_short_answers",
    ),
    weak(
        "noise, no invitation",
        ROUTE,
        (
            "if entrance == Entrance::Invited {",
            "if entrance == Entrance::Invited && header.version == Version::CURRENT {",
        ),
        NET,
        "who_has_no_invitation_hears_nothing",
    ),
    weak(
        "amplification, hs-3",
        HANDSHAKE,
        ("pub(crate) const AMPLIFICATION: u64 = 3;", "pub(crate) const AMPLIFICATION: u64 = 6;"),
        SIM,
        "no_seed_makes_a_listener_say_more",
    ),
    weak(
        "flood, proof",
        ROUTE,
        (
            "let must_prove = load.half_open >= load.prove_from;",
            "let must_prove = load.prove_from > 1 << 40;",
        ),
        NET,
        "a_flood_of_first_packets",
    ),
    weak(
        "flood, one host",
        HALF_OPEN,
        (
            "const HALF_OPEN_PER_HOST_MAX: usize = 64;",
            "const HALF_OPEN_PER_HOST_MAX: usize = 6400;",
        ),
        NET,
        "a_host_that_only_begins_keeps_nobody_out",
    ),
    weak(
        "flood, one invitation",
        HALF_OPEN,
        ("const HALF_OPEN_PER_ID_MAX: usize = 4;", "const HALF_OPEN_PER_ID_MAX: usize = 400;"),
        NET,
        "an_invitation_that_was_seen_is_of_no_use_to_many",
    ),
    weak(
        "forged messages, forged ends",
        HANDSHAKE,
        (
            "let is_weak = level == Level::Initial && self.levels[1].keys.is_some();",
            "let is_weak = level == Level::Initial && self.received == 0;",
        ),
        SIM,
        "forged",
    ),
    weak(
        "forged messages, too big",
        SOCKET,
        ("libc::IP_PMTUDISC_PROBE", "libc::IP_PMTUDISC_DO"),
        NET,
        "forged_messages_of_the_network_end_nothing",
    ),
    weak(
        "forged messages, too big, IPv6",
        SOCKET,
        ("libc::IPV6_PMTUDISC_PROBE", "libc::IPV6_PMTUDISC_DO"),
        NET,
        "forged_messages_of_ipv6_end_nothing",
    ),
    weak(
        "connection ids",
        "crates/net/src/ids.rs",
        ("ConnectionId((random & !0xff) | byte)", "ConnectionId((random & 0xff00) | byte)"),
        NET,
        "an_id_names_its_driver_and_is_random_otherwise",
    ),
    weak(
        "addresses, path-1",
        ADDRESS,
        ("_ if order == Order::Overtaken => {}", "_ if order > Order::Newest => {}"),
        PROTO,
        "what_was_overtaken_moves_nobody",
    ),
    weak(
        "addresses, path-2",
        ADDRESS,
        (
            "Some(claim) if claim.credit >= bytes => {\n                claim.credit -= bytes;",
            "Some(claim) => {\n                claim.credit = claim.credit.saturating_sub(bytes);",
        ),
        SIM,
        "every_story_ends_well",
    ),
    weak(
        "addresses, path-4",
        MOVING,
        ("bytes * AMPLIFICATION", "bytes * AMPLIFICATION * 4"),
        SIM,
        "every_story_ends_well",
    ),
    weak(
        "F07, path-4",
        MOVING,
        ("bytes * AMPLIFICATION", "bytes * AMPLIFICATION / 100"),
        NET,
        "an_address_that_changes_in_the_handshake_ends_nothing",
    ),
    weak(
        "flipped bits, auth-1",
        INPUT,
        (
            "            self.tally.undecryptable += 1;",
            "            self.tally.undecryptable += 1;\n            self.receipts.set_rtt(Duration::from_millis(1));",
        ),
        SIM,
        "flipped_bits_change_nothing_but_a_counter",
    ),
    weak(
        "replays, pn-2",
        "crates/proto/src/receive.rs",
        ("} else if self.has(pn) {", "} else if self.has(pn) && self.packets == 0 {"),
        SIM,
        "a_capture_that_is_played_again_ten_times",
    ),
    weak(
        "keys, key-1",
        KEYS,
        (
            "if self.sealed >= self.limit && self.confirmed {",
            "if self.sealed >= self.limit && self.confirmed && self.updates < 5 {",
        ),
        SIM,
        "a_thousand_key_updates",
    ),
    weak(
        "keys, forgeries",
        KEYS,
        (
            "self.forgeries >= self.most_forgeries",
            "self.forgeries > self.most_forgeries + (1 << 40)",
        ),
        SIM,
        "more_forgeries_than_a_key_bears",
    ),
    weak(
        "downgrades, hs-5, client's id",
        HANDSHAKE,
        (
            "let bound = params.original_destination == self.initial_destination.0;",
            "let bound = params.original_destination != 0;",
        ),
        TLS,
        "a_first_id_that_was_changed_on_the_way_is_noticed",
    ),
    weak(
        "downgrades, hs-5, peer's id",
        HANDSHAKE,
        ("if self.remote != Some(ConnectionId(params.source_id)) {", "if self.remote.is_none() {"),
        SIM,
        "ids_that_are_not_those_of_the_packets",
    ),
    weak(
        "identities, pinned keys",
        "crates/crypto/src/trust.rs",
        (
            "Expected::Pin(pinned) if *pinned != shown => {",
            "Expected::Pin(pinned) if *pinned != shown && self.peer.to_string().is_empty() => {",
        ),
        NET,
        "another_key_is_refused_and_both_keys_are_named",
    ),
    weak(
        "secrets, cores",
        "crates/crypto/src/cores.rs",
        ("current: Some(0), ..now", "current: now.current, ..now"),
        SECRETS,
        "the_secret_of_a_copy_is_not_to_be_seen",
    ),
    weak(
        "lying receivers, ack-6",
        SENT,
        (
            "out.forged |= self.is_skipped(from, end);",
            "out.forged |= self.skipped.is_empty() && from > end;",
        ),
        SIM,
        "who_acknowledges_what_has_not_come_is_caught",
    ),
    weak(
        "lying receivers, loss-6",
        "crates/proto/src/recovery.rs",
        ("            self.log.give_up(until);\n", ""),
        PROTO,
        "what_is_not_spoken_of_is_asked_for",
    ),
    weak(
        "lying receivers, what is passed over",
        "crates/proto/src/recovery.rs",
        ("self.log.forget_behind(now, memory, before);", "let _ = before;"),
        SIM,
        "who_never_speaks_of_a_packet",
    ),
    weak(
        "lying receivers, ack-8",
        BUDGET,
        ("self.frames() > MOST_FRAMES", "self.frames() > MOST_FRAMES << 20"),
        SIM,
        "who_acknowledges_no_answer",
    ),
    weak(
        "lying receivers, copies of copies",
        "crates/proto/src/recovery/repairs.rs",
        ("const MOST_WAITING: usize = 1 << 16;", "const MOST_WAITING: usize = 1 << 30;"),
        PROTO,
        "a_range_whose_copies_are_all_lost",
    ),
    weak(
        "silence, loss-5",
        "crates/proto/src/recovery.rs",
        (
            "const OUTAGE_AFTER: Duration = Duration::from_secs(1);",
            "const OUTAGE_AFTER: Duration = Duration::from_secs(100);",
        ),
        SIM,
        "who_hears_of_nothing_that_arrives_stops_to_probes",
    ),
    weak(
        "silence, ever less",
        "crates/proto/src/recovery/asking.rs",
        ("const OUTAGE_PROBES: u32 = 12;", "const OUTAGE_PROBES: u32 = 12_000;"),
        SIM,
        "a_path_that_is_silent_gets_no_data",
    ),
    weak(
        "ack-7, idle",
        "crates/proto/src/recovery.rs",
        (
            "self.log.in_flight() == 0 && self.repairs.is_empty()",
            "self.next_pn == 0 && self.repairs.is_empty()",
        ),
        SIM,
        "rules::places",
    ),
    weak(
        "flow-1",
        "crates/proto/src/streams/incoming.rs",
        (
            "        if end > self.window.limit() {",
            "        if end > self.window.limit() + (1 << 40) {",
        ),
        PROTO,
        "limits_and_ends_are_enforced",
    ),
    weak(
        "stream-1, halves",
        "crates/proto/src/connection/over.rs",
        ("if !by_peer || is_left {", "if !by_peer || streams.incoming.contains_key(&id) {"),
        SIM,
        "a_stream_of_which_one_half_is_left",
    ),
    weak(
        "many pieces",
        INPUT,
        (
            "if self.streams.pieces > self.most_pieces() {",
            "if self.streams.pieces > self.most_pieces() << 20 {",
        ),
        SIM,
        "streams_in_ever_more_pieces",
    ),
    weak(
        "buffers",
        INPUT,
        ("let sparse = self.fresh(&runs) <", "let sparse = payload <"),
        SIM,
        "a_buffer_full_of_what_has_come",
    ),
    weak(
        "tiny pieces",
        "crates/proto/src/run.rs",
        ("const SMALL: usize = 1024;", "const SMALL: usize = 0;"),
        PROTO,
        "who_sends_a_byte_a_packet",
    ),
    weak(
        "a sender's names",
        "crates/fs/src/shown.rs",
        ("!(c.is_control() || c == ", "!(c == '\\0' || c == "),
        PAIR,
        "a_sender_that_says_anything_touches_nothing_else",
    ),
    weak(
        "a list's names",
        "crates/copy/src/plan.rs",
        (
            "(FarNames::Checked, files) => Allowed::listed(files, depth),",
            "(FarNames::Checked, _) => Allowed::anything(),",
        ),
        COPY,
        "a_list_limits_the_names_that_the_far_side_may_send",
    ),
    weak(
        "a link in the place of a source",
        "crates/pair/src/walk.rs",
        (
            "hikyaku_transfer::Links::Kept => Links::Kept,",
            "hikyaku_transfer::Links::Kept => Links::Followed,",
        ),
        PAIR,
        "a_source_exchanged_for_a_link_is_never_followed",
    ),
    weak(
        "rate-6, what is known",
        "crates/cc/src/controller.rs",
        ("        self.neighbours.carried(rate);\n", ""),
        SIM,
        "who_comes_late_to_four_flows_of_bbr",
    ),
    weak(
        "rate-4, in step",
        "crates/cc/src/controller/others.rs",
        ("self.sights = self.sights.saturating_sub(self.doubt(now));", "self.sights = 0;"),
        SIM,
        "tcp_is_seen_though_its_cuts",
    ),
    weak(
        "rate-4, a deep queue",
        "crates/cc/src/controller/others.rs",
        ("Some(Others::Patient) => kept > SLOWLY,", "Some(Others::Patient) => stayed > NOBODY,"),
        SIM,
        "who_has_half_of_a_deep_queue_beside_bbr",
    ),
    weak(
        "rate-6, probes",
        "crates/cc/src/compete/deaf.rs",
        ("true if pulses >= PULSES =>", "true if pulses > ROUNDS =>"),
        CC,
        "who_lengthens_the_queue_every_eight_rounds",
    ),
    weak(
        "rate-7, a brake",
        "crates/cc/src/brake.rs",
        ("self.part /= 2.0;", "self.part /= 1.0;"),
        SIM,
        "a_fixed_rate_that_a_path_does_not_bear",
    ),
    weak(
        "ack-4, a flood of ACKs",
        "crates/proto/src/receive.rs",
        ("const MOST_SLICES: u32 = 16;", "const MOST_SLICES: u32 = u32::MAX;"),
        PROTO,
        "who_asks_and_lets_its_floor_lie",
    ),
    weak(
        "crumbs",
        "crates/net/src/driver/entry.rs",
        (
            "self.take_deliveries(now, wakes, MOST_CRUMBS);",
            "self.take_deliveries(now, wakes, u64::MAX);",
        ),
        NET,
        "crumbs_that_nobody_reads",
    ),
    weak(
        "spread, work of a server that was lost",
        "crates/spread/src/spread.rs",
        ("asks.iter().for_each(|ask| self.give_back(ask));", ""),
        ("hikyaku-spread", &["--test", "chaos"]),
        "every_file_is_completed_whatever_happens",
    ),
    weak(
        "spread, servers without the file",
        "crates/spread/src/spread/end.rs",
        ("part.hold == Hold::Copy || stock.group(part.file).replicas().contains(server)", "true"),
        ("hikyaku-spread", &["--test", "chaos"]),
        "every_file_is_completed_whatever_happens",
    ),
    weak(
        "spread, quiet servers",
        "crates/spread/src/spread/watch.rs",
        ("if is_silent && self.client.target == Target::Ready {", "if false {"),
        ("hikyaku-spread", &["--lib"]),
        "a_silent_server_is_quiet_after_two_seconds",
    ),
    weak(
        "upload, another hash",
        "crates/remote/src/server/put.rs",
        ("match hash == FileHash(*blake3::hash(bytes).as_bytes()) {", "match hash == hash {"),
        REMOTE,
        "bytes_that_are_not_what_their_hash_says_are_not_written",
    ),
    weak(
        "upload, bytes missing",
        "crates/remote/src/server/put.rs",
        ("file.filter(|file| file.size == bytes)", "file.filter(|file| file.size >= bytes)"),
        REMOTE,
        "a_file_of_which_bytes_are_missing_gets_no_name",
    ),
    weak(
        "upload, not synced",
        "crates/remote/src/server/name.rs",
        ("    draft.sync()?;\n", ""),
        REMOTE,
        "a_file_that_does_not_reach_the_disk_gets_no_name",
    ),
];
