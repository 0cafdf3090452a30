//! Which quality of JPEG a path carries while a sequence plays.
//!
//! The quality goes one step down when frames come late because of the path, and one step up when frames of twice the size
//! would come in time. If the rate of the path is unknown, a higher quality is tried from time to time.

/// Observations of the frames of about half a second.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Seen {
    pub(crate) frames_per_sec: f64,
    pub(crate) bytes_per_sec: f64,
    pub(crate) lack: Lack,
}

/// The cause of late frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lack {
    /// Nothing: all that were wanted were read.
    Nothing,
    Path,
    /// The server, which makes them.
    Server,
}

/// The quality of now.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Quality {
    step: usize,
    /// Bytes a second that the path has carried.
    carried: f64,
    /// Looks since the last step.
    looks: u32,
}

/// Qualities of JPEG from the best one on.
const STEPS: [u8; 6] = [95, 90, 80, 70, 55, 40];
/// The one to begin with.
const FIRST: usize = 1;
/// Frames that come at less than this part of the rate that is wanted are late.
const LATE: f64 = 0.95;
/// The part of the path that frames may need.
const USED: f64 = 0.8;
/// Looks without a lack until a better quality is tried.
const PATIENCE: u32 = 6;

impl Quality {
    pub(crate) const fn new() -> Self {
        Self { step: FIRST, carried: 0.0, looks: 0 }
    }

    /// The quality of JPEG, 1 to 100.
    pub(crate) fn jpeg(&self) -> u8 {
        STEPS.get(self.step).copied().unwrap_or(STEPS[FIRST])
    }

    /// Takes what was seen while `fps` frames a second were wanted.
    pub(crate) fn look(&mut self, seen: Seen, fps: f64) {
        if seen.frames_per_sec <= 0.0 {
            return;
        }
        self.looks += 1;
        self.carried = match seen.lack {
            Lack::Path => seen.bytes_per_sec,
            Lack::Nothing | Lack::Server => self.carried.max(seen.bytes_per_sec),
        };
        let frame_bytes = seen.bytes_per_sec / seen.frames_per_sec;
        let is_late = seen.frames_per_sec < LATE * fps;
        let has_room = 2.0 * frame_bytes * fps < USED * self.carried;
        match seen.lack {
            Lack::Path if is_late => self.go(self.step + 1),
            Lack::Nothing | Lack::Path if has_room => self.go(self.step.saturating_sub(1)),
            Lack::Nothing if self.looks >= PATIENCE => self.go(self.step.saturating_sub(1)),
            _ => {}
        }
    }

    fn go(&mut self, step: usize) {
        (self.step, self.looks) = (step.min(STEPS.len() - 1), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates `looks` observations of a path that carries `path` bytes a second. A frame of the best quality has a megabyte,
    /// and one of each lower quality half of the last.
    fn play(quality: &mut Quality, path: f64, fps: f64, looks: u32) {
        for _ in 0..looks {
            let frame = 1e6 / f64::from(1u32 << quality.step);
            let (wanted, possible) = (fps * frame, path);
            let lack = if wanted > possible { Lack::Path } else { Lack::Nothing };
            let bytes_per_sec = wanted.min(possible);
            let frames_per_sec = bytes_per_sec / frame;
            quality.look(Seen { frames_per_sec, bytes_per_sec, lack }, fps);
        }
    }

    #[test]
    fn the_quality_follows_the_path() {
        let mut quality = Quality::new();
        play(&mut quality, 100e6, 30.0, 20);
        assert_eq!(quality.jpeg(), 95);
        play(&mut quality, 4e6, 30.0, 5);
        assert_eq!(quality.jpeg(), 70, "{quality:?}");
        play(&mut quality, 100e6, 30.0, 30);
        assert_eq!(quality.jpeg(), 95);
        play(&mut quality, 1e3, 30.0, 9);
        assert_eq!(quality.jpeg(), 40);
    }

    #[test]
    fn a_slow_server_does_not_cost_quality() {
        let mut quality = Quality::new();
        for _ in 0..20 {
            let seen = Seen { frames_per_sec: 3.0, bytes_per_sec: 3e6, lack: Lack::Server };
            quality.look(seen, 30.0);
        }
        assert_eq!(quality.jpeg(), STEPS[FIRST]);
    }
}
