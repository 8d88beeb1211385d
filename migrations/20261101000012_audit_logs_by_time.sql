-- The audit log is read newest first, by time, by action and by target.

CREATE INDEX audit_logs_time_idx ON audit_logs (organization_id, occurred_at DESC, id DESC);
CREATE INDEX audit_logs_action_idx ON audit_logs (organization_id, action, occurred_at DESC, id DESC);
CREATE INDEX audit_logs_target_idx ON audit_logs (organization_id, target_id, occurred_at DESC, id DESC);
DROP INDEX audit_logs_organization_idx;
