import { useQuery } from "@tanstack/react-query";
import { waypost } from "@/api";

export const OPERATOR = ["operator"] as const;

/** How often the page looks again. */
const EVERY_MS = 5_000;

export const useTasks = () =>
  useQuery({ queryKey: [...OPERATOR, "tasks"], queryFn: async () => (await waypost.operator.listTasks()).data, refetchInterval: EVERY_MS });

export const useWorkers = () =>
  useQuery({ queryKey: [...OPERATOR, "workers"], queryFn: async () => (await waypost.operator.listWorkers()).data, refetchInterval: EVERY_MS });

export const useQueues = () =>
  useQuery({ queryKey: [...OPERATOR, "queues"], queryFn: async () => (await waypost.operator.listQueues()).data, refetchInterval: EVERY_MS });

export const useDeadJobs = () =>
  useQuery({ queryKey: [...OPERATOR, "dead-jobs"], queryFn: async () => (await waypost.operator.listDeadJobs()).data, refetchInterval: EVERY_MS });
