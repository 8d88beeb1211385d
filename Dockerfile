# Images from one build:
#   docker build .                      Waypost: waypost-api, waypost-worker, waypost-scheduler, waypost-smtp (the
#                                       default, last stage)
#   docker build --target simulator .   the simulated providers, for trying things out
#   docker build --target binaries --output DIRECTORY .   the programs as files

FROM rust:1.95-bookworm AS build
WORKDIR /src
# Writes the list of crates into each program, where SBOM generators and scanners of images read it (a few KB).
RUN cargo install cargo-auditable --version 0.7.7 --locked
# The queries are checked against the committed descriptions: there is no database here. Names of functions are left out
# of the programs: a twentieth of the image. A panic still tells its file and line.
ENV SQLX_OFFLINE=true CARGO_TERM_COLOR=never CARGO_PROFILE_RELEASE_STRIP=symbols

# Dependencies first, from the manifests alone, so that a change to our code does not compile them again. cargo wants a
# source file for every target; empty ones do, and are removed again so that none is left beside the real ones.
COPY Cargo.toml Cargo.lock ./
COPY core/Cargo.toml core/
COPY api/Cargo.toml api/
COPY worker/Cargo.toml worker/
COPY scheduler/Cargo.toml scheduler/
COPY tests/Cargo.toml tests/
COPY simulator/Cargo.toml simulator/
COPY bench/Cargo.toml bench/
COPY chaos/Cargo.toml chaos/
COPY sdks/generator/Cargo.toml sdks/generator/
COPY deploy/image/Cargo.toml deploy/image/
RUN for crate in core api worker scheduler simulator tests bench chaos sdks/generator deploy/image; do \
        mkdir -p "$crate/src" && touch "$crate/src/lib.rs"; \
    done \
    && for crate in api worker scheduler simulator bench chaos sdks/generator deploy/image; do \
        echo 'fn main() {}' > "$crate/src/main.rs"; \
    done \
    && mkdir -p tests/it api/src/bin && for program in tests/it/main.rs api/src/bin/waypost-smtp.rs; do \
        echo 'fn main() {}' > "$program"; \
    done \
    && cargo auditable build --release --locked -p waypost-image -p waypost-simulator \
    && rm -rf ./*/src sdks/generator/src deploy/image/src tests/it

COPY . .
# The copied files may be older than the empty ones were; cargo compares times. `waypost` is all programs in one file: the
# name that it is called by chooses one.
RUN find core api worker scheduler simulator deploy/image -name '*.rs' -exec touch {} + \
    && cargo auditable build --release --locked -p waypost-image -p waypost-simulator \
    && mkdir /programs && cp target/release/waypost /programs/ \
    && for program in api worker scheduler smtp; do ln -s waypost "/programs/waypost-$program"; done \
    && cp -L "$(gcc -print-file-name=libgcc_s.so.1)" /libgcc_s.so.1

FROM scratch AS binaries
COPY --from=build /programs/ /src/target/release/waypost-simulator /

# The C library and the certificates of public authorities, of the Debian release that the programs are built on; no shell,
# no package manager, no OpenSSL. distroless/cc has libgcc, too, and OpenSSL and libstdc++, which make the image 3 MB larger.
FROM gcr.io/distroless/base-nossl-debian12:nonroot AS base
COPY --from=build /libgcc_s.so.1 /usr/lib/
# By number, so that Kubernetes sees that it is not root. It owns no file: the programs write none.
USER 10001:10001
WORKDIR /
STOPSIGNAL SIGTERM
LABEL org.opencontainers.image.vendor="Waypost" \
      org.opencontainers.image.licenses="MIT OR Apache-2.0"

FROM base AS simulator
LABEL org.opencontainers.image.title="Waypost simulator" \
      org.opencontainers.image.description="Simulated email providers, for trying Waypost out"
COPY --from=build /src/target/release/waypost-simulator /usr/local/bin/
EXPOSE 8090
CMD ["waypost-simulator", "--listen", "0.0.0.0:8090"]

FROM base AS waypost
LABEL org.opencontainers.image.title="Waypost" \
      org.opencontainers.image.description="Self-hosted email delivery: API, worker, scheduler and SMTP submission"
COPY --from=build /programs/ /usr/local/bin/
ENV WAYPOST_LISTEN=0.0.0.0:8080
EXPOSE 8080
# Asks GET /healthz of WAYPOST_LISTEN. The other programs override it in deploy/compose/compose.yml.
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s --retries=3 CMD ["waypost-api", "healthcheck"]
CMD ["waypost-api", "serve"]
