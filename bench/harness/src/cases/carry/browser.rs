//! Bench web: a download by Chromium from Apache over 200 ms without a limit of the rate, beside the same chain without the
//! delay; and TCP with socket buffers of several fixed sizes.

use super::gateways;
use crate::bench::{Bench, Order};
use crate::record::row::{Bar, Cell, CellResult, Row};
use crate::rig::context::Ctx;
use crate::rig::costs::Busy;
use crate::rig::files::{random_file, same};
use crate::rig::line::{End, Line};
use crate::rig::link::path;
use crate::rig::ssh::{Medium, Rig};
use anyhow::{Context, Result, bail, ensure};
use hikyaku_lab::LabSpec;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};
use xtask::{Running, workspace};

pub(crate) const BENCH: Bench = Bench {
    id: "web",
    title: "Web: 1 GB by Chromium from Apache over 200 ms, without a limit of the rate",
    method: "`hikyaku web --headless` runs Chromium, which saves a file in RAM; Apache (HTTP/1.1) has it in RAM beside \
             the far gateway. The lab delays packets and limits no rate, so the processors of this machine are the \
             limit: `of 0 ms` compares with the same chain without delay in the same run. `rate` is from the first \
             byte in the file that Chromium writes to the last one, `whole` from the start of `hikyaku web`. `CPU` is \
             what the whole machine worked for a gigabyte. What arrived is compared by `diff`. `tcp` cells are one \
             TCP connection (CUBIC) without any gateway, with SO_RCVBUF and SO_SNDBUF of that size at both ends.",
    cells,
    run,
    order: Order::ByRound,
    compare,
};

/// Milliseconds of a round trip for the browser.
const DELAYS: [u32; 2] = [0, 200];
/// Sizes of socket buffers, in megabytes.
const BUFFERS: [u32; 6] = [25, 50, 75, 100, 125, 150];
const BYTES: u64 = 1_000_000_000;
const WEB: u16 = 8000;
const CAP: Duration = Duration::from_secs(180);
/// How often the size of the file is looked at.
const LOOK: Duration = Duration::from_millis(10);

fn cells(_: &Ctx) -> Vec<Cell> {
    let browser = DELAYS.map(|rtt| {
        Cell::new(format!("chromium-{rtt}ms")).with("RTT ms", rtt).with("who", "hikyaku web")
    });
    let tcp = BUFFERS.map(|buffer| {
        let cell = Cell::new(format!("tcp-{buffer}MB")).with("RTT ms", 200).with("who", "TCP");
        cell.with("SO_RCVBUF MB", buffer)
    });
    browser.into_iter().chain(tcp).collect()
}

fn run(ctx: &Ctx, cell: &Cell) -> Result<Row> {
    let bytes = if ctx.is_quick() { BYTES / 5 } else { BYTES };
    let rtt = format!("{}ms", cell.setting("RTT ms"));
    let path = path(&[("rtt", &rtt)])?;
    let spec = LabSpec { path, seed: u64::from(ctx.round()), ..LabSpec::default() };
    let rig = Rig::up(spec, Medium::Ram, &workspace())?;
    let row = match cell.setting("SO_RCVBUF MB") {
        "" => browser(ctx, &rig, bytes)?,
        megabytes => tcp(&rig, bytes, megabytes.parse()?)?,
    };
    let report = rig.report()?;
    Ok(match report.valid {
        true => row,
        false => row.note(format!("INVALID: {}", report.problems.join(", "))),
    })
}

/// A download by Chromium.
fn browser(ctx: &Ctx, rig: &Rig, bytes: u64) -> Result<Row> {
    random_file(&rig.at(End::Server, "data.bin"), bytes, 1)?;
    let _apache = apache(rig)?;
    gateways::wait_for_web(rig, &rig.server(), WEB)?;
    let downloads = rig.at(End::Client, "downloads");
    fs::create_dir(&downloads)?;
    rig.restart()?;
    let program = ctx.hikyaku()?;
    let line = Line::new(program).words("web -F").arg(rig.config());
    let line = line.arg("--remote-path").arg(program).arg("far");
    let line = line.arg(format!("http://{}:{WEB}/data.bin", rig.server()));
    let line = line.words("--headless --downloads").arg(&downloads);
    let (busy, began) = (Busy::now()?, Instant::now());
    let mut running = rig.start(&line.variable("TMPDIR", rig.at(End::Client, "")))?;
    let seconds = watch(&mut running, &downloads, bytes)?;
    let whole = began.elapsed().as_secs_f64();
    let cpu = busy.since()? / (bytes as f64 / 1e9);
    running.stop()?;
    let file = largest(&downloads).context("the file is gone")?.1;
    same(&rig.at(End::Server, "data.bin"), &file)?;
    let rate = |seconds: f64| bytes as f64 * 8.0 / seconds / 1e6;
    Ok(Row::new()
        .with("rate", rate(seconds), "Mbit/s")
        .with("whole", rate(whole), "Mbit/s")
        .with("CPU", cpu, "s/GB"))
}

