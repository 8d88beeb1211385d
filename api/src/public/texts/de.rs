//! German.

use super::{Notice, PageText, Texts};

pub(super) const TEXTS: Texts = Texts {
    unsubscribed: PageText {
        title: "Sie sind abgemeldet",
        of_group: "Sie erhalten von {sender} keine Nachrichten mehr zum Thema {group}.",
        of_all: "Sie erhalten von {sender} keine Nachrichten mehr.",
    },
    confirm_unsubscribe: PageText {
        title: "Möchten Sie sich abmelden?",
        of_group: "Sie erhalten dann von {sender} keine Nachrichten mehr zum Thema {group}.",
        of_all: "Sie erhalten dann von {sender} keine Nachrichten mehr.",
    },
    confirm_undo: PageText {
        title: "Möchten Sie sich wieder anmelden?",
        of_group: "Wenn Sie sich mit diesem Link abgemeldet haben, können Sie von {sender} wieder Nachrichten zum Thema {group} erhalten.",
        of_all: "Wenn Sie sich mit diesem Link abgemeldet haben, können Sie von {sender} wieder Nachrichten erhalten.",
    },
    resubscribed: PageText {
        title: "Sie sind wieder angemeldet",
        of_group: "Sie erhalten von {sender} wieder Nachrichten zum Thema {group}.",
        of_all: "Sie erhalten von {sender} wieder Nachrichten.",
    },
    still_suppressed: PageText {
        title: "Sie erhalten weiterhin keine Nachrichten",
        of_group: "Ihre Abmeldung vom Thema {group} über diesen Link ist aufgehoben. Ihre Adresse ist aber aus einem anderen Grund gesperrt, deshalb sendet {sender} nichts an diese Adresse. Wenn Sie wieder Nachrichten erhalten möchten, wenden Sie sich bitte an den Absender.",
        of_all: "Ihre Abmeldung über diesen Link ist aufgehoben. Ihre Adresse ist aber aus einem anderen Grund gesperrt, deshalb sendet {sender} nichts an diese Adresse. Wenn Sie wieder Nachrichten erhalten möchten, wenden Sie sich bitte an den Absender.",
    },
    was_it_a_mistake: "War das ein Versehen?",
    undo: "Rückgängig machen",
    unsubscribe: "Abmelden",
    subscribe_again: "Wieder anmelden",
    your_address: "Ihre Adresse",
    valid: Notice {
        title: "Dieser Link ist gültig",
        text: "Wenn Sie ihn öffnen, werden Sie abgemeldet.",
    },
    invalid: Notice {
        title: "Dieser Link ist ungültig",
        text: "Vielleicht fehlt ein Teil davon. Bitte kopieren Sie den ganzen Link aus der Nachricht oder wenden Sie sich an den Absender.",
    },
    invalid_tracked: Notice {
        title: "Dieser Link ist ungültig",
        text: "Vielleicht fehlt ein Teil davon. Bitte kopieren Sie den ganzen Link aus der Nachricht.",
    },
    expired: Notice {
        title: "Dieser Link ist abgelaufen",
        text: "Bitte verwenden Sie den Link aus einer neueren Nachricht oder wenden Sie sich an den Absender.",
    },
    too_many: Notice {
        title: "Zu viele Versuche",
        text: "Bitte warten Sie eine Minute und kopieren Sie dann den ganzen Link aus der Nachricht.",
    },
    failed: Notice {
        title: "Ein Fehler ist aufgetreten",
        text: "Bitte versuchen Sie es später noch einmal oder wenden Sie sich an den Absender.",
    },
    unavailable: Notice {
        title: "Der Dienst ist nicht verfügbar",
        text: "Bitte versuchen Sie es in einer Minute noch einmal.",
    },
};
