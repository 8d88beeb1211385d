import os

DEBUG = True
SECRET_KEY = "for development only"
ALLOWED_HOSTS = ["127.0.0.1", "localhost"]
ROOT_URLCONF = "shop.urls"
MIDDLEWARE = [
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
]

WAYPOST_WEBHOOK_SECRET = os.environ.get("WAYPOST_WEBHOOK_SECRET", "")
