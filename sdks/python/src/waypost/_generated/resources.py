# Written by sdks/generator from openapi/waypost.v1.json. Do not edit: `make generate` replaces this file.
# pyright: reportUnusedImport=false

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Mapping, Optional, Sequence, Union

from .. import types
from .._runtime.http import AsyncHttp, Call, Http, RequestOptions
from .._runtime.model import NOT_GIVEN, NotGiven
from .._runtime.pages import AsyncPages, Page

if TYPE_CHECKING:
    import httpx
    from typing_extensions import Unpack


class Messages:
    """Accepted messages, their recipients and their history."""

    def __init__(self, http: Http) -> None:
        self._http = http
        self.recipients = MessagesRecipients(http)
        """The recipients."""
        self.attachments = MessagesAttachments(http)
        """The attachments."""
        self.webhook_deliveries = MessagesWebhookDeliveries(http)
        """The webhook deliveries."""

    def send(
        self,
        *,
        to: types.Recipients,
        cc: Optional[types.Addresses] = None,
        bcc: Optional[types.Addresses] = None,
        delivery: Optional[types.DeliveryMode] = None,
        from_: Optional[str] = None,
        subject: Optional[str] = None,
        html: Optional[str] = None,
        text: Optional[str] = None,
        reply_to: Optional[types.Addresses] = None,
        headers: Optional[Mapping[str, str]] = None,
        attachments: Optional[Sequence[types.MessageAttachment]] = None,
        tags: Optional[Sequence[str]] = None,
        message_class: Optional[types.MessageClass] = None,
        metadata: Optional[Mapping[str, Any]] = None,
        template_id: Optional[str] = None,
        locale: Optional[str] = None,
        variables: Optional[Mapping[str, Any]] = None,
        unsubscribe_group_id: Optional[str] = None,
        tracking: Optional[types.Tracking] = None,
        scheduled_at: Optional[Union[datetime, str]] = None,
        expires_at: Optional[Union[datetime, str]] = None,
        provider_account_id: Optional[str] = None,
        test: Optional[bool] = None,
        test_outcome: Optional[types.TestOutcome] = None,
        **options: Unpack[RequestOptions],
    ) -> types.SendMessageResponse:
        """Send a message.

        Requires the permission `SEND`. The response 202 means that the message is stored and will be sent, even if
        servers fail in between. Suppressed recipients are dropped; if all recipients are suppressed, the status is
        `suppressed` and no message is created.

        Args:
            to: One address or an array of up to 1,000, each with or without a display name. An item of the
                array can be an object with variables and metadata of this recipient. Each recipient gets a message
                of their own and does not see the other recipients, unless the message is shared. A repeated
                address gets one message.
            cc: One address or an array of addresses that get a copy and that all recipients see. With `cc` or
                `bcc`, the message is shared: all recipients get one mail and see the addresses of `to` and `cc`. A
                shared message has up to 50 addresses in all.
            bcc: One address or an array of addresses that get a copy and that the other recipients do not see.
            delivery: `private`: each recipient of `to` gets a mail of their own. `shared`: all get one mail
                and see each other. The default is `shared` with `cc` or `bcc`, and else `private`. A shared
                message has no variables of single recipients, and no `unsubscribe_group_id` unless it has one
                address.
            from_: The sender. The domain must be verified on the provider account that sends the message; the
                setting `unverified_domains` can allow other domains. Required, unless `template_id` names a
                template whose version has a sender.
            subject: The subject, on one line. With `template_id` or variables it is a Handlebars template, and
                the rendered subject must keep the same length limit. Required, unless `template_id` names a
                template whose version has a subject.
            html: The HTML body. With `template_id` it replaces the template's HTML and is not rendered. With
                variables and without `template_id` it is a Handlebars template.
            text: The plain-text body. With `template_id` it replaces the template's text and is not rendered.
                With variables and without `template_id` it is a Handlebars template.
            reply_to: One address for replies or an array of up to 10. The default is that of the template's
                version, or else the sender.
            headers: Extra headers: up to 50 names with their values, 8 KiB in all. A name has letters, digits
                and hyphens; a value is ASCII on one line (other characters as encoded words, RFC 2047). Headers
                that Waypost or the provider sets are refused: `From`, `To`, `Subject`, `Date`, `Message-ID`,
                `Content-*`, `DKIM-*`, `X-Waypost-*` and others. With `unsubscribe_group_id`, so is
                `List-Unsubscribe`.
            attachments: Up to 50 files. A file with a `content_id` is shown within the HTML body, which must
                not show `cid:` URLs of other ids.
            tags: Up to 10 tags, for routing rules and analytics.
            message_class: What kind of mail the message is, for routing rules: `transactional` (the default)
                or `bulk`.
            metadata: Any JSON object of up to 64 KiB. It is stored with the message and included in its
                webhook events.
            template_id: The template to render. The current version is rendered when the message is accepted;
                later versions do not change the message.
            locale: With `template_id`: the language of the version, as a language tag. Without a current
                version in this language, the next less exact one counts: `de-AT`, then `de`, then the default.
            variables: The variables of the template: an object of up to 256 KiB. Without `template_id`,
                `subject`, `html` and `text` are rendered with these variables (even if the object is empty). If
                neither the message nor a recipient has `variables`, they are sent unchanged.
            unsubscribe_group_id: The unsubscribe group of the message. Recipients who unsubscribed from this
                group are dropped, in addition to those suppressed for all messages. Each recipient gets an
                unsubscribe link: at `{{unsubscribeUrl}}` in a body, or else at its end, and in the headers for the
                unsubscribe button of mail clients. Without a group, a body must not contain `{{unsubscribeUrl}}`,
                unless `variables` defines it.
            tracking: Which tracking to add to the HTML body: a pixel for opens, redirects for clicks. The
                default is the organization's settings. A link with the attribute `data-waypost-no-track` is not
                tracked.
            scheduled_at: When to send the message, up to a year ahead: ISO 8601 with an offset from UTC. Until
                then its status is QUEUED. Suppressions and the account are decided at that time. The
                `Idempotency-Key` is valid until 24 hours after it.
            expires_at: The message is not sent from this time on, up to a year ahead: ISO 8601 with an offset
                from UTC, after `scheduled_at`. Recipients to whom it was not sent before are dropped.
            provider_account_id: The only provider account that may send the message, whatever the routing
                rules say. It must be active, and the sender's domain must be verified on it.
            test: Whether the message is a test: it goes through everything, but no provider is called, nobody
                gets it, and nothing is counted. The default is whether the API key is a test key; with a test key
                it must not be false.
            test_outcome: What becomes of a test. `delivered` is the default. `bounced`: a hard bounce.
                `complained`: delivered, then reported as spam. `deferred`: deferred, then delivered. `failed`: the
                provider refuses it. `suppressed`: all recipients are suppressed. `unknown`: the provider's answer
                is lost, and the rule's `on_unknown` decides. `failover`: the first account fails, and the next one
                takes it.
        """
        call = Call(
            "POST",
            "/v1/send",
            options,
            body={
                "to": to,
                "cc": cc,
                "bcc": bcc,
                "delivery": delivery,
                "from_": from_,
                "subject": subject,
                "html": html,
                "text": text,
                "reply_to": reply_to,
                "headers": headers,
                "attachments": attachments,
                "tags": tags,
                "message_class": message_class,
                "metadata": metadata,
                "template_id": template_id,
                "locale": locale,
                "variables": variables,
                "unsubscribe_group_id": unsubscribe_group_id,
                "tracking": tracking,
                "scheduled_at": scheduled_at,
                "expires_at": expires_at,
                "provider_account_id": provider_account_id,
                "test": test,
                "test_outcome": test_outcome,
            },
            body_type=types.SendMessageRequest,
            idempotent=True,
        )
        return self._http.json(types.SendMessageResponse, call)

    def send_batch(
        self,
        *,
        messages: Sequence[types.BatchMessage],
        **options: Unpack[RequestOptions],
    ) -> types.SendBatchResponse:
        """Send a batch of messages.

        Requires the permission `SEND`. Each message is validated and queued separately. A message that is rejected
        has an `error` in its place in `results`.

        Args:
            messages: 1 to 1,000 messages. The operator can set another maximum.
        """
        call = Call(
            "POST",
            "/v1/emails/batch",
            options,
            body={
                "messages": messages,
            },
            body_type=types.SendBatchRequest,
            idempotent=True,
        )
        return self._http.json(types.SendBatchResponse, call)

    def list(
        self,
        *,
        page: Optional[int] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        test: Optional[bool] = None,
        status: Optional[Sequence[types.MessageStatus]] = None,
        search: Optional[str] = None,
        recipient: Optional[str] = None,
        from_: Optional[str] = None,
        tag: Optional[str] = None,
        template_id: Optional[str] = None,
        provider_account_id: Optional[str] = None,
        provider_message_id: Optional[str] = None,
        created_from: Optional[Union[datetime, str]] = None,
        created_to: Optional[Union[datetime, str]] = None,
        **options: Unpack[RequestOptions],
    ) -> Page[types.MessageSummary]:
        """List messages.

        Requires the permission `METRICS_READ`. The newest message comes first. Tests are in a list of their own.

        All filters can be combined. Without `search`, `recipient`, `from`, `tag`, `template_id`,
        `provider_account_id` and `provider_message_id`, `total` is the number of all matching messages. With one
        of them, `total` counts at most the newest 2,000 matching messages, and so do the pages; `next_cursor`
        leads to the older ones, except with `search`.

        A search text without three consecutive letters or digits is searched in the newest 30,000 messages only,
        unless a filter other than `status` and the times is given. A search with `status` covers the newest 30,000
        messages and at least the newest 4,000 with this status, if the text is such a short one or if more than
        2,000 messages of any status match it. The same holds for times and several statuses, with 20,000 messages
        in place of the 2,000.

        Args:
            page: The page number, from 1.
            limit: The number of items per page.
            cursor: The `next_cursor` of the page before, instead of `page`. The pages stay as they are while
                the list grows at its beginning.
            test: Tests only, or live messages only. The default is whether the API key is a test key.
            status: Only messages with one of these statuses.
            search: Only messages whose subject contains this text. Upper and lower case are not distinguished.
            recipient: Only messages to this address.
            from_: Only messages from this address, or from all addresses of this domain.
            tag: Only messages with this tag.
            template_id: Only messages with this template.
            provider_account_id: Only messages of this provider account: the `provider_account_id` of the list.
            provider_message_id: Only messages for which a provider returned this message id, for any
                recipient.
            created_from: Only messages accepted at or after this time, in whole milliseconds.
            created_to: Only messages accepted before this time, in whole milliseconds. A date without a time
                includes that whole day.
        """
        call = Call(
            "GET",
            "/v1/messages",
            options,
            query={
                "page": page,
                "limit": limit,
                "cursor": cursor,
                "test": test,
                "status": status,
                "search": search,
                "recipient": recipient,
                "from": from_,
                "tag": tag,
                "templateId": template_id,
                "providerAccountId": provider_account_id,
                "providerMessageId": provider_message_id,
                "createdFrom": created_from,
                "createdTo": created_to,
            },
        )
        return self._http.pages(types.MessageSummary, call)

    def get(self, id: str, **options: Unpack[RequestOptions]) -> types.MessageDetail:
        """Get a message with its history.

        Requires the permission `METRICS_READ`.

        Args:
            id: The id of the message.
        """
        call = Call("GET", "/v1/messages/{id}", options, path={"id": id})
        return self._http.json(types.MessageDetail, call, "data")

    def update(
        self,
        id: str,
        *,
        scheduled_at: Union[Optional[Union[datetime, str]], NotGiven] = NOT_GIVEN,
        **options: Unpack[RequestOptions],
    ) -> types.MessageDetail:
        """Move the time of a scheduled message.

        Requires the permission `SEND`. Returns 409 if the message was not scheduled, or if sending it has begun.

        Args:
            id: The id of the message.
            scheduled_at: When the message goes: a time with its offset from UTC, up to one year ahead and
                before its `expires_at`. Null is now.
        """
        call = Call(
            "PATCH",
            "/v1/messages/{id}",
            options,
            path={"id": id},
            body={
                "scheduled_at": scheduled_at,
            },
            body_type=types.UpdateMessageRequest,
        )
        return self._http.json(types.MessageDetail, call, "data")

    def retry(self, id: str, **options: Unpack[RequestOptions]) -> types.MessageDetail:
        """Retry a failed message.

        Requires the permission `SEND`. Queues the recipients with the status FAILED again, with all attempts and
        the full retry period, as at acceptance. Recipients that are suppressed now are dropped again. Returns 409
        if no recipient has the status FAILED, so repeating the request sends nothing twice.

        Args:
            id: The id of the message.
        """
        call = Call("POST", "/v1/messages/{id}/retry", options, path={"id": id})
        return self._http.json(types.MessageDetail, call, "data")

    def cancel(self, id: str, **options: Unpack[RequestOptions]) -> types.CancelledMessage:
        """Cancel a message.

        Requires the permission `SEND`. Cancels the recipients that wait, whether the message is scheduled, queued
        or being retried: they get the status FAILED and an event DROPPED with the reason `CANCELLED`, and the
        message is not sent to them. Recipients to whom it was sent, or is just being sent, are left as they are.
        Returns 409 if no recipient can be cancelled. Repeating the request changes nothing and succeeds again.

        Args:
            id: The id of the message.
        """
        call = Call("POST", "/v1/messages/{id}/cancel", options, path={"id": id}, repeatable=True)
        return self._http.json(types.CancelledMessage, call, "data")

    def get_content(
        self,
        id: str,
        *,
        position: Optional[int] = None,
        **options: Unpack[RequestOptions],
    ) -> types.MessageContentView:
        """Get a message's content.

        Requires the permission `CONTENT_READ`. The audit log records each request. The content of a message is
        stored for a shorter time than the message: afterwards the response is 404 with `details.reason`
        `MESSAGE_CONTENT_GONE`.

        Args:
            id: The id of the message.
            position: The position of a recipient in the send request, from 0: the content as rendered for this
                recipient.
        """
        call = Call(
            "GET",
            "/v1/messages/{id}/content",
            options,
            path={"id": id},
            query={
                "position": position,
            },
        )
        return self._http.json(types.MessageContentView, call, "data")


class AsyncMessages:
    """Accepted messages, their recipients and their history."""

    def __init__(self, http: AsyncHttp) -> None:
        self._http = http
        self.recipients = AsyncMessagesRecipients(http)
        """The recipients."""
        self.attachments = AsyncMessagesAttachments(http)
        """The attachments."""
        self.webhook_deliveries = AsyncMessagesWebhookDeliveries(http)
        """The webhook deliveries."""

    async def send(
        self,
        *,
        to: types.Recipients,
        cc: Optional[types.Addresses] = None,
        bcc: Optional[types.Addresses] = None,
        delivery: Optional[types.DeliveryMode] = None,
        from_: Optional[str] = None,
        subject: Optional[str] = None,
        html: Optional[str] = None,
        text: Optional[str] = None,
        reply_to: Optional[types.Addresses] = None,
        headers: Optional[Mapping[str, str]] = None,
        attachments: Optional[Sequence[types.MessageAttachment]] = None,
        tags: Optional[Sequence[str]] = None,
        message_class: Optional[types.MessageClass] = None,
        metadata: Optional[Mapping[str, Any]] = None,
        template_id: Optional[str] = None,
        locale: Optional[str] = None,
        variables: Optional[Mapping[str, Any]] = None,
        unsubscribe_group_id: Optional[str] = None,
        tracking: Optional[types.Tracking] = None,
        scheduled_at: Optional[Union[datetime, str]] = None,
        expires_at: Optional[Union[datetime, str]] = None,
        provider_account_id: Optional[str] = None,
        test: Optional[bool] = None,
        test_outcome: Optional[types.TestOutcome] = None,
        **options: Unpack[RequestOptions],
    ) -> types.SendMessageResponse:
        """Send a message.

        Requires the permission `SEND`. The response 202 means that the message is stored and will be sent, even if
        servers fail in between. Suppressed recipients are dropped; if all recipients are suppressed, the status is
        `suppressed` and no message is created.

        Args:
            to: One address or an array of up to 1,000, each with or without a display name. An item of the
                array can be an object with variables and metadata of this recipient. Each recipient gets a message
                of their own and does not see the other recipients, unless the message is shared. A repeated
                address gets one message.
            cc: One address or an array of addresses that get a copy and that all recipients see. With `cc` or
                `bcc`, the message is shared: all recipients get one mail and see the addresses of `to` and `cc`. A
                shared message has up to 50 addresses in all.
            bcc: One address or an array of addresses that get a copy and that the other recipients do not see.
            delivery: `private`: each recipient of `to` gets a mail of their own. `shared`: all get one mail
                and see each other. The default is `shared` with `cc` or `bcc`, and else `private`. A shared
                message has no variables of single recipients, and no `unsubscribe_group_id` unless it has one
                address.
            from_: The sender. The domain must be verified on the provider account that sends the message; the
                setting `unverified_domains` can allow other domains. Required, unless `template_id` names a
                template whose version has a sender.
            subject: The subject, on one line. With `template_id` or variables it is a Handlebars template, and
                the rendered subject must keep the same length limit. Required, unless `template_id` names a
                template whose version has a subject.
            html: The HTML body. With `template_id` it replaces the template's HTML and is not rendered. With
                variables and without `template_id` it is a Handlebars template.
            text: The plain-text body. With `template_id` it replaces the template's text and is not rendered.
                With variables and without `template_id` it is a Handlebars template.
            reply_to: One address for replies or an array of up to 10. The default is that of the template's
                version, or else the sender.
            headers: Extra headers: up to 50 names with their values, 8 KiB in all. A name has letters, digits
                and hyphens; a value is ASCII on one line (other characters as encoded words, RFC 2047). Headers
                that Waypost or the provider sets are refused: `From`, `To`, `Subject`, `Date`, `Message-ID`,
                `Content-*`, `DKIM-*`, `X-Waypost-*` and others. With `unsubscribe_group_id`, so is
                `List-Unsubscribe`.
            attachments: Up to 50 files. A file with a `content_id` is shown within the HTML body, which must
                not show `cid:` URLs of other ids.
            tags: Up to 10 tags, for routing rules and analytics.
            message_class: What kind of mail the message is, for routing rules: `transactional` (the default)
                or `bulk`.
            metadata: Any JSON object of up to 64 KiB. It is stored with the message and included in its
                webhook events.
            template_id: The template to render. The current version is rendered when the message is accepted;
                later versions do not change the message.
            locale: With `template_id`: the language of the version, as a language tag. Without a current
                version in this language, the next less exact one counts: `de-AT`, then `de`, then the default.
            variables: The variables of the template: an object of up to 256 KiB. Without `template_id`,
                `subject`, `html` and `text` are rendered with these variables (even if the object is empty). If
                neither the message nor a recipient has `variables`, they are sent unchanged.
            unsubscribe_group_id: The unsubscribe group of the message. Recipients who unsubscribed from this
                group are dropped, in addition to those suppressed for all messages. Each recipient gets an
                unsubscribe link: at `{{unsubscribeUrl}}` in a body, or else at its end, and in the headers for the
                unsubscribe button of mail clients. Without a group, a body must not contain `{{unsubscribeUrl}}`,
                unless `variables` defines it.
            tracking: Which tracking to add to the HTML body: a pixel for opens, redirects for clicks. The
                default is the organization's settings. A link with the attribute `data-waypost-no-track` is not
                tracked.
            scheduled_at: When to send the message, up to a year ahead: ISO 8601 with an offset from UTC. Until
                then its status is QUEUED. Suppressions and the account are decided at that time. The
                `Idempotency-Key` is valid until 24 hours after it.
            expires_at: The message is not sent from this time on, up to a year ahead: ISO 8601 with an offset
                from UTC, after `scheduled_at`. Recipients to whom it was not sent before are dropped.
            provider_account_id: The only provider account that may send the message, whatever the routing
                rules say. It must be active, and the sender's domain must be verified on it.
            test: Whether the message is a test: it goes through everything, but no provider is called, nobody
                gets it, and nothing is counted. The default is whether the API key is a test key; with a test key
                it must not be false.
            test_outcome: What becomes of a test. `delivered` is the default. `bounced`: a hard bounce.
                `complained`: delivered, then reported as spam. `deferred`: deferred, then delivered. `failed`: the
                provider refuses it. `suppressed`: all recipients are suppressed. `unknown`: the provider's answer
                is lost, and the rule's `on_unknown` decides. `failover`: the first account fails, and the next one
                takes it.
        """
        call = Call(
            "POST",
            "/v1/send",
            options,
            body={
                "to": to,
                "cc": cc,
                "bcc": bcc,
                "delivery": delivery,
                "from_": from_,
                "subject": subject,
                "html": html,
                "text": text,
                "reply_to": reply_to,
                "headers": headers,
                "attachments": attachments,
                "tags": tags,
                "message_class": message_class,
                "metadata": metadata,
                "template_id": template_id,
                "locale": locale,
                "variables": variables,
                "unsubscribe_group_id": unsubscribe_group_id,
                "tracking": tracking,
                "scheduled_at": scheduled_at,
                "expires_at": expires_at,
                "provider_account_id": provider_account_id,
                "test": test,
                "test_outcome": test_outcome,
            },
            body_type=types.SendMessageRequest,
            idempotent=True,
        )
        return await self._http.json(types.SendMessageResponse, call)

    async def send_batch(
        self,
        *,
        messages: Sequence[types.BatchMessage],
        **options: Unpack[RequestOptions],
    ) -> types.SendBatchResponse:
        """Send a batch of messages.

        Requires the permission `SEND`. Each message is validated and queued separately. A message that is rejected
        has an `error` in its place in `results`.

        Args:
            messages: 1 to 1,000 messages. The operator can set another maximum.
        """
        call = Call(
            "POST",
            "/v1/emails/batch",
            options,
            body={
                "messages": messages,
            },
            body_type=types.SendBatchRequest,
            idempotent=True,
        )
        return await self._http.json(types.SendBatchResponse, call)

    def list(
        self,
        *,
        page: Optional[int] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        test: Optional[bool] = None,
        status: Optional[Sequence[types.MessageStatus]] = None,
        search: Optional[str] = None,
        recipient: Optional[str] = None,
        from_: Optional[str] = None,
        tag: Optional[str] = None,
        template_id: Optional[str] = None,
        provider_account_id: Optional[str] = None,
        provider_message_id: Optional[str] = None,
        created_from: Optional[Union[datetime, str]] = None,
        created_to: Optional[Union[datetime, str]] = None,
        **options: Unpack[RequestOptions],
    ) -> AsyncPages[types.MessageSummary]:
        """List messages.

        Requires the permission `METRICS_READ`. The newest message comes first. Tests are in a list of their own.

        All filters can be combined. Without `search`, `recipient`, `from`, `tag`, `template_id`,
        `provider_account_id` and `provider_message_id`, `total` is the number of all matching messages. With one
        of them, `total` counts at most the newest 2,000 matching messages, and so do the pages; `next_cursor`
        leads to the older ones, except with `search`.

        A search text without three consecutive letters or digits is searched in the newest 30,000 messages only,
        unless a filter other than `status` and the times is given. A search with `status` covers the newest 30,000
        messages and at least the newest 4,000 with this status, if the text is such a short one or if more than
        2,000 messages of any status match it. The same holds for times and several statuses, with 20,000 messages
        in place of the 2,000.

        Args:
            page: The page number, from 1.
            limit: The number of items per page.
            cursor: The `next_cursor` of the page before, instead of `page`. The pages stay as they are while
                the list grows at its beginning.
            test: Tests only, or live messages only. The default is whether the API key is a test key.
            status: Only messages with one of these statuses.
            search: Only messages whose subject contains this text. Upper and lower case are not distinguished.
            recipient: Only messages to this address.
            from_: Only messages from this address, or from all addresses of this domain.
            tag: Only messages with this tag.
            template_id: Only messages with this template.
            provider_account_id: Only messages of this provider account: the `provider_account_id` of the list.
            provider_message_id: Only messages for which a provider returned this message id, for any
                recipient.
            created_from: Only messages accepted at or after this time, in whole milliseconds.
            created_to: Only messages accepted before this time, in whole milliseconds. A date without a time
                includes that whole day.
        """
        call = Call(
            "GET",
            "/v1/messages",
            options,
            query={
                "page": page,
                "limit": limit,
                "cursor": cursor,
                "test": test,
                "status": status,
                "search": search,
                "recipient": recipient,
                "from": from_,
                "tag": tag,
                "templateId": template_id,
                "providerAccountId": provider_account_id,
                "providerMessageId": provider_message_id,
                "createdFrom": created_from,
                "createdTo": created_to,
            },
        )
        return self._http.pages(types.MessageSummary, call)

    async def get(self, id: str, **options: Unpack[RequestOptions]) -> types.MessageDetail:
        """Get a message with its history.

        Requires the permission `METRICS_READ`.

        Args:
            id: The id of the message.
        """
        call = Call("GET", "/v1/messages/{id}", options, path={"id": id})
        return await self._http.json(types.MessageDetail, call, "data")

    async def update(
        self,
        id: str,
        *,
        scheduled_at: Union[Optional[Union[datetime, str]], NotGiven] = NOT_GIVEN,
        **options: Unpack[RequestOptions],
    ) -> types.MessageDetail:
        """Move the time of a scheduled message.

        Requires the permission `SEND`. Returns 409 if the message was not scheduled, or if sending it has begun.

        Args:
            id: The id of the message.
            scheduled_at: When the message goes: a time with its offset from UTC, up to one year ahead and
                before its `expires_at`. Null is now.
        """
        call = Call(
            "PATCH",
            "/v1/messages/{id}",
            options,
            path={"id": id},
            body={
                "scheduled_at": scheduled_at,
            },
            body_type=types.UpdateMessageRequest,
        )
        return await self._http.json(types.MessageDetail, call, "data")

    async def retry(self, id: str, **options: Unpack[RequestOptions]) -> types.MessageDetail:
        """Retry a failed message.

        Requires the permission `SEND`. Queues the recipients with the status FAILED again, with all attempts and
        the full retry period, as at acceptance. Recipients that are suppressed now are dropped again. Returns 409
        if no recipient has the status FAILED, so repeating the request sends nothing twice.

        Args:
            id: The id of the message.
        """
        call = Call("POST", "/v1/messages/{id}/retry", options, path={"id": id})
        return await self._http.json(types.MessageDetail, call, "data")

    async def cancel(self, id: str, **options: Unpack[RequestOptions]) -> types.CancelledMessage:
        """Cancel a message.

        Requires the permission `SEND`. Cancels the recipients that wait, whether the message is scheduled, queued
        or being retried: they get the status FAILED and an event DROPPED with the reason `CANCELLED`, and the
        message is not sent to them. Recipients to whom it was sent, or is just being sent, are left as they are.
        Returns 409 if no recipient can be cancelled. Repeating the request changes nothing and succeeds again.

        Args:
            id: The id of the message.
        """
        call = Call("POST", "/v1/messages/{id}/cancel", options, path={"id": id}, repeatable=True)
        return await self._http.json(types.CancelledMessage, call, "data")

    async def get_content(
        self,
        id: str,
        *,
        position: Optional[int] = None,
        **options: Unpack[RequestOptions],
    ) -> types.MessageContentView:
        """Get a message's content.

        Requires the permission `CONTENT_READ`. The audit log records each request. The content of a message is
        stored for a shorter time than the message: afterwards the response is 404 with `details.reason`
        `MESSAGE_CONTENT_GONE`.

        Args:
            id: The id of the message.
            position: The position of a recipient in the send request, from 0: the content as rendered for this
                recipient.
        """
        call = Call(
            "GET",
            "/v1/messages/{id}/content",
            options,
            path={"id": id},
            query={
                "position": position,
            },
        )
        return await self._http.json(types.MessageContentView, call, "data")


