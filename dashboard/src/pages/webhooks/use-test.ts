import { useMutation } from "@tanstack/react-query";
import { toast } from "sonner";
import { errorText, waypost } from "@/api";

/** Posts an example event to an endpoint, and says what it answered. */
export function useTest(id: string) {
  return useMutation({
    mutationFn: () => waypost.webhookEndpoints.test(id),
    onSuccess: ({ success, statusCode, responseTime }) => {
      if (success) toast.success(`The endpoint answered ${statusCode} after ${responseTime}`);
      else if (statusCode === 0) toast.error(`The endpoint did not answer (${responseTime}). Does the server run, and is the URL right?`);
      else toast.error(`The endpoint answered ${statusCode} after ${responseTime}. Any status from 200 to 299 would be right`);
    },
    onError: (error) => toast.error(errorText(error)),
  });
}
