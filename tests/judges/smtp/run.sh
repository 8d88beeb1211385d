#!/usr/bin/env bash
# Sends Waypost's messages over SMTP to two strict servers, Postfix and aiosmtpd, and parses them with two libraries,
# Python's email package and mailparser: the parsed message must equal the one given to the API. Called by
# scripts/judges.sh.
#
# Postfix is installed with apt-get if it is missing, and runs as a separate instance. Its master process requires root:
# without root and sudo, only aiosmtpd is used, and a line says so.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=../../../scripts/servers.sh
. "$here/../../../scripts/servers.sh"
# shellcheck source=../install.sh
. "$here/../install.sh"

main() {
    install_once requirements.txt install_python
    install_once package-lock.json install_node
    postfix_dir=
    trap stop_postfix EXIT
    if [[ $(id -u) == 0 ]] || { have sudo && sudo -n true 2>/dev/null; }; then
        start_postfix
        export POSTFIX_PORT=$postfix_port POSTFIX_MAIL=$postfix_dir/mail
    else
        warn "Postfix is not used: it needs root, or sudo without a password"
    fi
    export NO_PROXY=127.0.0.1 no_proxy=127.0.0.1 # All servers are on this machine.
    export PYTHONDONTWRITEBYTECODE=1
    NODE_PATH=$JUDGE_HOME/node_modules "$JUDGE_HOME/venv/bin/python" "$here/judge.py"
}

as_root() { if [[ $(id -u) == 0 ]]; then "$@"; else sudo -n "$@"; fi; }

# start_postfix : sets postfix_dir and postfix_port. Postfix's own users must be able to read its directory.
start_postfix() {
    [[ -x /usr/sbin/postfix ]] || STATE=$JUDGE_SCRATCH install_postfix
    postfix_port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    postfix_dir=$(mktemp -d /var/tmp/waypost-judge-XXXXXXXX)
    chmod 755 "$postfix_dir"
    mkdir "$postfix_dir"/{etc,queue,data,mail}
    cp "${WAYPOST_SMTP_CA_FILE%.crt}".{crt,key} "$postfix_dir/etc"
    cp /usr/share/postfix/master.cf.dist "$postfix_dir/etc/master.cf"
    settings >"$postfix_dir/etc/main.cf"
    as_root chown -R root "$postfix_dir/etc" "$postfix_dir/queue"
    as_root chown postfix "$postfix_dir/data"
    as_root chown nobody "$postfix_dir/mail"
    as_root postconf -c "$postfix_dir/etc" -F '*/*/chroot=n'
    as_root postconf -c "$postfix_dir/etc" -MX smtp/inet
    as_root postconf -c "$postfix_dir/etc" -Me "127.0.0.1:$postfix_port/inet=127.0.0.1:$postfix_port inet n - n - - smtpd"
    as_root postfix -c "$postfix_dir/etc" start || die "Postfix did not start; it says why in $postfix_dir/data/log"
}

install_postfix() {
    mkdir -p "$STATE/log"
    install_packages Postfix postfix postfix postfix
}

# Every address at every domain has a mailbox. Postfix rejects every malformed message that it can reject, and accepts an
# address as it is written; by default it rewrites "a@b" and a%b to be safe.
settings() {
    cat <<END
compatibility_level = 3.6
queue_directory = $postfix_dir/queue
data_directory = $postfix_dir/data
maillog_file = $postfix_dir/data/log
maillog_file_prefixes = $postfix_dir
mail_owner = postfix
setgid_group = postdrop
myhostname = postfix.judge.example
mydestination =
mynetworks =
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
smtpd_relay_restrictions = permit_auth_destination, reject
virtual_mailbox_domains = static:all
virtual_mailbox_base = $postfix_dir/mail
virtual_mailbox_maps = static:all/
virtual_uid_maps = static:$(id -u nobody)
virtual_gid_maps = static:$(id -g nobody)
virtual_minimum_uid = 1
resolve_dequoted_address = no
allow_untrusted_routing = yes
allow_percent_hack = no
swap_bangpath = no
recipient_delimiter =
smtpd_tls_cert_file = $postfix_dir/etc/$(basename "$WAYPOST_SMTP_CA_FILE")
smtpd_tls_key_file = $postfix_dir/etc/$(basename "${WAYPOST_SMTP_CA_FILE%.crt}.key")
smtpd_tls_security_level = encrypt
smtpd_helo_required = yes
smtpd_data_restrictions = reject_unauth_pipelining
smtpd_forbid_bare_newline = reject
strict_rfc821_envelopes = yes
strict_8bitmime = yes
strict_8bitmime_body = yes
strict_mime_encoding_domain = yes
END
}

stop_postfix() {
    [[ -n $postfix_dir ]] || return 0
    as_root postfix -c "$postfix_dir/etc" stop 2>/dev/null || true
    as_root rm -rf -- "$postfix_dir"
}

main
