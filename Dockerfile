# Two images from one build:
#   docker build .                      Waypost: waypost-api, waypost-worker, waypost-scheduler (the default, last stage)
#   docker build --target simulator .   the simulated providers, for trying things out

FROM rust:1.95-bookworm AS build
WORKDIR /src
# The queries are checked against the committed descriptions: there is no database here.
ENV SQLX_OFFLINE=true CARGO_TERM_COLOR=never

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
RUN for crate in core api worker scheduler simulator tests bench chaos sdks/generator; do \
        mkdir -p "$crate/src" && touch "$crate/src/lib.rs"; \
    done \
    && for crate in api worker scheduler simulator bench chaos sdks/generator; do \
        echo 'fn main() {}' > "$crate/src/main.rs"; \
    done \
    && mkdir -p tests/it && echo 'fn main() {}' > tests/it/main.rs \
    && cargo build --release --locked --bins \
    && rm -rf */src sdks/generator/src tests/it

COPY . .
# The copied files may be older than the empty ones were; cargo compares times.
RUN find core api worker scheduler simulator -name '*.rs' -exec touch {} + \
    && cargo build --release --locked --bins

FROM debian:bookworm-slim AS base
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin waypost
USER waypost
STOPSIGNAL SIGTERM

FROM base AS simulator
COPY --from=build /src/target/release/waypost-simulator /usr/local/bin/
EXPOSE 8090
CMD ["waypost-simulator", "--listen", "0.0.0.0:8090"]

FROM base AS waypost
COPY --from=build /src/target/release/waypost-api /src/target/release/waypost-worker /src/target/release/waypost-scheduler /usr/local/bin/
ENV WAYPOST_LISTEN=0.0.0.0:8080
EXPOSE 8080
# Asks GET /healthz of WAYPOST_LISTEN: the image needs no curl. Worker and scheduler override it in docker-compose.yml.
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s --retries=3 CMD ["waypost-api", "healthcheck"]
CMD ["waypost-api", "serve"]
