//! Parsers of the files of `/proc` (proc(5)).
// The kernel writes them, so no peer can choose them.

/// Times of all processors since the start of the machine, in ticks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ticks {
    pub(crate) busy: u64,
    pub(crate) all: u64,
}

/// The times of all processors together, and their number, of `/proc/stat`.
pub(crate) fn ticks(stat: &str) -> Option<(Ticks, u32)> {
    let rest = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    // The time of guests, which follows, is part of that of users.
    let fields: Vec<u64> =
        rest.split_whitespace().take(8).map_while(|field| field.parse().ok()).collect();
    let idle = fields.get(3)? + fields.get(4)?;
    let all: u64 = fields.iter().sum();
    // The line of all processors has no number.
    let is_processor = |line: &&str| {
        line.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let processors = stat.lines().filter(is_processor).count() as u32;
    Some((Ticks { busy: all.saturating_sub(idle), all }, processors))
}

/// Bytes of memory in use and in all, of `/proc/meminfo`.
pub(crate) fn memory(meminfo: &str) -> Option<(u64, u64)> {
    let total = kilobytes(meminfo, "MemTotal:")?;
    let available = kilobytes(meminfo, "MemAvailable:")?;
    Some((total.saturating_sub(available), total))
}

/// The value of a line in bytes, which the file gives in kB.
pub(crate) fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: u64 = rest.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// The value of a line `name: NUMBER`.
pub(crate) fn number(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
}

/// The mean load of a minute, of `/proc/loadavg`.
pub(crate) fn load(loadavg: &str) -> Option<f64> {
    loadavg.split_whitespace().next()?.parse().ok()
}

/// Milliseconds in which a device had requests, of `/proc/diskstats`.
pub(crate) fn busy_millis(diskstats: &str, (major, minor): (u32, u32)) -> Option<u64> {
    let of_device = |line: &str| {
        let mut fields = line.split_whitespace();
        let device = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        (device == (major, minor)).then(|| fields.nth(10)?.parse().ok())?
    };
    diskstats.lines().find_map(of_device)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_texts_of_the_kernel_are_understood() {
        let stat = "cpu  100 5 50 800 40 1 2 2 9 0\ncpu0 50 2 25 400 20 1 1 1 0 0\n\
                    cpu1 50 3 25 400 20 0 1 1 0 0\nintr 5\nctxt 1\n";
        assert_eq!(ticks(stat), Some((Ticks { busy: 160, all: 1000 }, 2)));
        let meminfo = "MemTotal:       1000 kB\nMemFree: 1 kB\nMemAvailable:    400 kB\n";
        assert_eq!(memory(meminfo), Some((600 << 10, 1000 << 10)));
        let io = "rchar: 1\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 3\n";
        assert_eq!(number(io, "read_bytes:"), Some(4096));
        assert_eq!(number(io, "write_bytes:"), Some(8192));
        assert_eq!(load("0.25 0.5 1.0 1/300 77\n"), Some(0.25));
        let disks = "   7       0 loop0 1 2 3 4 5 6 7 8 9 10 11\n 259       1 nvme0n1p1 9 0 8 0 5 0 6 0 0 1234 77 0\n";
        assert_eq!(busy_millis(disks, (259, 1)), Some(1234));
        assert_eq!(busy_millis(disks, (8, 0)), None);
    }

    #[test]
    fn other_texts_say_nothing() {
        for text in ["", "cpu", "cpu  1 2 3", "MemTotal: many kB", "x"] {
            assert_eq!((ticks(text), memory(text), load(text)), (None, None, None), "{text}");
        }
    }
}
