# A formula for Homebrew on Linux. Not run here: nobody has built it yet, and there is no release with a URL and a
# checksum. hikyaku does not build on macOS yet.
class Hikyaku < Formula
  desc "Fast file transfer over long fat networks"
  license any_of: ["MIT", "Apache-2.0"]
  version "0.1.0"

  depends_on "rust" => :build
  depends_on :linux

  def install
    system "cargo", "install", *std_cargo_args(path: "crates/cli")
    system bin/"hikyaku", "man", "--all", man1
    generate_completions_from_executable(bin/"hikyaku", "completions")
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/hikyaku --version")
  end
end
