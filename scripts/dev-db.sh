#!/usr/bin/env bash
# make dev-db: the PostgreSQL and Redis of `make up`, without the service. Prints the lines to evaluate:
#
#   eval "$(make -s dev-db)"
#
# The database is `waypost_dev`, made anew from migrations/*.sql whenever these changed: it is there to compile
# against (sqlx checks queries against it) and to look into. `make up` keeps its own, `waypost`, and migrates it itself.
set -euo pipefail
# shellcheck source=servers.sh
. "$(dirname "$0")/servers.sh"

readonly DATABASE=waypost_dev

migrations_digest() { (shopt -s nullglob && cat /dev/null "$ROOT"/migrations/*.sql | sha256); }

main() {
    local digest
    unset DATABASE_URL REDIS_URL # a private pair is the whole purpose
    state_open
    stop_on_failure
    start_development_servers
    lock_servers # two of these must not make the database at the same time
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
