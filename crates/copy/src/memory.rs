//! The memory that this process may take, by what the machine has left and what its control groups allow.

use std::fs;
use std::path::{Path, PathBuf};

/// Where nothing is known.
const PLENTY: u64 = 4 << 30;

/// Memory that this process may take, in bytes: the least of what the machine has left and what its control groups
/// allow.
pub fn available() -> u64 {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limits = groups.lines().flat_map(|line| limits(line, Path::new("/sys/fs/cgroup")));
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| free(&text));
    limits.chain(machine).min().unwrap_or(PLENTY)
}

/// `MemAvailable` of /proc/meminfo.
fn free(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// The limits of a group and of those above it; a line is `0::/path` of version 2 (cgroups(7)), or
/// `N:controllers:/path` of version 1.
fn limits(line: &str, root: &Path) -> Vec<u64> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
        return Vec::new();
    };
    let (root, file) = match controllers {
        "" => (root.to_path_buf(), "memory.max"),
        _ if controllers.split(',').any(|name| name == "memory") => {
            (root.join("memory"), "memory.limit_in_bytes")
        }
        _ => return Vec::new(),
    };
    let group: PathBuf = root.join(path.trim_start_matches('/'));
    let groups = group.ancestors().take_while(|group| group.starts_with(&root));
    let texts = groups.filter_map(|group| fs::read_to_string(group.join(file)).ok());
    // "max" is no limit.
    texts.filter_map(|text| text.trim().parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_of_all_limits_counts() {
        let root = std::env::temp_dir().join(format!("hikyaku-memory-{}", std::process::id()));
        let group = root.join("user/copy");
        fs::create_dir_all(&group).unwrap();
        fs::write(group.join("memory.max"), "max\n").unwrap();
        fs::write(root.join("user/memory.max"), "67108864\n").unwrap();
        assert_eq!(limits("0::/user/copy", &root), [64 << 20]);
        fs::create_dir_all(root.join("memory/a")).unwrap();
        fs::write(root.join("memory/a/memory.limit_in_bytes"), "5\n").unwrap();
        assert_eq!(limits("7:cpu,memory:/a", &root), [5]);
        for line in ["", "1:cpu:/a", "0::/../..", "0::/gone"] {
            assert!(limits(line, &root).is_empty(), "{line}");
        }
        fs::remove_dir_all(root).unwrap();
        assert_eq!(free("MemTotal: 9 kB\nMemAvailable:    3 kB\n"), Some(3072));
        assert!(available() > 0);
    }
}
