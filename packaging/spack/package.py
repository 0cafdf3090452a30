# A recipe for Spack. Not run here: nobody has built it yet, and there is no release with a URL and a checksum.
from spack.package import *


class Hikyaku(CargoPackage):
    """Fast file transfer over long fat networks."""

    license("MIT OR Apache-2.0")

    version("main", branch="main")

    depends_on("rust@1.88:", type="build")
    depends_on("c", type="build")

    conflicts("platform=darwin", msg="hikyaku runs on Linux only")

    build_directory = "crates/cli"
