//! What the pages for recipients say, one file for each language. A translator edits the texts
//! between the quotes: `{sender}` and `{group}` stand for names and stay as they are. A language
//! without one of the texts does not compile.

mod de;
mod en;
mod es;
mod fr;

use super::language::Language;

/// All texts of a language.
pub(super) struct Texts {
    pub(super) unsubscribed: PageText,
    pub(super) confirm_unsubscribe: PageText,
    pub(super) confirm_undo: PageText,
    pub(super) resubscribed: PageText,
    pub(super) still_suppressed: PageText,
    /// Before the button that undoes an unsubscribe.
    pub(super) was_it_a_mistake: &'static str,
    /// On the button that undoes an unsubscribe.
    pub(super) undo: &'static str,
    /// On the button that unsubscribes.
    pub(super) unsubscribe: &'static str,
    /// On the button that subscribes again.
    pub(super) subscribe_again: &'static str,
    /// Before the address of the recipient.
    pub(super) your_address: &'static str,
    pub(super) valid: Notice,
    pub(super) invalid: Notice,
    /// For a link that leads to a page of the sender.
    pub(super) invalid_tracked: Notice,
    pub(super) expired: Notice,
    pub(super) too_many: Notice,
    pub(super) failed: Notice,
    pub(super) unavailable: Notice,
}

/// A page about the messages of a sender.
pub(super) struct PageText {
    pub(super) title: &'static str,
    /// If the messages are those of an unsubscribe group.
    pub(super) of_group: &'static str,
    /// If the messages are all messages of the sender.
    pub(super) of_all: &'static str,
}

/// A page about a link, or about the service.
pub(super) struct Notice {
    pub(super) title: &'static str,
    pub(super) text: &'static str,
}

impl Texts {
    pub(super) fn of(language: Language) -> &'static Self {
        match language {
            Language::English => &en::TEXTS,
            Language::German => &de::TEXTS,
            Language::French => &fr::TEXTS,
            Language::Spanish => &es::TEXTS,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(texts: &Texts) -> Vec<&'static str> {
        let pages = [
            &texts.unsubscribed,
            &texts.confirm_unsubscribe,
            &texts.confirm_undo,
            &texts.resubscribed,
            &texts.still_suppressed,
        ];
        let pages = pages.map(|page| [page.title, page.of_group, page.of_all]);
        let Texts {
            valid,
            invalid,
            invalid_tracked,
            expired,
            too_many,
            failed,
            unavailable,
            ..
        } = texts;
        let notices = [
            valid,
            invalid,
            invalid_tracked,
            expired,
            too_many,
            failed,
            unavailable,
        ];
        let words = [
            texts.was_it_a_mistake,
            texts.undo,
            texts.unsubscribe,
            texts.subscribe_again,
            texts.your_address,
        ];
        let notices = notices
            .iter()
            .flat_map(|notice| [notice.title, notice.text]);
        pages
            .into_iter()
            .flatten()
            .chain(notices)
            .chain(words)
            .collect()
    }

    #[test]
    fn every_text_names_what_the_english_one_names_and_has_no_markup() {
        let names = |text: &str| ["{sender}", "{group}"].map(|name| text.matches(name).count());
        let english = all(Texts::of(Language::English));
        for language in Language::ALL {
            let texts = all(Texts::of(language));
            for (text, english) in texts.iter().zip(&english) {
                assert_eq!(names(text), names(english), "{language:?}: {text}");
                assert!(
                    !text.is_empty() && text.trim() == *text,
                    "{language:?}: {text:?}"
                );
                let plain = text.replace("{sender}", "").replace("{group}", "");
                assert!(
                    !plain.contains(['<', '>', '&', '{', '}', '"', '\\']),
                    "{text}"
                );
            }
        }
    }

    #[test]
    fn no_two_languages_share_a_sentence() {
        for language in Language::ALL {
            for other in Language::ALL.into_iter().filter(|other| *other != language) {
                let (own, others) = (all(Texts::of(language)), all(Texts::of(other)));
                for (own, others) in own.iter().zip(&others) {
                    assert_ne!(own, others, "{language:?} and {other:?}");
                }
            }
        }
    }
}
