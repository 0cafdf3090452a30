//! The memory of a million files, as the kernel counts it.

use hikyaku_spread::{Command, ServerId, ServerSettings, Settings, Spread, Work};
use hikyaku_units::{DataSize, Instant};
use std::time::Duration;

const FILES: u32 = 1_000_000;

/// Bytes a file, with its entry in the lists of its group.
const FILE_BYTES_MAX: u64 = 200;

/// Resident bytes of this process; `None` without `/proc`.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kib| kib << 10)
}

#[test]
fn a_million_files_cost_at_most_200_bytes_each() {
    let Some(before) = resident() else {
        println!("SKIPPED: /proc/self/status does not tell the resident memory");
        return;
    };
    let mut spread = Spread::new(Settings::default());
    let now = Instant::ZERO;
    let servers: Vec<ServerId> = (0..13)
        .map(|_| {
            let server = spread.add_server(ServerSettings::default()).expect("thirteen fit");
            spread.handle_up(server, Duration::from_millis(150), now);
            server
        })
        .collect();
    for file in 0..FILES as usize {
        // Small ones, whole ones, and 78 groups.
        let size = if file.is_multiple_of(2) { 10_000 } else { 3 << 20 };
        let replicas = [servers[file % 13], servers[(file / 13) % 13]];
        spread.add_file(DataSize::from_bytes(size), &replicas).expect("it fits");
    }
    let full = resident().expect("it told before");
    let each = (full - before) / u64::from(FILES);
    println!("{each} bytes a file");
    assert!(each <= FILE_BYTES_MAX, "{each} bytes a file");

    // Requested and proven parts leave no memory in use.
    let mut now = now;
    while spread.unfinished() > FILES as usize / 2 {
        now += Duration::from_millis(100);
        let mut asked = Vec::new();
        while let Some(command) = spread.poll_command(now) {
            if let Command::Ask { server, ask, work } = command {
                asked.push((server, ask, work));
            }
        }
        for (server, ask, work) in asked {
            let (files, size) = match work {
                Work::Ranges { file, .. } => (vec![file], 3 << 20),
                Work::Files(files) => {
                    let size = files.len() as u64 * 10_000;
                    (files, size)
                }
            };
            spread.handle_progress(server, ask, DataSize::from_bytes(size), now);
            files.into_iter().for_each(|file| spread.handle_proven(file, 0..u64::MAX));
            spread.handle_end(server, ask, now);
        }
    }
    let half = resident().expect("it told before");
    assert!(half <= full + full / 20, "{half} bytes after half of the files, {full} before");
}
