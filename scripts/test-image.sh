#!/usr/bin/env bash
# test-image.sh IMAGE SIMULATOR_IMAGE : starts deploy/compose/compose.yml with these images and simulated providers, and
# sends a mail. Checks that it was delivered, that all programs are healthy and run without rights, and that the image is
# small. Needs a container engine. The release workflow calls it before it publishes an image.
set -euo pipefail
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

readonly IMAGE_BYTES_MAX=40000000 # compressed, as registries count it
readonly READY_SECONDS_MAX=180
readonly DELIVERED_SECONDS_MAX=60
readonly PROJECT=waypost-image-test
readonly WAYPOST_PORT=${WAYPOST_PORT:-8080}
readonly URL=http://127.0.0.1:$WAYPOST_PORT

main() {
    [[ $# == 2 ]] || die "usage: test-image.sh IMAGE SIMULATOR_IMAGE"
    require_python
    export WAYPOST_IMAGE=$1 WAYPOST_SIMULATOR_IMAGE=$2 WAYPOST_PORT
    export WAYPOST_ENV=development WAYPOST_PUBLIC_URL=http://waypost.localhost:8080
    export WAYPOST_PROVIDER_BASE_URL=http://simulator:8090
    POSTGRES_PASSWORD=$(random_hex 24)
    WAYPOST_ENCRYPTION_KEYS=1:$(head -c 32 /dev/urandom | base64)
    export POSTGRES_PASSWORD WAYPOST_ENCRYPTION_KEYS
    step "Checking the size" check_size "$1"
    trap 'close $?' EXIT
    step "Starting the composition" compose up --detach --scale worker=2
    step "Waiting until it is ready" await_ready
    step "Checking the programs' rights and health" check_containers
    step "Sending a mail" send_mail
}

compose() {
    docker compose --project-name "$PROJECT" --file "$ROOT/deploy/compose/compose.yml" --env-file /dev/null \
        --profile simulator "$@"
}

close() {
    [[ $1 == 0 ]] || compose logs --no-color --tail 50 >&2 || true
    compose down --volumes --timeout 5 >&2
}

check_size() {
    local bytes
    bytes=$(docker image save "$1" | gzip -6 | wc -c)
    say "    $1: $bytes bytes compressed"
    ((bytes <= IMAGE_BYTES_MAX)) || die "the image is larger than $IMAGE_BYTES_MAX bytes"
}

await_ready() {
    local deadline answer=''
    deadline=$(($(now_ms) + READY_SECONDS_MAX * 1000))
    while (($(now_ms) < deadline)); do
        answer=$(python3 "$ROOT/scripts/request.py" GET "$URL/readyz" || true)
        [[ ${answer%%$'\n'*} != 200 ]] || return 0
        sleep 0.5
    done
    die "not ready within $READY_SECONDS_MAX s; $URL/readyz last answered: ${answer:-nothing}"
}

check_containers() {
    local service container found
    for service in api worker scheduler; do
        for container in $(compose ps --quiet "$service"); do
            found=$(docker inspect --format '{{.Config.User}} {{.HostConfig.ReadonlyRootfs}}' "$container")
            [[ $found == '10001:10001 true' ]] || die "the $service runs as user, with a read-only root: $found"
        done
        compose exec -T "$service" waypost-api healthcheck || die "the $service is not healthy"
    done
    compose exec -T api waypost-api doctor >&2
}

# api METHOD PATH [BODY] : sets STATUS and ANSWER.
api() {
    local reply
    reply=$(API_KEY=$KEY python3 "$ROOT/scripts/request.py" "$1" "$URL$2" "${@:3}") || die "no answer from $1 $2"
    STATUS=${reply%%$'\n'*}
    ANSWER=${reply#*$'\n'}
}

# field NAME : prints a field of ANSWER, which is an object or has one in `data`.
field() {
    python3 -c 'import json, sys
answer = json.loads(sys.argv[1])
print(answer.get("data", answer)[sys.argv[2]])' "$ANSWER" "$1"
}

send_mail() {
    local organization message deadline
    organization=$(compose exec -T api waypost-api create-organization --name Test)
    KEY=$(compose exec -T api waypost-api create-api-key --organization "${organization%$'\r'}" --name test)
    KEY=${KEY%$'\r'}
    api POST /v1/providers '{"providerType":"SENDGRID","displayName":"Simulated SendGrid","credentials":{"apiKey":"SG.simulated"}}'
    [[ $STATUS == 201 ]] || die "connecting the provider account answered $STATUS: $ANSWER"
    api POST /v1/send '{"from":"hello@example.com","to":"you@example.org","subject":"Hello","text":"It works."}'
    [[ $STATUS == 202 ]] || die "the send was answered $STATUS: $ANSWER"
    message=$(field messageId)
    deadline=$(($(now_ms) + DELIVERED_SECONDS_MAX * 1000))
    while (($(now_ms) < deadline)); do
        api GET "/v1/messages/$message"
        # DELIVERED is what the simulator reported to the public URL.
        if [[ $STATUS == 200 && $(field status) == DELIVERED ]]; then
            say "    delivered"
            return 0
        fi
        sleep 0.5
    done
    die "the mail was not delivered within $DELIVERED_SECONDS_MAX s: $ANSWER"
}

main "$@"
