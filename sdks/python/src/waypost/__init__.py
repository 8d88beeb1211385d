"""The client of Waypost, the self-hosted email delivery service."""

from . import types as types
from . import webhooks as webhooks
from ._generated.client import AsyncWaypost as AsyncWaypost
from ._generated.client import Waypost as Waypost
from ._generated.errors import *  # noqa: F403
from ._generated.version import VERSION as VERSION
from ._runtime.errors import APIConnectionError as APIConnectionError
from ._runtime.errors import APITimeoutError as APITimeoutError
from ._runtime.errors import RateLimit as RateLimit
from ._runtime.errors import WaypostError as WaypostError
from ._runtime.errors import WebhookVerificationError as WebhookVerificationError
from ._runtime.http import RequestOptions as RequestOptions
from ._runtime.model import NOT_GIVEN as NOT_GIVEN
from ._runtime.model import NotGiven as NotGiven
from ._runtime.pages import AsyncPage as AsyncPage
from ._runtime.pages import AsyncPages as AsyncPages
from ._runtime.pages import Page as Page
