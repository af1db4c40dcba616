# SPDX-License-Identifier: Apache-2.0
# A thin front for meson: `make help` lists what there is.
.DELETE_ON_ERROR:
.PHONY: all run test test-all test-vm bench install fuzz clean help deps asan

BUILD ?= build
MESON_FLAGS ?=
PYTEST = /usr/bin/python3 -m pytest -p no:cacheprovider -q

all: $(BUILD)/build.ninja ## build (leaves the program at build/carrel)
	@ninja -C $(BUILD) --quiet

$(BUILD)/build.ninja: | deps
	@meson setup $(BUILD) $(MESON_FLAGS) >/dev/null

deps: ## install what is missing with apt, after saying what
	@tools/deps.sh build

run: all ## run a Python program in a sandbox and show its result and receipt
	@tools/demo.sh $(BUILD)/carrel

test: ## build and run the tests (what .ci/run runs)
	@tools/test.sh

test-all: ## the same with every long sweep whole
	@tools/test.sh --all

test-vm: all ## limits and security suites in an emulated machine with Debian's kernel and cgroup v2
	@tools/test-vm.sh

bench: all ## measure beside bubblewrap, crun, runc and systemd-nspawn
	@tools/deps.sh bench
	@/usr/bin/python3 bench/run.py --carrel $(BUILD)/carrel --json $(BUILD)/bench.json

fuzz: ## a minute of each fuzzer
	@tools/deps.sh test
	@tools/fuzz.sh

asan: ## build with AddressSanitizer and UndefinedBehaviorSanitizer into build-asan
	@meson setup build-asan -Db_sanitize=address,undefined -Dseccomp=log -Dtest_switches=true --reconfigure >/dev/null 2>&1 || \
		meson setup build-asan -Db_sanitize=address,undefined -Dseccomp=log -Dtest_switches=true >/dev/null
	@ninja -C build-asan --quiet

install: all ## install below /usr/local (DESTDIR and meson's options apply)
	@meson install -C $(BUILD) --no-rebuild

clean:
	rm -rf $(BUILD) build-asan build-test

help:
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12
