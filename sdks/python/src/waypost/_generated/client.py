# Written by sdks/generator from openapi/waypost.v1.json. Do not edit: `make generate` replaces this file.

from types import TracebackType
from typing import Optional, Type

import httpx

from .. import webhooks
from .._runtime.http import RETRIES, TIMEOUT_S, AsyncHttp, Http, Settings
from . import resources
from .version import VERSION


class Waypost:
    """A client of one Waypost, with one API key.

    ```python
    waypost = Waypost()  # WAYPOST_API_KEY and WAYPOST_URL
    waypost.messages.send(from_="shop@example.com", to="ada@example.org", subject="Hello", text="Hello, Ada")
    ```

    It keeps connections, so make one and keep it; threads can share it. `close`, or `with`, ends them.

    Args:
        api_key: The API key. The default is the environment variable `WAYPOST_API_KEY`.
        base_url: The address of Waypost, such as `https://mail.example.com`. The default is the environment variable
            `WAYPOST_URL`.
        timeout: How long to wait for the answer to an attempt, in seconds.
        max_retries: How often to repeat a call that failed and is safe to repeat.
        http_client: What makes the requests, for proxies, certificates and the like. It is yours to close.
    """

    webhooks = webhooks
    """Verifies what Waypost posts to your webhook endpoints. It needs no API key: `from waypost import webhooks`."""

    def __init__(
        self,
        api_key: Optional[str] = None,
        *,
        base_url: Optional[str] = None,
        timeout: float = TIMEOUT_S,
        max_retries: int = RETRIES,
        http_client: Optional[httpx.Client] = None,
    ) -> None:
        settings = Settings(api_key, base_url, timeout, max_retries, VERSION)
        self._http = Http(settings, http_client)
        self.messages = resources.Messages(self._http)
        """Accepted messages, their recipients and their history."""
        self.metrics = resources.Metrics(self._http)
        """Counts and rates of sent, delivered, opened, clicked, bounced and reported messages."""
        self.providers = resources.Providers(self._http)
        """Connected accounts at email providers, their domains and event webhooks."""
        self.sender_domains = resources.SenderDomains(self._http)
        """The sender domains."""
        self.routing_rules = resources.RoutingRules(self._http)
        """Rules that select the provider account of a message."""
        self.api_keys = resources.ApiKeys(self._http)
        """API keys, their permissions and their rotation."""
        self.settings = resources.Settings(self._http)
        """The settings of the organization."""
        self.audit_logs = resources.AuditLogs(self._http)
        """The audit logs."""
        self.templates = resources.Templates(self._http)
        """Reusable message bodies with variables, and their versions."""
        self.unsubscribe_groups = resources.UnsubscribeGroups(self._http)
        """Kinds of messages that recipients can unsubscribe from."""
        self.suppressions = resources.Suppressions(self._http)
        """Addresses that receive no messages."""
        self.erasures = resources.Erasures(self._http)
        """Erase what is stored of a person."""
        self.webhook_endpoints = resources.WebhookEndpoints(self._http)
        """URLs that receive events, their deliveries and secrets."""
        self.session = resources.Session(self._http)
        """Sign in and out, and switch the organization."""
        self.user = resources.User(self._http)
        """The signed-in user: name, password and second factor."""
        self.members = resources.Members(self._http)
        """The users of the organization and their roles."""
        self.invitations = resources.Invitations(self._http)
        """Links by which people become members of the organization."""
        self.password_resets = resources.PasswordResets(self._http)
        """Links by which users set a new password."""
        self.operator = resources.Operator(self._http)
        """What belongs to the installation: tasks, workers, queues and dead jobs."""

    def close(self) -> None:
        """Ends the connections."""
        self._http.close()

    def __enter__(self) -> "Waypost":
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self.close()


class AsyncWaypost:
    """A client of one Waypost, with one API key, for asyncio.

    ```python
    async with AsyncWaypost() as waypost:  # WAYPOST_API_KEY and WAYPOST_URL
        await waypost.messages.send(from_="shop@example.com", to="ada@example.org", subject="Hello", text="Hello, Ada")
    ```

    It keeps connections, so make one and keep it. `aclose`, or `async with`, ends them.

    Args:
        api_key: The API key. The default is the environment variable `WAYPOST_API_KEY`.
        base_url: The address of Waypost, such as `https://mail.example.com`. The default is the environment variable
            `WAYPOST_URL`.
        timeout: How long to wait for the answer to an attempt, in seconds.
        max_retries: How often to repeat a call that failed and is safe to repeat.
        http_client: What makes the requests, for proxies, certificates and the like. It is yours to close.
    """

    webhooks = webhooks
    """Verifies what Waypost posts to your webhook endpoints. It needs no API key: `from waypost import webhooks`."""

    def __init__(
        self,
        api_key: Optional[str] = None,
        *,
        base_url: Optional[str] = None,
        timeout: float = TIMEOUT_S,
        max_retries: int = RETRIES,
        http_client: Optional[httpx.AsyncClient] = None,
    ) -> None:
        settings = Settings(api_key, base_url, timeout, max_retries, VERSION)
        self._http = AsyncHttp(settings, http_client)
        self.messages = resources.AsyncMessages(self._http)
        """Accepted messages, their recipients and their history."""
        self.metrics = resources.AsyncMetrics(self._http)
        """Counts and rates of sent, delivered, opened, clicked, bounced and reported messages."""
        self.providers = resources.AsyncProviders(self._http)
        """Connected accounts at email providers, their domains and event webhooks."""
        self.sender_domains = resources.AsyncSenderDomains(self._http)
        """The sender domains."""
        self.routing_rules = resources.AsyncRoutingRules(self._http)
        """Rules that select the provider account of a message."""
        self.api_keys = resources.AsyncApiKeys(self._http)
        """API keys, their permissions and their rotation."""
        self.settings = resources.AsyncSettings(self._http)
        """The settings of the organization."""
        self.audit_logs = resources.AsyncAuditLogs(self._http)
        """The audit logs."""
        self.templates = resources.AsyncTemplates(self._http)
        """Reusable message bodies with variables, and their versions."""
        self.unsubscribe_groups = resources.AsyncUnsubscribeGroups(self._http)
        """Kinds of messages that recipients can unsubscribe from."""
        self.suppressions = resources.AsyncSuppressions(self._http)
        """Addresses that receive no messages."""
        self.erasures = resources.AsyncErasures(self._http)
        """Erase what is stored of a person."""
        self.webhook_endpoints = resources.AsyncWebhookEndpoints(self._http)
        """URLs that receive events, their deliveries and secrets."""
        self.session = resources.AsyncSession(self._http)
        """Sign in and out, and switch the organization."""
        self.user = resources.AsyncUser(self._http)
        """The signed-in user: name, password and second factor."""
        self.members = resources.AsyncMembers(self._http)
        """The users of the organization and their roles."""
        self.invitations = resources.AsyncInvitations(self._http)
        """Links by which people become members of the organization."""
        self.password_resets = resources.AsyncPasswordResets(self._http)
        """Links by which users set a new password."""
        self.operator = resources.AsyncOperator(self._http)
        """What belongs to the installation: tasks, workers, queues and dead jobs."""

    async def aclose(self) -> None:
        """Ends the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> "AsyncWaypost":
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        await self.aclose()
