//! Records the events of accepted tests.

use waypost_core::fault::Fault;

use super::{Tasks, WorkFound};

/// Steps per run; the next run continues.
const STEPS_MAX: usize = 200;

pub(super) async fn report_due(tasks: &Tasks) -> Result<WorkFound, Fault> {
    let mut found = 0;
    for _ in 0..STEPS_MAX {
        let reported = tasks.test_reporter.report_due().await?;
        found += reported;
        if reported == 0 {
            break;
        }
    }
    Ok(found.into())
}
