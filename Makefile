# What people and CI both use. `make` formats, lints and tests.

GO       ?= go
VALE     := github.com/vale-cli/vale/v3/cmd/vale@v3.21.0
GOLANGCI := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
FUZZTIME ?= 20s
KAFKA    ?= 4.3.1 3.9.2
PYTHON   ?= python3
DATA     ?= $(FLANK_DATA)
KEEL     ?= $(DATA)/keel

# An absolute path, for programs that run in bench/. It may have blanks.
absolute = "$$(realpath -m "$(1)")"

.PHONY: all attack contracts house ledger quick operators-day images nightly help consumers ecosystem fleet swap-times growing prepared-model prepared-model-check fmt lint test recordings race families arm64 fuzz bench e2e e2e-embedded e2e-kafka e2e-web old upgrade idle latency bench-pipeline bench-goals bench-growth page-cost simulate-real chaos chaos-short simulate mutants gremlins kafka cross smoke kubernetes vulnerabilities python-lock backup release release-twice arm64-programs metrics-check dashboards up down peers peers-bench scale unseen unseen-peers unseen-simple unseen-page parts robust study study-peers study-go study-drill study-report study-short simulator-report shift year peers-metrics peers-baseline peers-export peers-features archive-queries peers-formats peers-signal peers-study opcua opcua-route sparkplug bench-firstday bench-archive-rows

all: fmt lint test ## format, lint and test

# Packages with changes that are not committed, for quick.
CHANGED = $$( { git diff --name-only HEAD; git ls-files --others --exclude-standard; } | grep -v '^bench/' | sed -n 's|/[^/]*\.go$$||p' | sort -u | while read -r d; do [ -d "$$d" ] && echo "./$$d"; done)

# They wait for long. They are in rooms that the race detector tests with -short, so they do not ask for it.
QUICK_SKIP ?= TestSendThroughFaults/no_answer_ever_comes|^TestBrokerRestart$$|^TestKilledWhileJoining$$|^TestSuspendedOverGenerations$$

# More packages at a time than processors, because many tests wait; the linter has vetted what changed.
quick: ## while working: format, lint of changed packages, short tests
	gofmt -l -w $$(git ls-files '*.go')
	set -e; changed="$(CHANGED)"; [ -z "$$changed" ] || $(GO) run $(GOLANGCI) run --allow-parallel-runners $$changed
	$(GO) test -short -vet=off -p $$((2 * $$(nproc))) -skip '$(QUICK_SKIP)' ./...
	$(GO) test -C bench -short -vet=off -p $$((2 * $$(nproc))) ./...

# What CI leaves out: an hour and more.
nightly: ## everything that CI leaves out
	$(MAKE) test
	$(MAKE) race RACE=./... RACE_SKIP='^$$' families NUMERIC_FAMILIES="./internal/kernel ./pkg/dbn ./pkg/classify ./pkg/model/unknown"
	FLANK_SEEDS=100000 $(GO) test -count 1 -timeout 2h -run TestSimulation ./internal/ingest/spool
	$(MAKE) ledger prepared-model-check
	$(MAKE) simulate SEEDS=100000
	$(MAKE) simulate-real SEEDS=200
	$(MAKE) mutants gremlins
	$(MAKE) e2e-kafka upgrade chaos-short study-short
	$(MAKE) fuzz FUZZTIME=1m
	$(MAKE) arm64 kubernetes release-twice vulnerabilities

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "%-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

fmt: ## format Go files
	gofmt -l -w $$(git ls-files '*.go')

# The linter has many dependencies: they stay out of go.mod. Go caches the program. It vets what it reads, but for
# assembly and for what has a build tag.
lint: ## tidy modules, vet, golangci-lint and the words of documents
	$(GO) mod tidy -diff
	$(GO) -C bench mod tidy -diff
	$(GO) -C examples/consumers/testdata/sdk-go mod tidy -diff
	$(GO) vet -tags e2e ./internal/kernel ./e2e/...
	$(GO) run $(GOLANGCI) run --allow-parallel-runners ./...
	cd bench && $(GO) run $(GOLANGCI) run --allow-parallel-runners ./...
	CGO_ENABLED=1 $(GO) run $(VALE) --glob='!**/.venv/**' $(WORDS)

# Documents, help texts, messages and comments that lint checks for words that people would not say
# (.vale/Flank/Words.yml).
WORDS := README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md docs deploy examples schemas cmd internal pkg bench e2e scripts

test: ## all tests
	$(GO) test ./...
	$(GO) test -C bench ./...

# Rooms with goroutines, and what links all of them.
RACE ?= ./cmd/monitor ./cmd/standalone ./cmd/internal/... ./internal/broker ./internal/bus/... ./internal/event/... ./internal/history ./internal/web/summary ./internal/ingest/... ./internal/monitor \
  ./internal/protocol/... ./internal/route ./internal/source/feed ./internal/source/machinetool ./internal/web ./pkg/trend

# They compute for long in one goroutine, or do once more what a test next to them does.
RACE_SKIP ?= ^(TestCommands|TestHelp|TestTune|TestTuneCounts|TestReplayPublishedModels|TestReplayTable|TestRecallIsBounded|TestAnyNumbers|TestHalfNamed|TestDamagedReplayFile|TestPageKeepsItsPolicy|TestMemoryOfAMachine)$$

# The numeric rooms share rows and seeds among workers, in one or two places each. These tests run them; all tests of these
# rooms take a quarter of an hour with the race detector.
RACE_NUMERIC = ./internal/train ./internal/train/study ./internal/train/tune ./pkg/classify ./pkg/model ./pkg/model/unknown
RACE_TESTS = ^(TestRun|TestRunStops|TestCheckpoint|TestEncodeInUse|TestSearch|TestPatience|TestReadingProgress|TestScore|TestForestRepeats|TestReplay|TestDeterminism|TestParallelReturnsTheLowestError|TestFitNovelty.*)$$

# Trainings of minutes are left to `make nightly`. The tests call testkit/recorded, which holds them to their name.
RECORDINGS = $$(grep -rl --include='*_test.go' 'recorded\.Folder' cmd internal pkg | xargs -n 1 dirname | sort -u | sed 's|^|./|')

