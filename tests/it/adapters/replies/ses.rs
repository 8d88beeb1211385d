//! Amazon SES: botocore's model of `sesv2`, the developer guide, AWS' page "Common error
//! types", botocore's tables of retried errors, and errors seen in the field
//! (symfony/symfony 51461, GoodDollar/GoodServer 419, hcengineering/platform 8899).

use super::{Row, row};

/// An error with a name and a message.
macro_rules! error {
    ($status:literal, $name:literal, $message:literal, $class:literal) => {
        (
            $status,
            &[("x-amzn-errortype", $name)],
            concat!(r#"{"message":""#, $message, r#""}"#),
            $class,
        )
    };
}

pub(super) const ROWS: &[Row] = &[
    row(
        200,
        r#"{"MessageId":"0100018-abc"}"#,
        "accepted 0100018-abc",
    ),
    // The sender.
    error!(
        400,
        "MessageRejected",
        "Email address is not verified. The following identities failed the check in region EU-WEST-1: zoe@example.com",
        "rejected sender"
    ),
    error!(
        400,
        "MailFromDomainNotVerifiedException", "", "rejected sender"
    ),
    error!(
        403,
        "AccessDeniedException",
        "User: arn:aws:iam::123456789012:user/x is not authorized to perform: ses:SendEmail on resource: arn:aws:ses:eu-west-1:123456789012:identity/example.com",
        "rejected sender"
    ),
    error!(
        403,
        "AccessDeniedException",
        "User: arn:aws:sts::123456789012:assumed-role/r/s is not authorized to perform: ses:SendEmail on resource: arn:aws:ses:eu-west-1:123456789012:identity/zoe@example.com because no identity-based policy allows the ses:SendEmail action",
        "rejected sender"
    ),
    error!(
        403,
        "AccessDenied",
        "User `arn:aws:iam::123456789012:user/x' is not authorized to perform `ses:SendRawEmail' on resource `arn:aws:ses:eu-west-1:123456789012:identity/example.com'",
        "rejected sender"
    ),
    error!(
        400,
        "NotAuthorized", "arn:aws-us-gov:ses:us-gov-west-1:1:identity/x.example", "rejected sender"
    ),
    // The message.
    error!(
        400,
        "BadRequestException", "Local address contains control or whitespace", "rejected message"
    ),
    error!(
        400,
        "MessageRejected",
        "Transaction failed: Address length is more than 320 bytes long",
        "rejected message"
    ),
    error!(
        400,
        "ValidationException", "1 validation error detected", "rejected message"
    ),
    error!(400, "SerializationException", "", "rejected message"),
    error!(400, "MalformedHttpRequestException", "", "rejected message"),
    error!(
        413,
        "RequestEntityTooLargeException", "", "rejected message"
    ),
    error!(400, "SomethingNew", "", "rejected message"),
    row(
        400,
        r#"{"code":"MessageRejected:","Message":"m"}"#,
        "rejected message",
    ),
    row(
        400,
        r#"{"__type":"com.amazonaws.sesv2#MessageRejected","message":"m"}"#,
        "rejected message",
    ),
    // The account, until the customer acts.
    error!(400, "AccountSuspendedException", "", "account permanent"),
    error!(
        400,
        "MessageRejected", "Sending suspended for this account.", "account permanent"
    ),
    error!(
        404,
        "NotFoundException:http://x/y#z", "", "account permanent"
    ),
    error!(
        404,
        "NotFoundException", "Configuration set <x> does not exist.", "account permanent"
    ),
    error!(404, "UnknownOperationException", "", "account permanent"),
    error!(
        403,
        "AccessDeniedException", "User: arn is not authorized", "account permanent"
    ),
    error!(
        403,
        "AccessDeniedException",
        "User: arn:aws:iam::123456789012:user/x is not authorized to perform: ses:SendEmail on resource: arn:aws:ses:eu-west-1:123456789012:configuration-set/x",
        "account permanent"
    ),
    error!(
        403,
        "AccessDeniedException",
        "User: arn:aws:iam::123456789012:user/x is not authorized to perform: ses:SendEmail because no identity-based policy allows the ses:SendEmail action",
        "account permanent"
    ),
    error!(
        403,
        "AccessDeniedException",
        "with an explicit deny in a service control policy",
        "account permanent"
    ),
    error!(
        400,
        "NotAuthorized", "You do not have permission to perform this action.", "account permanent"
    ),
    error!(403, "NotAuthorizedException", "", "account permanent"),
    error!(403, "OptInRequired", "", "account permanent"),
    error!(
        403,
        "UnrecognizedClientException",
        "The security token included in the request is invalid.",
        "account permanent"
    ),
    error!(403, "InvalidClientTokenId", "", "account permanent"),
    error!(
        403,
        "InvalidSignatureException", "The canonical string", "account permanent"
    ),
    error!(403, "SignatureDoesNotMatch", "", "account permanent"),
    error!(403, "IncompleteSignatureException", "", "account permanent"),
    error!(
        403,
        "MissingAuthenticationTokenException", "", "account permanent"
    ),
    error!(403, "ExpiredTokenException", "", "account permanent"),
    row(
        403,
        r#"{"__type":"com.amazon#SignatureDoesNotMatch"}"#,
        "account permanent",
    ),
    error!(403, "SomethingNew", "", "account permanent"),
    // The account, for a while.
    error!(400, "SendingPausedException", "", "account temporary 600s"),
    error!(
        400,
        "AccountSendingPausedException",
        "Email sending for the account is paused.",
        "account temporary 600s"
    ),
    error!(
        400,
        "ConfigurationSetSendingPausedException", "", "account temporary 600s"
    ),
    error!(
        400,
        "com.amazonaws.ses#AccountSendingPausedException:", "", "account temporary 600s"
    ),
    error!(
        400,
        "MessageRejected",
        "Sending paused for this account. For more information, please check the inbox of the email address associated with your AWS account.",
        "account temporary 600s"
    ),
    error!(400, "LimitExceededException", "", "account temporary 600s"),
    error!(
        400,
        "Throttling", "Daily message quota exceeded.", "account temporary 600s"
    ),
    error!(
        429,
        "TooManyRequestsException", "Daily message quota exceeded.", "account temporary 600s"
    ),
    // A rate.
    error!(
        429,
        "TooManyRequestsException", "Maximum sending rate exceeded.", "throttled 1s"
    ),
    error!(400, "TooManyRequestsException", "", "throttled 1s"),
    error!(
        400,
        "Throttling", "Maximum sending rate exceeded.", "throttled 1s"
    ),
    error!(400, "ThrottlingException", "Rate exceeded", "throttled 1s"),
    error!(400, "ThrottledException", "", "throttled 1s"),
    error!(400, "RequestThrottledException", "", "throttled 1s"),
    error!(403, "RequestThrottled", "", "throttled 1s"),
    error!(
        400,
        "ProvisionedThroughputExceededException", "", "throttled 1s"
    ),
    error!(503, "RequestLimitExceeded", "", "throttled 1s"),
    error!(509, "BandwidthLimitExceeded", "", "throttled 1s"),
    error!(503, "SlowDown", "", "throttled 1s"),
    error!(400, "PriorRequestNotComplete", "", "throttled 1s"),
    error!(503, "EC2ThrottledException", "", "throttled 1s"),
    error!(400, "TransactionInProgressException", "", "throttled 1s"),
    row(
        400,
        r#"{"__type":"com.amazon.coral.availability#ThrottlingException"}"#,
        "throttled 1s",
    ),
    row(
        400,
        r#"{"__type":"ThrottlingException:http://internal.amazon.com/coral/"}"#,
        "throttled 1s",
    ),
    (
        429,
        &[
            ("x-amzn-errortype", "TooManyRequestsException"),
            ("retry-after", "2"),
        ],
        "{}",
        "throttled 2s",
    ),
    row(429, "{}", "throttled"),
    // SES' own failures, and temporary conditions.
    error!(400, "RequestTimeout", "", "unavailable"),
    error!(408, "RequestTimeoutException", "", "unavailable"),
    error!(500, "InternalFailure", "", "unavailable"),
    error!(500, "InternalServiceErrorException", "", "unavailable"),
    error!(503, "ServiceUnavailable", "", "unavailable"),
    error!(500, "ConcurrentModificationException", "", "unavailable"),
    error!(500, "SomethingNew", "", "unavailable"),
    error!(
        403,
        "InvalidSignatureException", "Signature expired: 2026", "unavailable"
    ),
    error!(400, "RequestExpired", "", "unavailable"),
    error!(403, "RequestTimeTooSkewed", "", "unavailable"),
    // The outcome is unknown.
    error!(400, "RequestAbortedException", "", "unknown"),
    error!(502, "InternalFailure", "", "unknown"),
    error!(504, "ServiceUnavailable", "", "unknown"),
    row(400, "", "unknown"),
    row(403, "", "unknown"),
    row(403, r#"{"message":"Forbidden"}"#, "unknown"),
    row(500, "{}", "unknown"),
];
