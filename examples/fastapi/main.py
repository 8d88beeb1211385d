"""A shop that sends a mail to everyone who signs up, and learns by webhooks what became of it."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Union
from uuid import uuid4

import uvicorn
from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from waypost import AsyncWaypost, ValidationError, WebhookVerificationError, types, webhooks

waypost = AsyncWaypost()  # WAYPOST_URL and WAYPOST_API_KEY


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    async with waypost:
        yield


app = FastAPI(lifespan=lifespan)


class SignUp(BaseModel):
    name: str
    email: str


class User(BaseModel):
    id: str
    name: str = Field(exclude=True)
    email: str
    emailStatus: str = "sent"


# A real shop keeps both in its database.
users: dict[str, User] = {}
seen_deliveries: set[str] = set()


@app.post("/sign-up", status_code=201, response_model=User)
async def sign_up(new: SignUp) -> Union[User, JSONResponse]:
    user = User(id=str(uuid4()), name=new.name, email=new.email)
    users[user.id] = user
    try:
        await waypost.messages.send(
            from_="Shop <welcome@example.com>",
            to=user.email,
            subject="Welcome to the shop",
            text=f"Hello {user.name}, it is good to have you here.",
            idempotency_key=f"welcome-{user.id}",
        )
    except ValidationError as error:
        del users[user.id]
        return JSONResponse({"error": error.issues[0].message if error.issues else error.message}, 422)
    return user


@app.get("/users/{id}")
async def get_user(id: str) -> User:
    if id not in users:
        raise HTTPException(404)
    return users[id]


@app.post("/webhooks/waypost", status_code=204)
async def receive_webhook(request: Request) -> None:
    try:
        event = webhooks.verify(await request.body(), request.headers, os.environ.get("WAYPOST_WEBHOOK_SECRET", ""))
    except WebhookVerificationError as error:
        raise HTTPException(400, str(error)) from error
    # A delivery comes again if its answer was lost.
    if request.headers["webhook-id"] in seen_deliveries:
        return
    seen_deliveries.add(request.headers["webhook-id"])
    if isinstance(event, (types.DeliveredEvent, types.BouncedEvent, types.ComplainedEvent)):
        for user in users.values():
            if user.email == event.data.recipient:
                user.emailStatus = event.event.lower()


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(os.environ.get("PORT", "8000")))
