#!/usr/bin/env bash
# Sends mails through waypost-smtp with clients of seven languages and mail servers, and compares what arrives with what was
# given: Python's smtplib, nodemailer, Go's net/smtp, Jakarta Mail with Keycloak's settings, Ruby's mail with GitLab's, swaks,
# msmtp, and a Postfix whose relayhost is Waypost; each over STARTTLS and over TLS from the first byte. Clients that die or
# mean harm follow: see crash.py and hostile.py. Called by scripts/judges.sh.
#
# Missing clients are installed with apt-get. Postfix's master process requires root: without root and sudo it is left out,
# and a line says so. PARTS="clients crash hostile" selects parts; default: all.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=../../../scripts/servers.sh
. "$here/../../../scripts/servers.sh"
# shellcheck source=../install.sh
. "$here/../install.sh"

main() {
    install_once requirements.txt install_python
    install_once package-lock.json install_node
    install_clients
    export GOCACHE=$JUDGE_HOME/go-cache GOFLAGS=-mod=mod GO111MODULE=off
    postfix_dir=
    trap stop_postfix EXIT
    if [[ $(id -u) == 0 ]] || { have sudo && sudo -n true 2>/dev/null; }; then
        start_postfix
        export POSTFIX_PORT=$postfix_port POSTFIX_LOG=$postfix_dir/data/log
        export SUBMISSION_PORT=$submission_port SUBMISSION_TLS_PORT=$submission_tls_port
    else
        warn "Postfix is not used: it needs root, or sudo without a password"
    fi
    export NO_PROXY=127.0.0.1 no_proxy=127.0.0.1 # All servers are on this machine.
    export PYTHONDONTWRITEBYTECODE=1
    local -a parts=()
    read -ra parts <<<"${PARTS:-}"
    NODE_PATH=$JUDGE_HOME/node_modules "$JUDGE_HOME/venv/bin/python" "$here/judge.py" ${parts[@]+"${parts[@]}"}
}

install_clients() {
    local -a packages=()
    have swaks || packages+=(swaks)
    perl -MNet::SSLeay -e 1 2>/dev/null || packages+=(libnet-ssleay-perl)
    have msmtp || packages+=(msmtp)
    have go || packages+=(golang-go)
    have javac || packages+=(default-jdk-headless)
    [[ -e /usr/share/java/jakarta-mail.jar ]] || packages+=(libjakarta-mail-java)
    ruby -rmail -e 1 2>/dev/null || packages+=(ruby-mail)
    [[ -x /usr/sbin/postfix ]] || packages+=(postfix)
    ((${#packages[@]})) || return 0
    STATE=$JUDGE_SCRATCH
    mkdir -p "$STATE/log"
    install_packages "SMTP clients" "${packages[*]}" 'swaks perl-Net-SSLeay msmtp golang java-devel rubygem-mail postfix' \
        'swaks msmtp go openjdk postfix'
}

as_root() { if [[ $(id -u) == 0 ]]; then "$@"; else sudo -n "$@"; fi; }

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# start_postfix : starts a Postfix that sends all mail to Waypost. Sets postfix_dir, postfix_port, and the ports on which
# waypost-smtp must listen. Postfix's own users must be able to read its directory.
start_postfix() {
    postfix_port=$(free_port)
    submission_port=$(free_port)
    submission_tls_port=$(free_port)
    postfix_dir=$(mktemp -d /var/tmp/waypost-judge-XXXXXXXX)
    chmod 755 "$postfix_dir"
    mkdir "$postfix_dir"/{etc,queue,data}
    cp "$WAYPOST_SMTP_CA_FILE" "$postfix_dir/etc/waypost.crt"
    cp /usr/share/postfix/master.cf.dist "$postfix_dir/etc/master.cf"
    settings >"$postfix_dir/etc/main.cf"
    as_root chown -R root "$postfix_dir/etc" "$postfix_dir/queue"
    as_root chown postfix "$postfix_dir/data"
    as_root postconf -c "$postfix_dir/etc" -F '*/*/chroot=n'
    as_root postconf -c "$postfix_dir/etc" -MX smtp/inet
    as_root postconf -c "$postfix_dir/etc" -Me "127.0.0.1:$postfix_port/inet=127.0.0.1:$postfix_port inet n - n - - smtpd"
    as_root postconf -c "$postfix_dir/etc" -Me 'wrapped/unix=wrapped unix - - n - - smtp -o smtp_tls_wrappermode=yes'
    as_root postfix -c "$postfix_dir/etc" start || die "Postfix did not start; it says why in $postfix_dir/data/log"
}

# The settings of docs/smtp.md, with a sender whose mail goes over TLS from the first byte. Waypost's certificate is trusted
# and its name checked. A mail that is refused is not returned: the judge reads the log.
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
mynetworks = 127.0.0.0/8
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
relayhost = [127.0.0.1]:$submission_port
sender_dependent_default_transport_maps = inline:{ tls@judge.example=wrapped:[127.0.0.1]:$submission_tls_port }
smtp_sasl_auth_enable = yes
smtp_sasl_password_maps = static:waypost:$WAYPOST_API_KEY
smtp_sasl_security_options = noanonymous
smtp_tls_security_level = secure
smtp_tls_secure_cert_match = 127.0.0.1
smtp_tls_CAfile = $postfix_dir/etc/waypost.crt
notify_classes =
soft_bounce = no
END
}

stop_postfix() {
    [[ -n $postfix_dir ]] || return 0
    as_root postfix -c "$postfix_dir/etc" stop 2>/dev/null || true
    as_root rm -rf -- "$postfix_dir"
}

main
