# What people and CI both use. `make` formats, lints and tests.

GO       ?= go
GOLANGCI := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
FUZZTIME ?= 20s

.PHONY: all fmt lint test race fuzz bench e2e cross smoke up down

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