/// Seconds from the first byte in a file of the folder to so many.
fn watch(running: &mut Running, folder: &Path, bytes: u64) -> Result<f64> {
    let began = Instant::now();
    let mut first = None;
    loop {
        let size = largest(folder).map_or(0, |(size, _)| size);
        if size > 0 {
            let first = *first.get_or_insert_with(Instant::now);
            if size >= bytes {
                return Ok(first.elapsed().as_secs_f64());
            }
        }
        if let Some(finished) = running.wait_for(LOOK)? {
            finished.success()?;
            bail!("the browser has ended");
        }
        ensure!(began.elapsed() < CAP, "the download takes too long");
    }
}

/// The largest file of a folder.
fn largest(folder: &Path) -> Option<(u64, std::path::PathBuf)> {
    let files = fs::read_dir(folder).ok()?.flatten();
    files.filter_map(|file| Some((file.metadata().ok()?.len(), file.path()))).max()
}

/// Apache at the far end: HTTP/1.1, and the folder of the far end.
fn apache(rig: &Rig) -> Result<Running> {
    const MODULES: &str = "/usr/lib/apache2/modules";
    ensure!(Path::new(MODULES).is_dir(), "no Apache is here\ntry: apt-get install apache2");
    let folder = rig.at(End::Server, "");
    // Apache reads it as a user without rights.
    for folder in folder.ancestors().take(2) {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?;
    }
    let folder = folder.display();
    let modules: String = ["mpm_event", "authz_core"]
        .map(|name| format!("LoadModule {name}_module {MODULES}/mod_{name}.so\n"))
        .into_iter()
        .collect();
    let configuration = format!(
        "ServerRoot {folder}\nDefaultRuntimeDir {folder}\nServerName far\n{modules}\
         Listen {WEB}\nUser nobody\nGroup nogroup\nPidFile {folder}/apache.pid\nErrorLog {folder}/apache.log\n\
         DocumentRoot {folder}\nEnableSendfile On\n"
    );
    let file = rig.at(End::Server, "apache.conf");
    fs::write(&file, configuration)?;
    rig.start_far(&Line::new("/usr/sbin/apache2").args(["-D", "FOREGROUND", "-f"]).arg(file))
}

/// One connection of TCP with buffers of so many megabytes.
fn tcp(rig: &Rig, bytes: u64, megabytes: u64) -> Result<Row> {
    let script = rig.at(End::Server, "tcp.py");
    fs::write(&script, TCP)?;
    let line = |who: &str| {
        let line = Line::new("python3").arg(&script).arg(who).arg(rig.server());
        line.args([WEB.to_string(), (megabytes * 1_000_000).to_string(), bytes.to_string()])
    };
    let _server = rig.start_far(&line("send"))?;
    sleep(Duration::from_secs(1));
    rig.restart()?;
    let busy = Busy::now()?;
    let said =
        rig.timed(&line("receive"), CAP)?.finished.context("TCP takes too long")?.success()?;
    let cpu = busy.since()? / (bytes as f64 / 1e9);
    let seconds: Vec<f64> = said.split_whitespace().filter_map(|text| text.parse().ok()).collect();
    let [whole, second_half] = seconds[..] else { bail!("no times: {said}") };
    let rate = |bytes: f64, seconds: f64| bytes * 8.0 / seconds / 1e6;
    Ok(Row::new()
        .with("rate", rate(bytes as f64, whole), "Mbit/s")
        .with("second half", rate(bytes as f64 / 2.0, second_half), "Mbit/s")
        .with("CPU", cpu, "s/GB"))
}

/// Both ends of a TCP connection with set buffers. The receiver prints the seconds of all bytes and of their second half.
const TCP: &str = "\
import socket, sys, time
who, host, port, buffer, size = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5])
SNDBUFFORCE, RCVBUFFORCE = 32, 33
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, SNDBUFFORCE, buffer)
s.setsockopt(socket.SOL_SOCKET, RCVBUFFORCE, buffer)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
if who == 'send':
    s.bind((host, port))
    s.listen(1)
    c, _ = s.accept()
    block, left = bytes(1 << 20), size
    while left > 0:
        left -= c.send(block[:min(left, len(block))])
    c.shutdown(socket.SHUT_WR)
    c.recv(1)
else:
    begun = time.monotonic()
    s.connect((host, port))
    got, half, block = 0, 0, bytearray(4 << 20)
    while got < size:
        read = s.recv_into(block)
        if read == 0: sys.exit('cut off')
        got += read
        if not half and got >= size // 2: half = time.monotonic()
    end = time.monotonic()
    print(end - begun, end - half)
";

/// Beside the chain without delay.
fn compare(results: &mut [CellResult]) {
    let at = |rtt: u32| format!("chromium-{rtt}ms");
    let of = |results: &[CellResult], id: &str| {
        results.iter().find(|result| result.cell == id)?.median.value("rate")
    };
    let (Some(near), Some(far)) = (of(results, &at(0)), of(results, &at(200))) else { return };
    if let Some(cell) = results.iter_mut().find(|result| result.cell == at(200)) {
        cell.median.push("of 0 ms", 100.0 * far / near, "%", Some(Bar::AtLeast(80.0)));
    }
}
