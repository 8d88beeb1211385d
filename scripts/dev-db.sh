#!/usr/bin/env bash
# make dev-db: starts the PostgreSQL and Redis of `make up` without the service. Prints shell commands:
#
#   eval "$(make -s dev-db)"
#
# The database is `waypost_dev`. It is recreated from migrations/*.sql whenever these change. Use it to compile against
# (sqlx checks the queries) and to inspect the schema. `make up` has a database of its own, `waypost`.
set -euo pipefail
# shellcheck source=servers.sh
. "$(dirname "$0")/servers.sh"

readonly DATABASE=waypost_dev

migrations_digest() { (shopt -s nullglob && cat /dev/null "$ROOT"/migrations/*.sql | sha256); }

main() {
    local digest
    unset DATABASE_URL REDIS_URL # always use private servers
    state_open
    stop_on_failure
    start_development_servers
    lock_servers # only one script may create the database at a time
    digest=$(migrations_digest)
    if [[ $(database_digest) != "$digest" ]]; then
        step "Creating $DATABASE from migrations/*.sql" apply_migrations "$DATABASE"
        private_psql postgres -qc "COMMENT ON DATABASE $DATABASE IS '$digest'"
    fi
    printf 'export DATABASE_URL=%s\n' "$(private_postgres_url "$DATABASE")"
    printf 'export REDIS_URL=%s\n' "$REDIS_URL"
}

database_digest() {
    private_psql postgres -Atc "SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = '$DATABASE'"
}

main
