//! Spanish.

use super::{Notice, PageText, Texts};

pub(super) const TEXTS: Texts = Texts {
    unsubscribed: PageText {
        title: "Su suscripción está cancelada",
        of_group: "Ya no recibirá mensajes de {sender} sobre {group}.",
        of_all: "Ya no recibirá mensajes de {sender}.",
    },
    confirm_unsubscribe: PageText {
        title: "¿Desea cancelar su suscripción?",
        of_group: "Si la cancela, ya no recibirá mensajes de {sender} sobre {group}.",
        of_all: "Si la cancela, ya no recibirá mensajes de {sender}.",
    },
    confirm_undo: PageText {
        title: "¿Desea volver a suscribirse?",
        of_group: "Si canceló su suscripción con este enlace, puede volver a recibir mensajes de {sender} sobre {group}.",
        of_all: "Si canceló su suscripción con este enlace, puede volver a recibir mensajes de {sender}.",
    },
    resubscribed: PageText {
        title: "Su suscripción está activa de nuevo",
        of_group: "Volverá a recibir mensajes de {sender} sobre {group}.",
        of_all: "Volverá a recibir mensajes de {sender}.",
    },
    still_suppressed: PageText {
        title: "Seguirá sin recibir mensajes",
        of_group: "La cancelación de {group} hecha con este enlace queda anulada, pero su dirección está bloqueada por otro motivo, por lo que {sender} no le envía mensajes. Para volver a recibirlos, póngase en contacto con el remitente.",
        of_all: "La cancelación hecha con este enlace queda anulada, pero su dirección está bloqueada por otro motivo, por lo que {sender} no le envía mensajes. Para volver a recibirlos, póngase en contacto con el remitente.",
    },
    was_it_a_mistake: "¿Ha sido un error?",
    undo: "Deshacer",
    unsubscribe: "Cancelar la suscripción",
    subscribe_again: "Volver a suscribirse",
    your_address: "Su dirección",
    valid: Notice {
        title: "Este enlace es válido",
        text: "Al abrirlo, se cancela su suscripción.",
    },
    invalid: Notice {
        title: "Este enlace no es válido",
        text: "Puede que falte una parte. Copie el enlace completo del mensaje o póngase en contacto con el remitente.",
    },
    invalid_tracked: Notice {
        title: "Este enlace no es válido",
        text: "Puede que falte una parte. Copie el enlace completo del mensaje.",
    },
    expired: Notice {
        title: "Este enlace ha caducado",
        text: "Use el enlace de un mensaje más reciente o póngase en contacto con el remitente.",
    },
    too_many: Notice {
        title: "Demasiados intentos",
        text: "Espere un minuto y copie después el enlace completo del mensaje.",
    },
    failed: Notice {
        title: "Se ha producido un error",
        text: "Inténtelo de nuevo más tarde o póngase en contacto con el remitente.",
    },
    unavailable: Notice {
        title: "El servicio no está disponible",
        text: "Inténtelo de nuevo dentro de un minuto.",
    },
};
