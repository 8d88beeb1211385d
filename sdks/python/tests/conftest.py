from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from typing import cast

import pytest

from waypost import Waypost

from .support import Client


@pytest.fixture(scope="session", autouse=True)
def ready() -> None:
    with Waypost() as waypost:
        waypost.settings.update(unverified_domains="accept")
        if not waypost.providers.list().data:
            waypost.providers.create(
                provider_type="SENDGRID", display_name="Simulated", credentials={"api_key": "SG.simulator"}
            )


@pytest.fixture(scope="session")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


@pytest.fixture(params=["Waypost", "AsyncWaypost"])
def client(request: pytest.FixtureRequest, loop: asyncio.AbstractEventLoop) -> Iterator[Client]:
    client = Client(cast(str, request.param) == "AsyncWaypost", loop)
    yield client
    client.close()


@pytest.fixture
def waypost(client: Client) -> Waypost:
    return client()


@pytest.fixture
def dripping() -> Iterator[str]:
    """The address of a server that never ends its answer, and sends a byte of it every tenth of a second."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = server.accept()
        with connection:
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
            try:
                for _ in range(50):
                    connection.sendall(b" ")
                    time.sleep(0.1)
            except OSError:
                pass  # The client is gone.

    threading.Thread(target=serve, daemon=True).start()
    yield f"http://127.0.0.1:{server.getsockname()[1]}"
    server.close()