class MessagesRecipients:
    """The recipients."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def list(
        self,
        message_id: str,
        *,
        page: Optional[int] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        **options: Unpack[RequestOptions],
    ) -> Page[types.RecipientDetail]:
        """List a message's recipients.

        Requires the permission `METRICS_READ`. The recipients are in the order of the send request.

        Args:
            message_id: The id of the message.
            page: The page number, from 1.
            limit: The number of items per page.
            cursor: The `next_cursor` of the page before, instead of `page`. The pages stay as they are while
                the list grows at its beginning.
        """
        call = Call(
            "GET",
            "/v1/messages/{id}/recipients",
            options,
            path={"id": message_id},
            query={
                "page": page,
                "limit": limit,
                "cursor": cursor,
            },
        )
        return self._http.pages(types.RecipientDetail, call)


class AsyncMessagesRecipients:
    """The recipients."""

    def __init__(self, http: AsyncHttp) -> None:
        self._http = http

    def list(
        self,
        message_id: str,
        *,
        page: Optional[int] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        **options: Unpack[RequestOptions],
    ) -> AsyncPages[types.RecipientDetail]:
        """List a message's recipients.

        Requires the permission `METRICS_READ`. The recipients are in the order of the send request.

        Args:
            message_id: The id of the message.
            page: The page number, from 1.
            limit: The number of items per page.
            cursor: The `next_cursor` of the page before, instead of `page`. The pages stay as they are while
                the list grows at its beginning.
        """
        call = Call(
            "GET",
            "/v1/messages/{id}/recipients",
            options,
            path={"id": message_id},
            query={
                "page": page,
                "limit": limit,
                "cursor": cursor,
            },
        )
        return self._http.pages(types.RecipientDetail, call)


class MessagesAttachments:
    """The attachments."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def list(self, message_id: str, **options: Unpack[RequestOptions]) -> Page[types.AttachmentDetail]:
        """List a message's attachments.

        Requires the permission `CONTENT_READ`. The attachments are in the order of the send request. Each request
        is recorded in the audit log. If the content of the message is no longer stored, the response is 404 with
        the reason `MESSAGE_CONTENT_GONE`.

        Args:
            message_id: The id of the message.
        """
        call = Call("GET", "/v1/messages/{id}/attachments", options, path={"id": message_id})
        return self._http.pages(types.AttachmentDetail, call)

    def download(self, message_id: str, index: str, **options: Unpack[RequestOptions]) -> httpx.Response:
        """Download an attachment.

        Requires the permission `CONTENT_READ`. Each request is recorded in the audit log. If the content of the
        message is no longer stored, the response is 404 with the reason `MESSAGE_CONTENT_GONE`.

        Args:
            message_id: The id of the message.
            index: The place of the attachment in the list, from 0.
        """
        call = Call("GET", "/v1/messages/{id}/attachments/{index}", options, path={"id": message_id, "index": index})
        return self._http.send(call, stream=True)


class AsyncMessagesAttachments:
    """The attachments."""

    def __init__(self, http: AsyncHttp) -> None:
        self._http = http

    def list(self, message_id: str, **options: Unpack[RequestOptions]) -> AsyncPages[types.AttachmentDetail]:
        """List a message's attachments.

        Requires the permission `CONTENT_READ`. The attachments are in the order of the send request. Each request
        is recorded in the audit log. If the content of the message is no longer stored, the response is 404 with
        the reason `MESSAGE_CONTENT_GONE`.

        Args:
            message_id: The id of the message.
        """
        call = Call("GET", "/v1/messages/{id}/attachments", options, path={"id": message_id})
        return self._http.pages(types.AttachmentDetail, call)

    async def download(self, message_id: str, index: str, **options: Unpack[RequestOptions]) -> httpx.Response:
        """Download an attachment.

        Requires the permission `CONTENT_READ`. Each request is recorded in the audit log. If the content of the
        message is no longer stored, the response is 404 with the reason `MESSAGE_CONTENT_GONE`.

        Args:
            message_id: The id of the message.
            index: The place of the attachment in the list, from 0.
        """
        call = Call("GET", "/v1/messages/{id}/attachments/{index}", options, path={"id": message_id, "index": index})
        return await self._http.send(call, stream=True)


class MessagesWebhookDeliveries:
    """The webhook deliveries."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def list(
        self,
        message_id: str,
        *,
        page: Optional[int] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        **options: Unpack[RequestOptions],
    ) -> Page[types.WebhookDelivery]:
        """List a message's webhook deliveries.

        Requires the permission `SETTINGS_WRITE`. The deliveries of the message's events to all webhook endpoints,
        the newest first, each with its attempts.

        Args:
            message_id: The id of the message.
            page: The page number, from 1.
            limit: The number of items per page.
            cursor: The `next_cursor` of the page before, instead of `page`. The pages stay as they are while
                the list grows at its beginning.
        """
        call = Call(
            "GET",
            "/v1/messages/{id}/webhook-deliveries",
            options,
            path={"id": message_id},
            query={
                "page": page,
                "limit": limit,
                "cursor": cursor,
            },
        )
        return self._http.pages(types.WebhookDelivery, call)


class AsyncMessagesWebhookDeliveries:
    """The webhook deliveries."""

    def __init__(self, http: AsyncHttp) -> None:
        self._http = http

    def list(
        self,
        message_id: str,
        *,
        page: Optional[int] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        **options: Unpack[RequestOptions],
    ) -> AsyncPages[types.WebhookDelivery]:
        """List a message's webhook deliveries.

        Requires the permission `SETTINGS_WRITE`. The deliveries of the message's events to all webhook endpoints,
        the newest first, each with its attempts.

        Args:
            message_id: The id of the message.
            page: The page number, from 1.
            limit: The number of items per page.
            cursor: The `next_cursor` of the page before, instead of `page`. The pages stay as they are while
                the list grows at its beginning.
        """
        call = Call(
            "GET",
            "/v1/messages/{id}/webhook-deliveries",
            options,
            path={"id": message_id},
            query={
                "page": page,
                "limit": limit,
                "cursor": cursor,
            },
        )
        return self._http.pages(types.WebhookDelivery, call)


class Metrics:
    """Counts and rates of sent, delivered, opened, clicked, bounced and reported messages."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def get(
        self,
        *,
        from_: Optional[Union[datetime, str]] = None,
        to: Optional[Union[datetime, str]] = None,
        granularity: Optional[types.MetricsGranularity] = None,
        tag: Optional[str] = None,
        provider_account_id: Optional[str] = None,
        template_id: Optional[str] = None,
        time_zone: Optional[str] = None,
        **options: Unpack[RequestOptions],
    ) -> types.MetricsSeries:
        """Get metrics over time.

        Requires the permission `METRICS_READ`. Each hour that the period from `from` to `to` touches is counted
        whole, so the sums of the three metrics operations agree. The first and the last bucket contain only these
        hours. A response has at most 10,000 buckets. At most two of `tag`, `provider_account_id` and `template_id`
        can be given.

        Args:
            from_: The start of the period. The default is 30 days ago.
            to: The end of the period. The default is now. A date without a time includes that whole day.
            granularity: The length of a bucket. The default is `day`.
            tag: Only messages with this tag.
            provider_account_id: Only recipients whose mail went through this provider account.
            template_id: Only messages with this template.
            time_zone: The time zone of hours, days, weeks and months, and of times without an offset: a name
                of the IANA database. The default is UTC.
        """
        call = Call(
            "GET",
            "/v1/metrics",
            options,
            query={
                "from": from_,
                "to": to,
                "granularity": granularity,
                "tag": tag,
                "providerAccountId": provider_account_id,
                "templateId": template_id,
                "timeZone": time_zone,
            },
        )
        return self._http.json(types.MetricsSeries, call)

    def get_breakdown(
        self,
        *,
        from_: Optional[Union[datetime, str]] = None,
        to: Optional[Union[datetime, str]] = None,
        group_by: Optional[types.MetricsGroupBy] = None,
        tag: Optional[str] = None,
        provider_account_id: Optional[str] = None,
        template_id: Optional[str] = None,
        time_zone: Optional[str] = None,
        **options: Unpack[RequestOptions],
    ) -> types.MetricsBreakdown:
        """Get metrics by provider, domain, template, account, tag or recipient domain.

        Requires the permission `METRICS_READ`. Counts the same hours as `GET /v1/metrics`. A message with two tags
        counts for both. One of `tag`, `provider_account_id` and `template_id` can be given beside `group_by`, or a
        second one that is also the one to group by. `recipientDomain` goes with `provider_account_id` alone.

        Args:
            from_: The start of the period. The default is 30 days ago.
            to: The end of the period. The default is now. A date without a time includes that whole day.
            group_by: What to group by. The default is `provider`.
            tag: Only messages with this tag.
            provider_account_id: Only recipients whose mail went through this provider account.
            template_id: Only messages with this template.
            time_zone: The time zone of hours, days, weeks and months, and of times without an offset: a name
                of the IANA database. The default is UTC.
        """
        call = Call(
            "GET",
            "/v1/metrics/breakdown",
            options,
            query={
                "from": from_,
                "to": to,
                "groupBy": group_by,
                "tag": tag,
                "providerAccountId": provider_account_id,
                "templateId": template_id,
                "timeZone": time_zone,
            },
        )
        return self._http.json(types.MetricsBreakdown, call)

    def get_summary(
        self,
        *,
        from_: Optional[Union[datetime, str]] = None,
        to: Optional[Union[datetime, str]] = None,
        tag: Optional[str] = None,
        provider_account_id: Optional[str] = None,
        template_id: Optional[str] = None,
        time_zone: Optional[str] = None,
        **options: Unpack[RequestOptions],
    ) -> types.MetricsSummary:
        """Get total metrics.

        Requires the permission `METRICS_READ`. Counts the same hours as `GET /v1/metrics`. At most two of `tag`,
        `provider_account_id` and `template_id` can be given.

        Args:
            from_: The start of the period. The default is 30 days ago.
            to: The end of the period. The default is now. A date without a time includes that whole day.
            tag: Only messages with this tag.
            provider_account_id: Only recipients whose mail went through this provider account.
            template_id: Only messages with this template.
            time_zone: The time zone of hours, days, weeks and months, and of times without an offset: a name
                of the IANA database. The default is UTC.
        """
        call = Call(
            "GET",
            "/v1/metrics/summary",
            options,
            query={
                "from": from_,
                "to": to,
                "tag": tag,
                "providerAccountId": provider_account_id,
                "templateId": template_id,
                "timeZone": time_zone,
            },
        )
        return self._http.json(types.MetricsSummary, call)


class AsyncMetrics:
    """Counts and rates of sent, delivered, opened, clicked, bounced and reported messages."""

    def __init__(self, http: AsyncHttp) -> None:
        self._http = http

    async def get(
        self,
        *,
        from_: Optional[Union[datetime, str]] = None,
        to: Optional[Union[datetime, str]] = None,
        granularity: Optional[types.MetricsGranularity] = None,
        tag: Optional[str] = None,
        provider_account_id: Optional[str] = None,
        template_id: Optional[str] = None,
        time_zone: Optional[str] = None,
        **options: Unpack[RequestOptions],
    ) -> types.MetricsSeries:
        """Get metrics over time.

        Requires the permission `METRICS_READ`. Each hour that the period from `from` to `to` touches is counted
        whole, so the sums of the three metrics operations agree. The first and the last bucket contain only these
        hours. A response has at most 10,000 buckets. At most two of `tag`, `provider_account_id` and `template_id`
        can be given.

        Args:
            from_: The start of the period. The default is 30 days ago.
            to: The end of the period. The default is now. A date without a time includes that whole day.
            granularity: The length of a bucket. The default is `day`.
            tag: Only messages with this tag.
            provider_account_id: Only recipients whose mail went through this provider account.
            template_id: Only messages with this template.
            time_zone: The time zone of hours, days, weeks and months, and of times without an offset: a name
                of the IANA database. The default is UTC.
        """
        call = Call(
            "GET",
            "/v1/metrics",
            options,
            query={
                "from": from_,
                "to": to,
                "granularity": granularity,
                "tag": tag,
                "providerAccountId": provider_account_id,
                "templateId": template_id,
                "timeZone": time_zone,
            },
        )
        return await self._http.json(types.MetricsSeries, call)

    async def get_breakdown(
        self,
        *,
        from_: Optional[Union[datetime, str]] = None,
        to: Optional[Union[datetime, str]] = None,
        group_by: Optional[types.MetricsGroupBy] = None,
        tag: Optional[str] = None,
        provider_account_id: Optional[str] = None,
        template_id: Optional[str] = None,
        time_zone: Optional[str] = None,
        **options: Unpack[RequestOptions],
    ) -> types.MetricsBreakdown:
        """Get metrics by provider, domain, template, account, tag or recipient domain.

        Requires the permission `METRICS_READ`. Counts the same hours as `GET /v1/metrics`. A message with two tags
        counts for both. One of `tag`, `provider_account_id` and `template_id` can be given beside `group_by`, or a
        second one that is also the one to group by. `recipientDomain` goes with `provider_account_id` alone.

        Args:
            from_: The start of the period. The default is 30 days ago.
            to: The end of the period. The default is now. A date without a time includes that whole day.
            group_by: What to group by. The default is `provider`.
            tag: Only messages with this tag.
            provider_account_id: Only recipients whose mail went through this provider account.
            template_id: Only messages with this template.
            time_zone: The time zone of hours, days, weeks and months, and of times without an offset: a name
                of the IANA database. The default is UTC.
        """
        call = Call(
            "GET",
            "/v1/metrics/breakdown",
            options,
            query={
                "from": from_,
                "to": to,
                "groupBy": group_by,
                "tag": tag,
                "providerAccountId": provider_account_id,
                "templateId": template_id,
                "timeZone": time_zone,
            },
        )
        return await self._http.json(types.MetricsBreakdown, call)

    async def get_summary(
        self,
        *,
        from_: Optional[Union[datetime, str]] = None,
        to: Optional[Union[datetime, str]] = None,
        tag: Optional[str] = None,
        provider_account_id: Optional[str] = None,
        template_id: Optional[str] = None,
        time_zone: Optional[str] = None,
        **options: Unpack[RequestOptions],
    ) -> types.MetricsSummary:
        """Get total metrics.

        Requires the permission `METRICS_READ`. Counts the same hours as `GET /v1/metrics`. At most two of `tag`,
        `provider_account_id` and `template_id` can be given.

        Args:
            from_: The start of the period. The default is 30 days ago.
            to: The end of the period. The default is now. A date without a time includes that whole day.
            tag: Only messages with this tag.
            provider_account_id: Only recipients whose mail went through this provider account.
            template_id: Only messages with this template.
            time_zone: The time zone of hours, days, weeks and months, and of times without an offset: a name
                of the IANA database. The default is UTC.
        """
        call = Call(
            "GET",
            "/v1/metrics/summary",
            options,
            query={
                "from": from_,
                "to": to,
                "tag": tag,
                "providerAccountId": provider_account_id,
                "templateId": template_id,
                "timeZone": time_zone,
            },
        )
        return await self._http.json(types.MetricsSummary, call)


class Providers:
    """Connected accounts at email providers, their domains and event webhooks."""

    def __init__(self, http: Http) -> None:
        self._http = http
        self.domains = ProvidersDomains(http)
        """The domains."""
        self.suppressions = ProvidersSuppressions(http)
        """The suppressions."""

    def list(self, **options: Unpack[RequestOptions]) -> Page[types.ProviderAccount]:
        """List provider accounts.

        Requires the permission `PROVIDERS_READ`. The oldest account comes first. Without a matching routing rule,
        the first active account sends.
        """
        call = Call("GET", "/v1/providers", options)
        return self._http.pages(types.ProviderAccount, call)

    def create(
        self,
        *,
        provider_type: types.ProviderType,
        display_name: str,
        credentials: types.ProviderCredentials,
        event_secrets: Optional[types.EventSecrets] = None,
        register_event_webhook: Optional[bool] = None,
        max_rate_per_second: Optional[int] = None,
        max_concurrency: Optional[int] = None,
        **options: Unpack[RequestOptions],
    ) -> types.ConnectedProvider:
        """Connect a provider account.

        Requires the permission `PROVIDERS_WRITE`. The credentials are checked with the provider, encrypted and
        stored, and the domains of the account are imported. For SENDGRID, POSTMARK and MAILGUN the event webhook
        is registered with the provider; `event_webhook` has the result.

        Args:
            display_name: The display name.
            credentials: The credentials. The required fields depend on `provider_type`: `api_key` for
                SENDGRID; `server_token` for POSTMARK; `api_key` and `domain` for MAILGUN; `access_key_id`,
                `secret_access_key` and `region` for SES; `host` for SMTP.
            event_secrets: The secrets that verify the provider's events: `public_key` for SENDGRID,
                `signing_key` for MAILGUN, `topic_arn` for SES. POSTMARK takes none. If the provider's API offers
                the secret, registering the event webhook reads it.
            register_event_webhook: Whether to register the account's `webhook_url` with the provider. The
                default is true, or false if `event_secrets` is given: you then set up the webhook at the provider.
            max_rate_per_second: The most calls to the provider per second, over all workers. The default is no
                limit.
            max_concurrency: The most concurrent calls to the provider, over all workers. The default is no
                limit.
        """
        call = Call(
            "POST",
            "/v1/providers",
            options,
            body={
                "provider_type": provider_type,
                "display_name": display_name,
                "credentials": credentials,
                "event_secrets": event_secrets,
                "register_event_webhook": register_event_webhook,
                "max_rate_per_second": max_rate_per_second,
                "max_concurrency": max_concurrency,
            },
            body_type=types.ConnectProviderRequest,
            idempotent=True,
        )
        return self._http.json(types.ConnectedProvider, call, "data")

    def get(self, id: str, **options: Unpack[RequestOptions]) -> types.ProviderAccount:
        """Get a provider account.

        Requires the permission `PROVIDERS_READ`.

        Args:
            id: The id of the provider account.
        """
        call = Call("GET", "/v1/providers/{id}", options, path={"id": id})
        return self._http.json(types.ProviderAccount, call, "data")

    def update(
        self,
        id: str,
        *,
        display_name: Optional[str] = None,
        is_active: Optional[bool] = None,
        credentials: Optional[types.ProviderCredentials] = None,
        event_secrets: Optional[types.EventSecrets] = None,
        max_rate_per_second: Union[Optional[int], NotGiven] = NOT_GIVEN,
        max_concurrency: Union[Optional[int], NotGiven] = NOT_GIVEN,
        **options: Unpack[RequestOptions],
    ) -> types.ProviderAccount:
        """Change a provider account.

        Requires the permission `PROVIDERS_WRITE`.

        Args:
            id: The id of the provider account.
            display_name: The display name.
            is_active: Whether the account sends messages.
            credentials: New credentials. They are checked with the provider before they replace the old ones.
            event_secrets: New secrets that verify the provider's events. `events_verified` is false until an
                event is verified with them.
            max_rate_per_second: The most calls to the provider per second, over all workers; null removes the
                limit. Workers apply the change within a few seconds.
            max_concurrency: The most concurrent calls to the provider, over all workers; null removes the
                limit. Workers apply the change within a few seconds.
        """
        call = Call(
            "PATCH",
            "/v1/providers/{id}",
            options,
            path={"id": id},
            body={
                "display_name": display_name,
                "is_active": is_active,
                "credentials": credentials,
                "event_secrets": event_secrets,
                "max_rate_per_second": max_rate_per_second,
                "max_concurrency": max_concurrency,
            },
            body_type=types.UpdateProviderRequest,
        )
        return self._http.json(types.ProviderAccount, call, "data")

    def delete(self, id: str, **options: Unpack[RequestOptions]) -> types.Success:
        """Remove a provider account.

        Requires the permission `PROVIDERS_WRITE`. Waiting messages of the account are sent by another active
        account. In routing rules the first fallback replaces the account; a rule without a fallback becomes
        inactive.

        Args:
            id: The id of the provider account.
        """
        call = Call("DELETE", "/v1/providers/{id}", options, path={"id": id})
        return self._http.json(types.Success, call)

    def validate(self, id: str, **options: Unpack[RequestOptions]) -> types.ValidationResult:
        """Check a provider account's credentials.

        Requires the permission `PROVIDERS_WRITE`. Checks the credentials with the provider, sets `is_active` to
        the result and updates the domains. If the provider gives no clear answer, the response is 503 and nothing
        changes.

        Args:
            id: The id of the provider account.
        """
        call = Call("POST", "/v1/providers/{id}/validate", options, path={"id": id}, repeatable=True)
        return self._http.json(types.ValidationResult, call)

    def register_event_webhook(self, id: str, **options: Unpack[RequestOptions]) -> types.EventWebhookResult:
        """Register the event webhook.

        Requires the permission `PROVIDERS_WRITE`. For SENDGRID, POSTMARK and MAILGUN this registers the account's
        `webhook_url` with the provider and stores the secrets that verify its events; a repeated request updates
        the same webhook. For SES nothing is called, and `steps` lists what to set up. If the provider refuses, for
        example because the API key lacks a permission, the response is 422 and lists the steps to take by hand.

        Args:
            id: The id of the provider account.
        """
        call = Call("POST", "/v1/providers/{id}/event-webhook", options, path={"id": id}, repeatable=True)
        return self._http.json(types.EventWebhookResult, call, "data")

    def list_health(self, **options: Unpack[RequestOptions]) -> Page[types.ProviderHealth]:
        """List the health of provider accounts.

        Requires the permission `PROVIDERS_READ`. The oldest account comes first.
        """
        call = Call("GET", "/v1/providers/health", options)
        return self._http.pages(types.ProviderHealth, call)

    def get_health(self, id: str, **options: Unpack[RequestOptions]) -> types.ProviderHealthDetail:
        """Get the health of a provider account.

        Requires the permission `PROVIDERS_READ`. Whether calls are made, what is wrong, how the calls of the last
        15 minutes ended, and what became of the account's mail in 15 minutes, a day and a week.

        Args:
            id: The id of the provider account.
        """
        call = Call("GET", "/v1/providers/{id}/health", options, path={"id": id})
        return self._http.json(types.ProviderHealthDetail, call, "data")

    def get_health_by_domain(
        self,
        id: str,
        *,
        window: Optional[types.ProviderHealthPeriod] = None,
        **options: Unpack[RequestOptions],
    ) -> types.ProviderHealthByDomain:
        """Get the health of a provider account by recipient domain.

        Requires the permission `PROVIDERS_READ`. What became of the account's mail to each recipient domain. The
        quarters of an hour that the window touches count whole, so `sent`, `delivered`, `bounced` and `complained`
        agree with the metrics of the same time. Tests are not counted.

        Args:
            id: The id of the provider account.
            window: How far back to count: 15 minutes, a day or a week. The default is `day`.
        """
        call = Call(
            "GET",
            "/v1/providers/{id}/health/domains",
            options,
            path={"id": id},
            query={
                "window": window,
            },
        )
        return self._http.json(types.ProviderHealthByDomain, call)


