//! English.

use super::{Notice, PageText, Texts};

pub(super) const TEXTS: Texts = Texts {
    unsubscribed: PageText {
        title: "You are unsubscribed",
        of_group: "You will no longer receive messages of {group} from {sender}.",
        of_all: "You will no longer receive messages from {sender}.",
    },
    confirm_unsubscribe: PageText {
        title: "Do you want to unsubscribe?",
        of_group: "You will then no longer receive messages of {group} from {sender}.",
        of_all: "You will then no longer receive messages from {sender}.",
    },
    confirm_undo: PageText {
        title: "Do you want to subscribe again?",
        of_group: "If you unsubscribed with this link, you can receive messages of {group} from {sender} again.",
        of_all: "If you unsubscribed with this link, you can receive messages from {sender} again.",
    },
    resubscribed: PageText {
        title: "You are subscribed again",
        of_group: "You will receive messages of {group} from {sender} again.",
        of_all: "You will receive messages from {sender} again.",
    },
    still_suppressed: PageText {
        title: "You will still not receive messages",
        of_group: "You are no longer unsubscribed from {group} with this link, but your address is blocked for another reason, so {sender} does not send to it. To receive messages again, please contact the sender.",
        of_all: "You are no longer unsubscribed with this link, but your address is blocked for another reason, so {sender} does not send to it. To receive messages again, please contact the sender.",
    },
    was_it_a_mistake: "Was this a mistake?",
    undo: "Undo",
    unsubscribe: "Unsubscribe",
    subscribe_again: "Subscribe again",
    your_address: "Your address",
    valid: Notice {
        title: "This link is valid",
        text: "Opening it unsubscribes you.",
    },
    invalid: Notice {
        title: "This link is not valid",
        text: "Part of it may be missing. Please copy the whole link from the message, or contact the sender.",
    },
    invalid_tracked: Notice {
        title: "This link is not valid",
        text: "Part of it may be missing. Please copy the whole link from the message.",
    },
    expired: Notice {
        title: "This link has expired",
        text: "Please use the link in a newer message, or contact the sender.",
    },
    too_many: Notice {
        title: "Too many attempts",
        text: "Please wait a minute, then copy the whole link from the message.",
    },
    failed: Notice {
        title: "Something went wrong",
        text: "Please try again later, or contact the sender.",
    },
    unavailable: Notice {
        title: "The service is not available",
        text: "Please try again in a minute.",
    },
};
