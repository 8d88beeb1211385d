/** The page of a record, if it has one of its own. */
export function targetPlace(type: string, id: string): string | undefined {
  switch (type) {
    case "api_key":
      return "/api-keys";
    case "member":
    case "invitation":
      return "/people";
    case "message":
      return `/messages/${id}`;
    case "provider":
      return `/providers/${id}`;
    case "routing_rule":
      return "/routing";
    case "settings":
      return "/settings";
    case "template":
      return `/templates/${id}`;
    case "unsubscribe_group":
      return "/unsubscribe-groups";
    case "webhook_endpoint":
      return `/webhooks/${id}`;
    default:
      return undefined;
  }
}
