//! What a session may do: exactly what its role's permissions allow, on every operation of the
//! served document.

use uuid::Uuid;
use waypost_core::auth::Role;

use super::quiet;
use crate::security::matrix::{assert_lacks, operations};

#[tokio::test]
async fn a_session_may_do_what_its_role_may_and_nothing_else() {
    let app = quiet().await;
    let organization = app.organization_id();
    let mut refused = 0;
    for role in Role::ALL {
        let caller = app.member(organization, role).await;
        let permissions = role.permissions();
        for operation in operations(&app).await {
            let name = format!("{} as {role}", operation.name());
            let path = operation.path_with(|_| Uuid::nil().to_string());
            let reply = operation.perform(&caller, &path).await;
            let lacking = operation
                .needed()
                .find(|needed| !permissions.contains(*needed));
            assert_lacks(&reply, lacking, &name);
            refused += u32::from(lacking.is_some());
        }
    }
    assert!(refused > 80, "{refused} refusals");
    app.leave_work();
}

#[tokio::test]
async fn a_session_without_the_headers_of_our_page_may_change_nothing() {
    let app = quiet().await;
    let owner = app.member(app.organization_id(), Role::Owner).await;
    let elsewhere = owner.from_elsewhere();
    let mut count = 0;
    for operation in operations(&app).await {
        if operation.method == http::Method::GET {
            continue;
        }
        let path = operation.path_with(|_| Uuid::nil().to_string());
        let reply = operation.perform(&elsewhere, &path).await;
        let error = reply.expect_error(403, "FORBIDDEN");
        assert_eq!(
            error["details"]["reason"],
            "CROSS_ORIGIN",
            "{}",
            operation.name()
        );
        count += 1;
    }
    assert!(count > 40, "{count} operations");
}
