import { createFileRoute } from "@tanstack/react-router";
import { NewRulePage } from "@/pages/routing/rule-page";

export const Route = createFileRoute("/_app/routing/new")({ component: NewRulePage });
