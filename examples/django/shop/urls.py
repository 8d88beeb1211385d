from django.urls import path

from . import views

urlpatterns = [
    path("sign-up", views.sign_up),
    path("users/<str:id>", views.get_user),
    path("webhooks/waypost", views.receive_webhook),
]
