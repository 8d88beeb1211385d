//! Records the events of accepted tests.

use waypost_core::fault::Fault;

use super::Tasks;

/// Steps per run; the next run continues.
const STEPS_MAX: usize = 200;

pub(super) async fn report_due(tasks: &Tasks) -> Result<(), Fault> {
    for _ in 0..STEPS_MAX {
        if !tasks.test_reporter.report_due().await? {
            break;
        }
    }
    Ok(())
}
