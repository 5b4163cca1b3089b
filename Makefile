# What people and CI both use. `make` formats, lints and tests.

GO       ?= go
GOLANGCI := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
FUZZTIME ?= 20s
KAFKA    ?= 4.3.1 3.9.2

.PHONY: all fmt lint test race fuzz bench e2e e2e-kafka kafka cross smoke up down

all: fmt lint test

fmt:
	gofmt -l -w $$(git ls-files '*.go')

# The linter has many dependencies: they stay out of go.mod. Go caches the program.
lint:
	$(GO) vet ./...
	$(GO) run $(GOLANGCI) run --allow-parallel-runners ./...

test:
	$(GO) test ./...

race:
	$(GO) test -race ./...

# Every fuzz target for FUZZTIME.
fuzz:
	@set -e; for pkg in $$($(GO) list ./...); do \
	  for f in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
	    echo "== $$pkg $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) $$pkg; \
	  done; done

bench:
	$(GO) test -run '^$$' -bench . -benchmem ./...

# The programs as separate processes, killed and started again.
e2e:
	$(GO) test -count 1 -tags e2e ./e2e/...

# The same, and the tests of internal/bus, against Apache Kafka itself. Brings its
# jars with Maven; no Docker.
e2e-kafka:
	scripts/kafka/install.sh $(KAFKA)
	set -e; for v in $(KAFKA); do echo "== Apache Kafka $$v"; \
	  FLANK_KAFKA=$$v $(GO) test -count 1 ./internal/bus/...; \
	  FLANK_KAFKA=$$v $(GO) test -count 1 -tags e2e -run 'Killed|BrokerAway' -skip Standalone ./e2e; \
	done

# One node of the newest of them on 127.0.0.1:9092, with its data in ./flank-data/kafka.
kafka:
	scripts/kafka/install.sh $(firstword $(KAFKA))
	mkdir -p flank-data/kafka
	exec scripts/kafka/broker.sh $(firstword $(KAFKA)) flank-data/kafka 9092 9093

# Platforms that gateways run on.
cross:
	GOOS=linux GOARCH=arm64 $(GO) build ./...
	GOOS=windows GOARCH=amd64 $(GO) build ./...

# The main job, once: history, training, a simulated tool's life, the summary.
smoke:
	$(GO) run ./cmd/standalone --once --speed 8 --data-dir $$(mktemp -d)

up:
	docker compose up --build --detach

down:
	docker compose down