class AsyncProviders:
    """Connected accounts at email providers, their domains and event webhooks."""

    def __init__(self, http: AsyncHttp) -> None:
        self._http = http
        self.domains = AsyncProvidersDomains(http)
        """The domains."""
        self.suppressions = AsyncProvidersSuppressions(http)
        """The suppressions."""

    def list(self, **options: Unpack[RequestOptions]) -> AsyncPages[types.ProviderAccount]:
        """List provider accounts.

        Requires the permission `PROVIDERS_READ`. The oldest account comes first. Without a matching routing rule,
        the first active account sends.
        """
        call = Call("GET", "/v1/providers", options)
        return self._http.pages(types.ProviderAccount, call)

    async def create(
        self,
        *,
        provider_type: types.ProviderType,
        display_name: str,
        credentials: types.ProviderCredentials,
        event_secrets: Optional[types.EventSecrets] = None,
        register_event_webhook: Optional[bool] = None,
        max_rate_per_second: Optional[int] = None,
        max_concurrency: Optional[int] = None,
        **options: Unpack[RequestOptions],
    ) -> types.ConnectedProvider:
        """Connect a provider account.

        Requires the permission `PROVIDERS_WRITE`. The credentials are checked with the provider, encrypted and
        stored, and the domains of the account are imported. For SENDGRID, POSTMARK and MAILGUN the event webhook
        is registered with the provider; `event_webhook` has the result.

        Args:
            display_name: The display name.
            credentials: The credentials. The required fields depend on `provider_type`: `api_key` for
                SENDGRID; `server_token` for POSTMARK; `api_key` and `domain` for MAILGUN; `access_key_id`,
                `secret_access_key` and `region` for SES; `host` for SMTP.
            event_secrets: The secrets that verify the provider's events: `public_key` for SENDGRID,
                `signing_key` for MAILGUN, `topic_arn` for SES. POSTMARK takes none. If the provider's API offers
                the secret, registering the event webhook reads it.
            register_event_webhook: Whether to register the account's `webhook_url` with the provider. The
                default is true, or false if `event_secrets` is given: you then set up the webhook at the provider.
            max_rate_per_second: The most calls to the provider per second, over all workers. The default is no
                limit.
            max_concurrency: The most concurrent calls to the provider, over all workers. The default is no
                limit.
        """
        call = Call(
            "POST",
            "/v1/providers",
            options,
            body={
                "provider_type": provider_type,
                "display_name": display_name,
                "credentials": credentials,
                "event_secrets": event_secrets,
                "register_event_webhook": register_event_webhook,
                "max_rate_per_second": max_rate_per_second,
                "max_concurrency": max_concurrency,
            },
            body_type=types.ConnectProviderRequest,
            idempotent=True,
        )
        return await self._http.json(types.ConnectedProvider, call, "data")

    async def get(self, id: str, **options: Unpack[RequestOptions]) -> types.ProviderAccount:
        """Get a provider account.

        Requires the permission `PROVIDERS_READ`.

        Args:
            id: The id of the provider account.
        """
        call = Call("GET", "/v1/providers/{id}", options, path={"id": id})
        return await self._http.json(types.ProviderAccount, call, "data")

    async def update(
        self,
        id: str,
        *,
        display_name: Optional[str] = None,
        is_active: Optional[bool] = None,
        credentials: Optional[types.ProviderCredentials] = None,
        event_secrets: Optional[types.EventSecrets] = None,
        max_rate_per_second: Union[Optional[int], NotGiven] = NOT_GIVEN,
        max_concurrency: Union[Optional[int], NotGiven] = NOT_GIVEN,
        **options: Unpack[RequestOptions],
    ) -> types.ProviderAccount:
        """Change a provider account.

        Requires the permission `PROVIDERS_WRITE`.

        Args:
            id: The id of the provider account.
            display_name: The display name.
            is_active: Whether the account sends messages.
            credentials: New credentials. They are checked with the provider before they replace the old ones.
            event_secrets: New secrets that verify the provider's events. `events_verified` is false until an
                event is verified with them.
            max_rate_per_second: The most calls to the provider per second, over all workers; null removes the
                limit. Workers apply the change within a few seconds.
            max_concurrency: The most concurrent calls to the provider, over all workers; null removes the
                limit. Workers apply the change within a few seconds.
        """
        call = Call(
            "PATCH",
            "/v1/providers/{id}",
            options,
            path={"id": id},
            body={
                "display_name": display_name,
                "is_active": is_active,
                "credentials": credentials,
                "event_secrets": event_secrets,
                "max_rate_per_second": max_rate_per_second,
                "max_concurrency": max_concurrency,
            },
            body_type=types.UpdateProviderRequest,
        )
        return await self._http.json(types.ProviderAccount, call, "data")

    async def delete(self, id: str, **options: Unpack[RequestOptions]) -> types.Success:
        """Remove a provider account.

        Requires the permission `PROVIDERS_WRITE`. Waiting messages of the account are sent by another active
        account. In routing rules the first fallback replaces the account; a rule without a fallback becomes
        inactive.

        Args:
            id: The id of the provider account.
        """
        call = Call("DELETE", "/v1/providers/{id}", options, path={"id": id})
        return await self._http.json(types.Success, call)

    async def validate(self, id: str, **options: Unpack[RequestOptions]) -> types.ValidationResult:
        """Check a provider account's credentials.

        Requires the permission `PROVIDERS_WRITE`. Checks the credentials with the provider, sets `is_active` to
        the result and updates the domains. If the provider gives no clear answer, the response is 503 and nothing
        changes.

        Args:
            id: The id of the provider account.
        """
        call = Call("POST", "/v1/providers/{id}/validate", options, path={"id": id}, repeatable=True)
        return await self._http.json(types.ValidationResult, call)

    async def register_event_webhook(self, id: str, **options: Unpack[RequestOptions]) -> types.EventWebhookResult:
        """Register the event webhook.

        Requires the permission `PROVIDERS_WRITE`. For SENDGRID, POSTMARK and MAILGUN this registers the account's
        `webhook_url` with the provider and stores the secrets that verify its events; a repeated request updates
        the same webhook. For SES nothing is called, and `steps` lists what to set up. If the provider refuses, for
        example because the API key lacks a permission, the response is 422 and lists the steps to take by hand.

        Args:
            id: The id of the provider account.
        """
        call = Call("POST", "/v1/providers/{id}/event-webhook", options, path={"id": id}, repeatable=True)
        return await self._http.json(types.EventWebhookResult, call, "data")

    def list_health(self, **options: Unpack[RequestOptions]) -> AsyncPages[types.ProviderHealth]:
        """List the health of provider accounts.

        Requires the permission `PROVIDERS_READ`. The oldest account comes first.
        """
        call = Call("GET", "/v1/providers/health", options)
        return self._http.pages(types.ProviderHealth, call)

    async def get_health(self, id: str, **options: Unpack[RequestOptions]) -> types.ProviderHealthDetail:
        """Get the health of a provider account.

        Requires the permission `PROVIDERS_READ`. Whether calls are made, what is wrong, how the calls of the last
        15 minutes ended, and what became of the account's mail in 15 minutes, a day and a week.

        Args:
            id: The id of the provider account.
        """
        call = Call("GET", "/v1/providers/{id}/health", options, path={"id": id})
        return await self._http.json(types.ProviderHealthDetail, call, "data")

    async def get_health_by_domain(
        self,
        id: str,
        *,
        window: Optional[types.ProviderHealthPeriod] = None,
        **options: Unpack[RequestOptions],
    ) -> types.ProviderHealthByDomain:
        """Get the health of a provider account by recipient domain.

        Requires the permission `PROVIDERS_READ`. What became of the account's mail to each recipient domain. The
        quarters of an hour that the window touches count whole, so `sent`, `delivered`, `bounced` and `complained`
        agree with the metrics of the same time. Tests are not counted.

        Args:
            id: The id of the provider account.
            window: How far back to count: 15 minutes, a day or a week. The default is `day`.
        """
        call = Call(
            "GET",
            "/v1/providers/{id}/health/domains",
            options,
            path={"id": id},
            query={
                "window": window,
            },
        )
        return await self._http.json(types.ProviderHealthByDomain, call)


class ProvidersDomains:
    """The domains."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def list(self, provider_id: str, **options: Unpack[RequestOptions]) -> Page[types.DomainVerification]:
        """List a provider account's domains.

        Requires the permission `PROVIDERS_READ`.

        Args:
            provider_id: The id of the provider account.
        """
        call = Call("GET", "/v1/providers/{id}/domains", options, path={"id": provider_id})
        return self._http.pages(types.DomainVerification, call)

    def create(
        self,
        provider_id: str,
        *,
        domain: str,
        **options: Unpack[RequestOptions],
    ) -> types.DomainVerification:
        """Add a domain to a provider account.

        Requires the permission `PROVIDERS_WRITE`. Adds the domain at the provider, if it is not there yet, and
        returns the DNS records to publish. If the credentials give no access to domains, the domain is only
        stored, with the state `unknown`. Unverified domains are checked every few minutes for an hour, then every
        hour.

        Args:
            provider_id: The id of the provider account.
            domain: The domain name. An international name is stored in its ASCII form.
        """
        call = Call(
            "POST",
            "/v1/providers/{id}/domains",
            options,
            path={"id": provider_id},
            body={
                "domain": domain,
            },
            body_type=types.CreateProviderDomainRequest,
            idempotent=True,
        )
        return self._http.json(types.DomainVerification, call, "data")

    def verify(self, provider_id: str, domain_id: str, **options: Unpack[RequestOptions]) -> types.DomainVerification:
        """Check a domain of a provider account.

        Requires the permission `PROVIDERS_WRITE`. Asks the provider to check DNS now, if its API allows that, and
        updates the state and the DNS records.

        Args:
            provider_id: The id of the provider account.
            domain_id: The id of the domain.
        """
        call = Call(
            "POST",
            "/v1/providers/{id}/domains/{domainId}/verify",
            options,
            path={"id": provider_id, "domainId": domain_id},
            repeatable=True,
        )
        return self._http.json(types.DomainVerification, call, "data")

    def delete(self, provider_id: str, domain_id: str, **options: Unpack[RequestOptions]) -> types.Success:
        """Remove a domain from a provider account.

        Requires the permission `PROVIDERS_WRITE`. Removes the domain at the provider too, unless the credentials
        give no access to domains. The sending domain of a MAILGUN account cannot be removed.

        Args:
            provider_id: The id of the provider account.
            domain_id: The id of the domain.
        """
        call = Call(
            "DELETE",
            "/v1/providers/{id}/domains/{domainId}",
            options,
            path={"id": provider_id, "domainId": domain_id},
        )
        return self._http.json(types.Success, call)


class AsyncProvidersDomains:
    """The domains."""

    def __init__(self, http: AsyncHttp) -> None:
        self._http = http

    def list(self, provider_id: str, **options: Unpack[RequestOptions]) -> AsyncPages[types.DomainVerification]:
        """List a provider account's domains.

        Requires the permission `PROVIDERS_READ`.

        Args:
            provider_id: The id of the provider account.
        """
        call = Call("GET", "/v1/providers/{id}/domains", options, path={"id": provider_id})
        return self._http.pages(types.DomainVerification, call)

    async def create(
        self,
        provider_id: str,
        *,
        domain: str,
        **options: Unpack[RequestOptions],
    ) -> types.DomainVerification:
        """Add a domain to a provider account.

        Requires the permission `PROVIDERS_WRITE`. Adds the domain at the provider, if it is not there yet, and
        returns the DNS records to publish. If the credentials give no access to domains, the domain is only
        stored, with the state `unknown`. Unverified domains are checked every few minutes for an hour, then every
        hour.

        Args:
            provider_id: The id of the provider account.
            domain: The domain name. An international name is stored in its ASCII form.
        """
        call = Call(
            "POST",
            "/v1/providers/{id}/domains",
            options,
            path={"id": provider_id},
            body={
                "domain": domain,
            },
            body_type=types.CreateProviderDomainRequest,
            idempotent=True,
        )
        return await self._http.json(types.DomainVerification, call, "data")

    async def verify(
        self,
        provider_id: str,
        domain_id: str,
        **options: Unpack[RequestOptions],
    ) -> types.DomainVerification:
        """Check a domain of a provider account.

        Requires the permission `PROVIDERS_WRITE`. Asks the provider to check DNS now, if its API allows that, and
        updates the state and the DNS records.

        Args:
            provider_id: The id of the provider account.
            domain_id: The id of the domain.
        """
        call = Call(
            "POST",
            "/v1/providers/{id}/domains/{domainId}/verify",
            options,
            path={"id": provider_id, "domainId": domain_id},
            repeatable=True,
        )
        return await self._http.json(types.DomainVerification, call, "data")

    async def delete(self, provider_id: str, domain_id: str, **options: Unpack[RequestOptions]) -> types.Success:
        """Remove a domain from a provider account.

        Requires the permission `PROVIDERS_WRITE`. Removes the domain at the provider too, unless the credentials
        give no access to domains. The sending domain of a MAILGUN account cannot be removed.

        Args:
            provider_id: The id of the provider account.
            domain_id: The id of the domain.
        """
        call = Call(
            "DELETE",
            "/v1/providers/{id}/domains/{domainId}",
            options,
            path={"id": provider_id, "domainId": domain_id},
        )
        return await self._http.json(types.Success, call)


class ProvidersSuppressions:
    """The suppressions."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def import_(
        self,
        provider_id: str,
        *,
        cursor: Optional[str] = None,
        **options: Unpack[RequestOptions],
    ) -> types.ProviderImportResult:
        """Import a provider account's suppressions.

        Requires the permission `PROVIDERS_WRITE`, and `SETTINGS_WRITE`. Suppresses the addresses in the lists that
        the provider keeps: bounces, complaints and unsubscribes from all messages, with the sources BOUNCE,
        COMPLAINT and UNSUBSCRIBE. One request reads up to 100 pages, and for 30 seconds; if `next_cursor` is not
        null, send it in the next request. If the provider fails, `details` of the error says what was imported
        until then, and where to continue. An import can be repeated. SMTP accounts have no lists.

        Args:
            provider_id: The id of the provider account.
            cursor: The `next_cursor` of the import before. The default is the beginning of the lists.
        """
        call = Call(
            "POST",
            "/v1/providers/{id}/suppressions/import",
            options,
            path={"id": provider_id},
            body={
                "cursor": cursor,
            },
            body_type=types.ImportProviderSuppressionsRequest,
            repeatable=True,
        )
        return self._http.json(types.ProviderImportResult, call, "data")


class AsyncProvidersSuppressions:
    """The suppressions."""

    def __init__(self, http: AsyncHttp) -> None:
        self._http = http

    async def import_(
        self,
        provider_id: str,
        *,
        cursor: Optional[str] = None,
        **options: Unpack[RequestOptions],
    ) -> types.ProviderImportResult:
        """Import a provider account's suppressions.

        Requires the permission `PROVIDERS_WRITE`, and `SETTINGS_WRITE`. Suppresses the addresses in the lists that
        the provider keeps: bounces, complaints and unsubscribes from all messages, with the sources BOUNCE,
        COMPLAINT and UNSUBSCRIBE. One request reads up to 100 pages, and for 30 seconds; if `next_cursor` is not
        null, send it in the next request. If the provider fails, `details` of the error says what was imported
        until then, and where to continue. An import can be repeated. SMTP accounts have no lists.

        Args:
            provider_id: The id of the provider account.
            cursor: The `next_cursor` of the import before. The default is the beginning of the lists.
        """
        call = Call(
            "POST",
            "/v1/providers/{id}/suppressions/import",
            options,
            path={"id": provider_id},
            body={
                "cursor": cursor,
            },
            body_type=types.ImportProviderSuppressionsRequest,
            repeatable=True,
        )
        return await self._http.json(types.ProviderImportResult, call, "data")


class SenderDomains:
    """The sender domains."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def list(self, **options: Unpack[RequestOptions]) -> Page[types.SenderDomainSummary]:
        """List sender domains.

        Requires the permission `PROVIDERS_READ`. The domains of all provider accounts, each once, in the order of
        their names, with what the last check of DNS found.
        """
        call = Call("GET", "/v1/sender-domains", options)
        return self._http.pages(types.SenderDomainSummary, call)

    def get(self, domain: str, **options: Unpack[RequestOptions]) -> types.SenderDomain:
        """Get a sender domain.

        Requires the permission `PROVIDERS_READ`. Compares what DNS had at the last check with the records that the
        accounts want now. The scheduler checks every domain (`WAYPOST_DNS_CHECK_INTERVAL`). Sending does not
        depend on it: there the provider's verdict decides.

        Args:
            domain: The domain name.
        """
        call = Call("GET", "/v1/sender-domains/{domain}", options, path={"domain": domain})
        return self._http.json(types.SenderDomain, call, "data")

    def check(self, domain: str, **options: Unpack[RequestOptions]) -> types.SenderDomain:
        """Check a sender domain.

        Requires the permission `PROVIDERS_WRITE`. Asks DNS now, within 20 seconds; the providers are not asked.
        What could not be looked up is `unknown`.

        Args:
            domain: The domain name.
        """
        call = Call("POST", "/v1/sender-domains/{domain}/check", options, path={"domain": domain}, repeatable=True)
        return self._http.json(types.SenderDomain, call, "data")


class AsyncSenderDomains:
    """The sender domains."""

    def __init__(self, http: AsyncHttp) -> None:
        self._http = http

    def list(self, **options: Unpack[RequestOptions]) -> AsyncPages[types.SenderDomainSummary]:
        """List sender domains.

        Requires the permission `PROVIDERS_READ`. The domains of all provider accounts, each once, in the order of
        their names, with what the last check of DNS found.
        """
        call = Call("GET", "/v1/sender-domains", options)
        return self._http.pages(types.SenderDomainSummary, call)

    async def get(self, domain: str, **options: Unpack[RequestOptions]) -> types.SenderDomain:
        """Get a sender domain.

        Requires the permission `PROVIDERS_READ`. Compares what DNS had at the last check with the records that the
        accounts want now. The scheduler checks every domain (`WAYPOST_DNS_CHECK_INTERVAL`). Sending does not
        depend on it: there the provider's verdict decides.

        Args:
            domain: The domain name.
        """
        call = Call("GET", "/v1/sender-domains/{domain}", options, path={"domain": domain})
        return await self._http.json(types.SenderDomain, call, "data")

    async def check(self, domain: str, **options: Unpack[RequestOptions]) -> types.SenderDomain:
        """Check a sender domain.

        Requires the permission `PROVIDERS_WRITE`. Asks DNS now, within 20 seconds; the providers are not asked.
        What could not be looked up is `unknown`.

        Args:
            domain: The domain name.
        """
        call = Call("POST", "/v1/sender-domains/{domain}/check", options, path={"domain": domain}, repeatable=True)
        return await self._http.json(types.SenderDomain, call, "data")


class RoutingRules:
    """Rules that select the provider account of a message."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def list(self, **options: Unpack[RequestOptions]) -> Page[types.RoutingRule]:
        """List routing rules.

        Requires the permission `PROVIDERS_READ`. The rules are in the order in which they are checked.
        """
        call = Call("GET", "/v1/routing-rules", options)
        return self._http.pages(types.RoutingRule, call)

    def create(
        self,
        *,
        name: str,
        priority: Optional[int] = None,
        is_active: Optional[bool] = None,
        sender_domain: Optional[str] = None,
        tags: Optional[Sequence[str]] = None,
        tag_match: Optional[types.TagMatch] = None,
        recipient_domains: Optional[Sequence[str]] = None,
        recipient_mailbox_providers: Optional[Sequence[types.MailboxProvider]] = None,
        message_class: Optional[types.MessageClass] = None,
        min_size_bytes: Optional[int] = None,
        max_size_bytes: Optional[int] = None,
        test: Optional[bool] = None,
        region: Optional[types.AccountRegion] = None,
        provider_account_id: Optional[str] = None,
        targets: Optional[Sequence[types.NewRoutingTarget]] = None,
        sticky: Optional[types.RoutingStickiness] = None,
        prefer: Optional[types.RoutingPreference] = None,
        over_cap: Optional[types.RoutingOverCap] = None,
        ramp_bounds: Optional[types.NewRoutingRampBounds] = None,
        fallback_provider_account_ids: Optional[Sequence[str]] = None,
        on_unknown: Optional[types.OnUnknown] = None,
        **options: Unpack[RequestOptions],
    ) -> types.RoutingRule:
        """Create a routing rule.

        Requires the permission `PROVIDERS_WRITE`.

        Args:
            name: The name of the rule.
            priority: Rules with a higher priority are checked first. The default is 0.
            is_active: Whether the rule is used. The default is true.
            sender_domain: The sender's domain. The default is every domain.
            tags: The tags of matching messages; an empty list matches every message.
            tag_match: Whether a message must have `any` (the default) or `all` of the tags.
            recipient_domains: The domains of the recipients, such as `example.com` or `*.example.com`, up to
                50: every recipient of a message must match one of them. An empty list matches all recipients.
            recipient_mailbox_providers: The mailbox providers of the recipients, by the MX records of their
                domains: `google`, `microsoft`, `yahoo` or `other`. Every recipient of a message must have one of
                them. An empty list matches all recipients.
            message_class: The class that messages have: `transactional` or `bulk`. The default is both.
            min_size_bytes: The smallest size of messages, in bytes: subject, bodies and decoded attachments.
            max_size_bytes: The largest size of messages, in bytes.
            test: Whether the rule is for tests only (true) or for live messages only (false).
            region: The region that accounts must be in to send the messages: `eu` or `us`. All accounts of the
                rule must be in it. The default is anywhere.
            provider_account_id: The account that sends the messages. A rule has this or `targets`.
            targets: Up to 10 accounts that share the messages by weight, instead of `provider_account_id`.
            sticky: Which messages always have the same target: `none` (the default), those to one
                `recipientDomain` (of the first recipient), or those of one `sender`.
            prefer: Whether targets share the messages by their `weight` alone (the default), or also by their
                `health`: a target whose mail fails gets less.
            over_cap: What becomes of a message whose target has reached its cap: the `next` target or fallback
                sends it (the default), or it waits (`wait`).
            ramp_bounds: The bounds of the rates of an account, beyond which its ramp does not grow.
            fallback_provider_account_ids: Up to 5 accounts that send if this account cannot, in this order.
            on_unknown: What to do if the provider's response to a call is lost: `wait` for evidence and send
                again if there is none (the default), `resend` at once (the recipient may get the message twice),
                or `fail` (the message may have been sent).
        """
        call = Call(
            "POST",
            "/v1/routing-rules",
            options,
            body={
                "name": name,
                "priority": priority,
                "is_active": is_active,
                "sender_domain": sender_domain,
                "tags": tags,
                "tag_match": tag_match,
                "recipient_domains": recipient_domains,
                "recipient_mailbox_providers": recipient_mailbox_providers,
                "message_class": message_class,
                "min_size_bytes": min_size_bytes,
                "max_size_bytes": max_size_bytes,
                "test": test,
                "region": region,
                "provider_account_id": provider_account_id,
                "targets": targets,
                "sticky": sticky,
                "prefer": prefer,
                "over_cap": over_cap,
                "ramp_bounds": ramp_bounds,
                "fallback_provider_account_ids": fallback_provider_account_ids,
                "on_unknown": on_unknown,
            },
            body_type=types.CreateRoutingRuleRequest,
            idempotent=True,
        )
        return self._http.json(types.RoutingRule, call, "data")

    def get(self, id: str, **options: Unpack[RequestOptions]) -> types.RoutingRule:
        """Get a routing rule.

        Requires the permission `PROVIDERS_READ`.

        Args:
            id: The id of the routing rule.
        """
        call = Call("GET", "/v1/routing-rules/{id}", options, path={"id": id})
        return self._http.json(types.RoutingRule, call, "data")

    def update(
        self,
        id: str,
        *,
        name: Optional[str] = None,
        priority: Optional[int] = None,
        is_active: Optional[bool] = None,
        sender_domain: Union[Optional[str], NotGiven] = NOT_GIVEN,
        tags: Optional[Sequence[str]] = None,
        tag_match: Optional[types.TagMatch] = None,
        recipient_domains: Optional[Sequence[str]] = None,
        recipient_mailbox_providers: Optional[Sequence[types.MailboxProvider]] = None,
        message_class: Union[Optional[types.MessageClass], NotGiven] = NOT_GIVEN,
        min_size_bytes: Union[Optional[int], NotGiven] = NOT_GIVEN,
        max_size_bytes: Union[Optional[int], NotGiven] = NOT_GIVEN,
        test: Union[Optional[bool], NotGiven] = NOT_GIVEN,
        region: Union[Optional[types.AccountRegion], NotGiven] = NOT_GIVEN,
        provider_account_id: Optional[str] = None,
        targets: Optional[Sequence[types.NewRoutingTarget]] = None,
        sticky: Optional[types.RoutingStickiness] = None,
        prefer: Optional[types.RoutingPreference] = None,
        over_cap: Optional[types.RoutingOverCap] = None,
        ramp_bounds: Optional[types.NewRoutingRampBounds] = None,
        fallback_provider_account_ids: Optional[Sequence[str]] = None,
        on_unknown: Optional[types.OnUnknown] = None,
        **options: Unpack[RequestOptions],
    ) -> types.RoutingRule:
        """Change a routing rule.

        Requires the permission `PROVIDERS_WRITE`. The change takes effect at once.

        Args:
            id: The id of the routing rule.
            name: The name of the rule.
            priority: Rules with a higher priority are checked first.
            is_active: Whether the rule is used.
            sender_domain: The sender's domain; null matches every domain.
            tags: The tags of matching messages; an empty list matches every message.
            tag_match: Whether a message must have `any` or `all` of the tags.
            recipient_domains: The domains of the recipients, such as `example.com` or `*.example.com`, up to
                50: every recipient of a message must match one of them. An empty list matches all recipients.
            recipient_mailbox_providers: The mailbox providers of the recipients, by the MX records of their
                domains: `google`, `microsoft`, `yahoo` or `other`. Every recipient of a message must have one of
                them. An empty list matches all recipients.
            message_class: The class that messages have: `transactional` or `bulk`. Null matches both.
            min_size_bytes: The smallest size of messages, in bytes: subject, bodies and decoded attachments.
            max_size_bytes: The largest size of messages, in bytes.
            test: Whether the rule is for tests only (true) or for live messages only (false).
            region: The region that accounts must be in to send the messages: `eu` or `us`; null for anywhere.
            provider_account_id: The account that sends the messages. It takes the place of `targets`.
            targets: Up to 10 accounts that share the messages by weight. They take the place of
                `provider_account_id`.
            sticky: Which messages always have the same target: `none`, those to one `recipientDomain` (of the
                first recipient), or those of one `sender`.
            prefer: Whether targets share the messages by their `weight` alone, or also by their `health`: a
                target whose mail fails gets less.
            over_cap: What becomes of a message whose target has reached its cap: the `next` target or fallback
                sends it, or it waits (`wait`).
            ramp_bounds: The bounds of the rates of an account, beyond which its ramp does not grow. An absent
                one keeps its value.
            fallback_provider_account_ids: Up to 5 accounts that send if this account cannot, in this order.
            on_unknown: What to do if the provider's response to a call is lost: `wait`, `resend` or `fail`.
        """
        call = Call(
            "PATCH",
            "/v1/routing-rules/{id}",
            options,
            path={"id": id},
            body={
                "name": name,
                "priority": priority,
                "is_active": is_active,
                "sender_domain": sender_domain,
                "tags": tags,
                "tag_match": tag_match,
                "recipient_domains": recipient_domains,
                "recipient_mailbox_providers": recipient_mailbox_providers,
                "message_class": message_class,
                "min_size_bytes": min_size_bytes,
                "max_size_bytes": max_size_bytes,
                "test": test,
                "region": region,
                "provider_account_id": provider_account_id,
                "targets": targets,
                "sticky": sticky,
                "prefer": prefer,
                "over_cap": over_cap,
                "ramp_bounds": ramp_bounds,
                "fallback_provider_account_ids": fallback_provider_account_ids,
                "on_unknown": on_unknown,
            },
            body_type=types.UpdateRoutingRuleRequest,
        )
        return self._http.json(types.RoutingRule, call, "data")

    def delete(self, id: str, **options: Unpack[RequestOptions]) -> types.Success:
        """Remove a routing rule.

        Requires the permission `PROVIDERS_WRITE`.

        Args:
            id: The id of the routing rule.
        """
        call = Call("DELETE", "/v1/routing-rules/{id}", options, path={"id": id})
        return self._http.json(types.Success, call)

    def resolve(
        self,
        *,
        from_: str,
        to: Optional[types.Recipients] = None,
        tags: Optional[Sequence[str]] = None,
        message_class: Optional[types.MessageClass] = None,
        size_bytes: Optional[int] = None,
        test: Optional[bool] = None,
        **options: Unpack[RequestOptions],
    ) -> types.RouteResolution:
        """Resolve the route of a message.

        Requires the permission `PROVIDERS_READ`. Returns the account that would send the message, and why. Nothing
        is sent.

        Args:
            from_: The sender.
            to: The recipients. Only their domains matter. Without them, rules with `recipient_domains` or
                `recipient_mailbox_providers` are skipped.
            tags: The tags of the message.
            message_class: The class of the message. The default is `transactional`.
            size_bytes: The size of the message, in bytes. The default is 0.
            test: Whether the message is a test. The default is false.
        """
        call = Call(
            "POST",
            "/v1/routing-rules/resolve",
            options,
            body={
                "from_": from_,
                "to": to,
                "tags": tags,
                "message_class": message_class,
                "size_bytes": size_bytes,
                "test": test,
            },
            body_type=types.ResolveRouteRequest,
            repeatable=True,
        )
        return self._http.json(types.RouteResolution, call, "data")

    def simulate(
        self,
        *,
        rules: Optional[Sequence[types.CreateRoutingRuleRequest]] = None,
        period: Optional[types.RoutingSimulationPeriod] = None,
        **options: Unpack[RequestOptions],
    ) -> types.RoutingSimulation:
        """Simulate routing rules.

        Requires the permission `PROVIDERS_READ`. Returns what the live messages of the last hour, day or week
        would have done under other rules: the recipients of each account, and those over caps. Nothing is sent and
        nothing is changed.

        Args:
            rules: Up to 100 rules, as they would be created, instead of those of the organization. For equal
                priorities, earlier ones are checked first. The default is the organization's.
            period: How far back messages are looked at: the last `hour`, `day` (the default) or `week`.
        """
        call = Call(
            "POST",
            "/v1/routing-rules/simulate",
            options,
            body={
                "rules": rules,
                "period": period,
            },
            body_type=types.SimulateRoutingRequest,
            repeatable=True,
        )
        return self._http.json(types.RoutingSimulation, call, "data")

    def get_progress(self, id: str, **options: Unpack[RequestOptions]) -> types.RoutingProgress:
        """Get the progress of a routing rule.

        Requires the permission `PROVIDERS_READ`. Returns what the targets of the rule used of their caps, and how
        far their ramps are.

        Args:
            id: The id of the routing rule.
        """
        call = Call("GET", "/v1/routing-rules/{id}/progress", options, path={"id": id})
        return self._http.json(types.RoutingProgress, call, "data")


