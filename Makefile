# Waypost's commands; `make help` lists them. What each does in detail is written at the head of its script.
#
# Compiling never asks a database: sqlx reads the committed .sqlx, whatever DATABASE_URL says (`make generate` renews it).

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

OFFLINE := env -u DATABASE_URL SQLX_OFFLINE=true

##@ Running

.PHONY: up
up: ## build and start everything; ready with key, simulator and a first curl to paste
	@scripts/up.sh

.PHONY: down
down: ## stop what `make up` and `make dev-db` started; the data stays
	@scripts/down.sh

.PHONY: dev-db
dev-db: ## only the PostgreSQL and Redis of development: eval "$$(make -s dev-db)"
	@scripts/dev-db.sh

.PHONY: clean-dev
clean-dev: ## stop everything and remove .dev: data, keys, logs
	@scripts/clean-dev.sh

##@ Measuring

.PHONY: bench
bench: ## what Waypost exists for, each figure beside its floor; ONLY=accept,drain measures these alone, GATE=15 fails where row 15 is missed
	@scripts/bench.sh $(ARGS)

##@ Checking

.PHONY: test
test: ## the whole suite, from nothing; make test ARGS="--test it suppression"
	@scripts/test.sh $(ARGS)

.PHONY: fuzz
fuzz: ## the API against requests made up from its document, for FUZZ_SECONDS (120)
	@scripts/fuzz.sh $(ARGS)

.PHONY: fuzz-code
fuzz-code: ## the parsers of what others send, by libFuzzer, FUZZ_SECONDS (60) each; ARGS=events_ses
	@scripts/fuzz-code.sh $(ARGS)

.PHONY: chaos
chaos: ## everything fails under load, and nothing is lost or sent twice; MESSAGES (50,000), SEED
	@scripts/chaos.sh $(ARGS)

.PHONY: judges
judges: ## against programs of others: vendors' clients, a mail server, handlebars.js, mjml; ARGS=smtp runs one alone
	@scripts/judges.sh $(ARGS)

.PHONY: fmt
fmt: ## format the code
	@cargo fmt --all

.PHONY: lint
lint: ## formatting and clippy, as CI checks them
	@cargo fmt --all --check
	@$(OFFLINE) cargo clippy --workspace --all-targets -- -D warnings

.PHONY: docs
docs: ## the code's documentation, without a warning
	@$(OFFLINE) RUSTDOCFLAGS='-D warnings' cargo doc --no-deps --document-private-items --workspace

.PHONY: deny
deny: ## licences, banned crates, sources, known vulnerabilities
	@scripts/deny.sh

##@ Generated files

.PHONY: generate
generate: ## write .sqlx, .env.example, the OpenAPI document, the table in docs/configuration.md
	@scripts/generate.sh

.PHONY: check-generated
check-generated: ## fail if a generated file is not what it would be generated as
	@scripts/check-generated.sh

##@ Help

.PHONY: help
help: ## list these targets
	@awk 'BEGIN { FS = ":.*## " } \
		/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z-]+:.*## / { gsub(/\$$\$$/, "$$", $$2); printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
