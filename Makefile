# The commands of the repository; `make help` lists them. The head of each script describes it in detail.
#
# Compiling needs no database: sqlx reads the committed .sqlx, whatever DATABASE_URL is (`make generate` renews it).

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

OFFLINE := env -u DATABASE_URL SQLX_OFFLINE=true

##@ Running

.PHONY: up
up: ## build and start everything; prints an API key, the simulator's URL and a first curl
	@scripts/up.sh

.PHONY: down
down: ## stop the processes of `make up` and `make dev-db`; keeps the data
	@scripts/down.sh

.PHONY: dev-db
dev-db: ## start only the development PostgreSQL and Redis: eval "$$(make -s dev-db)"
	@scripts/dev-db.sh

.PHONY: clean-dev
clean-dev: ## stop everything and remove .dev: data, keys, logs
	@scripts/clean-dev.sh

##@ Measuring

.PHONY: bench
bench: ## Waypost's performance, each figure beside a baseline; ONLY=accept,drain measures only these, GATE=15 fails if row 15 misses its bound
	@scripts/bench.sh $(ARGS)

##@ Checking

.PHONY: test
test: ## run the whole test suite; make test ARGS="--test it suppression"
	@scripts/test.sh $(ARGS)

.PHONY: test-sdks
test-sdks: ## check, build and test the client SDKs against a live Waypost (that of WAYPOST_URL, or one of its own); ARGS=go for one
	@scripts/test-sdks.sh $(ARGS)

.PHONY: test-dashboard
test-dashboard: ## test the dashboard in Chromium, with axe and screenshots; ARGS="--grep messages"
	@scripts/test-dashboard.sh $(ARGS)

.PHONY: test-alerts
test-alerts: ## check alert rules and dashboard, and make alerts fire on a Waypost watched by Prometheus; ARGS=files checks the files alone
	@scripts/test-alerts.sh $(ARGS)

.PHONY: test-deploy
test-deploy: ## check Dockerfile, compose files, systemd units, Kubernetes manifests and workflows
	@scripts/test-deploy.sh

.PHONY: fuzz
fuzz: ## call the API with requests generated from its document, for FUZZ_SECONDS (120)
	@scripts/fuzz.sh $(ARGS)

.PHONY: fuzz-code
fuzz-code: ## fuzz the parsers of untrusted data with libFuzzer, FUZZ_SECONDS (60) each; ARGS=events_ses
	@scripts/fuzz-code.sh $(ARGS)

.PHONY: chaos
chaos: ## inject faults under load and check that no message is lost or sent twice; MESSAGES (50,000), SEED
	@scripts/chaos.sh $(ARGS)

.PHONY: test-servers
test-servers: ## failovers of Redis (Sentinel, TLS, ACL) and PostgreSQL (TLS, standby, PgBouncer) under load; ARGS=redis for one
	@scripts/test-servers.sh $(ARGS)

.PHONY: test-upgrade
test-upgrade: ## upgrade from the newest release (or BASE=commit) and back under load, and check that no message is lost or sent twice
	@scripts/test-upgrade.sh

.PHONY: judges
judges: ## compare with independent implementations: vendors' clients, a mail server, handlebars.js, mjml; ARGS=smtp runs one
	@scripts/judges.sh $(ARGS)

.PHONY: fmt
fmt: ## format the code
	@cargo fmt --all

.PHONY: lint
lint: ## formatting and clippy, as CI checks them
	@cargo fmt --all --check
	@$(OFFLINE) cargo clippy --workspace --all-targets -- -D warnings

.PHONY: lint-document
lint-document: ## check the OpenAPI document by Redocly and Spectral, and that clients of an earlier version still work; BASE=commit
	@scripts/lint-document.sh

.PHONY: docs
docs: ## build the code documentation without warnings
	@$(OFFLINE) RUSTDOCFLAGS='-D warnings' cargo doc --no-deps --document-private-items --workspace

.PHONY: deny
deny: ## licences, banned crates, sources, known vulnerabilities
	@scripts/deny.sh

##@ Generated files

.PHONY: generate
generate: ## write .sqlx, .env.example, the OpenAPI document, the table in docs/configuration.md, the SDKs, the dashboard
	@scripts/generate.sh

.PHONY: check-generated
check-generated: ## fail if a generated file is out of date
	@scripts/check-generated.sh

.PHONY: dashboard
dashboard: ## build the dashboard into dashboard/dist
	@scripts/build-dashboard.sh

##@ Help

.PHONY: help
help: ## list these targets
	@awk 'BEGIN { FS = ":.*## " } \
		/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z-]+:.*## / { gsub(/\$$\$$/, "$$", $$2); printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