class AsyncRoutingRules:
    """Rules that select the provider account of a message."""

    def __init__(self, http: AsyncHttp) -> None:
        self._http = http

    def list(self, **options: Unpack[RequestOptions]) -> AsyncPages[types.RoutingRule]:
        """List routing rules.

        Requires the permission `PROVIDERS_READ`. The rules are in the order in which they are checked.
        """
        call = Call("GET", "/v1/routing-rules", options)
        return self._http.pages(types.RoutingRule, call)

    async def create(
        self,
        *,
        name: str,
        priority: Optional[int] = None,
        is_active: Optional[bool] = None,
        sender_domain: Optional[str] = None,
        tags: Optional[Sequence[str]] = None,
        tag_match: Optional[types.TagMatch] = None,
        recipient_domains: Optional[Sequence[str]] = None,
        recipient_mailbox_providers: Optional[Sequence[types.MailboxProvider]] = None,
        message_class: Optional[types.MessageClass] = None,
        min_size_bytes: Optional[int] = None,
        max_size_bytes: Optional[int] = None,
        test: Optional[bool] = None,
        region: Optional[types.AccountRegion] = None,
        provider_account_id: Optional[str] = None,
        targets: Optional[Sequence[types.NewRoutingTarget]] = None,
        sticky: Optional[types.RoutingStickiness] = None,
        prefer: Optional[types.RoutingPreference] = None,
        over_cap: Optional[types.RoutingOverCap] = None,
        ramp_bounds: Optional[types.NewRoutingRampBounds] = None,
        fallback_provider_account_ids: Optional[Sequence[str]] = None,
        on_unknown: Optional[types.OnUnknown] = None,
        **options: Unpack[RequestOptions],
    ) -> types.RoutingRule:
        """Create a routing rule.

        Requires the permission `PROVIDERS_WRITE`.

        Args:
            name: The name of the rule.
            priority: Rules with a higher priority are checked first. The default is 0.
            is_active: Whether the rule is used. The default is true.
            sender_domain: The sender's domain. The default is every domain.
            tags: The tags of matching messages; an empty list matches every message.
            tag_match: Whether a message must have `any` (the default) or `all` of the tags.
            recipient_domains: The domains of the recipients, such as `example.com` or `*.example.com`, up to
                50: every recipient of a message must match one of them. An empty list matches all recipients.
            recipient_mailbox_providers: The mailbox providers of the recipients, by the MX records of their
                domains: `google`, `microsoft`, `yahoo` or `other`. Every recipient of a message must have one of
                them. An empty list matches all recipients.
            message_class: The class that messages have: `transactional` or `bulk`. The default is both.
            min_size_bytes: The smallest size of messages, in bytes: subject, bodies and decoded attachments.
            max_size_bytes: The largest size of messages, in bytes.
            test: Whether the rule is for tests only (true) or for live messages only (false).
            region: The region that accounts must be in to send the messages: `eu` or `us`. All accounts of the
                rule must be in it. The default is anywhere.
            provider_account_id: The account that sends the messages. A rule has this or `targets`.
            targets: Up to 10 accounts that share the messages by weight, instead of `provider_account_id`.
            sticky: Which messages always have the same target: `none` (the default), those to one
                `recipientDomain` (of the first recipient), or those of one `sender`.
            prefer: Whether targets share the messages by their `weight` alone (the default), or also by their
                `health`: a target whose mail fails gets less.
            over_cap: What becomes of a message whose target has reached its cap: the `next` target or fallback
                sends it (the default), or it waits (`wait`).
            ramp_bounds: The bounds of the rates of an account, beyond which its ramp does not grow.
            fallback_provider_account_ids: Up to 5 accounts that send if this account cannot, in this order.
            on_unknown: What to do if the provider's response to a call is lost: `wait` for evidence and send
                again if there is none (the default), `resend` at once (the recipient may get the message twice),
                or `fail` (the message may have been sent).
        """
        call = Call(
            "POST",
            "/v1/routing-rules",
            options,
            body={
                "name": name,
                "priority": priority,
                "is_active": is_active,
                "sender_domain": sender_domain,
                "tags": tags,
                "tag_match": tag_match,
                "recipient_domains": recipient_domains,
                "recipient_mailbox_providers": recipient_mailbox_providers,
                "message_class": message_class,
                "min_size_bytes": min_size_bytes,
                "max_size_bytes": max_size_bytes,
                "test": test,
                "region": region,
                "provider_account_id": provider_account_id,
                "targets": targets,
                "sticky": sticky,
                "prefer": prefer,
                "over_cap": over_cap,
                "ramp_bounds": ramp_bounds,
                "fallback_provider_account_ids": fallback_provider_account_ids,
                "on_unknown": on_unknown,
            },
            body_type=types.CreateRoutingRuleRequest,
            idempotent=True,
        )
        return await self._http.json(types.RoutingRule, call, "data")

    async def get(self, id: str, **options: Unpack[RequestOptions]) -> types.RoutingRule:
        """Get a routing rule.

        Requires the permission `PROVIDERS_READ`.

        Args:
            id: The id of the routing rule.
        """
        call = Call("GET", "/v1/routing-rules/{id}", options, path={"id": id})
        return await self._http.json(types.RoutingRule, call, "data")

    async def update(
        self,
        id: str,
        *,
        name: Optional[str] = None,
        priority: Optional[int] = None,
        is_active: Optional[bool] = None,
        sender_domain: Union[Optional[str], NotGiven] = NOT_GIVEN,
        tags: Optional[Sequence[str]] = None,
        tag_match: Optional[types.TagMatch] = None,
        recipient_domains: Optional[Sequence[str]] = None,
        recipient_mailbox_providers: Optional[Sequence[types.MailboxProvider]] = None,
        message_class: Union[Optional[types.MessageClass], NotGiven] = NOT_GIVEN,
        min_size_bytes: Union[Optional[int], NotGiven] = NOT_GIVEN,
        max_size_bytes: Union[Optional[int], NotGiven] = NOT_GIVEN,
        test: Union[Optional[bool], NotGiven] = NOT_GIVEN,
        region: Union[Optional[types.AccountRegion], NotGiven] = NOT_GIVEN,
        provider_account_id: Optional[str] = None,
        targets: Optional[Sequence[types.NewRoutingTarget]] = None,
        sticky: Optional[types.RoutingStickiness] = None,
        prefer: Optional[types.RoutingPreference] = None,
        over_cap: Optional[types.RoutingOverCap] = None,
        ramp_bounds: Optional[types.NewRoutingRampBounds] = None,
        fallback_provider_account_ids: Optional[Sequence[str]] = None,
        on_unknown: Optional[types.OnUnknown] = None,
        **options: Unpack[RequestOptions],
    ) -> types.RoutingRule:
        """Change a routing rule.

        Requires the permission `PROVIDERS_WRITE`. The change takes effect at once.

        Args:
            id: The id of the routing rule.
            name: The name of the rule.
            priority: Rules with a higher priority are checked first.
            is_active: Whether the rule is used.
            sender_domain: The sender's domain; null matches every domain.
            tags: The tags of matching messages; an empty list matches every message.
            tag_match: Whether a message must have `any` or `all` of the tags.
            recipient_domains: The domains of the recipients, such as `example.com` or `*.example.com`, up to
                50: every recipient of a message must match one of them. An empty list matches all recipients.
            recipient_mailbox_providers: The mailbox providers of the recipients, by the MX records of their
                domains: `google`, `microsoft`, `yahoo` or `other`. Every recipient of a message must have one of
                them. An empty list matches all recipients.
            message_class: The class that messages have: `transactional` or `bulk`. Null matches both.
            min_size_bytes: The smallest size of messages, in bytes: subject, bodies and decoded attachments.
            max_size_bytes: The largest size of messages, in bytes.
            test: Whether the rule is for tests only (true) or for live messages only (false).
            region: The region that accounts must be in to send the messages: `eu` or `us`; null for anywhere.
            provider_account_id: The account that sends the messages. It takes the place of `targets`.
            targets: Up to 10 accounts that share the messages by weight. They take the place of
                `provider_account_id`.
            sticky: Which messages always have the same target: `none`, those to one `recipientDomain` (of the
                first recipient), or those of one `sender`.
            prefer: Whether targets share the messages by their `weight` alone, or also by their `health`: a
                target whose mail fails gets less.
            over_cap: What becomes of a message whose target has reached its cap: the `next` target or fallback
                sends it, or it waits (`wait`).
            ramp_bounds: The bounds of the rates of an account, beyond which its ramp does not grow. An absent
                one keeps its value.
            fallback_provider_account_ids: Up to 5 accounts that send if this account cannot, in this order.
            on_unknown: What to do if the provider's response to a call is lost: `wait`, `resend` or `fail`.
        """
        call = Call(
            "PATCH",
            "/v1/routing-rules/{id}",
            options,
            path={"id": id},
            body={
                "name": name,
                "priority": priority,
                "is_active": is_active,
                "sender_domain": sender_domain,
                "tags": tags,
                "tag_match": tag_match,
                "recipient_domains": recipient_domains,
                "recipient_mailbox_providers": recipient_mailbox_providers,
                "message_class": message_class,
                "min_size_bytes": min_size_bytes,
                "max_size_bytes": max_size_bytes,
                "test": test,
                "region": region,
                "provider_account_id": provider_account_id,
                "targets": targets,
                "sticky": sticky,
                "prefer": prefer,
                "over_cap": over_cap,
                "ramp_bounds": ramp_bounds,
                "fallback_provider_account_ids": fallback_provider_account_ids,
                "on_unknown": on_unknown,
            },
            body_type=types.UpdateRoutingRuleRequest,
        )
        return await self._http.json(types.RoutingRule, call, "data")

    async def delete(self, id: str, **options: Unpack[RequestOptions]) -> types.Success:
        """Remove a routing rule.

        Requires the permission `PROVIDERS_WRITE`.

        Args:
            id: The id of the routing rule.
        """
        call = Call("DELETE", "/v1/routing-rules/{id}", options, path={"id": id})
        return await self._http.json(types.Success, call)

    async def resolve(
        self,
        *,
        from_: str,
        to: Optional[types.Recipients] = None,
        tags: Optional[Sequence[str]] = None,
        message_class: Optional[types.MessageClass] = None,
        size_bytes: Optional[int] = None,
        test: Optional[bool] = None,
        **options: Unpack[RequestOptions],
    ) -> types.RouteResolution:
        """Resolve the route of a message.

        Requires the permission `PROVIDERS_READ`. Returns the account that would send the message, and why. Nothing
        is sent.

        Args:
            from_: The sender.
            to: The recipients. Only their domains matter. Without them, rules with `recipient_domains` or
                `recipient_mailbox_providers` are skipped.
            tags: The tags of the message.
            message_class: The class of the message. The default is `transactional`.
            size_bytes: The size of the message, in bytes. The default is 0.
            test: Whether the message is a test. The default is false.
        """
        call = Call(
            "POST",
            "/v1/routing-rules/resolve",
            options,
            body={
                "from_": from_,
                "to": to,
                "tags": tags,
                "message_class": message_class,
                "size_bytes": size_bytes,
                "test": test,
            },
            body_type=types.ResolveRouteRequest,
            repeatable=True,
        )
        return await self._http.json(types.RouteResolution, call, "data")

    async def simulate(
        self,
        *,
        rules: Optional[Sequence[types.CreateRoutingRuleRequest]] = None,
        period: Optional[types.RoutingSimulationPeriod] = None,
        **options: Unpack[RequestOptions],
    ) -> types.RoutingSimulation:
        """Simulate routing rules.

        Requires the permission `PROVIDERS_READ`. Returns what the live messages of the last hour, day or week
        would have done under other rules: the recipients of each account, and those over caps. Nothing is sent and
        nothing is changed.

        Args:
            rules: Up to 100 rules, as they would be created, instead of those of the organization. For equal
                priorities, earlier ones are checked first. The default is the organization's.
            period: How far back messages are looked at: the last `hour`, `day` (the default) or `week`.
        """
        call = Call(
            "POST",
            "/v1/routing-rules/simulate",
            options,
            body={
                "rules": rules,
                "period": period,
            },
            body_type=types.SimulateRoutingRequest,
            repeatable=True,
        )
        return await self._http.json(types.RoutingSimulation, call, "data")

    async def get_progress(self, id: str, **options: Unpack[RequestOptions]) -> types.RoutingProgress:
        """Get the progress of a routing rule.

        Requires the permission `PROVIDERS_READ`. Returns what the targets of the rule used of their caps, and how
        far their ramps are.

        Args:
            id: The id of the routing rule.
        """
        call = Call("GET", "/v1/routing-rules/{id}/progress", options, path={"id": id})
        return await self._http.json(types.RoutingProgress, call, "data")


class ApiKeys:
    """API keys, their permissions and their rotation."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def list(
        self,
        *,
        page: Optional[int] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        **options: Unpack[RequestOptions],
    ) -> Page[types.ApiKey]:
        """List API keys.

        Requires the permission `SETTINGS_WRITE`. The newest key comes first. Revoked keys are included.

        Args:
            page: The page number, from 1.
            limit: The number of items per page.
            cursor: The `next_cursor` of the page before, instead of `page`. The pages stay as they are while
                the list grows at its beginning.
        """
        call = Call(
            "GET",
            "/v1/api-keys",
            options,
            query={
                "page": page,
                "limit": limit,
                "cursor": cursor,
            },
        )
        return self._http.pages(types.ApiKey, call)

    def create(
        self,
        *,
        name: str,
        is_test: Optional[bool] = None,
        permissions: Sequence[types.Permission],
        allowed_ips: Optional[Sequence[str]] = None,
        expires_at: Optional[Union[datetime, str]] = None,
        **options: Unpack[RequestOptions],
    ) -> types.ApiKeyWithSecret:
        """Create an API key.

        Requires the permission `SETTINGS_WRITE` and every permission of the new key. Returns 409 if the calling
        key is a test key and the new one is not.

        Args:
            name: The name of the key.
            is_test: Whether everything that the key sends is a test, for which no provider is called. The
                default is false. A test key can create only test keys.
            permissions: One or more permissions. The caller must have each of them.
            allowed_ips: Up to 100 IP addresses and networks (CIDR) that the key can be used from. The default
                is anywhere.
            expires_at: When the key expires; null means never.
        """
        call = Call(
            "POST",
            "/v1/api-keys",
            options,
            body={
                "name": name,
                "is_test": is_test,
                "permissions": permissions,
                "allowed_ips": allowed_ips,
                "expires_at": expires_at,
            },
            body_type=types.CreateApiKeyRequest,
            idempotent=True,
        )
        return self._http.json(types.ApiKeyWithSecret, call, "data")

    def get(self, id: str, **options: Unpack[RequestOptions]) -> types.ApiKey:
        """Get an API key.

        Requires the permission `SETTINGS_WRITE`.

        Args:
            id: The id of the API key.
        """
        call = Call("GET", "/v1/api-keys/{id}", options, path={"id": id})
        return self._http.json(types.ApiKey, call, "data")

    def update(
        self,
        id: str,
        *,
        name: Optional[str] = None,
        permissions: Optional[Sequence[types.Permission]] = None,
        allowed_ips: Optional[Sequence[str]] = None,
        expires_at: Union[Optional[Union[datetime, str]], NotGiven] = NOT_GIVEN,
        **options: Unpack[RequestOptions],
    ) -> types.ApiKey:
        """Change an API key.

        Requires the permission `SETTINGS_WRITE`, every permission of the key, and every permission that the change
        adds. A key can change itself. The change takes effect within five seconds.

        Args:
            id: The id of the API key.
            name: The name of the key.
            permissions: The permissions. A permission that the caller lacks cannot be added.
            allowed_ips: The IP addresses and networks that the key can be used from; an empty list means
                anywhere.
            expires_at: When the key expires; null means never.
        """
        call = Call(
            "PATCH",
            "/v1/api-keys/{id}",
            options,
            path={"id": id},
            body={
                "name": name,
                "permissions": permissions,
                "allowed_ips": allowed_ips,
                "expires_at": expires_at,
            },
            body_type=types.UpdateApiKeyRequest,
        )
        return self._http.json(types.ApiKey, call, "data")

    def revoke(self, id: str, **options: Unpack[RequestOptions]) -> types.Success:
        """Revoke an API key.

        Requires the permission `SETTINGS_WRITE` and every permission of the key. The key stops working within five
        seconds. Its record remains, with `revoked_at`.

        Args:
            id: The id of the API key.
        """
        call = Call("DELETE", "/v1/api-keys/{id}", options, path={"id": id})
        return self._http.json(types.Success, call)

    def rotate(
        self,
        id: str,
        *,
        grace_period_seconds: Optional[int] = None,
        **options: Unpack[RequestOptions],
    ) -> types.ApiKeyWithSecret:
        """Rotate an API key.

        Requires the permission `SETTINGS_WRITE` and every permission of the key. The key gets a new secret. The
        old secret keeps working until the grace period ends.

        Args:
            id: The id of the API key.
            grace_period_seconds: How long the old secret keeps working, in seconds: 0 to 604,800. The default
                is 86,400 (one day).
        """
        call = Call(
            "POST",
            "/v1/api-keys/{id}/rotate",
            options,
            path={"id": id},
            body={
                "grace_period_seconds": grace_period_seconds,
            },
            body_type=types.RotateApiKeyRequest,
            idempotent=True,
        )
        return self._http.json(types.ApiKeyWithSecret, call, "data")


class AsyncApiKeys:
    """API keys, their permissions and their rotation."""

    def __init__(self, http: AsyncHttp) -> None:
        self._http = http

    def list(
        self,
        *,
        page: Optional[int] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        **options: Unpack[RequestOptions],
    ) -> AsyncPages[types.ApiKey]:
        """List API keys.

        Requires the permission `SETTINGS_WRITE`. The newest key comes first. Revoked keys are included.

        Args:
            page: The page number, from 1.
            limit: The number of items per page.
            cursor: The `next_cursor` of the page before, instead of `page`. The pages stay as they are while
                the list grows at its beginning.
        """
        call = Call(
            "GET",
            "/v1/api-keys",
            options,
            query={
                "page": page,
                "limit": limit,
                "cursor": cursor,
            },
        )
        return self._http.pages(types.ApiKey, call)

    async def create(
        self,
        *,
        name: str,
        is_test: Optional[bool] = None,
        permissions: Sequence[types.Permission],
        allowed_ips: Optional[Sequence[str]] = None,
        expires_at: Optional[Union[datetime, str]] = None,
        **options: Unpack[RequestOptions],
    ) -> types.ApiKeyWithSecret:
        """Create an API key.

        Requires the permission `SETTINGS_WRITE` and every permission of the new key. Returns 409 if the calling
        key is a test key and the new one is not.

        Args:
            name: The name of the key.
            is_test: Whether everything that the key sends is a test, for which no provider is called. The
                default is false. A test key can create only test keys.
            permissions: One or more permissions. The caller must have each of them.
            allowed_ips: Up to 100 IP addresses and networks (CIDR) that the key can be used from. The default
                is anywhere.
            expires_at: When the key expires; null means never.
        """
        call = Call(
            "POST",
            "/v1/api-keys",
            options,
            body={
                "name": name,
                "is_test": is_test,
                "permissions": permissions,
                "allowed_ips": allowed_ips,
                "expires_at": expires_at,
            },
            body_type=types.CreateApiKeyRequest,
            idempotent=True,
        )
        return await self._http.json(types.ApiKeyWithSecret, call, "data")

    async def get(self, id: str, **options: Unpack[RequestOptions]) -> types.ApiKey:
        """Get an API key.

        Requires the permission `SETTINGS_WRITE`.

        Args:
            id: The id of the API key.
        """
        call = Call("GET", "/v1/api-keys/{id}", options, path={"id": id})
        return await self._http.json(types.ApiKey, call, "data")

    async def update(
        self,
        id: str,
        *,
        name: Optional[str] = None,
        permissions: Optional[Sequence[types.Permission]] = None,
        allowed_ips: Optional[Sequence[str]] = None,
        expires_at: Union[Optional[Union[datetime, str]], NotGiven] = NOT_GIVEN,
        **options: Unpack[RequestOptions],
    ) -> types.ApiKey:
        """Change an API key.

        Requires the permission `SETTINGS_WRITE`, every permission of the key, and every permission that the change
        adds. A key can change itself. The change takes effect within five seconds.

        Args:
            id: The id of the API key.
            name: The name of the key.
            permissions: The permissions. A permission that the caller lacks cannot be added.
            allowed_ips: The IP addresses and networks that the key can be used from; an empty list means
                anywhere.
            expires_at: When the key expires; null means never.
        """
        call = Call(
            "PATCH",
            "/v1/api-keys/{id}",
            options,
            path={"id": id},
            body={
                "name": name,
                "permissions": permissions,
                "allowed_ips": allowed_ips,
                "expires_at": expires_at,
            },
            body_type=types.UpdateApiKeyRequest,
        )
        return await self._http.json(types.ApiKey, call, "data")

    async def revoke(self, id: str, **options: Unpack[RequestOptions]) -> types.Success:
        """Revoke an API key.

        Requires the permission `SETTINGS_WRITE` and every permission of the key. The key stops working within five
        seconds. Its record remains, with `revoked_at`.

        Args:
            id: The id of the API key.
        """
        call = Call("DELETE", "/v1/api-keys/{id}", options, path={"id": id})
        return await self._http.json(types.Success, call)

    async def rotate(
        self,
        id: str,
        *,
        grace_period_seconds: Optional[int] = None,
        **options: Unpack[RequestOptions],
    ) -> types.ApiKeyWithSecret:
        """Rotate an API key.

        Requires the permission `SETTINGS_WRITE` and every permission of the key. The key gets a new secret. The
        old secret keeps working until the grace period ends.

        Args:
            id: The id of the API key.
            grace_period_seconds: How long the old secret keeps working, in seconds: 0 to 604,800. The default
                is 86,400 (one day).
        """
        call = Call(
            "POST",
            "/v1/api-keys/{id}/rotate",
            options,
            path={"id": id},
            body={
                "grace_period_seconds": grace_period_seconds,
            },
            body_type=types.RotateApiKeyRequest,
            idempotent=True,
        )
        return await self._http.json(types.ApiKeyWithSecret, call, "data")


class Settings:
    """The settings of the organization."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def get(self, **options: Unpack[RequestOptions]) -> types.Settings:
        """Get the settings.

        Requires the permission `SETTINGS_WRITE`.
        """
        call = Call("GET", "/v1/settings", options)
        return self._http.json(types.Settings, call, "data")

    def update(
        self,
        *,
        name: Optional[str] = None,
        brand_color: Union[Optional[str], NotGiven] = NOT_GIVEN,
        unverified_domains: Optional[types.UnverifiedDomains] = None,
        track_opens: Optional[bool] = None,
        track_clicks: Optional[bool] = None,
        retention_days: Union[Optional[int], NotGiven] = NOT_GIVEN,
        rate_limits: Optional[types.UpdateRateLimits] = None,
        soft_bounce_limit: Optional[int] = None,
        soft_bounce_window_days: Optional[int] = None,
        **options: Unpack[RequestOptions],
    ) -> types.Settings:
        """Change the settings.

        Requires the permission `SETTINGS_WRITE`. `unverified_domains`, `track_opens` and `track_clicks` take
        effect at once, `rate_limits` within a few seconds, and `retention_days` within minutes. Deleted messages
        cannot be restored.

        Args:
            name: The name of the organization. Recipients see it on the pages of unsubscribe links.
            brand_color: The colour of the pages of unsubscribe links, as `#rrggbb`; null is a neutral colour.
                A button of this colour has an edge that is seen, and white or black text, whichever is read.
            unverified_domains: What happens to a message whose sender domain is not verified: `reject` or
                `accept`.
            track_opens: Whether opens are tracked, unless a message sets `tracking`.
            track_clicks: Whether clicks are tracked, unless a message sets `tracking`.
            retention_days: How many days messages and their data are stored; null means the operator's
                retention period. Older messages are permanently deleted within minutes; messages that are still
                being sent are deleted when they are done.
            rate_limits: Rate limits, in requests per second, up to the operator's limits; null means the
                operator's limit.
            soft_bounce_limit: How many soft bounces of an address add a suppression for it; 0 means never.
            soft_bounce_window_days: The number of days within which soft bounces are counted together.
        """
        call = Call(
            "PATCH",
            "/v1/settings",
            options,
            body={
                "name": name,
                "brand_color": brand_color,
                "unverified_domains": unverified_domains,
                "track_opens": track_opens,
                "track_clicks": track_clicks,
                "retention_days": retention_days,
                "rate_limits": rate_limits,
                "soft_bounce_limit": soft_bounce_limit,
                "soft_bounce_window_days": soft_bounce_window_days,
            },
            body_type=types.UpdateSettingsRequest,
        )
        return self._http.json(types.Settings, call, "data")


