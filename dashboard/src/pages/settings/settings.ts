import { queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { toast } from "sonner";
import type { Settings, UpdateSettingsRequest } from "waypost";
import { waypost } from "@/api";

export const settingsQuery = queryOptions({
  queryKey: ["settings"],
  queryFn: (): Promise<Settings> => waypost.settings.get(),
});

/** Saves some of the settings. `changes` reads the form, and throws issues of fields that cannot be read. */
export function useSaveSettings(changes: () => UpdateSettingsRequest) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: async () => await waypost.settings.update(changes()),
    onSuccess: (settings) => {
      client.setQueryData(settingsQuery.queryKey, settings);
      toast.success("Settings saved");
    },
  });
}
