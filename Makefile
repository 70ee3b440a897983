# Arkvory sidecar. `make help` lists what there is; a target's description is the text behind its ##.
.ONESHELL:
SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

BIN      := bin/arkvory-sidecar
CTL      := bin/arkvoryctl
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
# Inputs a fuzz target gets. A count and not a time: at the end of a time the fuzzer now and then reports its own deadline as a failure.
FUZZTIME ?= 50000x
TIMEOUT  ?= 10m
UPSTREAM ?=
# Random histories that `make check` plays against the oracle, runs of each benchmark of the queue, and seeds and files of the simulation.
HISTORIES ?= 100000
COUNT    ?= 1
SEEDS    ?= 1
SCENARIOS ?= $(sort $(wildcard testdata/sim/*.yaml))
# Where the comparison with other proxies is, when this checkout stands beside it.
PEERS    ?= ../shared/bench/peers.sh

.PHONY: help run build test needs lint check race fuzz bench bench-queue sim gate clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-11s %s\n", $$1, $$2}'

run: build ## build and start; UPSTREAM=http://host:port puts it before a store, without one it serves a demo origin
	@listen="$${ARKVORY_LISTEN:-:8080}"; admin="$${ARKVORY_ADMIN_LISTEN:-127.0.0.1:8081}"
	case "$$listen" in :*) listen="127.0.0.1$$listen";; esac
	case "$$admin" in :*) admin="127.0.0.1$$admin";; esac
	echo "Try in another terminal (Ctrl-C here drains and stops):"
	echo "  curl -i http://$$listen/"
	echo "  curl -s http://$$admin/health/ready"
	echo "  curl -s http://$$admin/metrics"
	if [ -n "$(UPSTREAM)" ]; then export ARKVORY_UPSTREAM="$(UPSTREAM)"; fi
	exec $(BIN)

build: ## build the static binaries bin/arkvory-sidecar and bin/arkvoryctl
	@CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=$(VERSION)" -o $(dir $(BIN)) ./cmd/arkvory-sidecar ./cmd/arkvoryctl

test: needs lint ## everything a change must pass: format, vet, all tests under the race detector
	go test -race -timeout $(TIMEOUT) ./...

# What the tests run as programs: nginx (a real store and a real front), PostgreSQL, curl, a browser, and gcc for the race detector. Only what is
# missing is installed. Packages of servers start them on Debian; policy-rc.d forbids that, and is taken away again
# when it was not there before.
needs:
	@missing=()
	command -v nginx >/dev/null || [ -x /usr/sbin/nginx ] || missing+=(nginx)
	command -v curl  >/dev/null || missing+=(curl)
	command -v chromium-headless-shell >/dev/null || [ -x /usr/lib/chromium/chromium-headless-shell ] || missing+=(chromium-headless-shell)
	command -v postgres >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null || missing+=(postgresql)
	command -v gcc   >/dev/null || missing+=(gcc libc6-dev)
	[ -e /etc/ssl/certs/ca-certificates.crt ] || missing+=(ca-certificates)
	[ "$${#missing[@]}" -gt 0 ] || exit 0
	echo "installing for the tests: $${missing[*]}"
	as=(); [ "$$(id -u)" = 0 ] || as=(sudo)
	policy=/usr/sbin/policy-rc.d
	if [ ! -e "$$policy" ]; then
	  trap '"$${as[@]}" rm -f "$$policy"' EXIT
	  printf '#!/bin/sh\nexit 101\n' | "$${as[@]}" tee "$$policy" >/dev/null
	  "$${as[@]}" chmod 755 "$$policy"
	fi
	get() { "$${as[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$${missing[@]}" </dev/null >/dev/null; }
	get 2>/dev/null || { "$${as[@]}" apt-get update -qq </dev/null; get; }

lint:
	@unformatted=$$(gofmt -l $$(find . -name '*.go' -not -path './.git/*'))
	if [ -n "$$unformatted" ]; then echo "gofmt -w is needed for:"; echo "$$unformatted"; exit 1; fi
	go vet ./...

check: needs lint ## lint with staticcheck, all tests under the race detector, HISTORIES random histories of the queue, a short fuzz of every target
	go vet -tags gate ./...
	go tool staticcheck -tags gate ./...
	go test -race -timeout $(TIMEOUT) ./...
	ARKVORY_HISTORIES=$(HISTORIES) go test -count=1 -timeout 30m -run RandomHistories -v ./queue
	$(MAKE) --no-print-directory fuzz

fuzz: ## fuzz every target with FUZZTIME inputs each (default 50000x)
	@{ grep -roE '^func Fuzz[A-Za-z0-9_]+' --include='*_test.go' . || true; } | sort | while IFS=: read -r file func; do
	  name="$${func#func }"
	  echo "$$(dirname "$$file") $$name"
	  go test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) "$$(dirname "$$file")" </dev/null
	done

# The peers' harness starts the sidecar by itself. Admission is raised so that nobody waits (its load is one address that asks for one object, which by
# default is one session); all else is as by default. Its load sends no identity, so "64 MiB/s per connection" is 64 MiB/s in all over one connection and
# 256 MiB/s in all over four: the governor's turns make the shares.
BENCH_ENV = env ARKVORY_UPSTREAM=http://127.0.0.1:19000 ARKVORY_ADMIN_LISTEN=127.0.0.1:0 ARKVORY_MAX_REQUESTS=16384 \
  ARKVORY_MAX_DOWNLOADS=256 ARKVORY_MAX_DOWNLOADS_PER_PRINCIPAL=256 ARKVORY_MAX_DOWNLOAD_SESSIONS=1024 \
  ARKVORY_DOWNLOAD_SESSION_MIN_BYTES=1099511627776 ARKVORY_MAX_UPLOADS=32 ARKVORY_MAX_UPLOADS_PER_PRINCIPAL=32 ARKVORY_LOG_LEVEL=warn
bench: build ## compare with nginx and HAProxy when their harness is there, else run the Go benchmarks (BENCH=--quick)
	@if [ -f $(PEERS) ]; then
	  bin="$$PWD/$(BIN)"
	  export SUT_NAME=arkvory SUT_URL=http://127.0.0.1:19101 SUT_CMD="$(BENCH_ENV) ARKVORY_LISTEN=127.0.0.1:19101 $$bin"
	  export SUT_CONN_URL=http://127.0.0.1:19102 SUT_CONN_CMD="$(BENCH_ENV) ARKVORY_LISTEN=127.0.0.1:19102 ARKVORY_DOWNLOAD_BYTES_PER_SECOND=67108864 $$bin"
	  export SUT_SUM_URL=http://127.0.0.1:19103 SUT_SUM_CMD="$(BENCH_ENV) ARKVORY_LISTEN=127.0.0.1:19103 ARKVORY_DOWNLOAD_BYTES_PER_SECOND=67108864 $$bin"
	  if [ -n "$(BENCH)" ]; then exec bash $(PEERS) $(BENCH); fi
	  bash $(PEERS) --no-caddy --only 'verify|slow|idle|large|8 MiB|64 conns|upload|1 conn|in all'
	  unset SUT_URL SUT_CMD SUT_SUM_URL SUT_SUM_CMD
	  export SUT_CONN_CMD="$(BENCH_ENV) ARKVORY_LISTEN=127.0.0.1:19102 ARKVORY_DOWNLOAD_BYTES_PER_SECOND=268435456 $$bin"
	  exec bash $(PEERS) --no-caddy --only '4 conns'
	fi
	go test -run '^$$' -bench . -benchmem ./...

bench-queue: ## benchmarks of the queue's core, COUNT runs each (default 1), in the form that benchstat reads
	@go test -run '^$$' -bench 'Tick|Contact|Decisions|Memory' -benchmem -count=$(COUNT) -timeout 60m ./queue

sim: build ## simulate the scenarios of testdata/sim side by side (SEEDS=5 for several seeds, SCENARIOS=file.yaml for one)
	@for file in $(SCENARIOS); do
	  $(CTL) simulate --scenario "$$file" --seeds $(SEEDS)
	  echo
	done

gate: needs build ## the long gates of the main job (minutes; real nginx, real bytes)
	go test -count=1 -tags gate -run Gate -timeout 90m -v ./cmd/...

clean: ## remove what was built
	rm -rf bin
