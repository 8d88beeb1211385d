"""A shop that sends a mail to everyone who signs up, and learns by webhooks what became of it."""

import json
from uuid import uuid4

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_POST

from waypost import ValidationError, Waypost, WebhookVerificationError, types, webhooks

waypost = Waypost()  # WAYPOST_URL and WAYPOST_API_KEY

# A real shop keeps both in its database.
users: dict[str, dict[str, str]] = {}
seen_deliveries: set[str] = set()


@csrf_exempt
@require_POST
def sign_up(request: HttpRequest) -> HttpResponse:
    new = json.loads(request.body)
    user = {"id": str(uuid4()), "email": new["email"], "emailStatus": "sent"}
    users[user["id"]] = user
    try:
        waypost.messages.send(
            from_="Shop <welcome@example.com>",
            to=user["email"],
            subject="Welcome to the shop",
            text=f"Hello {new['name']}, it is good to have you here.",
            idempotency_key=f"welcome-{user['id']}",
        )
    except ValidationError as error:
        del users[user["id"]]
        return JsonResponse({"error": error.issues[0].message if error.issues else error.message}, status=422)
    return JsonResponse(user, status=201)


@require_GET
def get_user(request: HttpRequest, id: str) -> HttpResponse:
    if id not in users:
        raise Http404
    return JsonResponse(users[id])


@csrf_exempt
@require_POST
def receive_webhook(request: HttpRequest) -> HttpResponse:
    try:
        event = webhooks.verify(request.body, request.headers, settings.WAYPOST_WEBHOOK_SECRET)
    except WebhookVerificationError as error:
        return HttpResponse(str(error), status=400)
    # A delivery comes again if its answer was lost.
    if request.headers["webhook-id"] not in seen_deliveries:
        seen_deliveries.add(request.headers["webhook-id"])
        if isinstance(event, (types.DeliveredEvent, types.BouncedEvent, types.ComplainedEvent)):
            for user in list(users.values()):
                if user["email"] == event.data.recipient:
                    user["emailStatus"] = event.event.lower()
    return HttpResponse(status=204)
