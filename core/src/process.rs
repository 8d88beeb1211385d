//! What the programs ask of the operating system before they begin.

/// To be called first thing in `main`: takes memory by small pages, and as many open files
/// as the system grants. Where it refuses, all works as before.
pub fn prepare() {
    #[cfg(target_os = "linux")]
    take_small_pages();
    #[cfg(unix)]
    take_open_files();
}

/// Takes memory by ordinary pages of 4 KiB from here on; what was taken before stays as it
/// is.
///
/// The allocator asks Linux for huge pages (2 MiB) wherever it may, and of each it keeps
/// some blocks of one size: an API that idles held 65 MiB with them and holds 35
/// without, one that serves 256 connections 76 and 52, at the same CPU time a message
/// (`make bench ONLY=accept,cost`).
#[cfg(target_os = "linux")]
fn take_small_pages() {
    let _refused = nix::sys::prctl::set_thp_disable(true);
}

/// Raises the limit of open files as far as a process may. Systems begin with 1,024 for
/// the sake of programs that call `select`, and expect of others that they do this:
/// <https://0pointer.net/blog/file-descriptor-limits.html>.
#[cfg(unix)]
fn take_open_files() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let _refused = getrlimit(Resource::RLIMIT_NOFILE)
        .and_then(|(_, hard)| setrlimit(Resource::RLIMIT_NOFILE, hard, hard));
}
