import { createFileRoute } from "@tanstack/react-router";
import { ProvidersPage } from "@/pages/providers/list";

export const Route = createFileRoute("/_app/providers/")({ component: ProvidersPage });
