"""Run by crates/cli/tests/python.rs: what the example of docs/python.md does not show.

    python test_package.py HOSTS SCRATCH
"""

import _thread
import os
import sys
import threading

import fsspec
import hikyaku

hosts, scratch = sys.argv[1], sys.argv[2]


class Bar:
    """As much of a tqdm bar as a callback needs."""

    total = None
    n = 0

    def update(self, count):
        self.n += count


def raised(kind, call):
    try:
        call()
    except kind as error:
        assert isinstance(error, (hikyaku.Error, KeyboardInterrupt)), error
        return error
    raise AssertionError(f"no {kind}")


with hikyaku.Session(hosts, log_dir=scratch) as session:
    assert session.log_dir == scratch
    bar = Bar()
    done = session.download("run7", os.path.join(scratch, "with-bar"), progress=bar)
    assert (done.files, bar.n, bar.total) == (2, done.bytes, done.bytes), (done, bar.n, bar.total)

    error = raised(FileNotFoundError, lambda: session.download("nothing", scratch))
    assert isinstance(error, hikyaku.NotFound) and error.errno == 2, error
    error = raised(hikyaku.OutsideRoot, lambda: session.read("../secret", [(0, 1)]))
    assert error.remedy.startswith("try: "), error.remedy

    # An exception of the callback ends the transfer, and the session goes on.
    def stop(done, total):
        raise hikyaku.Error("enough")

    raised(hikyaku.Error, lambda: session.download("run7", os.path.join(scratch, "stopped"), progress=stop))

    # Other threads run while a call waits.
    ran = threading.Event()
    thread = threading.Thread(target=ran.set)
    session.download("run7", os.path.join(scratch, "again"), progress=lambda done, total: thread.ident or thread.start())
    thread.join()
    assert ran.is_set()

# So does a signal. The rate is so low that the transfer would take seconds.
with hikyaku.Session(hosts, rate="4m") as session:
    pressed = os.path.join(scratch, "pressed")
    threading.Timer(0.3, _thread.interrupt_main).start()
    raised(KeyboardInterrupt, lambda: session.download("run7", pressed))
    assert not os.path.exists(os.path.join(pressed, "large"))
    assert all(status.error is None for status in session.status())

raised(hikyaku.Error, session.status)
raised(hikyaku.UnknownHost, lambda: hikyaku.Session("no-such-host.invalid"))
wrong = "SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU"
raised(hikyaku.WrongKey, lambda: hikyaku.Session(hosts, keys=[wrong]))

fs = fsspec.filesystem("hikyaku", hosts=hosts)
large = fs.cat_file("run7/large")
assert fs.info("run7/large")["size"] == len(large) == 3_000_000
ranges = [(5, 9), (0, 4), (1_000_000, 2_500_000), (2_999_990, None), (-10, None)]
parts = fs.cat_ranges(["run7/large"] * len(ranges), [r[0] for r in ranges], [r[1] for r in ranges])
assert parts == [large[begin:end] for begin, end in ranges]
fs.pipe_file("run7/new", b"from python")
assert fs.cat_file("run7/new") == b"from python"
fs.get("run7", os.path.join(scratch, "got"), recursive=True)
with open(os.path.join(scratch, "got", "large"), "rb") as file:
    assert file.read() == large
fs.put_file(os.path.join(scratch, "got", "large"), "run7/put")
assert fs.cat_file("run7/put") == large
raised(FileNotFoundError, lambda: fs.info("run7/nothing"))
print("all is right")
