//! French.

use super::{Notice, PageText, Texts};

pub(super) const TEXTS: Texts = Texts {
    unsubscribed: PageText {
        title: "Votre désabonnement est enregistré",
        of_group: "Vous ne recevrez plus de messages de {sender} au sujet de {group}.",
        of_all: "Vous ne recevrez plus de messages de {sender}.",
    },
    confirm_unsubscribe: PageText {
        title: "Souhaitez-vous vous désabonner\u{a0}?",
        of_group: "Vous ne recevrez alors plus de messages de {sender} au sujet de {group}.",
        of_all: "Vous ne recevrez alors plus de messages de {sender}.",
    },
    confirm_undo: PageText {
        title: "Souhaitez-vous vous réabonner\u{a0}?",
        of_group: "Si vous avez utilisé ce lien pour vous désabonner, vous pouvez recevoir à nouveau des messages de {sender} au sujet de {group}.",
        of_all: "Si vous avez utilisé ce lien pour vous désabonner, vous pouvez recevoir à nouveau des messages de {sender}.",
    },
    resubscribed: PageText {
        title: "Votre abonnement est rétabli",
        of_group: "Vous recevrez à nouveau des messages de {sender} au sujet de {group}.",
        of_all: "Vous recevrez à nouveau des messages de {sender}.",
    },
    still_suppressed: PageText {
        title: "Vous ne recevrez toujours pas de messages",
        of_group: "Votre désabonnement de {group} par ce lien est annulé, mais votre adresse est bloquée pour une autre raison\u{a0}: {sender} n’y envoie rien. Pour recevoir à nouveau des messages, veuillez contacter l’expéditeur.",
        of_all: "Votre désabonnement par ce lien est annulé, mais votre adresse est bloquée pour une autre raison\u{a0}: {sender} n’y envoie rien. Pour recevoir à nouveau des messages, veuillez contacter l’expéditeur.",
    },
    was_it_a_mistake: "Était-ce une erreur\u{a0}?",
    undo: "Annuler le désabonnement",
    unsubscribe: "Se désabonner",
    subscribe_again: "Se réabonner",
    your_address: "Votre adresse",
    valid: Notice {
        title: "Ce lien est valide",
        text: "En l’ouvrant, vous vous désabonnez.",
    },
    invalid: Notice {
        title: "Ce lien n’est pas valide",
        text: "Il en manque peut-être une partie. Veuillez copier le lien entier depuis le message ou contacter l’expéditeur.",
    },
    invalid_tracked: Notice {
        title: "Ce lien n’est pas valide",
        text: "Il en manque peut-être une partie. Veuillez copier le lien entier depuis le message.",
    },
    expired: Notice {
        title: "Ce lien a expiré",
        text: "Veuillez utiliser le lien d’un message plus récent ou contacter l’expéditeur.",
    },
    too_many: Notice {
        title: "Trop de tentatives",
        text: "Veuillez patienter une minute, puis copier le lien entier depuis le message.",
    },
    failed: Notice {
        title: "Une erreur est survenue",
        text: "Veuillez réessayer plus tard ou contacter l’expéditeur.",
    },
    unavailable: Notice {
        title: "Le service n’est pas disponible",
        text: "Veuillez réessayer dans une minute.",
    },
};