class AsyncSettings:
    """The settings of the organization."""

    def __init__(self, http: AsyncHttp) -> None:
        self._http = http

    async def get(self, **options: Unpack[RequestOptions]) -> types.Settings:
        """Get the settings.

        Requires the permission `SETTINGS_WRITE`.
        """
        call = Call("GET", "/v1/settings", options)
        return await self._http.json(types.Settings, call, "data")

    async def update(
        self,
        *,
        name: Optional[str] = None,
        brand_color: Union[Optional[str], NotGiven] = NOT_GIVEN,
        unverified_domains: Optional[types.UnverifiedDomains] = None,
        track_opens: Optional[bool] = None,
        track_clicks: Optional[bool] = None,
        retention_days: Union[Optional[int], NotGiven] = NOT_GIVEN,
        rate_limits: Optional[types.UpdateRateLimits] = None,
        soft_bounce_limit: Optional[int] = None,
        soft_bounce_window_days: Optional[int] = None,
        **options: Unpack[RequestOptions],
    ) -> types.Settings:
        """Change the settings.

        Requires the permission `SETTINGS_WRITE`. `unverified_domains`, `track_opens` and `track_clicks` take
        effect at once, `rate_limits` within a few seconds, and `retention_days` within minutes. Deleted messages
        cannot be restored.

        Args:
            name: The name of the organization. Recipients see it on the pages of unsubscribe links.
            brand_color: The colour of the pages of unsubscribe links, as `#rrggbb`; null is a neutral colour.
                A button of this colour has an edge that is seen, and white or black text, whichever is read.
            unverified_domains: What happens to a message whose sender domain is not verified: `reject` or
                `accept`.
            track_opens: Whether opens are tracked, unless a message sets `tracking`.
            track_clicks: Whether clicks are tracked, unless a message sets `tracking`.
            retention_days: How many days messages and their data are stored; null means the operator's
                retention period. Older messages are permanently deleted within minutes; messages that are still
                being sent are deleted when they are done.
            rate_limits: Rate limits, in requests per second, up to the operator's limits; null means the
                operator's limit.
            soft_bounce_limit: How many soft bounces of an address add a suppression for it; 0 means never.
            soft_bounce_window_days: The number of days within which soft bounces are counted together.
        """
        call = Call(
            "PATCH",
            "/v1/settings",
            options,
            body={
                "name": name,
                "brand_color": brand_color,
                "unverified_domains": unverified_domains,
                "track_opens": track_opens,
                "track_clicks": track_clicks,
                "retention_days": retention_days,
                "rate_limits": rate_limits,
                "soft_bounce_limit": soft_bounce_limit,
                "soft_bounce_window_days": soft_bounce_window_days,
            },
            body_type=types.UpdateSettingsRequest,
        )
        return await self._http.json(types.Settings, call, "data")


class AuditLogs:
    """The audit logs."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def list(
        self,
        *,
        page: Optional[int] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        action: Optional[str] = None,
        target_type: Optional[str] = None,
        target_id: Optional[str] = None,
        from_: Optional[Union[datetime, str]] = None,
        to: Optional[Union[datetime, str]] = None,
        **options: Unpack[RequestOptions],
    ) -> Page[types.AuditLogEntry]:
        """List the audit log.

        Requires the permission `SETTINGS_WRITE`. The newest entry comes first. Every change through the API has an
        entry.

        Args:
            page: The page number, from 1.
            limit: The number of items per page.
            cursor: The `next_cursor` of the page before, instead of `page`. The pages stay as they are while
                the list grows at its beginning.
            action: Only entries with this action, such as `provider.created`.
            target_type: Only entries with this target type, such as `provider`.
            target_id: Only entries with this target id.
            from_: Only entries at or after this time.
            to: Only entries before this time. A date without a time includes that whole day.
        """
        call = Call(
            "GET",
            "/v1/audit-logs",
            options,
            query={
                "page": page,
                "limit": limit,
                "cursor": cursor,
                "action": action,
                "targetType": target_type,
                "targetId": target_id,
                "from": from_,
                "to": to,
            },
        )
        return self._http.pages(types.AuditLogEntry, call)


class AsyncAuditLogs:
    """The audit logs."""

    def __init__(self, http: AsyncHttp) -> None:
        self._http = http

    def list(
        self,
        *,
        page: Optional[int] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        action: Optional[str] = None,
        target_type: Optional[str] = None,
        target_id: Optional[str] = None,
        from_: Optional[Union[datetime, str]] = None,
        to: Optional[Union[datetime, str]] = None,
        **options: Unpack[RequestOptions],
    ) -> AsyncPages[types.AuditLogEntry]:
        """List the audit log.

        Requires the permission `SETTINGS_WRITE`. The newest entry comes first. Every change through the API has an
        entry.

        Args:
            page: The page number, from 1.
            limit: The number of items per page.
            cursor: The `next_cursor` of the page before, instead of `page`. The pages stay as they are while
                the list grows at its beginning.
            action: Only entries with this action, such as `provider.created`.
            target_type: Only entries with this target type, such as `provider`.
            target_id: Only entries with this target id.
            from_: Only entries at or after this time.
            to: Only entries before this time. A date without a time includes that whole day.
        """
        call = Call(
            "GET",
            "/v1/audit-logs",
            options,
            query={
                "page": page,
                "limit": limit,
                "cursor": cursor,
                "action": action,
                "targetType": target_type,
                "targetId": target_id,
                "from": from_,
                "to": to,
            },
        )
        return self._http.pages(types.AuditLogEntry, call)


class Templates:
    """Reusable message bodies with variables, and their versions."""

    def __init__(self, http: Http) -> None:
        self._http = http
        self.versions = TemplatesVersions(http)
        """The versions."""

    def list(
        self,
        *,
        page: Optional[int] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        **options: Unpack[RequestOptions],
    ) -> Page[types.Template]:
        """List templates.

        Requires the permission `TEMPLATES_READ`. The newest template comes first.

        Args:
            page: The page number, from 1.
            limit: The number of items per page.
            cursor: The `next_cursor` of the page before, instead of `page`. The pages stay as they are while
                the list grows at its beginning.
        """
        call = Call(
            "GET",
            "/v1/templates",
            options,
            query={
                "page": page,
                "limit": limit,
                "cursor": cursor,
            },
        )
        return self._http.pages(types.Template, call)

    def create(
        self,
        *,
        name: str,
        type: Optional[types.TemplateType] = None,
        description: Optional[str] = None,
        tags: Optional[Sequence[str]] = None,
        **options: Unpack[RequestOptions],
    ) -> types.Template:
        """Create a template.

        Requires the permission `TEMPLATES_WRITE`. The template can be used once it has a version.

        Args:
            name: The name of the template. That of a partial has up to 100 letters, digits, `-` and `_`,
                begins with a letter, and is no other partial's.
            type: What the template is for. The default is `TEMPLATE`. It cannot be changed.
            description: The description of the template.
            tags: Up to 20 tags of up to 100 characters each.
        """
        call = Call(
            "POST",
            "/v1/templates",
            options,
            body={
                "name": name,
                "type": type,
                "description": description,
                "tags": tags,
            },
            body_type=types.CreateTemplateRequest,
            idempotent=True,
        )
        return self._http.json(types.Template, call, "data")

    def get(self, id: str, **options: Unpack[RequestOptions]) -> types.TemplateDetail:
        """Get a template.

        Requires the permission `TEMPLATES_READ`. `current_version` has the content.

        Args:
            id: The id of the template.
        """
        call = Call("GET", "/v1/templates/{id}", options, path={"id": id})
        return self._http.json(types.TemplateDetail, call, "data")

    def update(
        self,
        id: str,
        *,
        name: Optional[str] = None,
        description: Union[Optional[str], NotGiven] = NOT_GIVEN,
        tags: Optional[Sequence[str]] = None,
        **options: Unpack[RequestOptions],
    ) -> types.Template:
        """Change a template.

        Requires the permission `TEMPLATES_WRITE`. To change the content, add a version.

        Args:
            id: The id of the template.
            name: The name of the template. A partial that is used keeps its name.
            description: The description of the template; null removes it.
            tags: Up to 20 tags of up to 100 characters each. They replace the present tags.
        """
        call = Call(
            "PATCH",
            "/v1/templates/{id}",
            options,
            path={"id": id},
            body={
                "name": name,
                "description": description,
                "tags": tags,
            },
            body_type=types.UpdateTemplateRequest,
        )
        return self._http.json(types.Template, call, "data")

    def delete(self, id: str, **options: Unpack[RequestOptions]) -> types.Success:
        """Remove a template.

        Requires the permission `TEMPLATES_WRITE`. Removes all versions of the template too. Messages that were
        already accepted are sent as they are. A layout or partial that a current version uses is not removed
        (409).

        Args:
            id: The id of the template.
        """
        call = Call("DELETE", "/v1/templates/{id}", options, path={"id": id})
        return self._http.json(types.Success, call)

    def preview(
        self,
        id: str,
        *,
        variables: Optional[Mapping[str, Any]] = None,
        version_id: Optional[str] = None,
        locale: Optional[str] = None,
        **options: Unpack[RequestOptions],
    ) -> types.TemplatePreview:
        """Preview a template.

        Requires the permission `TEMPLATES_READ`. Renders a version; nothing is sent. Missing variables render as
        empty text.

        Args:
            id: The id of the template.
            variables: The variables. They need not match the JSON Schema of the version.
            version_id: The id of the version. The default is the current version.
            locale: The language of the version, instead of `version_id`: its current version is rendered, or
                that of the next less exact language, or of the default.
        """
        call = Call(
            "POST",
            "/v1/templates/{id}/preview",
            options,
            path={"id": id},
            body={
                "variables": variables,
                "version_id": version_id,
                "locale": locale,
            },
            body_type=types.PreviewTemplateRequest,
            repeatable=True,
        )
        return self._http.json(types.TemplatePreview, call)

    def rollback(self, id: str, version_id: str, **options: Unpack[RequestOptions]) -> types.RolledBack:
        """Roll back to a template version.

        Requires the permission `TEMPLATES_WRITE`. Makes this version the current one of its language. It is
        composed with its layout and partials as they are now. No version is added or removed.

        Args:
            id: The id of the template.
            version_id: The id of the template version.
        """
        call = Call(
            "POST",
            "/v1/templates/{id}/rollback/{versionId}",
            options,
            path={"id": id, "versionId": version_id},
            repeatable=True,
        )
        return self._http.json(types.RolledBack, call, "data")

    def list_uses(self, id: str, **options: Unpack[RequestOptions]) -> Page[types.TemplateUse]:
        """List what uses a layout or partial.

        Requires the permission `TEMPLATES_READ`. Lists up to 1,000 current versions that the layout or partial is
        in, also those in which another partial brought it. A template that is neither is in none.

        Args:
            id: The id of the layout or partial.
        """
        call = Call("GET", "/v1/templates/{id}/used-by", options, path={"id": id})
        return self._http.pages(types.TemplateUse, call)

    def preview_draft(
        self,
        id: str,
        *,
        variables: Optional[Mapping[str, Any]] = None,
        locale: Optional[str] = None,
        subject: Optional[str] = None,
        preheader: Optional[str] = None,
        from_: Optional[str] = None,
        reply_to: Optional[types.Addresses] = None,
        layout_id: Optional[str] = None,
        html_content: str,
        mjml_source: Optional[str] = None,
        text_content: Optional[str] = None,
        variables_schema: Optional[Mapping[str, Any]] = None,
        **options: Unpack[RequestOptions],
    ) -> types.TemplatePreview:
        """Preview a draft of a template version.

        Requires the permission `TEMPLATES_READ`. Checks and renders the content as if it were a new version of the
        template, with the layout and the partials as they are now. The content of a layout or partial is rendered
        as that of a template. Nothing is stored or sent. If a source is wrong, `details.issues` names its line.

        Args:
            id: The id of the template.
            variables: The variables. They need not match the JSON Schema.
            locale: The language of the version, as a language tag such as `de`, `de-AT` or `zh-Hant-TW`.
                Without one, it is of the default language.
            subject: The subject of messages that bring none, a Handlebars template.
            preheader: What mail programs show beside the subject, a Handlebars template on one line. It is put
                at the beginning of the HTML, hidden.
            from_: The sender of messages that bring none.
            reply_to: One address for replies or an array of up to 10, for messages that bring none.
            layout_id: The layout around the content. One of MJML takes MJML, one of HTML takes HTML.
            html_content: The HTML source. It may be empty if `mjml_source` is given.
            mjml_source: The MJML source. It is compiled now, and the result replaces `html_content`.
            text_content: The plain-text source. Without it, the text is made from the HTML; if it is empty,
                there is no text.
            variables_schema: A JSON Schema (draft 7, 2019-09 or 2020-12) that the variables of every send must
                match. References outside the schema are not allowed.
        """
        call = Call(
            "POST",
            "/v1/templates/{id}/preview-draft",
            options,
            path={"id": id},
            body={
                "variables": variables,
                "locale": locale,
                "subject": subject,
                "preheader": preheader,
                "from_": from_,
                "reply_to": reply_to,
                "layout_id": layout_id,
                "html_content": html_content,
                "mjml_source": mjml_source,
                "text_content": text_content,
                "variables_schema": variables_schema,
            },
            body_type=types.PreviewTemplateDraftRequest,
            repeatable=True,
        )
        return self._http.json(types.TemplatePreview, call)

    def send_test(
        self,
        id: str,
        *,
        to: types.Addresses,
        variables: Optional[Mapping[str, Any]] = None,
        version_id: Optional[str] = None,
        locale: Optional[str] = None,
        from_: Optional[str] = None,
        subject: Optional[str] = None,
        **options: Unpack[RequestOptions],
    ) -> types.SendMessageResponse:
        """Send a template to try it out.

        Requires the permission `SEND`, and `TEMPLATES_READ`. Sends a real message, by the same rules as `POST
        /v1/send`. Its subject begins with `[Test] `, its tag is `template-test`, and `{{unsubscribeUrl}}` is an
        example, unless `variables` defines it.

        Args:
            id: The id of the template.
            to: One address or an array of up to 10. Each gets a mail of their own.
            variables: The variables of the template, which must match its schema.
            version_id: The id of the version. The default is the current version.
            locale: The language of the version, instead of `version_id`: its current version is sent, or that
                of the next less exact language, or of the default.
            from_: The sender. Required if the version has none.
            subject: The subject, a Handlebars template. Required if the version has none.
        """
        call = Call(
            "POST",
            "/v1/templates/{id}/test-send",
            options,
            path={"id": id},
            body={
                "to": to,
                "variables": variables,
                "version_id": version_id,
                "locale": locale,
                "from_": from_,
                "subject": subject,
            },
            body_type=types.SendTemplateTestRequest,
            idempotent=True,
        )
        return self._http.json(types.SendMessageResponse, call)


class AsyncTemplates:
    """Reusable message bodies with variables, and their versions."""

    def __init__(self, http: AsyncHttp) -> None:
        self._http = http
        self.versions = AsyncTemplatesVersions(http)
        """The versions."""

    def list(
        self,
        *,
        page: Optional[int] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        **options: Unpack[RequestOptions],
    ) -> AsyncPages[types.Template]:
        """List templates.

        Requires the permission `TEMPLATES_READ`. The newest template comes first.

        Args:
            page: The page number, from 1.
            limit: The number of items per page.
            cursor: The `next_cursor` of the page before, instead of `page`. The pages stay as they are while
                the list grows at its beginning.
        """
        call = Call(
            "GET",
            "/v1/templates",
            options,
            query={
                "page": page,
                "limit": limit,
                "cursor": cursor,
            },
        )
        return self._http.pages(types.Template, call)

    async def create(
        self,
        *,
        name: str,
        type: Optional[types.TemplateType] = None,
        description: Optional[str] = None,
        tags: Optional[Sequence[str]] = None,
        **options: Unpack[RequestOptions],
    ) -> types.Template:
        """Create a template.

        Requires the permission `TEMPLATES_WRITE`. The template can be used once it has a version.

        Args:
            name: The name of the template. That of a partial has up to 100 letters, digits, `-` and `_`,
                begins with a letter, and is no other partial's.
            type: What the template is for. The default is `TEMPLATE`. It cannot be changed.
            description: The description of the template.
            tags: Up to 20 tags of up to 100 characters each.
        """
        call = Call(
            "POST",
            "/v1/templates",
            options,
            body={
                "name": name,
                "type": type,
                "description": description,
                "tags": tags,
            },
            body_type=types.CreateTemplateRequest,
            idempotent=True,
        )
        return await self._http.json(types.Template, call, "data")

    async def get(self, id: str, **options: Unpack[RequestOptions]) -> types.TemplateDetail:
        """Get a template.

        Requires the permission `TEMPLATES_READ`. `current_version` has the content.

        Args:
            id: The id of the template.
        """
        call = Call("GET", "/v1/templates/{id}", options, path={"id": id})
        return await self._http.json(types.TemplateDetail, call, "data")

    async def update(
        self,
        id: str,
        *,
        name: Optional[str] = None,
        description: Union[Optional[str], NotGiven] = NOT_GIVEN,
        tags: Optional[Sequence[str]] = None,
        **options: Unpack[RequestOptions],
    ) -> types.Template:
        """Change a template.

        Requires the permission `TEMPLATES_WRITE`. To change the content, add a version.

        Args:
            id: The id of the template.
            name: The name of the template. A partial that is used keeps its name.
            description: The description of the template; null removes it.
            tags: Up to 20 tags of up to 100 characters each. They replace the present tags.
        """
        call = Call(
            "PATCH",
            "/v1/templates/{id}",
            options,
            path={"id": id},
            body={
                "name": name,
                "description": description,
                "tags": tags,
            },
            body_type=types.UpdateTemplateRequest,
        )
        return await self._http.json(types.Template, call, "data")

    async def delete(self, id: str, **options: Unpack[RequestOptions]) -> types.Success:
        """Remove a template.

        Requires the permission `TEMPLATES_WRITE`. Removes all versions of the template too. Messages that were
        already accepted are sent as they are. A layout or partial that a current version uses is not removed
        (409).

        Args:
            id: The id of the template.
        """
        call = Call("DELETE", "/v1/templates/{id}", options, path={"id": id})
        return await self._http.json(types.Success, call)

    async def preview(
        self,
        id: str,
        *,
        variables: Optional[Mapping[str, Any]] = None,
        version_id: Optional[str] = None,
        locale: Optional[str] = None,
        **options: Unpack[RequestOptions],
    ) -> types.TemplatePreview:
        """Preview a template.

        Requires the permission `TEMPLATES_READ`. Renders a version; nothing is sent. Missing variables render as
        empty text.

        Args:
            id: The id of the template.
            variables: The variables. They need not match the JSON Schema of the version.
            version_id: The id of the version. The default is the current version.
            locale: The language of the version, instead of `version_id`: its current version is rendered, or
                that of the next less exact language, or of the default.
        """
        call = Call(
            "POST",
            "/v1/templates/{id}/preview",
            options,
            path={"id": id},
            body={
                "variables": variables,
                "version_id": version_id,
                "locale": locale,
            },
            body_type=types.PreviewTemplateRequest,
            repeatable=True,
        )
        return await self._http.json(types.TemplatePreview, call)

    async def rollback(self, id: str, version_id: str, **options: Unpack[RequestOptions]) -> types.RolledBack:
        """Roll back to a template version.

        Requires the permission `TEMPLATES_WRITE`. Makes this version the current one of its language. It is
        composed with its layout and partials as they are now. No version is added or removed.

        Args:
            id: The id of the template.
            version_id: The id of the template version.
        """
        call = Call(
            "POST",
            "/v1/templates/{id}/rollback/{versionId}",
            options,
            path={"id": id, "versionId": version_id},
            repeatable=True,
        )
        return await self._http.json(types.RolledBack, call, "data")

    def list_uses(self, id: str, **options: Unpack[RequestOptions]) -> AsyncPages[types.TemplateUse]:
        """List what uses a layout or partial.

        Requires the permission `TEMPLATES_READ`. Lists up to 1,000 current versions that the layout or partial is
        in, also those in which another partial brought it. A template that is neither is in none.

        Args:
            id: The id of the layout or partial.
        """
        call = Call("GET", "/v1/templates/{id}/used-by", options, path={"id": id})
        return self._http.pages(types.TemplateUse, call)

    async def preview_draft(
        self,
        id: str,
        *,
        variables: Optional[Mapping[str, Any]] = None,
        locale: Optional[str] = None,
        subject: Optional[str] = None,
        preheader: Optional[str] = None,
        from_: Optional[str] = None,
        reply_to: Optional[types.Addresses] = None,
        layout_id: Optional[str] = None,
        html_content: str,
        mjml_source: Optional[str] = None,
        text_content: Optional[str] = None,
        variables_schema: Optional[Mapping[str, Any]] = None,
        **options: Unpack[RequestOptions],
    ) -> types.TemplatePreview:
        """Preview a draft of a template version.

        Requires the permission `TEMPLATES_READ`. Checks and renders the content as if it were a new version of the
        template, with the layout and the partials as they are now. The content of a layout or partial is rendered
        as that of a template. Nothing is stored or sent. If a source is wrong, `details.issues` names its line.

        Args:
            id: The id of the template.
            variables: The variables. They need not match the JSON Schema.
            locale: The language of the version, as a language tag such as `de`, `de-AT` or `zh-Hant-TW`.
                Without one, it is of the default language.
            subject: The subject of messages that bring none, a Handlebars template.
            preheader: What mail programs show beside the subject, a Handlebars template on one line. It is put
                at the beginning of the HTML, hidden.
            from_: The sender of messages that bring none.
            reply_to: One address for replies or an array of up to 10, for messages that bring none.
            layout_id: The layout around the content. One of MJML takes MJML, one of HTML takes HTML.
            html_content: The HTML source. It may be empty if `mjml_source` is given.
            mjml_source: The MJML source. It is compiled now, and the result replaces `html_content`.
            text_content: The plain-text source. Without it, the text is made from the HTML; if it is empty,
                there is no text.
            variables_schema: A JSON Schema (draft 7, 2019-09 or 2020-12) that the variables of every send must
                match. References outside the schema are not allowed.
        """
        call = Call(
            "POST",
            "/v1/templates/{id}/preview-draft",
            options,
            path={"id": id},
            body={
                "variables": variables,
                "locale": locale,
                "subject": subject,
                "preheader": preheader,
                "from_": from_,
                "reply_to": reply_to,
                "layout_id": layout_id,
                "html_content": html_content,
                "mjml_source": mjml_source,
                "text_content": text_content,
                "variables_schema": variables_schema,
            },
            body_type=types.PreviewTemplateDraftRequest,
            repeatable=True,
        )
        return await self._http.json(types.TemplatePreview, call)

    async def send_test(
        self,
        id: str,
        *,
        to: types.Addresses,
        variables: Optional[Mapping[str, Any]] = None,
        version_id: Optional[str] = None,
        locale: Optional[str] = None,
        from_: Optional[str] = None,
        subject: Optional[str] = None,
        **options: Unpack[RequestOptions],
    ) -> types.SendMessageResponse:
        """Send a template to try it out.

        Requires the permission `SEND`, and `TEMPLATES_READ`. Sends a real message, by the same rules as `POST
        /v1/send`. Its subject begins with `[Test] `, its tag is `template-test`, and `{{unsubscribeUrl}}` is an
        example, unless `variables` defines it.

        Args:
            id: The id of the template.
            to: One address or an array of up to 10. Each gets a mail of their own.
            variables: The variables of the template, which must match its schema.
            version_id: The id of the version. The default is the current version.
            locale: The language of the version, instead of `version_id`: its current version is sent, or that
                of the next less exact language, or of the default.
            from_: The sender. Required if the version has none.
            subject: The subject, a Handlebars template. Required if the version has none.
        """
        call = Call(
            "POST",
            "/v1/templates/{id}/test-send",
            options,
            path={"id": id},
            body={
                "to": to,
                "variables": variables,
                "version_id": version_id,
                "locale": locale,
                "from_": from_,
                "subject": subject,
            },
            body_type=types.SendTemplateTestRequest,
            idempotent=True,
        )
        return await self._http.json(types.SendMessageResponse, call)


class TemplatesVersions:
    """The versions."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def create(
        self,
        template_id: str,
        *,
        locale: Optional[str] = None,
        subject: Optional[str] = None,
        preheader: Optional[str] = None,
        from_: Optional[str] = None,
        reply_to: Optional[types.Addresses] = None,
        layout_id: Optional[str] = None,
        html_content: str,
        mjml_source: Optional[str] = None,
        text_content: Optional[str] = None,
        variables_schema: Optional[Mapping[str, Any]] = None,
        **options: Unpack[RequestOptions],
    ) -> types.TemplateVersion:
        """Add a version to a template.

        Requires the permission `TEMPLATES_WRITE`. The version gets the next number and becomes the current one of
        its language. Its sources are checked now. A version of a layout or partial is put into the current
        versions that use it, at once; if one of them cannot be composed with it, it is refused (422).

        Args:
            template_id: The id of the template.
            locale: The language of the version, as a language tag such as `de`, `de-AT` or `zh-Hant-TW`.
                Without one, it is of the default language.
            subject: The subject of messages that bring none, a Handlebars template.
            preheader: What mail programs show beside the subject, a Handlebars template on one line. It is put
                at the beginning of the HTML, hidden.
            from_: The sender of messages that bring none.
            reply_to: One address for replies or an array of up to 10, for messages that bring none.
            layout_id: The layout around the content. One of MJML takes MJML, one of HTML takes HTML.
            html_content: The HTML source. It may be empty if `mjml_source` is given.
            mjml_source: The MJML source. It is compiled now, and the result replaces `html_content`.
            text_content: The plain-text source. Without it, the text is made from the HTML; if it is empty,
                there is no text.
            variables_schema: A JSON Schema (draft 7, 2019-09 or 2020-12) that the variables of every send must
                match. References outside the schema are not allowed.
        """
        call = Call(
            "POST",
            "/v1/templates/{id}/versions",
            options,
            path={"id": template_id},
            body={
                "locale": locale,
                "subject": subject,
                "preheader": preheader,
                "from_": from_,
                "reply_to": reply_to,
                "layout_id": layout_id,
                "html_content": html_content,
                "mjml_source": mjml_source,
                "text_content": text_content,
                "variables_schema": variables_schema,
            },
            body_type=types.CreateTemplateVersionRequest,
            idempotent=True,
        )
        return self._http.json(types.TemplateVersion, call, "data")

    def list(self, template_id: str, **options: Unpack[RequestOptions]) -> types.TemplateVersionList:
        """List a template's versions.

        Requires the permission `TEMPLATES_READ`. The newest version comes first. The content is not included.

        Args:
            template_id: The id of the template.
        """
        call = Call("GET", "/v1/templates/{id}/versions", options, path={"id": template_id})
        return self._http.json(types.TemplateVersionList, call)

    def get(self, template_id: str, version_id: str, **options: Unpack[RequestOptions]) -> types.TemplateVersion:
        """Get a template version.

        Requires the permission `TEMPLATES_READ`.

        Args:
            template_id: The id of the template.
            version_id: The id of the template version.
        """
        call = Call(
            "GET",
            "/v1/templates/{id}/versions/{versionId}",
            options,
            path={"id": template_id, "versionId": version_id},
        )
        return self._http.json(types.TemplateVersion, call, "data")


