import { createFileRoute } from "@tanstack/react-router";
import { Invitation } from "@/pages/sign-in/invitation";

export const Route = createFileRoute("/welcome")({ component: Invitation });
