//! How the programs take memory from the operating system.

/// Takes memory by ordinary pages of 4 KiB from here on. To be called first thing in
/// `main`: what was taken before stays as it is.
///
/// The allocator asks Linux for huge pages (2 MiB) wherever it may, and of each it keeps
/// some blocks of one size: an API that idles held 65 MiB with them and holds 35
/// without, one that serves 256 connections 76 and 52, at the same CPU time a message
/// (`make bench ONLY=accept,cost`). Where the system refuses, huge pages it is.
pub fn take_small_pages() {
    #[cfg(target_os = "linux")]
    let _refused = nix::sys::prctl::set_thp_disable(true);
}