class AsyncTemplatesVersions:
    """The versions."""

    def __init__(self, http: AsyncHttp) -> None:
        self._http = http

    async def create(
        self,
        template_id: str,
        *,
        locale: Optional[str] = None,
        subject: Optional[str] = None,
        preheader: Optional[str] = None,
        from_: Optional[str] = None,
        reply_to: Optional[types.Addresses] = None,
        layout_id: Optional[str] = None,
        html_content: str,
        mjml_source: Optional[str] = None,
        text_content: Optional[str] = None,
        variables_schema: Optional[Mapping[str, Any]] = None,
        **options: Unpack[RequestOptions],
    ) -> types.TemplateVersion:
        """Add a version to a template.

        Requires the permission `TEMPLATES_WRITE`. The version gets the next number and becomes the current one of
        its language. Its sources are checked now. A version of a layout or partial is put into the current
        versions that use it, at once; if one of them cannot be composed with it, it is refused (422).

        Args:
            template_id: The id of the template.
            locale: The language of the version, as a language tag such as `de`, `de-AT` or `zh-Hant-TW`.
                Without one, it is of the default language.
            subject: The subject of messages that bring none, a Handlebars template.
            preheader: What mail programs show beside the subject, a Handlebars template on one line. It is put
                at the beginning of the HTML, hidden.
            from_: The sender of messages that bring none.
            reply_to: One address for replies or an array of up to 10, for messages that bring none.
            layout_id: The layout around the content. One of MJML takes MJML, one of HTML takes HTML.
            html_content: The HTML source. It may be empty if `mjml_source` is given.
            mjml_source: The MJML source. It is compiled now, and the result replaces `html_content`.
            text_content: The plain-text source. Without it, the text is made from the HTML; if it is empty,
                there is no text.
            variables_schema: A JSON Schema (draft 7, 2019-09 or 2020-12) that the variables of every send must
                match. References outside the schema are not allowed.
        """
        call = Call(
            "POST",
            "/v1/templates/{id}/versions",
            options,
            path={"id": template_id},
            body={
                "locale": locale,
                "subject": subject,
                "preheader": preheader,
                "from_": from_,
                "reply_to": reply_to,
                "layout_id": layout_id,
                "html_content": html_content,
                "mjml_source": mjml_source,
                "text_content": text_content,
                "variables_schema": variables_schema,
            },
            body_type=types.CreateTemplateVersionRequest,
            idempotent=True,
        )
        return await self._http.json(types.TemplateVersion, call, "data")

    async def list(self, template_id: str, **options: Unpack[RequestOptions]) -> types.TemplateVersionList:
        """List a template's versions.

        Requires the permission `TEMPLATES_READ`. The newest version comes first. The content is not included.

        Args:
            template_id: The id of the template.
        """
        call = Call("GET", "/v1/templates/{id}/versions", options, path={"id": template_id})
        return await self._http.json(types.TemplateVersionList, call)

    async def get(self, template_id: str, version_id: str, **options: Unpack[RequestOptions]) -> types.TemplateVersion:
        """Get a template version.

        Requires the permission `TEMPLATES_READ`.

        Args:
            template_id: The id of the template.
            version_id: The id of the template version.
        """
        call = Call(
            "GET",
            "/v1/templates/{id}/versions/{versionId}",
            options,
            path={"id": template_id, "versionId": version_id},
        )
        return await self._http.json(types.TemplateVersion, call, "data")


class UnsubscribeGroups:
    """Kinds of messages that recipients can unsubscribe from."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def list(self, **options: Unpack[RequestOptions]) -> Page[types.UnsubscribeGroup]:
        """List unsubscribe groups.

        Requires the permission `SETTINGS_WRITE`. The oldest group comes first.
        """
        call = Call("GET", "/v1/unsubscribe-groups", options)
        return self._http.pages(types.UnsubscribeGroup, call)

    def create(
        self,
        *,
        name: str,
        description: Optional[str] = None,
        is_default: Optional[bool] = None,
        **options: Unpack[RequestOptions],
    ) -> types.UnsubscribeGroup:
        """Create an unsubscribe group.

        Requires the permission `SETTINGS_WRITE`.

        Args:
            name: The name of the group, which recipients see.
            description: The description of the group.
            is_default: Whether the group becomes the default group, in place of the present one. The default
                is false.
        """
        call = Call(
            "POST",
            "/v1/unsubscribe-groups",
            options,
            body={
                "name": name,
                "description": description,
                "is_default": is_default,
            },
            body_type=types.CreateUnsubscribeGroupRequest,
            idempotent=True,
        )
        return self._http.json(types.UnsubscribeGroup, call, "data")

    def get(self, id: str, **options: Unpack[RequestOptions]) -> types.UnsubscribeGroup:
        """Get an unsubscribe group.

        Requires the permission `SETTINGS_WRITE`.

        Args:
            id: The id of the unsubscribe group.
        """
        call = Call("GET", "/v1/unsubscribe-groups/{id}", options, path={"id": id})
        return self._http.json(types.UnsubscribeGroup, call, "data")

    def update(
        self,
        id: str,
        *,
        name: Optional[str] = None,
        description: Union[Optional[str], NotGiven] = NOT_GIVEN,
        is_default: Optional[bool] = None,
        **options: Unpack[RequestOptions],
    ) -> types.UnsubscribeGroup:
        """Change an unsubscribe group.

        Requires the permission `SETTINGS_WRITE`.

        Args:
            id: The id of the unsubscribe group.
            name: The name of the group, which recipients see.
            description: The description of the group; null removes it.
            is_default: Whether the group is the default group; true replaces the present one.
        """
        call = Call(
            "PATCH",
            "/v1/unsubscribe-groups/{id}",
            options,
            path={"id": id},
            body={
                "name": name,
                "description": description,
                "is_default": is_default,
            },
            body_type=types.UpdateUnsubscribeGroupRequest,
        )
        return self._http.json(types.UnsubscribeGroup, call, "data")

    def delete(self, id: str, **options: Unpack[RequestOptions]) -> types.Success:
        """Remove an unsubscribe group.

        Requires the permission `SETTINGS_WRITE`. The suppressions of the group are deleted too.

        Args:
            id: The id of the unsubscribe group.
        """
        call = Call("DELETE", "/v1/unsubscribe-groups/{id}", options, path={"id": id})
        return self._http.json(types.Success, call)

    def preview_page(
        self,
        id: str,
        *,
        language: Optional[types.PageLanguage] = None,
        **options: Unpack[RequestOptions],
    ) -> types.PagePreview:
        """Preview the page of an unsubscribe link.

        Requires the permission `SETTINGS_WRITE`. The page that a recipient sees after unsubscribing from the
        group, with the organization's name and colour and a made-up sender and address. Nothing is changed.

        Args:
            id: The id of the unsubscribe group.
            language: The language of the page. The default is `en`. Recipients get the one that their browser
                asks for.
        """
        call = Call(
            "GET",
            "/v1/unsubscribe-groups/{id}/page-preview",
            options,
            path={"id": id},
            query={
                "language": language,
            },
        )
        return self._http.json(types.PagePreview, call, "data")


class AsyncUnsubscribeGroups:
    """Kinds of messages that recipients can unsubscribe from."""

    def __init__(self, http: AsyncHttp) -> None:
        self._http = http

    def list(self, **options: Unpack[RequestOptions]) -> AsyncPages[types.UnsubscribeGroup]:
        """List unsubscribe groups.

        Requires the permission `SETTINGS_WRITE`. The oldest group comes first.
        """
        call = Call("GET", "/v1/unsubscribe-groups", options)
        return self._http.pages(types.UnsubscribeGroup, call)

    async def create(
        self,
        *,
        name: str,
        description: Optional[str] = None,
        is_default: Optional[bool] = None,
        **options: Unpack[RequestOptions],
    ) -> types.UnsubscribeGroup:
        """Create an unsubscribe group.

        Requires the permission `SETTINGS_WRITE`.

        Args:
            name: The name of the group, which recipients see.
            description: The description of the group.
            is_default: Whether the group becomes the default group, in place of the present one. The default
                is false.
        """
        call = Call(
            "POST",
            "/v1/unsubscribe-groups",
            options,
            body={
                "name": name,
                "description": description,
                "is_default": is_default,
            },
            body_type=types.CreateUnsubscribeGroupRequest,
            idempotent=True,
        )
        return await self._http.json(types.UnsubscribeGroup, call, "data")

    async def get(self, id: str, **options: Unpack[RequestOptions]) -> types.UnsubscribeGroup:
        """Get an unsubscribe group.

        Requires the permission `SETTINGS_WRITE`.

        Args:
            id: The id of the unsubscribe group.
        """
        call = Call("GET", "/v1/unsubscribe-groups/{id}", options, path={"id": id})
        return await self._http.json(types.UnsubscribeGroup, call, "data")

    async def update(
        self,
        id: str,
        *,
        name: Optional[str] = None,
        description: Union[Optional[str], NotGiven] = NOT_GIVEN,
        is_default: Optional[bool] = None,
        **options: Unpack[RequestOptions],
    ) -> types.UnsubscribeGroup:
        """Change an unsubscribe group.

        Requires the permission `SETTINGS_WRITE`.

        Args:
            id: The id of the unsubscribe group.
            name: The name of the group, which recipients see.
            description: The description of the group; null removes it.
            is_default: Whether the group is the default group; true replaces the present one.
        """
        call = Call(
            "PATCH",
            "/v1/unsubscribe-groups/{id}",
            options,
            path={"id": id},
            body={
                "name": name,
                "description": description,
                "is_default": is_default,
            },
            body_type=types.UpdateUnsubscribeGroupRequest,
        )
        return await self._http.json(types.UnsubscribeGroup, call, "data")

    async def delete(self, id: str, **options: Unpack[RequestOptions]) -> types.Success:
        """Remove an unsubscribe group.

        Requires the permission `SETTINGS_WRITE`. The suppressions of the group are deleted too.

        Args:
            id: The id of the unsubscribe group.
        """
        call = Call("DELETE", "/v1/unsubscribe-groups/{id}", options, path={"id": id})
        return await self._http.json(types.Success, call)

    async def preview_page(
        self,
        id: str,
        *,
        language: Optional[types.PageLanguage] = None,
        **options: Unpack[RequestOptions],
    ) -> types.PagePreview:
        """Preview the page of an unsubscribe link.

        Requires the permission `SETTINGS_WRITE`. The page that a recipient sees after unsubscribing from the
        group, with the organization's name and colour and a made-up sender and address. Nothing is changed.

        Args:
            id: The id of the unsubscribe group.
            language: The language of the page. The default is `en`. Recipients get the one that their browser
                asks for.
        """
        call = Call(
            "GET",
            "/v1/unsubscribe-groups/{id}/page-preview",
            options,
            path={"id": id},
            query={
                "language": language,
            },
        )
        return await self._http.json(types.PagePreview, call, "data")


class Suppressions:
    """Addresses that receive no messages."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def list(
        self,
        *,
        page: Optional[int] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        email: Optional[str] = None,
        source: Optional[types.SuppressionSource] = None,
        group_id: Optional[str] = None,
        since: Optional[Union[datetime, str]] = None,
        **options: Unpack[RequestOptions],
    ) -> Page[types.Suppression]:
        """List suppressions.

        Requires the permission `SETTINGS_WRITE`. The newest suppression comes first.

        Args:
            page: The page number, from 1.
            limit: The number of items per page.
            cursor: The `next_cursor` of the page before, instead of `page`. The pages stay as they are while
                the list grows at its beginning.
            email: Only suppressions of this address: for all messages, and in groups.
            source: Only suppressions with this source.
            group_id: Only suppressions of this unsubscribe group.
            since: Only suppressions created at or after this time.
        """
        call = Call(
            "GET",
            "/v1/suppressions",
            options,
            query={
                "page": page,
                "limit": limit,
                "cursor": cursor,
                "email": email,
                "source": source,
                "groupId": group_id,
                "since": since,
            },
        )
        return self._http.pages(types.Suppression, call)

    def create(
        self,
        *,
        email: str,
        unsubscribe_group_id: Optional[str] = None,
        source: Optional[types.SuppressionSource] = None,
        **options: Unpack[RequestOptions],
    ) -> types.Suppression:
        """Suppress an address.

        Requires the permission `SETTINGS_WRITE`. From now on nothing is sent to the address, including messages
        that were already accepted.

        Args:
            email: The address. Only its hash is stored.
            unsubscribe_group_id: The unsubscribe group that the suppression applies to. The default is all
                messages.
            source: The source of the suppression. The default is MANUAL.
        """
        call = Call(
            "POST",
            "/v1/suppressions",
            options,
            body={
                "email": email,
                "unsubscribe_group_id": unsubscribe_group_id,
                "source": source,
            },
            body_type=types.CreateSuppressionRequest,
            idempotent=True,
        )
        return self._http.json(types.Suppression, call, "data")

    def import_(
        self,
        *,
        emails: Sequence[str],
        unsubscribe_group_id: Optional[str] = None,
        **options: Unpack[RequestOptions],
    ) -> types.ImportResult:
        """Import suppressions.

        Requires the permission `SETTINGS_WRITE`. Addresses that are already suppressed are skipped. The body is
        JSON, or a CSV file in UTF-8 (`text/csv`) of up to 10,000 rows after a first row that names the columns:
        `email`, or `email_hash` as in an export; optionally `source` (one of the sources; the default is IMPORT)
        and `created_at` (ISO 8601 or Unix seconds). A `reason` that is the name of a source counts as the source.
        Other columns are ignored. If a row is wrong, nothing is imported, and `details.issues` names its line.

        Args:
            emails: 1 to 10,000 addresses. Only their hashes are stored.
            unsubscribe_group_id: The unsubscribe group that the suppressions apply to. The default is all
                messages.
        """
        call = Call(
            "POST",
            "/v1/suppressions/import",
            options,
            body={
                "emails": emails,
                "unsubscribe_group_id": unsubscribe_group_id,
            },
            body_type=types.ImportSuppressionsRequest,
            idempotent=True,
        )
        return self._http.json(types.ImportResult, call, "data")

    def import_csv(
        self,
        text: str,
        *,
        unsubscribe_group_id: Optional[str] = None,
        **options: Unpack[RequestOptions],
    ) -> types.ImportResult:
        """Import suppressions.

        Requires the permission `SETTINGS_WRITE`. Addresses that are already suppressed are skipped. The body is
        JSON, or a CSV file in UTF-8 (`text/csv`) of up to 10,000 rows after a first row that names the columns:
        `email`, or `email_hash` as in an export; optionally `source` (one of the sources; the default is IMPORT)
        and `created_at` (ISO 8601 or Unix seconds). A `reason` that is the name of a source counts as the source.
        Other columns are ignored. If a row is wrong, nothing is imported, and `details.issues` names its line.

        Args:
            text: The request as a text of the type text/csv.
            unsubscribe_group_id: For a CSV file: the unsubscribe group that the suppressions apply to. The
                default is all messages.
        """
        call = Call(
            "POST",
            "/v1/suppressions/import",
            options,
            query={
                "unsubscribeGroupId": unsubscribe_group_id,
            },
            body=text,
            media_type="text/csv",
            idempotent=True,
        )
        return self._http.json(types.ImportResult, call, "data")

    def remove(
        self,
        *,
        emails: Sequence[str],
        unsubscribe_group_id: Optional[str] = None,
        **options: Unpack[RequestOptions],
    ) -> types.RemovalResult:
        """Remove the suppressions of many addresses.

        Requires the permission `SETTINGS_WRITE`. Messages can be sent to the addresses again, unless they are
        suppressed in the group of a message. Without `unsubscribe_group_id` the suppressions for all messages are
        removed.

        Args:
            emails: 1 to 10,000 addresses.
            unsubscribe_group_id: The unsubscribe group whose suppressions to remove. The default is the
                suppressions for all messages; those in groups stay.
        """
        call = Call(
            "POST",
            "/v1/suppressions/remove",
            options,
            body={
                "emails": emails,
                "unsubscribe_group_id": unsubscribe_group_id,
            },
            body_type=types.RemoveSuppressionsRequest,
            idempotent=True,
        )
        return self._http.json(types.RemovalResult, call, "data")

    def delete(self, id: str, **options: Unpack[RequestOptions]) -> types.Success:
        """Remove a suppression.

        Requires the permission `SETTINGS_WRITE`. Messages can be sent to the address again.

        Args:
            id: The id of the suppression.
        """
        call = Call("DELETE", "/v1/suppressions/{id}", options, path={"id": id})
        return self._http.json(types.Success, call)

    def export(
        self,
        *,
        source: Optional[types.SuppressionSource] = None,
        group_id: Optional[str] = None,
        **options: Unpack[RequestOptions],
    ) -> httpx.Response:
        """Export suppressions.

        Requires the permission `SETTINGS_WRITE`. Addresses are stored as hashes, so the export holds `email_hash`
        and no address. A CSV file with the columns `email_hash`, `source` and `created_at` can be imported again.
        Suppressions that are added while the export runs are not in it.

        Args:
            source: Only suppressions with this source.
            group_id: Only suppressions of this unsubscribe group.
        """
        call = Call(
            "GET",
            "/v1/suppressions/export",
            options,
            query={
                "source": source,
                "groupId": group_id,
            },
        )
        return self._http.send(call, stream=True)


class AsyncSuppressions:
    """Addresses that receive no messages."""

    def __init__(self, http: AsyncHttp) -> None:
        self._http = http

    def list(
        self,
        *,
        page: Optional[int] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        email: Optional[str] = None,
        source: Optional[types.SuppressionSource] = None,
        group_id: Optional[str] = None,
        since: Optional[Union[datetime, str]] = None,
        **options: Unpack[RequestOptions],
    ) -> AsyncPages[types.Suppression]:
        """List suppressions.

        Requires the permission `SETTINGS_WRITE`. The newest suppression comes first.

        Args:
            page: The page number, from 1.
            limit: The number of items per page.
            cursor: The `next_cursor` of the page before, instead of `page`. The pages stay as they are while
                the list grows at its beginning.
            email: Only suppressions of this address: for all messages, and in groups.
            source: Only suppressions with this source.
            group_id: Only suppressions of this unsubscribe group.
            since: Only suppressions created at or after this time.
        """
        call = Call(
            "GET",
            "/v1/suppressions",
            options,
            query={
                "page": page,
                "limit": limit,
                "cursor": cursor,
                "email": email,
                "source": source,
                "groupId": group_id,
                "since": since,
            },
        )
        return self._http.pages(types.Suppression, call)

    async def create(
        self,
        *,
        email: str,
        unsubscribe_group_id: Optional[str] = None,
        source: Optional[types.SuppressionSource] = None,
        **options: Unpack[RequestOptions],
    ) -> types.Suppression:
        """Suppress an address.

        Requires the permission `SETTINGS_WRITE`. From now on nothing is sent to the address, including messages
        that were already accepted.

        Args:
            email: The address. Only its hash is stored.
            unsubscribe_group_id: The unsubscribe group that the suppression applies to. The default is all
                messages.
            source: The source of the suppression. The default is MANUAL.
        """
        call = Call(
            "POST",
            "/v1/suppressions",
            options,
            body={
                "email": email,
                "unsubscribe_group_id": unsubscribe_group_id,
                "source": source,
            },
            body_type=types.CreateSuppressionRequest,
            idempotent=True,
        )
        return await self._http.json(types.Suppression, call, "data")

    async def import_(
        self,
        *,
        emails: Sequence[str],
        unsubscribe_group_id: Optional[str] = None,
        **options: Unpack[RequestOptions],
    ) -> types.ImportResult:
        """Import suppressions.

        Requires the permission `SETTINGS_WRITE`. Addresses that are already suppressed are skipped. The body is
        JSON, or a CSV file in UTF-8 (`text/csv`) of up to 10,000 rows after a first row that names the columns:
        `email`, or `email_hash` as in an export; optionally `source` (one of the sources; the default is IMPORT)
        and `created_at` (ISO 8601 or Unix seconds). A `reason` that is the name of a source counts as the source.
        Other columns are ignored. If a row is wrong, nothing is imported, and `details.issues` names its line.

        Args:
            emails: 1 to 10,000 addresses. Only their hashes are stored.
            unsubscribe_group_id: The unsubscribe group that the suppressions apply to. The default is all
                messages.
        """
        call = Call(
            "POST",
            "/v1/suppressions/import",
            options,
            body={
                "emails": emails,
                "unsubscribe_group_id": unsubscribe_group_id,
            },
            body_type=types.ImportSuppressionsRequest,
            idempotent=True,
        )
        return await self._http.json(types.ImportResult, call, "data")

    async def import_csv(
        self,
        text: str,
        *,
        unsubscribe_group_id: Optional[str] = None,
        **options: Unpack[RequestOptions],
    ) -> types.ImportResult:
        """Import suppressions.

        Requires the permission `SETTINGS_WRITE`. Addresses that are already suppressed are skipped. The body is
        JSON, or a CSV file in UTF-8 (`text/csv`) of up to 10,000 rows after a first row that names the columns:
        `email`, or `email_hash` as in an export; optionally `source` (one of the sources; the default is IMPORT)
        and `created_at` (ISO 8601 or Unix seconds). A `reason` that is the name of a source counts as the source.
        Other columns are ignored. If a row is wrong, nothing is imported, and `details.issues` names its line.

        Args:
            text: The request as a text of the type text/csv.
            unsubscribe_group_id: For a CSV file: the unsubscribe group that the suppressions apply to. The
                default is all messages.
        """
        call = Call(
            "POST",
            "/v1/suppressions/import",
            options,
            query={
                "unsubscribeGroupId": unsubscribe_group_id,
            },
            body=text,
            media_type="text/csv",
            idempotent=True,
        )
        return await self._http.json(types.ImportResult, call, "data")

    async def remove(
        self,
        *,
        emails: Sequence[str],
        unsubscribe_group_id: Optional[str] = None,
        **options: Unpack[RequestOptions],
    ) -> types.RemovalResult:
        """Remove the suppressions of many addresses.

        Requires the permission `SETTINGS_WRITE`. Messages can be sent to the addresses again, unless they are
        suppressed in the group of a message. Without `unsubscribe_group_id` the suppressions for all messages are
        removed.

        Args:
            emails: 1 to 10,000 addresses.
            unsubscribe_group_id: The unsubscribe group whose suppressions to remove. The default is the
                suppressions for all messages; those in groups stay.
        """
        call = Call(
            "POST",
            "/v1/suppressions/remove",
            options,
            body={
                "emails": emails,
                "unsubscribe_group_id": unsubscribe_group_id,
            },
            body_type=types.RemoveSuppressionsRequest,
            idempotent=True,
        )
        return await self._http.json(types.RemovalResult, call, "data")

    async def delete(self, id: str, **options: Unpack[RequestOptions]) -> types.Success:
        """Remove a suppression.

        Requires the permission `SETTINGS_WRITE`. Messages can be sent to the address again.

        Args:
            id: The id of the suppression.
        """
        call = Call("DELETE", "/v1/suppressions/{id}", options, path={"id": id})
        return await self._http.json(types.Success, call)

    async def export(
        self,
        *,
        source: Optional[types.SuppressionSource] = None,
        group_id: Optional[str] = None,
        **options: Unpack[RequestOptions],
    ) -> httpx.Response:
        """Export suppressions.

        Requires the permission `SETTINGS_WRITE`. Addresses are stored as hashes, so the export holds `email_hash`
        and no address. A CSV file with the columns `email_hash`, `source` and `created_at` can be imported again.
        Suppressions that are added while the export runs are not in it.

        Args:
            source: Only suppressions with this source.
            group_id: Only suppressions of this unsubscribe group.
        """
        call = Call(
            "GET",
            "/v1/suppressions/export",
            options,
            query={
                "source": source,
                "groupId": group_id,
            },
        )
        return await self._http.send(call, stream=True)


