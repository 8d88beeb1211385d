//! Operating system settings of the processes.

/// Disables huge pages and raises the limit of open files. Call it first in `main`. A setting
/// that the system refuses stays unchanged.
pub fn prepare() {
    #[cfg(target_os = "linux")]
    disable_huge_pages();
    #[cfg(unix)]
    raise_open_files_limit();
}

/// How many files this process may open; `None` if the system has no limit that is known.
#[must_use]
pub fn open_files_max() -> Option<u64> {
    #[cfg(target_os = "linux")]
    {
        use nix::sys::resource::{Resource, getrlimit};
        let limits = getrlimit(Resource::RLIMIT_NOFILE);
        limits.ok().map(|(soft, _)| soft)
    }
    #[cfg(not(target_os = "linux"))]
    None
}

/// Makes Linux use pages of 4 KiB for all memory that is allocated from here on.
///
/// The allocator requests huge pages (2 MiB) and uses each for blocks of one size, which
/// wastes memory. With huge pages an idle API used 65 MiB, without them 35; with 256
/// connections 76 and 52, at the same CPU time per message (`make bench ONLY=accept,cost`).
#[cfg(target_os = "linux")]
fn disable_huge_pages() {
    let _refused = nix::sys::prctl::set_thp_disable(true);
}

/// Raises the limit of open files to the hard limit. The default is 1,024 for programs that
/// call `select`; other programs are expected to raise it:
/// <https://0pointer.net/blog/file-descriptor-limits.html>.
#[cfg(unix)]
fn raise_open_files_limit() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let _refused = getrlimit(Resource::RLIMIT_NOFILE)
        .and_then(|(_, hard)| setrlimit(Resource::RLIMIT_NOFILE, hard, hard));
}