recordings: ## tests that read the recordings of FLANK_DATA, without long trainings
	$(GO) test -short -run TestRecorded $(RECORDINGS)
	$(GO) test -C bench -short -run TestRecorded ./...

race: ## tests of rooms with goroutines, with the race detector
	CGO_ENABLED=1 $(GO) test -short -race -timeout 30m -skip '$(RACE_SKIP)' $(RACE)
	CGO_ENABLED=1 $(GO) test -short -race -run '$(RACE_TESTS)' $(RACE_NUMERIC)

# Every fuzz target for FUZZTIME.
fuzz: ## every fuzz target for FUZZTIME (20s)
	@set -e; for module in . bench; do for pkg in $$($(GO) list -C $$module ./...); do \
	  for f in $$($(GO) test -C $$module -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
	    echo "== $$pkg $$f"; $(GO) test -C $$module -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1x $$pkg; \
	  done; done; done

bench: ## every benchmark
	$(GO) test -run '^$$' -bench . -benchmem ./...

# Numeric packages with every family of kernels that this processor has; without
# assembly; and the kernels, given qemu-user of Debian, as a 64-bit ARM would run them.
NUMERIC := ./internal/kernel ./pkg/dbn ./pkg/jade ./pkg/classify ./pkg/model/unknown

NUMERIC_FAMILIES ?= ./internal/kernel ./pkg/dbn

families: ## numeric packages with each family of kernels
	set -e; for f in avx512 avx2 go; do echo "== $$f"; export FLANK_KERNEL=$$f; $(GO) test -count 1 $(NUMERIC_FAMILIES); $(GO) test -count 1 -run KeepsItsBits ./pkg/signal; done
	$(GO) test -tags noasm $(NUMERIC)

arm64: ## kernels and programs as a 64-bit ARM runs them (qemu-user)
	GOARCH=arm64 $(GO) test -exec qemu-aarch64 ./internal/kernel
	$(MAKE) arm64-programs

arm64-programs: ## ingest, monitor and standalone as a 64-bit ARM runs them (qemu-user)
	GO="$(GO)" scripts/arm64.sh

# The kernels that every amd64 processor has make equal bytes on all of them.
prepared-model: ## trains the model that standalone has inside
	FLANK_KERNEL=go $(GO) test -count 1 -run TestPreparedModel ./cmd/standalone -update

prepared-model-check: ## it is what training gives today
	FLANK_KERNEL=go $(GO) test -count 1 -run TestPreparedModel ./cmd/standalone

# Speed beside OpenBLAS, gonum, NumPy, SciPy, scikit-learn and PyTorch, as written
# to docs/figures/performance.md: some ten minutes, and 3 GB for the peers the first time.
SPEED ?= $(CURDIR)/bench/speed/.venv

peers-bench: $(SPEED)/ready ## speed compared with OpenBLAS, PyTorch and others: docs/figures/performance.md
	set -e; python=$(SPEED)/bin/python; tmp=$$(mktemp -d); trap 'rm -rf "$$tmp"' EXIT; \
	library() { $$python -c "import scipy_openblas32 as s; print(s.get_$$1_dir())"; }; \
	$(CC) -O2 -I"$$(library include)" -o $$tmp/openblas bench/speed/openblas/peer.c "$$(library lib)/libscipy_openblas.so" -Wl,-rpath,"$$(library lib)"; \
	$(GO) build -C bench -o $$tmp/speed ./speed; \
	$$tmp/speed -script bench/speed/peer.py -openblas $$tmp/openblas -python $$python $(BENCHFLAGS) > $$tmp/performance.md; \
	cp $$tmp/performance.md docs/figures/performance.md

$(SPEED)/ready: bench/speed/requirements.lock
	python3 -m venv $(SPEED)
	$(SPEED)/bin/pip install --quiet --no-compile --require-hashes --requirement $<
	touch $@

# The programs as separate processes, killed and started again: on the embedded
# broker, and against Apache Kafka.
e2e: e2e-embedded e2e-kafka ## the programs as processes, killed and restarted, on both brokers

# E2E_SKIP names tests to leave out, as CI does with those that it runs on Apache Kafka.
e2e-embedded: old ## the programs as processes, on the embedded broker
	$(WITH_OLD) $(GO) test -count 1 -timeout 30m -tags e2e -skip 'TestChaos|TestPage|TestFleet|TestDashboards|TestEcosystem|TestLatency$(if $(E2E_SKIP),|$(E2E_SKIP))' ./e2e/...

# What someone on the network could send, at a running plant on loopback: its embedded broker, ingest,
# monitor and page. It takes half a minute and ends by itself.
# Spools are in memory where that is there: the law is about counts, and syncs take most of the time.
ledger: ## 100,000 random lives of sources: each sample is in a window or has a reason
	TMPDIR=$$([ -w /dev/shm ] && echo /dev/shm || echo "$${TMPDIR:-/tmp}") $(GO) test -count 1 -timeout 2h -run TestLedger ./internal/source/feed -rapid.checks=$(or $(LIVES),100000)

attack: ## hostile messages, requests, files and clients at a running plant
	$(GO) test -count 1 -timeout 10m -tags e2e -run TestAttack -v ./e2e

# The page in a browser: needs Debian's chromium and npm, which fetches axe-core.
AXE     := 4.14.1
AXE_SUM := FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ==
AXE_DIR := $(CURDIR)/flank-data/axe-core-$(AXE)

e2e-web: $(AXE_DIR)/axe.min.js ## the page in a browser (chromium)
	FLANK_AXE=$< $(GO) test -count 1 -timeout 20m -tags e2e -run TestPage ./e2e

$(AXE_DIR)/axe.min.js:
	mkdir -p $(AXE_DIR)
	cd $(AXE_DIR) && npm pack --silent axe-core@$(AXE) && \
	  { test "$$(openssl dgst -sha512 -binary axe-core-$(AXE).tgz | base64 -w 0)" = "$(AXE_SUM)" || { echo "axe-core-$(AXE).tgz is not what AXE_SUM of the Makefile says" >&2; exit 1; }; } && \
	  tar xzf axe-core-$(AXE).tgz --strip-components 1 package/axe.min.js package/LICENSE
	touch $@

# An upgrade from the last release with its own programs, which are built from git: one
# after the other while windows flow. FLANK_KAFKA=4.3.1 takes Apache Kafka.
# In a clone that does not have that commit make says so, and the tests are skipped.
OLD     ?= b53a7a3f
OLD_BIN := $(CURDIR)/flank-data/old/$(OLD)
WITH_OLD = FLANK_OLD=$$(test ! -x $(OLD_BIN)/monitor || echo $(OLD_BIN))

old: ## the programs of an older release, for upgrade and latency
	@set -e; if test -x $(OLD_BIN)/monitor; then exit; fi; \
	if ! git cat-file -e '$(OLD)^{commit}' 2>/dev/null; then \
	  echo "SKIPPED: upgrades from release $(OLD) are NOT tested: this clone does not have its commit. Get it with: git fetch --unshallow" >&2; exit; fi; \
	dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; mkdir -p $(dir $(OLD_BIN)) "$$dir/source"; \
	git archive $(OLD) | tar -x -C "$$dir/source"; cd "$$dir/source"; \
	$(GO) build -o "$$dir/bin/" ./cmd/ingest ./cmd/trainer ./cmd/standalone ./cmd/monitor; rm -rf $(OLD_BIN); mv "$$dir/bin" $(OLD_BIN)

upgrade: old ## an upgrade from an older release, and what releases left on their disks
	$(GO) test -count 1 -run TestReadsFrozen -v ./internal/monitor
	$(WITH_OLD) $(GO) test -count 1 -tags e2e -timeout 30m -run TestUpgrade -v ./e2e

# From the end of a window until a reader of committed messages sees its result: the older
# release, this one and its mode edge on Apache Kafka, a third of a second apart, for
# docs/figures/latency.md.
# Some six minutes.
LATENCY_WINDOWS ?= 300

latency: old ## window end to result, compared with an older release, and in mode edge
	scripts/kafka/install.sh $(firstword $(KAFKA))
	FLANK_KAFKA=$(firstword $(KAFKA)) $(WITH_OLD) $(GO) test -count 1 -tags e2e -timeout 2h -run TestLatency -v ./e2e -latency.windows $(LATENCY_WINDOWS)

# Connections, memory and processor time of a monitor of 64 partitions at rest, before and after twenty rebalances and three
# restarts of the broker, and those of the release before, for docs/figures/connections.md.
IDLE     ?= 1h

idle: old ## what a monitor at rest takes, compared with an older release: IDLE (1h)
	scripts/kafka/install.sh $(firstword $(KAFKA))
	FLANK_KAFKA=$(firstword $(KAFKA)) $(WITH_OLD) $(GO) test -count 1 -tags e2e -timeout 3h -run 'TestIdle$$' -v ./e2e \
	  -idle.time $(IDLE) -idle.rebalances 20 -idle.restarts 3 -idle.report $(CURDIR)/docs/figures/connections.md

bench-pipeline: bench/peers/signal/.venv/ready ## what each program takes for a window, on both brokers, next to a consumer in Python: docs/figures/pipeline.md (a quarter of an hour)
	scripts/kafka/install.sh $(firstword $(KAFKA))
	FLANK_KAFKA=$(firstword $(KAFKA)) $(GO) test -count 1 -tags e2e -timeout 1h -run TestPipeline -v ./e2e \
	  -pipeline.report $(CURDIR)/docs/figures/pipeline.md -pipeline.python $(CURDIR)/bench/peers/signal/.venv/bin/python

bench-goals: bench/peers/signal/.venv/ready ## figures of the whole pipeline against their goals: docs/figures/goals.md (40 minutes)
	scripts/kafka/install.sh $(firstword $(KAFKA))
	set -e; out=$$(mktemp); trap 'rm -f "$$out"' EXIT; \
	each() { $(GO) test -run '^$$' -count 3 "$$@" >> $$out; }; \
	each -bench 'Extract$$' -benchmem -benchtime 400x -cpu 1 ./pkg/signal; \
	each -bench 'Gateway|Edge$$' -benchtime 400x ./internal/ingest/gateway; \
	each -bench 'Monitor/windows/backlog' -benchtime 440x ./internal/monitor; \
	each -bench 'Monitor/features/backlog' -benchtime 8000x ./internal/monitor; \
	each -bench 'New$$' -benchmem ./internal/source/sim; \
	FLANK_KAFKA=$(firstword $(KAFKA)) $(GO) test -count 1 -tags e2e -timeout 2h -run TestGoals -v ./e2e -goals.benchmarks $$out \
	  -goals.report $(CURDIR)/docs/figures/goals.md -pipeline.python $(CURDIR)/bench/peers/signal/.venv/bin/python

bench-growth: ## what a window takes with 1 to 64 machines and 1 to 4 monitors, on Apache Kafka, and what larger plants need: docs/figures/growth.md (a quarter of an hour)
	scripts/kafka/install.sh $(firstword $(KAFKA))
	FLANK_KAFKA=$(firstword $(KAFKA)) $(GO) test -count 1 -tags e2e -timeout 1h -run TestGrowth -v ./e2e -growth.report $(CURDIR)/docs/figures/growth.md

PAGE_MACHINES ?= 500
page-cost: ## processor time that a page with ten viewers adds to a monitor of PAGE_MACHINES machines
	$(GO) test -count 1 -tags e2e -timeout 1h -run TestPageCost -v ./e2e -page.cost -page.machines $(PAGE_MACHINES)

# e2e, and the tests of internal/bus, against Apache Kafka itself: in the clear,
# with TLS, passwords and rights, on a cluster of three, and from an older release. Both
# mostly wait, so they run at the same time. Brings its jars with Maven; no Docker.
# CI leaves TestIdle, which measures for two minutes, to `make nightly`; TestOneTransport counts connections in CI.
KAFKA_TESTS ?= ClusterKilled|Secured|Grown|Upgrade|Fleet|Backup|Idle

e2e-kafka: old ## the programs as processes, on Apache Kafka
	scripts/kafka/install.sh $(KAFKA)
	set -e; for v in $(KAFKA); do echo "== Apache Kafka $$v"; \
	  FLANK_KAFKA=$$v $(GO) test -count 1 -timeout 30m ./internal/bus/... ./internal/deploy ./internal/ingest/grow & bus=$$!; \
	  FLANK_KAFKA=$$v $(WITH_OLD) $(GO) test -count 1 -timeout 30m -tags e2e -run '$(KAFKA_TESTS)' -skip Standalone ./e2e || { wait $$bus; exit 1; }; \
	  wait $$bus; \
	done

# The loss report: every promise of reliability tested at full scale against Apache
# Kafka, in about an hour, as written to docs/figures/reliability.md. ROWS='5-.*|6-.*' runs some
# of them and takes the others from the last run, SCALE=0.1 a tenth of the counts;
# CI runs the rows of chaos-short that take seconds.
ROWS  ?= .*
SCALE ?= 1
CHAOS = FLANK_KAFKA=$(firstword $(KAFKA)) $(GO) test -count 1 -tags e2e -timeout 3h -run 'TestChaos/^($(ROWS))$$' ./e2e

# Bad days of the whole pipeline under virtual time: SEEDS of them from SEED on. A seed that does not hold tells its story.

simulate: ## bad days of the pipeline under virtual time: SEEDS, SEED
	$(GO) run ./internal/testkit/simulation/run $(if $(SEEDS),-seeds $(SEEDS)) $(if $(SEED),-seed $(SEED))

# Faults that are planted one at a time, and what finds them: the tests of the room, and SEEDS of the simulation. ONLY=17,18 plants
# some. Scores stay in bench/mutants/scores.json.
mutants: ## planted faults, and what finds them: docs/figures/mutants.md: SEEDS, ONLY
	$(GO) run -C bench ./mutants -rooms -simulation $(or $(SEEDS),200) $(if $(ONLY),-only $(ONLY)) -report ../docs/figures/mutants.md

# Faults that a program draws: every condition, sign and operator of a room, one at a time. What lives is listed, with a reason, in
# docs/figures/mutants.md. Rooms within a room are changed too, but not the oracle, which is what proves them, and the rooms within
# internal/event.
GREMLINS      := github.com/go-gremlins/gremlins/cmd/gremlins@v0.6.0
GREMLIN_ROOMS ?= ./pkg/alarm ./internal/machine ./internal/event

gremlins: ## faults in every condition of GREMLIN_ROOMS (hours)
	set -e; for room in $(GREMLIN_ROOMS); do \
	  RAPID_SHRINKTIME=0s GOFLAGS="-failfast -vet=off" $(GO) run $(GREMLINS) unleash --workers 1 --timeout-coefficient $(or $(PATIENCE),20) -E "oracle/" -E "machinetest/" -E "(audit|envelope|evidence|fetch|labels)/" $$room; done

fleet: ## drills and lathes on Apache Kafka while models, partitions and programs change: FLEET (10m)
	scripts/kafka/install.sh $(firstword $(KAFKA))
	FLANK_KAFKA=$(firstword $(KAFKA)) $(GO) test -count 1 -timeout 60m -tags e2e -run 'TestFleet$$' -v ./e2e -fleet.time $(or $(FLEET),10m)

# From the start of a command until a reader sees the first result by the other model, for
# docs/figures/latency.md: on the embedded broker, and on Apache Kafka.
SWAPS ?= 10

swap-times: ## how soon machines are judged by another model after promote --now and rollback: SWAPS
	scripts/kafka/install.sh $(firstword $(KAFKA))
	for v in "" $(firstword $(KAFKA)); do FLANK_KAFKA=$$v $(GO) test -count 1 -timeout 60m -tags e2e -run 'TestFleetSwapTimes$$' -v ./e2e -fleet.swaps $(SWAPS) || exit 1; done

# What docs/how-to/growing.md says: one broker becomes three, and features of many machines come
# over a link of 10 Mbit/s.
LINK ?= 50,100,150,200,250

growing: ## one broker becomes three; a link of 10 Mbit/s: LINK
	scripts/kafka/install.sh $(firstword $(KAFKA))
	FLANK_KAFKA=$(firstword $(KAFKA)) $(GO) test -count 1 -timeout 60m -tags e2e -run 'TestOneBrokerToThree|TestSlowLink' -v ./e2e -link.machines $(LINK) -link.time 60s

backup: ## the commands of docs/how-to/backup.md, on Apache Kafka
	scripts/kafka/install.sh $(firstword $(KAFKA))
	FLANK_KAFKA=$(firstword $(KAFKA)) $(GO) test -count 1 -timeout 10m -tags e2e -run 'TestBackup$$' -v ./e2e

chaos: ## the loss report: docs/figures/reliability.md (an hour)
	scripts/kafka/install.sh $(firstword $(KAFKA))
	$(CHAOS) -v -chaos.scale $(SCALE) -chaos.rows $(CURDIR)/flank-data/chaos -chaos.report $(CURDIR)/docs/figures/reliability.md

# Kills and refusals against Apache Kafka at such counts are e2e-kafka's already, and dead receivers of alerts internal/route's.
chaos-short: ROWS = [1-3]-.*|4b-.*|5-.*|6-.*|7.*|8-.*|9-.*|1[0234]-.*|22-.*
chaos-short: ## the loss report at reduced counts
	scripts/kafka/install.sh $(firstword $(KAFKA))
	$(CHAOS)

# The consumers of examples/consumers and what docs/how-to/read-events.md says of other clients.
CLOUDEVENTS_JAVA := 4.0.1
consumers: ## consumers of alerts in Go, Python, Node and Java, and SDKs of CloudEvents that read Kafka and webhooks, on Apache Kafka with an aborted transaction
	scripts/kafka/install.sh $(firstword $(KAFKA))
	mkdir -p flank-data/consumers/node
	cp examples/consumers/node/* examples/consumers/testdata/*.mjs flank-data/consumers/node/
	npm ci --silent --no-audit --no-fund --prefix flank-data/consumers/node
	test -x flank-data/consumers/python/bin/python || $(PYTHON) -m venv "$$(realpath -m flank-data/consumers/python)"
	flank-data/consumers/python/bin/python -m pip install --quiet --no-compile --require-hashes --requirement examples/consumers/python/requirements.lock
	for name in api core kafka; do mvn -q -B -ntp dependency:copy -Dartifact=io.cloudevents:cloudevents-$$name:$(CLOUDEVENTS_JAVA) -DoutputDirectory=flank-data/consumers/java || exit 1; done
	$(GO) build -C examples/consumers/testdata/sdk-go -o $(CURDIR)/flank-data/consumers/sdk-go .
	FLANK_KAFKA=$(firstword $(KAFKA)) FLANK_CONSUMERS="$(CURDIR)/flank-data/consumers" FLANK_KAFKA_JARS="$${FLANK_KAFKA_HOME:-$${XDG_CACHE_HOME:-$$HOME/.cache}/flank}/kafka-$(firstword $(KAFKA))/lib" \
	  $(GO) test -count 1 ./examples/consumers/...

# The files of examples/ for programs of other makers, which run there. Telegraf has the plugins that the files name.
ECOSYSTEM := $(CURDIR)/flank-data/ecosystem
NODE_RED  := node-red@4.1.15
TELEGRAF  := github.com/influxdata/telegraf/cmd/telegraf@v1.37.2
$(ECOSYSTEM)/ready: Makefile examples/mlflow/requirements.lock
	mkdir -p $(ECOSYSTEM)/node-red
	npm install --prefix $(ECOSYSTEM)/node-red --silent --no-audit --no-fund --no-save $(NODE_RED)
	GOBIN=$(ECOSYSTEM) $(GO) install -tags custom,inputs.mock,processors.starlark,outputs.mqtt,serializers.template $(TELEGRAF)
	test -x $(ECOSYSTEM)/mlflow/bin/python || $(PYTHON) -m venv $(ECOSYSTEM)/mlflow
	$(ECOSYSTEM)/mlflow/bin/python -m pip install --quiet --no-compile --require-hashes --requirement examples/mlflow/requirements.lock
	touch $@

ecosystem: $(ECOSYSTEM)/ready ## the flow for Node-RED, the configuration for Telegraf, the export to MLflow, with these programs
	FLANK_OTHERS=$(ECOSYSTEM) $(GO) test -count 1 -timeout 20m -tags e2e -run '^TestEcosystem' ./e2e

# One node of the newest of them on 127.0.0.1:9092, with its data in ./flank-data/kafka.
kafka: ## one node of Apache Kafka on 127.0.0.1:9092
	scripts/kafka/install.sh $(firstword $(KAFKA))
	mkdir -p flank-data/kafka
	exec scripts/kafka/broker.sh $(firstword $(KAFKA)) flank-data/kafka 9092 9093

# Exported models, recomputed by onnxruntime and by numpy from safetensors.
peers-export: bench/peers/export/.venv/ready ## exported models, computed by onnxruntime and numpy
	dir=$$(mktemp -d) && $(GO) test -count 1 -run TestForPeers ./internal/train/export -peers $$dir && \
	  bench/peers/export/.venv/bin/python bench/peers/export/check.py $$dir && rm -r $$dir

# The Python of docs/how-to/features-in-python.md on a small simulated drill, and all formats of its table.
peers-features: bench/peers/features/.venv/ready ## tables of features, read by pandas, pyarrow and DuckDB
	set -e; dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; \
	$(GO) build -o $$dir/ ./cmd/ingest ./cmd/trainer; \
	$$dir/ingest simulate --out $$dir/drill --format tdms --tools 3 --life 40s --hole 6s; \
	printf 'layout: drill/layout.yaml\nwear: drill/wear.csv\n' > $$dir/train.yaml; \
	for f in parquet arrow csv; do $$dir/trainer features --quiet --config $$dir/train.yaml --data "$$dir/drill/*.tdms" --out $$dir/features.$$f; done; \
	bench/peers/features/.venv/bin/python bench/peers/features/check.py docs/how-to/features-in-python.md $$dir

# The SQL and the Python of docs/how-to/archive.md on an archive whose counts are known.
archive-queries: bench/peers/features/.venv/ready ## the archive, read by DuckDB and pandas
	set -e; dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; \
	$(GO) test -count 1 -run TestForPeers ./internal/train/archive -peers $$dir; \
	bench/peers/features/.venv/bin/python bench/peers/features/archive.py docs/how-to/archive.md $$dir

# Features by NumPy, SciPy and PyWavelets: the reference values anew, then Flank's.
peers-signal: bench/peers/signal/.venv/ready ## features, computed by NumPy, SciPy and PyWavelets
	bench/peers/signal/.venv/bin/python bench/peers/signal/features.py check pkg/signal/testdata/features-scipy.json
	bench/peers/signal/.venv/bin/python bench/peers/signal/fast.py check
	$(GO) test -count 1 -run 'SciPy|PanelAgainstTwin' -v ./pkg/signal

# The real client code, broker, gateways and monitors under virtual time and seeded faults,
# in a Go runtime that runs the same way every time: a few seconds a seed. SEED is the
# first seed, STORY a file for everything that happens in the last one, MUTANT one of the
# protections that mutants_test.go takes away. From 40 seeds on it also checks that seeds
# find these. The first run builds the standard library again. The go tool passes over
# folders whose names begin with _.
OVERLAY ?= $(CURDIR)/flank-data/_synctest-overlay

simulate-real: ## the real client code and broker under virtual time: SEEDS, SEED, STORY
	$(GO) run ./scripts/synctest-overlay -o "$(OVERLAY)"
	$(GO) test -count 1 -timeout 0 -v -overlay "$(OVERLAY)/overlay.json" -tags synctestoverlay -run '^Test(Seeds|Mutants)$$' ./internal/testkit/simulation/nightly \
	  -seed $(or $(SEED),1) -seeds $(or $(SEEDS),100) -overlay-hash "$$(cat "$(OVERLAY)/hash")" $(if $(MUTANT),-mutant "$(MUTANT)") $(if $(STORY),-story "$(abspath $(STORY))")

# Archives, Debian packages, sums and the list of parts, into DIST. RELEASE_KEY names an OpenSSH key to sign with.
DIST ?= dist

release: ## a release of the commit that is checked out, in DIST (dist)
	rm -rf "$(DIST)"
	RELEASE_KEY="$(RELEASE_KEY)" scripts/release.sh "$(DIST)"

# Two fresh clones in two folders: equal bytes, and a signature that holds.
release-twice: ## two clean builds of a release are equal, and a signature holds
	set -e; dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; ssh-keygen -q -t ed25519 -N '' -C release -f "$$dir/key"; \
	for n in one another; do git clone --quiet --no-local . "$$dir/$$n"; done; \
	for n in one another; do RELEASE_KEY="$$dir/key" "$$dir/$$n/scripts/release.sh" "$$dir/out-$$n" v0.0.1 >/dev/null; done; \
	diff -r "$$dir/out-one" "$$dir/out-another"; cd "$$dir/out-one"; cat SHA256SUMS; sha256sum --quiet --check SHA256SUMS; \
	echo "flank-release $$(cut -d' ' -f1,2 ../key.pub)" >../signers; \
	ssh-keygen -Y verify -f ../signers -I flank-release -n flank-release -s SHA256SUMS.sig <SHA256SUMS; \
	echo x >>SHA256SUMS; ! ssh-keygen -Y verify -f ../signers -I flank-release -n flank-release -s SHA256SUMS.sig <SHA256SUMS 2>/dev/null

# What people have reported of our dependencies, where the database vuln.go.dev can be reached. Elsewhere it says so.
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0

vulnerabilities: ## known vulnerabilities of what the programs call (needs vuln.go.dev)
	@out=$$($(GO) run $(GOVULNCHECK) ./cmd/... 2>&1) && { echo "$$out"; exit; }; echo "$$out"; \
	case "$$out" in *"exit status 3"*) exit 1 ;; esac; echo "NOT SCANNED for known vulnerabilities, for the reason above" >&2

# Python's packages by hash, with what they need in turn: requirements.lock next to each requirements.txt.
UV := uv==0.13.9
python-lock: ## after a change of a requirements.txt: its requirements.lock
	@dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; set -e; $(PYTHON) -m venv $$dir; $$dir/bin/pip install --quiet $(UV); \
	for f in $$(git ls-files '*requirements.txt'); do (cd $$(dirname $$f); \
	  $$dir/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --custom-compile-command "make python-lock" -o requirements.lock requirements.txt); done

kubernetes: ## deploy/kubernetes against the schemas of Kubernetes
	scripts/kubernetes.sh

# Gateways run on Windows too. The other programs compile there; programs for 64-bit ARM are arm64-programs'.
cross: ## builds for Windows
	GOOS=windows GOARCH=amd64 $(GO) build -o /dev/null ./cmd/ingest
	GOOS=windows GOARCH=amd64 $(GO) vet ./...

# The main job, once: history, training, a simulated tool's life, the summary.
smoke: ## the main job, once
	$(GO) run ./cmd/standalone --fresh --once --speed 8 --data-dir $$(mktemp -d)

# Prometheus and promtool of Debian's package, which is unpacked and not installed, so that no
# service starts.
PROMETHEUS := $(CURDIR)/flank-data/prometheus/usr/bin

$(PROMETHEUS)/promtool:
	mkdir -p flank-data/prometheus
	cd flank-data/prometheus && { apt-get download -qq prometheus || { apt-get update -qq && apt-get download -qq prometheus; }; } && dpkg -x prometheus_*.deb . && rm prometheus_*.deb

metrics-check: $(PROMETHEUS)/promtool ## the alerts of deploy/prometheus and their tests (promtool)
	$< check config deploy/prometheus/prometheus.yaml
	$< test rules deploy/prometheus/rules_test.yaml

house: ## lines, rooms, links, functions, options and words of the house, and what docs/house.txt allows
	$(GO) test -count 1 -v -run TestHouse ./docs

# OpenAPI, AsyncAPI and JSON Schema by the linters of their own ecosystems, which npm fetches.
CONTRACTS     := flank-data/contracts
CONTRACT_PKGS := @redocly/cli@2.77.0 @stoplight/spectral-cli@6.16.3 ajv-cli@5.0.0 ajv-formats@3.0.1 @asyncapi/parser@3.6.3
$(CONTRACTS)/ready: Makefile
	mkdir -p $(CONTRACTS) && npm install --prefix $(CONTRACTS) --silent --no-audit --no-fund --no-save $(CONTRACT_PKGS)
	printf 'extends: ["spectral:oas"]\n' > $(CONTRACTS)/openapi.yaml
	printf 'extends: ["spectral:asyncapi"]\n' > $(CONTRACTS)/asyncapi.yaml
	touch $@

# AsyncAPI's own parser: what it calls an error or a warning fails.
ASYNCAPI := const {Parser, fromFile} = require("@asyncapi/parser"); \
  fromFile(new Parser(), "$(CURDIR)/schemas/asyncapi.yaml").parse().then(({document, diagnostics}) => { \
    const bad = diagnostics.filter((d) => d.severity < 2); \
    for (const d of bad) console.error("schemas/asyncapi.yaml:" + (d.range.start.line + 1) + ": " + d.path.join(".") + ": " + d.message); \
    process.exit(document && !bad.length ? 0 : 1) })

contracts: $(CONTRACTS)/ready ## schemas/ by Redocly, Spectral, AsyncAPI's parser and Ajv in strict mode (npm)
	$(CONTRACTS)/node_modules/.bin/redocly lint --format=stylish schemas/openapi.yaml
	$(CONTRACTS)/node_modules/.bin/spectral lint --ruleset $(CONTRACTS)/openapi.yaml --display-only-failures schemas/openapi.yaml
	$(CONTRACTS)/node_modules/.bin/spectral lint --ruleset $(CONTRACTS)/asyncapi.yaml --display-only-failures schemas/asyncapi.yaml
	cd $(CONTRACTS) && node -e '$(ASYNCAPI)'
	for f in schemas/*.schema.json; do $(CONTRACTS)/node_modules/.bin/ajv compile --spec=draft2020 --strict=true -c ajv-formats -s $$f || exit 1; done

dashboards: $(PROMETHEUS)/promtool ## every query of the dashboards, against a Prometheus that scrapes a gateway and a monitor
	FLANK_PROMETHEUS=$(PROMETHEUS) $(GO) test -count 1 -tags e2e -run '^TestDashboards$$' ./e2e

# The hosts of the page are folders of this computer, with mounts, a network and processes of their own that end with the
# test: it needs a root who may mount.
DAY_ALONE = e2e/operatorsday/alone.sh
DAY_DIR  := $(CURDIR)/flank-data/operators-day

operators-day: $(PROMETHEUS)/promtool ## the commands of docs/how-to/operators-day.md: install, break, upgrade and restore a plant
	@$(DAY_ALONE) true || { echo "NOT RUN: the operator's day needs a root who may mount and make namespaces" >&2; exit 1; }
	scripts/kafka/install.sh $(firstword $(KAFKA))
	rm -rf "$(DAY_DIR)"; mkdir -p "$(DAY_DIR)"
	for v in v1.0.0 v1.0.1; do RELEASE_ARCHES=$$($(GO) env GOHOSTARCH) scripts/release.sh "$(DAY_DIR)/$$v" $$v >/dev/null || exit 1; done
	FLANK_DAY_PACKAGES="$(DAY_DIR)" FLANK_DAY_PROMETHEUS="$(CURDIR)/flank-data/prometheus" \
	  FLANK_DAY_KAFKA="$${FLANK_KAFKA_HOME:-$${XDG_CACHE_HOME:-$$HOME/.cache}/flank}/kafka-$(firstword $(KAFKA))" \
	  $(GO) test -count 1 -timeout 60m -tags e2e -exec "$(CURDIR)/$(DAY_ALONE)" -run TestOperatorsDay -v ./e2e/operatorsday

images: ## the container image, built and checked with buildah (root)
	scripts/images.sh

up: ## start everything with Docker
	docker compose up --build --detach

down: ## stop what up started
	docker compose down

# Python's peers, in environments of their own: all reference values are computed
# anew and compared. A folder that CI keeps from one run to the next may have been made under
# another path, which scripts such as pip's name.
%/.venv/ready: %/requirements.lock
	$(PYTHON) -m venv "$$(realpath -m $(@D))"
	$(@D)/bin/python -m pip install --quiet --no-compile --require-hashes --requirement $<
	touch $@

# Metrics by scikit-learn, computed anew.
peers-metrics: bench/peers/.venv/ready ## metrics, computed by scikit-learn
	bench/peers/.venv/bin/python bench/peers/metrics.py pkg/score/testdata/scikit-learn.json

# Logistic regression, random forest, extra trees and a guard by scikit-learn, computed again.
peers-baseline: bench/peers/.venv/ready ## logistic regression, forests and guard, fitted by scikit-learn
	bench/peers/.venv/bin/python bench/peers/baseline.py internal/train/study/testdata/scikit-learn.json
	bench/peers/.venv/bin/python bench/peers/vote.py pkg/classify/vote/testdata/scikit-learn.json

# Statistical tests by SciPy, resamplers by imbalanced-learn, computed anew.
peers-study: bench/peers/study/.venv/ready ## statistical tests and resamplers, computed by SciPy and imbalanced-learn
	bench/peers/study/.venv/bin/python bench/peers/study/stat.py bench/study/stat/testdata/scipy.json
	bench/peers/study/.venv/bin/python bench/peers/study/resamplers.py bench/imbalance/testdata/imbalanced-learn.json
	dir=$$(mktemp -d) && $(GO) test -C bench -count 1 -run TestForPeers ./imbalance -peers $$dir && \
	  bench/peers/study/.venv/bin/python bench/peers/study/resampled.py $$dir && rm -r $$dir

peers: peers-baseline peers-export peers-features peers-formats peers-signal peers-metrics peers-study ## all comparisons with libraries of Python

# Tools never seen, Flank's defaults next to simpler methods and to scikit-learn with and without the
# same aids: docs/figures/unseen.md and the table of README.md, of the cells in docs/figures/unseen. An hour of
# a processor, most of it the peers'; cells that are there are kept, but for the simpler methods', which take
# a minute. REDO=default makes Flank's cells again. The recordings are under DATA; their feature
# tables stay in flank-data/unseen.
unseen: unseen-peers ## tools never seen, and peers: docs/figures/unseen.md (an hour)
	$(GO) run -C bench ./unseen flank $(if $(REDO),--redo $(REDO))
	$(MAKE) unseen-simple robust

unseen-peers: bench/peers/unseen/.venv/ready ## the cells of the peers
	$(GO) run -C bench ./unseen tables --data $(call absolute,$(DATA))
	bench/peers/unseen/.venv/bin/python bench/peers/unseen/peers.py --reference bench/unseen/testdata/stability.json
	$(GO) test -C bench -count 1 -run TestPeersScreenAlike ./unseen
	OMP_NUM_THREADS=1 bench/peers/unseen/.venv/bin/python bench/peers/unseen/peers.py

# The cells of the simpler methods, and the page.
unseen-simple: ## the cells of simpler methods, and the page: two minutes
	$(GO) run -C bench ./unseen tables --data $(call absolute,$(DATA))
	$(GO) run -C bench ./unseen simple
	$(MAKE) unseen-page

# What can be said before a worn tool was seen, next to one-class methods and limits that are taught in: docs/figures/first-day.md.
bench-firstday: bench/peers/unseen/.venv/ready ## no worn tool seen yet: docs/figures/first-day.md (five minutes)
	$(GO) run -C bench ./unseen tables --data $(call absolute,$(DATA)) --sets turning,phm2010,drill
	$(GO) run -C bench ./firstday splits
	OMP_NUM_THREADS=1 bench/peers/unseen/.venv/bin/python bench/peers/unseen/firstday.py
	$(GO) run -C bench ./firstday page

# The page alone, and the table of README.md, of the cells that are there.
unseen-page: ## the page alone
	$(GO) run -C bench ./unseen page

# What each part of the ECS-DBN adds on turning tools never seen, with two and three classes: docs/figures/parts.md,
# of the cells in bench/parts, which are measured if they are not there: six minutes.
parts: ## what each part of the ECS-DBN adds: docs/figures/parts.md
	$(GO) run -C bench ./parts --data $(call absolute,$(DATA))

# One sensor that reads wrong on tools never seen, with and without a guard: docs/figures/robust.md, two lines of which are in README.md.
robust: ## if one sensor reads wrong: docs/figures/robust.md (a quarter of an hour)
	$(GO) run -C bench ./unseen tables --data $(call absolute,$(DATA))
	$(GO) run -C bench ./unseen robust

# The study: Python's classifiers and every method of bench/imbalance on KEEL's sets,
# as docs/figures/study/peers.csv and cells.csv, the gun drills, and the pages of them: hours
# of a processor. It goes on where it was stopped; REDO=ecs-dbn,dbn makes cells of
# methods anew.
study: study-peers study-go study-drill ## 58 imbalanced data sets: docs/figures/study (hours)
	$(MAKE) study-report

study-peers: bench/peers/study/.venv/ready ## the study's cells of Python's classifiers
	OMP_NUM_THREADS=1 bench/peers/study/.venv/bin/python bench/peers/study/peers.py --keel $(KEEL) --out docs/figures/study/peers.csv

# The pages alone, of the cells that are there.
study-report: ## the study's pages alone
	$(GO) run -C bench ./study report -keel $(call absolute,$(KEEL))

study-go: ## the study's cells of our methods
	$(GO) run -C bench ./study cells -keel $(call absolute,$(KEEL)) $(if $(REDO),-redo $(REDO))

# The paper's table of gun drills on the simulated one: all methods on 200,000 rows, and
# two on 19.7 million. Hours of a processor.
study-drill: ## the study's tables of gun drills (hours)
	$(GO) run -C bench ./study drill -full -o ../docs/figures/study/drill

# Ten sets and one trial, with bounds that catch a broken method.
study-short: ## ten sets and one trial of the study
	$(GO) test -C bench -count 1 -run TestReducedStudy ./imbalance -keel $(call absolute,$(KEEL))

# Memory and time of training on 10⁶ and 10⁷ rows × 196 features, for
# docs/figures/README.md: hours of a processor and 17 GB in SCALE_DIR, of which the table,
# 8 GB, stays there for the next time.
SCALE_DIR ?= flank-data/scale

scale: ## memory and time of training on 10⁶ and 10⁷ rows (hours)
	$(GO) build -o bin/trainer ./cmd/trainer
	$(GO) build -C bench -o ../bin/scale ./scale
	bin/scale write --dir $(SCALE_DIR)
	bin/scale measure --dir $(SCALE_DIR) --trainer bin/trainer

# Memory of training from an archive of 10⁷ windows, 1.1 GB in ROWS_DIR and 2 GB more while it runs, for docs/figures/sizes.md: hours
# of a processor.
ROWS_DIR ?= flank-data/rows

bench-archive-rows: ## memory and time of training from an archive of 10⁷ windows (hours)
	$(GO) build -o bin/trainer ./cmd/trainer
	test -d $(ROWS_DIR)/features || $(GO) test ./internal/train/archive -run TestWriteLarge -timeout 0 -archive.large $(call absolute,$(ROWS_DIR))
	scripts/archive-rows.sh bin/trainer $(ROWS_DIR)

# The simulated drill: tools left out beside the random split, levels beside all
# features: the table of docs/figures/simulator.md. A quarter of an hour.
simulator-report: ## how good the simulated drill is: docs/figures/simulator.md
	$(GO) run -C bench ./simulator -o ../docs/figures/simulator.md

# Alarms of simulated drills: a shift in which tools and sensors fail, a day of healthy cutting,
# 20 tools and 200 sensors that fail: docs/figures/alerts.md and its picture. A quarter of an hour of processor time.
shift: ## alarms of simulated drills: docs/figures/alerts.md
	$(GO) run -C bench ./alerts -o ../docs/figures/alerts.md -plot ../docs/figures/shift.svg

year: ## a simulated fleet's year, with and without training again: docs/figures/year.md (half an hour)
	$(GO) run -C bench ./year -o ../docs/figures

# Our readers of recordings beside npTDMS, scipy, numpy, pyarrow, pyuff and lvm_read: every value of every channel;
# and the evidence of alerts, read by pyarrow.
# FLANK_DATA, if set, names a folder of recordings to read as well.
peers-formats: bench/peers/formats/.venv/ready ## readers of recordings compared with those of Python
	rm -rf bench/peers/formats/.venv/fixtures && mkdir bench/peers/formats/.venv/fixtures
	FLANK_PEERS=$(CURDIR)/bench/peers/formats/.venv/fixtures $(GO) test -count 1 -run TestWriteFixtures ./internal/source/... ./internal/event/evidence ./pkg/window
	bench/peers/formats/.venv/bin/python bench/peers/formats/evidence.py bench/peers/formats/.venv/fixtures/evidence
	bench/peers/formats/.venv/bin/python bench/peers/formats/features.py bench/peers/formats/.venv/fixtures/features
	cd bench/peers/formats && .venv/bin/python reference.py .venv/fixtures $$(find $${FLANK_DATA:-/dev/null} -type f)
	FLANK_PEERS=$(CURDIR)/bench/peers/formats/.venv/fixtures $(GO) test -count 1 -v -run TestPeers ./internal/source

# The tool of a session as a server of asyncua names it, as a process: in the clear, encrypted, with a
# user, killed and started again.
opcua: bench/peers/opcua/.venv/ready ## the machine's context from asyncua
	FLANK_PEERS=$(CURDIR)/bench/peers/opcua $(GO) test -count 1 -timeout 20m -run OPCUA ./internal/source/machinetool ./cmd/ingest

sparkplug: bench/peers/sparkplug/.venv/ready ## messages of Sparkplug, read by pysparkplug
	FLANK_PEERS=$(CURDIR)/bench/peers/sparkplug $(GO) test -count 1 -v -run TestSparkplug ./internal/route

opcua-route: bench/peers/opcua/.venv/ready ## the `opcua` route on asyncua
	FLANK_PEERS=$(CURDIR)/bench/peers/opcua $(GO) test -count 1 -v -run TestPeersOPCUARoute ./internal/route

