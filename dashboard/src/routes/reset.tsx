import { createFileRoute } from "@tanstack/react-router";
import { Reset } from "@/pages/sign-in/reset";

export const Route = createFileRoute("/reset")({ component: Reset });
