/** What the tasks of the scheduler do, in words. */
export const TASKS: Record<string, readonly [label: string, what: string]> = {
  partitions: ["Prepare months", "Creates the tables of the next months."],
  reap: ["Take over from dead workers", "Gives the jobs of workers that died to others."],
  "reap-unregistered": ["Take over from unknown workers", "Gives the jobs of workers that never registered to others."],
  relay: ["Queue lost jobs", "Pushes jobs that are missing from Redis."],
  scheduled: ["Queue scheduled messages", "Pushes scheduled messages that are due."],
  "report-tests": ["Report tests", "Records the events of messages sent with test keys."],
  expire: ["End late messages", "Fails what could not be sent in time."],
  "delete-keys": ["Delete idempotency keys", "Deletes keys that have expired."],
  "relay-webhooks": ["Queue webhook deliveries", "Tells workers about deliveries that are due."],
  "delete-webhooks": ["Delete webhook deliveries", "Deletes the deliveries of deleted endpoints."],
  "delete-sessions": ["Delete sessions", "Deletes sessions and links that have ended."],
  domains: ["Check domains", "Asks providers whether domains are verified."],
  "look-up": ["Look up lost answers", "Asks providers about messages whose answer was lost."],
  "roll-up": ["Add up metrics", "Adds up metrics and message counts."],
  "drop-months": ["Drop old months", "Deletes whole months after the retention period."],
  "delete-expired": ["Delete old messages", "Deletes messages after an organization's own retention period."],
};
