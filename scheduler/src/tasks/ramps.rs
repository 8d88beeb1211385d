//! Makes the steps of ramps: the daily caps of targets that begin small.

use waypost_core::fault::Fault;
use waypost_core::routing::ramp::steps;

use super::Tasks;

pub(super) async fn step_due(tasks: &Tasks) -> Result<(), Fault> {
    steps::make_due(&tasks.pool, &tasks.clock, &tasks.ids).await
}