class Erasures:
    """Erase what is stored of a person."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def erase_person(
        self,
        *,
        email: str,
        **options: Unpack[RequestOptions],
    ) -> types.ErasureResult:
        """Erase a person.

        Requires the permission `SETTINGS_WRITE`. Erases the address and the details of events of all messages to
        the person, for good. A message to this person alone, and a message whose recipients see each other, also
        loses its subject, bodies, headers, metadata and references to attachments; any other message loses them
        with its last recipient. Messages that are still being sent are left as they are and counted in `pending`.
        Suppressions of the address stay: only its hash is stored. The audit log records the hash, too. The request
        can be repeated.

        Args:
            email: The person's address.
        """
        call = Call(
            "POST",
            "/v1/erasures",
            options,
            body={
                "email": email,
            },
            body_type=types.ErasePersonRequest,
            repeatable=True,
        )
        return self._http.json(types.ErasureResult, call, "data")


class AsyncErasures:
    """Erase what is stored of a person."""

    def __init__(self, http: AsyncHttp) -> None:
        self._http = http

    async def erase_person(
        self,
        *,
        email: str,
        **options: Unpack[RequestOptions],
    ) -> types.ErasureResult:
        """Erase a person.

        Requires the permission `SETTINGS_WRITE`. Erases the address and the details of events of all messages to
        the person, for good. A message to this person alone, and a message whose recipients see each other, also
        loses its subject, bodies, headers, metadata and references to attachments; any other message loses them
        with its last recipient. Messages that are still being sent are left as they are and counted in `pending`.
        Suppressions of the address stay: only its hash is stored. The audit log records the hash, too. The request
        can be repeated.

        Args:
            email: The person's address.
        """
        call = Call(
            "POST",
            "/v1/erasures",
            options,
            body={
                "email": email,
            },
            body_type=types.ErasePersonRequest,
            repeatable=True,
        )
        return await self._http.json(types.ErasureResult, call, "data")


class WebhookEndpoints:
    """URLs that receive events, their deliveries and secrets."""

    def __init__(self, http: Http) -> None:
        self._http = http
        self.deliveries = WebhookEndpointsDeliveries(http)
        """The deliveries."""

    def list(self, **options: Unpack[RequestOptions]) -> Page[types.WebhookEndpoint]:
        """List webhook endpoints.

        Requires the permission `SETTINGS_WRITE`. The oldest endpoint comes first.
        """
        call = Call("GET", "/v1/webhook-endpoints", options)
        return self._http.pages(types.WebhookEndpoint, call)

    def create(
        self,
        *,
        url: str,
        events: Sequence[types.WebhookEventType],
        tags: Optional[Sequence[str]] = None,
        is_active: Optional[bool] = None,
        **options: Unpack[RequestOptions],
    ) -> types.WebhookEndpointWithSecret:
        """Create a webhook endpoint.

        Requires the permission `SETTINGS_WRITE`. The URL is checked first: with a HEAD request, and with an empty
        POST if the connection is closed on HEAD. Its host must have a public address. Only this response contains
        the signing secret.

        Args:
            url: An HTTPS URL with a public address. The operator can allow http and private addresses
                (`WAYPOST_WEBHOOK_ALLOW`); in development loopback is allowed. It is called once, and must respond
                within 5 seconds, with any status.
            events: The types of the events that the endpoint receives: at least one.
            tags: Receive events of messages only for messages with one of these tags. The default is all
                messages.
            is_active: Whether the endpoint receives events. The default is true.
        """
        call = Call(
            "POST",
            "/v1/webhook-endpoints",
            options,
            body={
                "url": url,
                "events": events,
                "tags": tags,
                "is_active": is_active,
            },
            body_type=types.CreateWebhookEndpointRequest,
            idempotent=True,
        )
        return self._http.json(types.WebhookEndpointWithSecret, call, "data")

    def get(self, id: str, **options: Unpack[RequestOptions]) -> types.WebhookEndpoint:
        """Get a webhook endpoint.

        Requires the permission `SETTINGS_WRITE`.

        Args:
            id: The id of the webhook endpoint.
        """
        call = Call("GET", "/v1/webhook-endpoints/{id}", options, path={"id": id})
        return self._http.json(types.WebhookEndpoint, call, "data")

    def update(
        self,
        id: str,
        *,
        url: Optional[str] = None,
        events: Optional[Sequence[types.WebhookEventType]] = None,
        tags: Optional[Sequence[str]] = None,
        is_active: Optional[bool] = None,
        **options: Unpack[RequestOptions],
    ) -> types.WebhookEndpoint:
        """Change a webhook endpoint.

        Requires the permission `SETTINGS_WRITE`. A new URL is checked first, as at creation. Deliveries that wait
        for an inactive endpoint are made when it becomes active again.

        Args:
            id: The id of the webhook endpoint.
            url: A new HTTPS URL. It must respond within 5 seconds, with any status.
            events: The types of the events that the endpoint receives from now on.
            tags: The tags of the messages whose events the endpoint receives from now on; an empty list stands
                for all messages.
            is_active: Whether the endpoint receives events. While it is false, new events are not delivered to
                it, and waiting deliveries keep waiting.
        """
        call = Call(
            "PATCH",
            "/v1/webhook-endpoints/{id}",
            options,
            path={"id": id},
            body={
                "url": url,
                "events": events,
                "tags": tags,
                "is_active": is_active,
            },
            body_type=types.UpdateWebhookEndpointRequest,
        )
        return self._http.json(types.WebhookEndpoint, call, "data")

    def delete(self, id: str, **options: Unpack[RequestOptions]) -> types.Success:
        """Remove a webhook endpoint.

        Requires the permission `SETTINGS_WRITE`. Waiting deliveries of the endpoint are dropped.

        Args:
            id: The id of the webhook endpoint.
        """
        call = Call("DELETE", "/v1/webhook-endpoints/{id}", options, path={"id": id})
        return self._http.json(types.Success, call)

    def test(self, id: str, **options: Unpack[RequestOptions]) -> types.WebhookTestResult:
        """Test a webhook endpoint.

        Requires the permission `SETTINGS_WRITE`. Posts an example event, of the first type that the endpoint
        receives, signed like a real one and with `data.metadata.test` set to true. An inactive endpoint can be
        tested too. A failed test is not retried.

        Args:
            id: The id of the webhook endpoint.
        """
        call = Call("POST", "/v1/webhook-endpoints/{id}/test", options, path={"id": id})
        return self._http.json(types.WebhookTestResult, call)

    def rotate_secret(
        self,
        id: str,
        *,
        grace_period_seconds: Optional[int] = None,
        **options: Unpack[RequestOptions],
    ) -> types.WebhookEndpointWithSecret:
        """Rotate a webhook endpoint's secret.

        Requires the permission `SETTINGS_WRITE`. Only this response contains the new secret. Until the grace
        period ends, both secrets sign. `webhook-signature` contains both signatures. `X-Waypost-Signature` is made
        with the new secret in the first attempt of a delivery, with the old secret in the second, and so on in
        turn; `X-Waypost-Signature-Other` is made with the other secret.

        Args:
            id: The id of the webhook endpoint.
            grace_period_seconds: How long deliveries are signed with the old secret too, in seconds: 0 to
                604,800. The default is 86,400 (one day).
        """
        call = Call(
            "POST",
            "/v1/webhook-endpoints/{id}/rotate-secret",
            options,
            path={"id": id},
            body={
                "grace_period_seconds": grace_period_seconds,
            },
            body_type=types.RotateWebhookSecretRequest,
            idempotent=True,
        )
        return self._http.json(types.WebhookEndpointWithSecret, call, "data")

    def replay(
        self,
        id: str,
        *,
        since: Union[datetime, str],
        until: Union[datetime, str],
        status: Optional[types.WebhookDeliveryStatus] = None,
        **options: Unpack[RequestOptions],
    ) -> types.ReplayResult:
        """Replay the deliveries of a period.

        Requires the permission `SETTINGS_WRITE`. All deliveries created in the period are due again at once. With
        `"status": "FAILED"`, successful deliveries are not repeated.

        Args:
            id: The id of the webhook endpoint.
            since: Replays deliveries created at or after this time.
            until: Replays deliveries created before this time, at most 30 days after `since`. A date without a
                time includes that whole day.
            status: Replays only deliveries with this status. The default is all.
        """
        call = Call(
            "POST",
            "/v1/webhook-endpoints/{id}/replay",
            options,
            path={"id": id},
            body={
                "since": since,
                "until": until,
                "status": status,
            },
            body_type=types.ReplayWebhooksRequest,
        )
        return self._http.json(types.ReplayResult, call, "data")


class AsyncWebhookEndpoints:
    """URLs that receive events, their deliveries and secrets."""

    def __init__(self, http: AsyncHttp) -> None:
        self._http = http
        self.deliveries = AsyncWebhookEndpointsDeliveries(http)
        """The deliveries."""

    def list(self, **options: Unpack[RequestOptions]) -> AsyncPages[types.WebhookEndpoint]:
        """List webhook endpoints.

        Requires the permission `SETTINGS_WRITE`. The oldest endpoint comes first.
        """
        call = Call("GET", "/v1/webhook-endpoints", options)
        return self._http.pages(types.WebhookEndpoint, call)

    async def create(
        self,
        *,
        url: str,
        events: Sequence[types.WebhookEventType],
        tags: Optional[Sequence[str]] = None,
        is_active: Optional[bool] = None,
        **options: Unpack[RequestOptions],
    ) -> types.WebhookEndpointWithSecret:
        """Create a webhook endpoint.

        Requires the permission `SETTINGS_WRITE`. The URL is checked first: with a HEAD request, and with an empty
        POST if the connection is closed on HEAD. Its host must have a public address. Only this response contains
        the signing secret.

        Args:
            url: An HTTPS URL with a public address. The operator can allow http and private addresses
                (`WAYPOST_WEBHOOK_ALLOW`); in development loopback is allowed. It is called once, and must respond
                within 5 seconds, with any status.
            events: The types of the events that the endpoint receives: at least one.
            tags: Receive events of messages only for messages with one of these tags. The default is all
                messages.
            is_active: Whether the endpoint receives events. The default is true.
        """
        call = Call(
            "POST",
            "/v1/webhook-endpoints",
            options,
            body={
                "url": url,
                "events": events,
                "tags": tags,
                "is_active": is_active,
            },
            body_type=types.CreateWebhookEndpointRequest,
            idempotent=True,
        )
        return await self._http.json(types.WebhookEndpointWithSecret, call, "data")

    async def get(self, id: str, **options: Unpack[RequestOptions]) -> types.WebhookEndpoint:
        """Get a webhook endpoint.

        Requires the permission `SETTINGS_WRITE`.

        Args:
            id: The id of the webhook endpoint.
        """
        call = Call("GET", "/v1/webhook-endpoints/{id}", options, path={"id": id})
        return await self._http.json(types.WebhookEndpoint, call, "data")

    async def update(
        self,
        id: str,
        *,
        url: Optional[str] = None,
        events: Optional[Sequence[types.WebhookEventType]] = None,
        tags: Optional[Sequence[str]] = None,
        is_active: Optional[bool] = None,
        **options: Unpack[RequestOptions],
    ) -> types.WebhookEndpoint:
        """Change a webhook endpoint.

        Requires the permission `SETTINGS_WRITE`. A new URL is checked first, as at creation. Deliveries that wait
        for an inactive endpoint are made when it becomes active again.

        Args:
            id: The id of the webhook endpoint.
            url: A new HTTPS URL. It must respond within 5 seconds, with any status.
            events: The types of the events that the endpoint receives from now on.
            tags: The tags of the messages whose events the endpoint receives from now on; an empty list stands
                for all messages.
            is_active: Whether the endpoint receives events. While it is false, new events are not delivered to
                it, and waiting deliveries keep waiting.
        """
        call = Call(
            "PATCH",
            "/v1/webhook-endpoints/{id}",
            options,
            path={"id": id},
            body={
                "url": url,
                "events": events,
                "tags": tags,
                "is_active": is_active,
            },
            body_type=types.UpdateWebhookEndpointRequest,
        )
        return await self._http.json(types.WebhookEndpoint, call, "data")

    async def delete(self, id: str, **options: Unpack[RequestOptions]) -> types.Success:
        """Remove a webhook endpoint.

        Requires the permission `SETTINGS_WRITE`. Waiting deliveries of the endpoint are dropped.

        Args:
            id: The id of the webhook endpoint.
        """
        call = Call("DELETE", "/v1/webhook-endpoints/{id}", options, path={"id": id})
        return await self._http.json(types.Success, call)

    async def test(self, id: str, **options: Unpack[RequestOptions]) -> types.WebhookTestResult:
        """Test a webhook endpoint.

        Requires the permission `SETTINGS_WRITE`. Posts an example event, of the first type that the endpoint
        receives, signed like a real one and with `data.metadata.test` set to true. An inactive endpoint can be
        tested too. A failed test is not retried.

        Args:
            id: The id of the webhook endpoint.
        """
        call = Call("POST", "/v1/webhook-endpoints/{id}/test", options, path={"id": id})
        return await self._http.json(types.WebhookTestResult, call)

    async def rotate_secret(
        self,
        id: str,
        *,
        grace_period_seconds: Optional[int] = None,
        **options: Unpack[RequestOptions],
    ) -> types.WebhookEndpointWithSecret:
        """Rotate a webhook endpoint's secret.

        Requires the permission `SETTINGS_WRITE`. Only this response contains the new secret. Until the grace
        period ends, both secrets sign. `webhook-signature` contains both signatures. `X-Waypost-Signature` is made
        with the new secret in the first attempt of a delivery, with the old secret in the second, and so on in
        turn; `X-Waypost-Signature-Other` is made with the other secret.

        Args:
            id: The id of the webhook endpoint.
            grace_period_seconds: How long deliveries are signed with the old secret too, in seconds: 0 to
                604,800. The default is 86,400 (one day).
        """
        call = Call(
            "POST",
            "/v1/webhook-endpoints/{id}/rotate-secret",
            options,
            path={"id": id},
            body={
                "grace_period_seconds": grace_period_seconds,
            },
            body_type=types.RotateWebhookSecretRequest,
            idempotent=True,
        )
        return await self._http.json(types.WebhookEndpointWithSecret, call, "data")

    async def replay(
        self,
        id: str,
        *,
        since: Union[datetime, str],
        until: Union[datetime, str],
        status: Optional[types.WebhookDeliveryStatus] = None,
        **options: Unpack[RequestOptions],
    ) -> types.ReplayResult:
        """Replay the deliveries of a period.

        Requires the permission `SETTINGS_WRITE`. All deliveries created in the period are due again at once. With
        `"status": "FAILED"`, successful deliveries are not repeated.

        Args:
            id: The id of the webhook endpoint.
            since: Replays deliveries created at or after this time.
            until: Replays deliveries created before this time, at most 30 days after `since`. A date without a
                time includes that whole day.
            status: Replays only deliveries with this status. The default is all.
        """
        call = Call(
            "POST",
            "/v1/webhook-endpoints/{id}/replay",
            options,
            path={"id": id},
            body={
                "since": since,
                "until": until,
                "status": status,
            },
            body_type=types.ReplayWebhooksRequest,
        )
        return await self._http.json(types.ReplayResult, call, "data")


class WebhookEndpointsDeliveries:
    """The deliveries."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def list(
        self,
        webhook_endpoint_id: str,
        *,
        page: Optional[int] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        status: Optional[types.WebhookDeliveryStatus] = None,
        message_id: Optional[str] = None,
        event_type: Optional[types.WebhookEventType] = None,
        from_: Optional[Union[datetime, str]] = None,
        to: Optional[Union[datetime, str]] = None,
        **options: Unpack[RequestOptions],
    ) -> Page[types.WebhookDelivery]:
        """List a webhook endpoint's deliveries.

        Requires the permission `SETTINGS_WRITE`. The newest delivery comes first, each with its attempts.

        Args:
            webhook_endpoint_id: The id of the webhook endpoint.
            page: The page number, from 1.
            limit: The number of items per page.
            cursor: The `next_cursor` of the page before, instead of `page`. The pages stay as they are while
                the list grows at its beginning.
            status: Only deliveries with this status.
            message_id: Only deliveries of the events of this message.
            event_type: Only deliveries of events of this type.
            from_: Only deliveries created at or after this time.
            to: Only deliveries created before this time. A date without a time includes that whole day.
        """
        call = Call(
            "GET",
            "/v1/webhook-endpoints/{id}/deliveries",
            options,
            path={"id": webhook_endpoint_id},
            query={
                "page": page,
                "limit": limit,
                "cursor": cursor,
                "status": status,
                "messageId": message_id,
                "eventType": event_type,
                "from": from_,
                "to": to,
            },
        )
        return self._http.pages(types.WebhookDelivery, call)

    def get(
        self,
        webhook_endpoint_id: str,
        delivery_id: str,
        **options: Unpack[RequestOptions],
    ) -> types.WebhookDeliveryDetail:
        """Get a webhook delivery.

        Requires the permission `SETTINGS_WRITE`. The delivery has its attempts and the body that is posted.

        Args:
            webhook_endpoint_id: The id of the webhook endpoint.
            delivery_id: The id of the webhook delivery.
        """
        call = Call(
            "GET",
            "/v1/webhook-endpoints/{id}/deliveries/{deliveryId}",
            options,
            path={"id": webhook_endpoint_id, "deliveryId": delivery_id},
        )
        return self._http.json(types.WebhookDeliveryDetail, call, "data")

    def replay(
        self,
        webhook_endpoint_id: str,
        delivery_id: str,
        **options: Unpack[RequestOptions],
    ) -> types.WebhookDelivery:
        """Replay a webhook delivery.

        Requires the permission `SETTINGS_WRITE`. The delivery is due again at once, with all attempts, even if it
        succeeded before. The endpoint gets the same `webhook-id`.

        Args:
            webhook_endpoint_id: The id of the webhook endpoint.
            delivery_id: The id of the webhook delivery.
        """
        call = Call(
            "POST",
            "/v1/webhook-endpoints/{id}/deliveries/{deliveryId}/replay",
            options,
            path={"id": webhook_endpoint_id, "deliveryId": delivery_id},
        )
        return self._http.json(types.WebhookDelivery, call, "data")


class AsyncWebhookEndpointsDeliveries:
    """The deliveries."""

    def __init__(self, http: AsyncHttp) -> None:
        self._http = http

    def list(
        self,
        webhook_endpoint_id: str,
        *,
        page: Optional[int] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        status: Optional[types.WebhookDeliveryStatus] = None,
        message_id: Optional[str] = None,
        event_type: Optional[types.WebhookEventType] = None,
        from_: Optional[Union[datetime, str]] = None,
        to: Optional[Union[datetime, str]] = None,
        **options: Unpack[RequestOptions],
    ) -> AsyncPages[types.WebhookDelivery]:
        """List a webhook endpoint's deliveries.

        Requires the permission `SETTINGS_WRITE`. The newest delivery comes first, each with its attempts.

        Args:
            webhook_endpoint_id: The id of the webhook endpoint.
            page: The page number, from 1.
            limit: The number of items per page.
            cursor: The `next_cursor` of the page before, instead of `page`. The pages stay as they are while
                the list grows at its beginning.
            status: Only deliveries with this status.
            message_id: Only deliveries of the events of this message.
            event_type: Only deliveries of events of this type.
            from_: Only deliveries created at or after this time.
            to: Only deliveries created before this time. A date without a time includes that whole day.
        """
        call = Call(
            "GET",
            "/v1/webhook-endpoints/{id}/deliveries",
            options,
            path={"id": webhook_endpoint_id},
            query={
                "page": page,
                "limit": limit,
                "cursor": cursor,
                "status": status,
                "messageId": message_id,
                "eventType": event_type,
                "from": from_,
                "to": to,
            },
        )
        return self._http.pages(types.WebhookDelivery, call)

    async def get(
        self,
        webhook_endpoint_id: str,
        delivery_id: str,
        **options: Unpack[RequestOptions],
    ) -> types.WebhookDeliveryDetail:
        """Get a webhook delivery.

        Requires the permission `SETTINGS_WRITE`. The delivery has its attempts and the body that is posted.

        Args:
            webhook_endpoint_id: The id of the webhook endpoint.
            delivery_id: The id of the webhook delivery.
        """
        call = Call(
            "GET",
            "/v1/webhook-endpoints/{id}/deliveries/{deliveryId}",
            options,
            path={"id": webhook_endpoint_id, "deliveryId": delivery_id},
        )
        return await self._http.json(types.WebhookDeliveryDetail, call, "data")

    async def replay(
        self,
        webhook_endpoint_id: str,
        delivery_id: str,
        **options: Unpack[RequestOptions],
    ) -> types.WebhookDelivery:
        """Replay a webhook delivery.

        Requires the permission `SETTINGS_WRITE`. The delivery is due again at once, with all attempts, even if it
        succeeded before. The endpoint gets the same `webhook-id`.

        Args:
            webhook_endpoint_id: The id of the webhook endpoint.
            delivery_id: The id of the webhook delivery.
        """
        call = Call(
            "POST",
            "/v1/webhook-endpoints/{id}/deliveries/{deliveryId}/replay",
            options,
            path={"id": webhook_endpoint_id, "deliveryId": delivery_id},
        )
        return await self._http.json(types.WebhookDelivery, call, "data")


class Session:
    """Sign in and out, and switch the organization."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def list_sign_in_methods(self, **options: Unpack[RequestOptions]) -> types.SignInMethods:
        """List the ways to sign in.

        Requires no API key and no session.
        """
        call = Call("GET", "/v1/session/methods", options)
        return self._http.json(types.SignInMethods, call, "data")

    def create(
        self,
        *,
        email: str,
        password: str,
        code: Optional[str] = None,
        **options: Unpack[RequestOptions],
    ) -> types.Session:
        """Sign in.

        Requires no API key and no session, and the header `X-Waypost-Csrf: 1`. Sets the cookie of a new session,
        in the organization that the user was last in. Ten wrong passwords or codes within 15 minutes lock the
        account for the rest of that time.

        Args:
            email: The address of the user.
            password: The password of the user.
            code: The code of the second factor, or a recovery code. Required if the user has a second factor.
        """
        call = Call(
            "POST",
            "/v1/session",
            options,
            body={
                "email": email,
                "password": password,
                "code": code,
            },
            body_type=types.CreateSessionRequest,
        )
        return self._http.json(types.Session, call, "data")

    def get(self, **options: Unpack[RequestOptions]) -> types.Session:
        """Get the session.

        Requires a session.
        """
        call = Call("GET", "/v1/session", options)
        return self._http.json(types.Session, call, "data")

    def update(
        self,
        *,
        organization_id: str,
        **options: Unpack[RequestOptions],
    ) -> types.Session:
        """Switch the organization.

        Requires a session. Sets the cookie of a new session in the other organization; the old one ends.

        Args:
            organization_id: The organization to switch to, one of the session's `organizations`.
        """
        call = Call(
            "PATCH",
            "/v1/session",
            options,
            body={
                "organization_id": organization_id,
            },
            body_type=types.UpdateSessionRequest,
        )
        return self._http.json(types.Session, call, "data")

    def delete(
        self,
        *,
        everywhere: Optional[bool] = None,
        **options: Unpack[RequestOptions],
    ) -> types.Success:
        """Sign out.

        Requires a session. Ends the session, and removes its cookie.

        Args:
            everywhere: Whether to end all sessions of the user. The default is false.
        """
        call = Call(
            "DELETE",
            "/v1/session",
            options,
            query={
                "everywhere": everywhere,
            },
        )
        return self._http.json(types.Success, call)


class AsyncSession:
    """Sign in and out, and switch the organization."""

    def __init__(self, http: AsyncHttp) -> None:
        self._http = http

    async def list_sign_in_methods(self, **options: Unpack[RequestOptions]) -> types.SignInMethods:
        """List the ways to sign in.

        Requires no API key and no session.
        """
        call = Call("GET", "/v1/session/methods", options)
        return await self._http.json(types.SignInMethods, call, "data")

    async def create(
        self,
        *,
        email: str,
        password: str,
        code: Optional[str] = None,
        **options: Unpack[RequestOptions],
    ) -> types.Session:
        """Sign in.

        Requires no API key and no session, and the header `X-Waypost-Csrf: 1`. Sets the cookie of a new session,
        in the organization that the user was last in. Ten wrong passwords or codes within 15 minutes lock the
        account for the rest of that time.

        Args:
            email: The address of the user.
            password: The password of the user.
            code: The code of the second factor, or a recovery code. Required if the user has a second factor.
        """
        call = Call(
            "POST",
            "/v1/session",
            options,
            body={
                "email": email,
                "password": password,
                "code": code,
            },
            body_type=types.CreateSessionRequest,
        )
        return await self._http.json(types.Session, call, "data")

    async def get(self, **options: Unpack[RequestOptions]) -> types.Session:
        """Get the session.

        Requires a session.
        """
        call = Call("GET", "/v1/session", options)
        return await self._http.json(types.Session, call, "data")

    async def update(
        self,
        *,
        organization_id: str,
        **options: Unpack[RequestOptions],
    ) -> types.Session:
        """Switch the organization.

        Requires a session. Sets the cookie of a new session in the other organization; the old one ends.

        Args:
            organization_id: The organization to switch to, one of the session's `organizations`.
        """
        call = Call(
            "PATCH",
            "/v1/session",
            options,
            body={
                "organization_id": organization_id,
            },
            body_type=types.UpdateSessionRequest,
        )
        return await self._http.json(types.Session, call, "data")

    async def delete(
        self,
        *,
        everywhere: Optional[bool] = None,
        **options: Unpack[RequestOptions],
    ) -> types.Success:
        """Sign out.

        Requires a session. Ends the session, and removes its cookie.

        Args:
            everywhere: Whether to end all sessions of the user. The default is false.
        """
        call = Call(
            "DELETE",
            "/v1/session",
            options,
            query={
                "everywhere": everywhere,
            },
        )
        return await self._http.json(types.Success, call)


class User:
    """The signed-in user: name, password and second factor."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def update(
        self,
        *,
        name: Optional[str] = None,
        password: Optional[str] = None,
        current_password: Union[Optional[str], NotGiven] = NOT_GIVEN,
        **options: Unpack[RequestOptions],
    ) -> types.User:
        """Change the user.

        Requires a session. A new password ends the user's other sessions.

        Args:
            name: The name of the user.
            password: A new password, of 12 to 128 characters.
            current_password: The present password. Required with a new one.
        """
        call = Call(
            "PATCH",
            "/v1/user",
            options,
            body={
                "name": name,
                "password": password,
                "current_password": current_password,
            },
            body_type=types.UpdateUserRequest,
        )
        return self._http.json(types.User, call, "data")

    def start_totp(
        self,
        *,
        password: str,
        **options: Unpack[RequestOptions],
    ) -> types.TotpEnrolment:
        """Begin a second factor.

        Requires a session. Makes the secret of an authenticator (TOTP). It has no effect until it is confirmed; a
        secret that was not confirmed is replaced.

        Args:
            password: The present password.
        """
        call = Call(
            "POST",
            "/v1/user/totp",
            options,
            body={
                "password": password,
            },
            body_type=types.StartTotpRequest,
        )
        return self._http.json(types.TotpEnrolment, call, "data")

    def confirm_totp(
        self,
        *,
        code: str,
        **options: Unpack[RequestOptions],
    ) -> types.RecoveryCodes:
        """Confirm a second factor.

        Requires a session. From now on a sign-in with the password requires a code. Only this response contains
        the recovery codes.

        Args:
            code: A code of the authenticator.
        """
        call = Call(
            "POST",
            "/v1/user/totp/confirm",
            options,
            body={
                "code": code,
            },
            body_type=types.ConfirmTotpRequest,
        )
        return self._http.json(types.RecoveryCodes, call, "data")

    def disable_totp(
        self,
        *,
        password: str,
        code: str,
        **options: Unpack[RequestOptions],
    ) -> types.User:
        """Remove the second factor.

        Requires a session.

        Args:
            password: The present password.
            code: A code of the authenticator, or a recovery code.
        """
        call = Call(
            "POST",
            "/v1/user/totp/disable",
            options,
            body={
                "password": password,
                "code": code,
            },
            body_type=types.DisableTotpRequest,
        )
        return self._http.json(types.User, call, "data")


class AsyncUser:
    """The signed-in user: name, password and second factor."""

    def __init__(self, http: AsyncHttp) -> None:
        self._http = http

    async def update(
        self,
        *,
        name: Optional[str] = None,
        password: Optional[str] = None,
        current_password: Union[Optional[str], NotGiven] = NOT_GIVEN,
        **options: Unpack[RequestOptions],
    ) -> types.User:
        """Change the user.

        Requires a session. A new password ends the user's other sessions.

        Args:
            name: The name of the user.
            password: A new password, of 12 to 128 characters.
            current_password: The present password. Required with a new one.
        """
        call = Call(
            "PATCH",
            "/v1/user",
            options,
            body={
                "name": name,
                "password": password,
                "current_password": current_password,
            },
            body_type=types.UpdateUserRequest,
        )
        return await self._http.json(types.User, call, "data")

    async def start_totp(
        self,
        *,
        password: str,
        **options: Unpack[RequestOptions],
    ) -> types.TotpEnrolment:
        """Begin a second factor.

        Requires a session. Makes the secret of an authenticator (TOTP). It has no effect until it is confirmed; a
        secret that was not confirmed is replaced.

        Args:
            password: The present password.
        """
        call = Call(
            "POST",
            "/v1/user/totp",
            options,
            body={
                "password": password,
            },
            body_type=types.StartTotpRequest,
        )
        return await self._http.json(types.TotpEnrolment, call, "data")

    async def confirm_totp(
        self,
        *,
        code: str,
        **options: Unpack[RequestOptions],
    ) -> types.RecoveryCodes:
        """Confirm a second factor.

        Requires a session. From now on a sign-in with the password requires a code. Only this response contains
        the recovery codes.

        Args:
            code: A code of the authenticator.
        """
        call = Call(
            "POST",
            "/v1/user/totp/confirm",
            options,
            body={
                "code": code,
            },
            body_type=types.ConfirmTotpRequest,
        )
        return await self._http.json(types.RecoveryCodes, call, "data")

    async def disable_totp(
        self,
        *,
        password: str,
        code: str,
        **options: Unpack[RequestOptions],
    ) -> types.User:
        """Remove the second factor.

        Requires a session.

        Args:
            password: The present password.
            code: A code of the authenticator, or a recovery code.
        """
        call = Call(
            "POST",
            "/v1/user/totp/disable",
            options,
            body={
                "password": password,
                "code": code,
            },
            body_type=types.DisableTotpRequest,
        )
        return await self._http.json(types.User, call, "data")


class Members:
    """The users of the organization and their roles."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def list(
        self,
        *,
        page: Optional[int] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        **options: Unpack[RequestOptions],
    ) -> Page[types.Member]:
        """List members.

        Requires the permission `MEMBERS_WRITE`. The newest member comes first.

        Args:
            page: The page number, from 1.
            limit: The number of items per page.
            cursor: The `next_cursor` of the page before, instead of `page`. The pages stay as they are while
                the list grows at its beginning.
        """
        call = Call(
            "GET",
            "/v1/members",
            options,
            query={
                "page": page,
                "limit": limit,
                "cursor": cursor,
            },
        )
        return self._http.pages(types.Member, call)

    def create(
        self,
        *,
        email: str,
        role: types.Role,
        **options: Unpack[RequestOptions],
    ) -> types.Member:
        """Add a member.

        Requires the permission `MEMBERS_WRITE` and every permission of the role. Makes somebody a member who is a
        user of this installation already; others are invited.

        Args:
            email: The address of the user.
            role: The role of the member. The caller must have each of its permissions.
        """
        call = Call(
            "POST",
            "/v1/members",
            options,
            body={
                "email": email,
                "role": role,
            },
            body_type=types.CreateMemberRequest,
            idempotent=True,
        )
        return self._http.json(types.Member, call, "data")

    def get(self, id: str, **options: Unpack[RequestOptions]) -> types.Member:
        """Get a member.

        Requires the permission `MEMBERS_WRITE`.

        Args:
            id: The id of the member.
        """
        call = Call("GET", "/v1/members/{id}", options, path={"id": id})
        return self._http.json(types.Member, call, "data")

    def update(
        self,
        id: str,
        *,
        role: Optional[types.Role] = None,
        **options: Unpack[RequestOptions],
    ) -> types.Member:
        """Change the role of a member.

        Requires the permission `MEMBERS_WRITE` and every permission of the old and of the new role. The last owner
        stays one. The change takes effect within five seconds.

        Args:
            id: The id of the member.
            role: The new role. The caller must have each of its permissions.
        """
        call = Call(
            "PATCH",
            "/v1/members/{id}",
            options,
            path={"id": id},
            body={
                "role": role,
            },
            body_type=types.UpdateMemberRequest,
        )
        return self._http.json(types.Member, call, "data")

    def delete(self, id: str, **options: Unpack[RequestOptions]) -> types.Success:
        """Remove a member.

        Requires the permission `MEMBERS_WRITE` and every permission of the member's role. The last owner cannot be
        removed. The sessions of the user in the organization end.

        Args:
            id: The id of the member.
        """
        call = Call("DELETE", "/v1/members/{id}", options, path={"id": id})
        return self._http.json(types.Success, call)


class AsyncMembers:
    """The users of the organization and their roles."""

    def __init__(self, http: AsyncHttp) -> None:
        self._http = http

    def list(
        self,
        *,
        page: Optional[int] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        **options: Unpack[RequestOptions],
    ) -> AsyncPages[types.Member]:
        """List members.

        Requires the permission `MEMBERS_WRITE`. The newest member comes first.

        Args:
            page: The page number, from 1.
            limit: The number of items per page.
            cursor: The `next_cursor` of the page before, instead of `page`. The pages stay as they are while
                the list grows at its beginning.
        """
        call = Call(
            "GET",
            "/v1/members",
            options,
            query={
                "page": page,
                "limit": limit,
                "cursor": cursor,
            },
        )
        return self._http.pages(types.Member, call)

    async def create(
        self,
        *,
        email: str,
        role: types.Role,
        **options: Unpack[RequestOptions],
    ) -> types.Member:
        """Add a member.

        Requires the permission `MEMBERS_WRITE` and every permission of the role. Makes somebody a member who is a
        user of this installation already; others are invited.

        Args:
            email: The address of the user.
            role: The role of the member. The caller must have each of its permissions.
        """
        call = Call(
            "POST",
            "/v1/members",
            options,
            body={
                "email": email,
                "role": role,
            },
            body_type=types.CreateMemberRequest,
            idempotent=True,
        )
        return await self._http.json(types.Member, call, "data")

    async def get(self, id: str, **options: Unpack[RequestOptions]) -> types.Member:
        """Get a member.

        Requires the permission `MEMBERS_WRITE`.

        Args:
            id: The id of the member.
        """
        call = Call("GET", "/v1/members/{id}", options, path={"id": id})
        return await self._http.json(types.Member, call, "data")

    async def update(
        self,
        id: str,
        *,
        role: Optional[types.Role] = None,
        **options: Unpack[RequestOptions],
    ) -> types.Member:
        """Change the role of a member.

        Requires the permission `MEMBERS_WRITE` and every permission of the old and of the new role. The last owner
        stays one. The change takes effect within five seconds.

        Args:
            id: The id of the member.
            role: The new role. The caller must have each of its permissions.
        """
        call = Call(
            "PATCH",
            "/v1/members/{id}",
            options,
            path={"id": id},
            body={
                "role": role,
            },
            body_type=types.UpdateMemberRequest,
        )
        return await self._http.json(types.Member, call, "data")

    async def delete(self, id: str, **options: Unpack[RequestOptions]) -> types.Success:
        """Remove a member.

        Requires the permission `MEMBERS_WRITE` and every permission of the member's role. The last owner cannot be
        removed. The sessions of the user in the organization end.

        Args:
            id: The id of the member.
        """
        call = Call("DELETE", "/v1/members/{id}", options, path={"id": id})
        return await self._http.json(types.Success, call)


class Invitations:
    """Links by which people become members of the organization."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def list(
        self,
        *,
        page: Optional[int] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        **options: Unpack[RequestOptions],
    ) -> Page[types.Invitation]:
        """List invitations.

        Requires the permission `MEMBERS_WRITE`. The newest invitation comes first. Those that are accepted or
        expired are not listed.

        Args:
            page: The page number, from 1.
            limit: The number of items per page.
            cursor: The `next_cursor` of the page before, instead of `page`. The pages stay as they are while
                the list grows at its beginning.
        """
        call = Call(
            "GET",
            "/v1/invitations",
            options,
            query={
                "page": page,
                "limit": limit,
                "cursor": cursor,
            },
        )
        return self._http.pages(types.Invitation, call)

    def create(
        self,
        *,
        email: str,
        role: types.Role,
        **options: Unpack[RequestOptions],
    ) -> types.InvitationWithUrl:
        """Invite somebody.

        Requires the permission `MEMBERS_WRITE` and every permission of the role. The link is sent to the address
        if the operator has set a sender for invitations and the organization can send from it.

        Args:
            email: The address of the person.
            role: The role that the person gets. The caller must have each of its permissions.
        """
        call = Call(
            "POST",
            "/v1/invitations",
            options,
            body={
                "email": email,
                "role": role,
            },
            body_type=types.CreateInvitationRequest,
            idempotent=True,
        )
        return self._http.json(types.InvitationWithUrl, call, "data")

    def get(self, id: str, **options: Unpack[RequestOptions]) -> types.Invitation:
        """Get an invitation.

        Requires the permission `MEMBERS_WRITE`.

        Args:
            id: The id of the invitation.
        """
        call = Call("GET", "/v1/invitations/{id}", options, path={"id": id})
        return self._http.json(types.Invitation, call, "data")

    def update(
        self,
        id: str,
        *,
        role: Optional[types.Role] = None,
        **options: Unpack[RequestOptions],
    ) -> types.Invitation:
        """Change the role of an invitation.

        Requires the permission `MEMBERS_WRITE` and every permission of the old and of the new role. The link stays
        the same.

        Args:
            id: The id of the invitation.
            role: The new role. The caller must have each of its permissions.
        """
        call = Call(
            "PATCH",
            "/v1/invitations/{id}",
            options,
            path={"id": id},
            body={
                "role": role,
            },
            body_type=types.UpdateInvitationRequest,
        )
        return self._http.json(types.Invitation, call, "data")

    def delete(self, id: str, **options: Unpack[RequestOptions]) -> types.Success:
        """Withdraw an invitation.

        Requires the permission `MEMBERS_WRITE` and every permission of the role. The link stops working.

        Args:
            id: The id of the invitation.
        """
        call = Call("DELETE", "/v1/invitations/{id}", options, path={"id": id})
        return self._http.json(types.Success, call)

    def look_up(
        self,
        *,
        token: str,
        **options: Unpack[RequestOptions],
    ) -> types.InvitationDetail:
        """Look up an invitation.

        Requires no API key and no session, and the header `X-Waypost-Csrf: 1`. Returns 404 if the link is unknown,
        used or expired.

        Args:
            token: The token in the link, after `#`.
        """
        call = Call(
            "POST",
            "/v1/invitations/look-up",
            options,
            body={
                "token": token,
            },
            body_type=types.LookUpInvitationRequest,
            repeatable=True,
        )
        return self._http.json(types.InvitationDetail, call, "data")

    def accept(
        self,
        *,
        token: str,
        name: Optional[str] = None,
        password: str,
        code: Optional[str] = None,
        **options: Unpack[RequestOptions],
    ) -> types.Session:
        """Accept an invitation.

        Requires no API key and no session, and the header `X-Waypost-Csrf: 1`. Makes the person a member, as a new
        user if there is none with the address, and sets the cookie of a new session.

        Args:
            token: The token in the link, after `#`.
            name: The name of a new user. The default is the part of the address before the `@`.
            password: The password that a new user gets, of 12 to 128 characters; or the present password of
                the user.
            code: The code of the second factor, or a recovery code. Required if the user has a second factor.
        """
        call = Call(
            "POST",
            "/v1/invitations/accept",
            options,
            body={
                "token": token,
                "name": name,
                "password": password,
                "code": code,
            },
            body_type=types.AcceptInvitationRequest,
        )
        return self._http.json(types.Session, call, "data")


class AsyncInvitations:
    """Links by which people become members of the organization."""

    def __init__(self, http: AsyncHttp) -> None:
        self._http = http

    def list(
        self,
        *,
        page: Optional[int] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        **options: Unpack[RequestOptions],
    ) -> AsyncPages[types.Invitation]:
        """List invitations.

        Requires the permission `MEMBERS_WRITE`. The newest invitation comes first. Those that are accepted or
        expired are not listed.

        Args:
            page: The page number, from 1.
            limit: The number of items per page.
            cursor: The `next_cursor` of the page before, instead of `page`. The pages stay as they are while
                the list grows at its beginning.
        """
        call = Call(
            "GET",
            "/v1/invitations",
            options,
            query={
                "page": page,
                "limit": limit,
                "cursor": cursor,
            },
        )
        return self._http.pages(types.Invitation, call)

    async def create(
        self,
        *,
        email: str,
        role: types.Role,
        **options: Unpack[RequestOptions],
    ) -> types.InvitationWithUrl:
        """Invite somebody.

        Requires the permission `MEMBERS_WRITE` and every permission of the role. The link is sent to the address
        if the operator has set a sender for invitations and the organization can send from it.

        Args:
            email: The address of the person.
            role: The role that the person gets. The caller must have each of its permissions.
        """
        call = Call(
            "POST",
            "/v1/invitations",
            options,
            body={
                "email": email,
                "role": role,
            },
            body_type=types.CreateInvitationRequest,
            idempotent=True,
        )
        return await self._http.json(types.InvitationWithUrl, call, "data")

    async def get(self, id: str, **options: Unpack[RequestOptions]) -> types.Invitation:
        """Get an invitation.

        Requires the permission `MEMBERS_WRITE`.

        Args:
            id: The id of the invitation.
        """
        call = Call("GET", "/v1/invitations/{id}", options, path={"id": id})
        return await self._http.json(types.Invitation, call, "data")

    async def update(
        self,
        id: str,
        *,
        role: Optional[types.Role] = None,
        **options: Unpack[RequestOptions],
    ) -> types.Invitation:
        """Change the role of an invitation.

        Requires the permission `MEMBERS_WRITE` and every permission of the old and of the new role. The link stays
        the same.

        Args:
            id: The id of the invitation.
            role: The new role. The caller must have each of its permissions.
        """
        call = Call(
            "PATCH",
            "/v1/invitations/{id}",
            options,
            path={"id": id},
            body={
                "role": role,
            },
            body_type=types.UpdateInvitationRequest,
        )
        return await self._http.json(types.Invitation, call, "data")

    async def delete(self, id: str, **options: Unpack[RequestOptions]) -> types.Success:
        """Withdraw an invitation.

        Requires the permission `MEMBERS_WRITE` and every permission of the role. The link stops working.

        Args:
            id: The id of the invitation.
        """
        call = Call("DELETE", "/v1/invitations/{id}", options, path={"id": id})
        return await self._http.json(types.Success, call)

    async def look_up(
        self,
        *,
        token: str,
        **options: Unpack[RequestOptions],
    ) -> types.InvitationDetail:
        """Look up an invitation.

        Requires no API key and no session, and the header `X-Waypost-Csrf: 1`. Returns 404 if the link is unknown,
        used or expired.

        Args:
            token: The token in the link, after `#`.
        """
        call = Call(
            "POST",
            "/v1/invitations/look-up",
            options,
            body={
                "token": token,
            },
            body_type=types.LookUpInvitationRequest,
            repeatable=True,
        )
        return await self._http.json(types.InvitationDetail, call, "data")

    async def accept(
        self,
        *,
        token: str,
        name: Optional[str] = None,
        password: str,
        code: Optional[str] = None,
        **options: Unpack[RequestOptions],
    ) -> types.Session:
        """Accept an invitation.

        Requires no API key and no session, and the header `X-Waypost-Csrf: 1`. Makes the person a member, as a new
        user if there is none with the address, and sets the cookie of a new session.

        Args:
            token: The token in the link, after `#`.
            name: The name of a new user. The default is the part of the address before the `@`.
            password: The password that a new user gets, of 12 to 128 characters; or the present password of
                the user.
            code: The code of the second factor, or a recovery code. Required if the user has a second factor.
        """
        call = Call(
            "POST",
            "/v1/invitations/accept",
            options,
            body={
                "token": token,
                "name": name,
                "password": password,
                "code": code,
            },
            body_type=types.AcceptInvitationRequest,
        )
        return await self._http.json(types.Session, call, "data")


class PasswordResets:
    """Links by which users set a new password."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def look_up(
        self,
        *,
        token: str,
        **options: Unpack[RequestOptions],
    ) -> types.PasswordResetDetail:
        """Look up a link that sets a password.

        Requires no API key and no session, and the header `X-Waypost-Csrf: 1`. Returns 404 if the link is unknown,
        used or expired.

        Args:
            token: The token in the link, after `#`.
        """
        call = Call(
            "POST",
            "/v1/password-resets/look-up",
            options,
            body={
                "token": token,
            },
            body_type=types.LookUpPasswordResetRequest,
            repeatable=True,
        )
        return self._http.json(types.PasswordResetDetail, call, "data")

    def accept(
        self,
        *,
        token: str,
        password: str,
        **options: Unpack[RequestOptions],
    ) -> types.Success:
        """Set a password by a link.

        Requires no API key and no session, and the header `X-Waypost-Csrf: 1`. Ends all sessions of the user, who
        then signs in with the new password. The second factor stays.

        Args:
            token: The token in the link, after `#`.
            password: The new password, of 12 to 128 characters.
        """
        call = Call(
            "POST",
            "/v1/password-resets/accept",
            options,
            body={
                "token": token,
                "password": password,
            },
            body_type=types.AcceptPasswordResetRequest,
        )
        return self._http.json(types.Success, call)


class AsyncPasswordResets:
    """Links by which users set a new password."""

    def __init__(self, http: AsyncHttp) -> None:
        self._http = http

    async def look_up(
        self,
        *,
        token: str,
        **options: Unpack[RequestOptions],
    ) -> types.PasswordResetDetail:
        """Look up a link that sets a password.

        Requires no API key and no session, and the header `X-Waypost-Csrf: 1`. Returns 404 if the link is unknown,
        used or expired.

        Args:
            token: The token in the link, after `#`.
        """
        call = Call(
            "POST",
            "/v1/password-resets/look-up",
            options,
            body={
                "token": token,
            },
            body_type=types.LookUpPasswordResetRequest,
            repeatable=True,
        )
        return await self._http.json(types.PasswordResetDetail, call, "data")

    async def accept(
        self,
        *,
        token: str,
        password: str,
        **options: Unpack[RequestOptions],
    ) -> types.Success:
        """Set a password by a link.

        Requires no API key and no session, and the header `X-Waypost-Csrf: 1`. Ends all sessions of the user, who
        then signs in with the new password. The second factor stays.

        Args:
            token: The token in the link, after `#`.
            password: The new password, of 12 to 128 characters.
        """
        call = Call(
            "POST",
            "/v1/password-resets/accept",
            options,
            body={
                "token": token,
                "password": password,
            },
            body_type=types.AcceptPasswordResetRequest,
        )
        return await self._http.json(types.Success, call)


class Operator:
    """What belongs to the installation: tasks, workers, queues and dead jobs."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def list_tasks(self, **options: Unpack[RequestOptions]) -> Page[types.SchedulerTask]:
        """List the scheduler's tasks.

        Requires the permission `OPERATOR`, which only sessions of operators have. Each task is listed with its
        last run.
        """
        call = Call("GET", "/v1/operator/tasks", options)
        return self._http.pages(types.SchedulerTask, call)

    def list_workers(self, **options: Unpack[RequestOptions]) -> Page[types.Worker]:
        """List the workers.

        Requires the permission `OPERATOR`, which only sessions of operators have. Each worker is listed with its
        lease and the number of its chunks.
        """
        call = Call("GET", "/v1/operator/workers", options)
        return self._http.pages(types.Worker, call)

    def list_queues(self, **options: Unpack[RequestOptions]) -> Page[types.JobQueue]:
        """List the queues.

        Requires the permission `OPERATOR`, which only sessions of operators have. Returns 503 if Redis is away.
        """
        call = Call("GET", "/v1/operator/queues", options)
        return self._http.pages(types.JobQueue, call)

    def list_dead_jobs(self, **options: Unpack[RequestOptions]) -> Page[types.DeadJob]:
        """List the dead jobs.

        Requires the permission `OPERATOR`, which only sessions of operators have. Lists up to 1,000 chunks of
        messages that no worker takes any more.
        """
        call = Call("GET", "/v1/operator/dead-jobs", options)
        return self._http.pages(types.DeadJob, call)

    def retry_dead_jobs(self, id: str, **options: Unpack[RequestOptions]) -> types.RetriedDeadJobs:
        """Retry the dead jobs of a message.

        Requires the permission `OPERATOR`, which only sessions of operators have. The jobs are due again, and lost
        workers are counted from 0.

        Args:
            id: The id of the message.
        """
        call = Call("POST", "/v1/operator/dead-jobs/{id}/retry", options, path={"id": id})
        return self._http.json(types.RetriedDeadJobs, call, "data")

    def delete_dead_jobs(self, id: str, **options: Unpack[RequestOptions]) -> types.Success:
        """Drop the dead jobs of a message.

        Requires the permission `OPERATOR`, which only sessions of operators have. Recipients that the message was
        not sent to become FAILED.

        Args:
            id: The id of the message.
        """
        call = Call("DELETE", "/v1/operator/dead-jobs/{id}", options, path={"id": id})
        return self._http.json(types.Success, call)


class AsyncOperator:
    """What belongs to the installation: tasks, workers, queues and dead jobs."""

    def __init__(self, http: AsyncHttp) -> None:
        self._http = http

    def list_tasks(self, **options: Unpack[RequestOptions]) -> AsyncPages[types.SchedulerTask]:
        """List the scheduler's tasks.

        Requires the permission `OPERATOR`, which only sessions of operators have. Each task is listed with its
        last run.
        """
        call = Call("GET", "/v1/operator/tasks", options)
        return self._http.pages(types.SchedulerTask, call)

    def list_workers(self, **options: Unpack[RequestOptions]) -> AsyncPages[types.Worker]:
        """List the workers.

        Requires the permission `OPERATOR`, which only sessions of operators have. Each worker is listed with its
        lease and the number of its chunks.
        """
        call = Call("GET", "/v1/operator/workers", options)
        return self._http.pages(types.Worker, call)

    def list_queues(self, **options: Unpack[RequestOptions]) -> AsyncPages[types.JobQueue]:
        """List the queues.

        Requires the permission `OPERATOR`, which only sessions of operators have. Returns 503 if Redis is away.
        """
        call = Call("GET", "/v1/operator/queues", options)
        return self._http.pages(types.JobQueue, call)

    def list_dead_jobs(self, **options: Unpack[RequestOptions]) -> AsyncPages[types.DeadJob]:
        """List the dead jobs.

        Requires the permission `OPERATOR`, which only sessions of operators have. Lists up to 1,000 chunks of
        messages that no worker takes any more.
        """
        call = Call("GET", "/v1/operator/dead-jobs", options)
        return self._http.pages(types.DeadJob, call)

    async def retry_dead_jobs(self, id: str, **options: Unpack[RequestOptions]) -> types.RetriedDeadJobs:
        """Retry the dead jobs of a message.

        Requires the permission `OPERATOR`, which only sessions of operators have. The jobs are due again, and lost
        workers are counted from 0.

        Args:
            id: The id of the message.
        """
        call = Call("POST", "/v1/operator/dead-jobs/{id}/retry", options, path={"id": id})
        return await self._http.json(types.RetriedDeadJobs, call, "data")

    async def delete_dead_jobs(self, id: str, **options: Unpack[RequestOptions]) -> types.Success:
        """Drop the dead jobs of a message.

        Requires the permission `OPERATOR`, which only sessions of operators have. Recipients that the message was
        not sent to become FAILED.

        Args:
            id: The id of the message.
        """
        call = Call("DELETE", "/v1/operator/dead-jobs/{id}", options, path={"id": id})
        return await self._http.json(types.Success, call)
