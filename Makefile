# The project's commands. Start with `make demo`, then `make test`; `make` alone lists all commands.
#
# Every command that needs the environment creates it once, before it runs: see scripts/setup.sh.
# AFTERIMAGE_WAREHOUSE moves the warehouse folder (default: warehouse/); tests never use that folder.

.DEFAULT_GOAL := help
# Two dbt processes that share an embedded metastore block each other, so targets never run in parallel.
.NOTPARALLEL:

WITH_ENV := scripts/with_env.sh
SCRATCH := scripts/with_env.sh --scratch
SETUP_DONE := .venv/.setup_done
# The tests build the demos in this folder, in a separate warehouse. It is kept so that sqlfluff can lint the SQL.
DEMO := .scratch/demo
DEMO_DONE := $(DEMO)/.done
DEMO_SOURCES := dbt_project.yml profiles.yml.example \
	$(shell find macros src demo docs/dbt -type f ! -name '*.pyc' 2>/dev/null)
# For example: make test-unit PYTEST_ARGS="-k mask"
PYTEST_ARGS ?=
# Each worker starts its own Spark: two cores and up to 4 GiB. `make test WORKERS=1` runs one test at a time.
WORKERS ?= 2
FUNCTIONAL := $(SCRATCH) pytest --numprocesses $(WORKERS) --no-loadscope-reorder --durations 40 --durations-min 5
PARALLEL := $(SCRATCH) pytest --numprocesses $(WORKERS) --dist worksteal

.PHONY: help setup demo demo-openedge demo-soliddb demo-kafka demo-postgres demo-mariadb test lint lint-code lint-sql \
	check test-unit test-kernel test-staging test-dbt test-functional test-iceberg test-delta test-nightly test-properties \
	test-mutations \
	bench bench-statements bench-sweeps bench-start bench-compaction bench-soliddb bench-kafka bench-joins bench-joined docs site dist lock clean

help: ## list all commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' Makefile

setup: $(SETUP_DONE) profiles.yml ## create .venv with the locked packages, find Java, create profiles.yml

$(SETUP_DONE): pyproject.toml demo/pyproject.toml requirements.txt requirements-build.txt requirements-uv.txt
	@scripts/setup.sh

# Only if it is missing: an existing profile is never overwritten.
profiles.yml:
	@cp profiles.yml.example profiles.yml

demo: setup ## land the demo's change tables in two batches, build everything after each, show the result
	@$(WITH_ENV) afterimage demo

demo-openedge: setup ## the demo with the change tables of an OpenEdge database
	@$(WITH_ENV) afterimage demo --system openedge

demo-soliddb: setup ## the demo with the transaction log of a solidDB server
	@$(WITH_ENV) afterimage demo --system soliddb

demo-kafka: setup ## the demo with Qlik messages, through a Kafka broker that it starts
	@$(WITH_ENV) afterimage demo --system kafka

demo-postgres: setup ## the demo with a real PostgreSQL, which Debezium reads; it starts both
	@$(WITH_ENV) afterimage demo --system postgres

demo-mariadb: setup ## the same with a real MariaDB, which Debezium's MySQL connector reads
	@$(WITH_ENV) afterimage demo --system mariadb

check: KERNEL_ARGS := --few-shapes
check: lint-code test-unit test-kernel ## lint without SQL, unit tests, and kernel tests with few random streams: five minutes

test: lint-code test-unit test-kernel test-staging test-iceberg lint-sql test-delta ## lint, unit tests, and functional tests on Iceberg and Delta: 20 to 35 minutes on two cores

lint: lint-code lint-sql ## lint Python, YAML, shell and SQL, and check that everything has a description

lint-code: $(SETUP_DONE)
	$(WITH_ENV) ruff check .
	$(WITH_ENV) ruff format --check .
	$(WITH_ENV) mypy
	$(WITH_ENV) lint-imports --no-cache --no-logo
	$(WITH_ENV) yamllint --strict .
	@scripts/check_shell.sh
	$(WITH_ENV) python scripts/check_macros.py
	$(WITH_ENV) python scripts/check_words.py
	AFTERIMAGE_DEMOS=$$(.venv/bin/python -m afterimage_demo.systems) \
		$(SCRATCH) sh -c 'dbt --quiet parse && python scripts/check_descriptions.py "$$DBT_TARGET_PATH/manifest.json"'

lint-sql: $(DEMO_DONE)
	scripts/with_env.sh --scratch-in $(DEMO) scripts/check_sql.sh

test-unit: $(SETUP_DONE) ## test functions, rendered macros and scripts, mostly without a JVM
	$(PARALLEL) tests/unit $(PYTEST_ARGS)

test-kernel: $(SETUP_DONE) ## test transforms of rows in a plain Spark session, without dbt
	$(PARALLEL) tests/kernel -m "not nightly" $(KERNEL_ARGS) $(PYTEST_ARGS)

test-staging: $(SETUP_DONE) ## test how records are decoded and staged: rendered macros on a plain Spark, without dbt
	$(PARALLEL) tests/staging -m "not nightly" $(PYTEST_ARGS)

# The second `dbt build` of each demo runs dbt's unit tests and data tests.
$(DEMO_DONE): $(SETUP_DONE) $(DEMO_SOURCES)
	$(SCRATCH) pytest $(addprefix tests/functional/test_,demo.py openedge_demo.py soliddb_demo.py) \
		-m "not nightly" --table-format iceberg --demos-in $(DEMO)
	@touch $(DEMO_DONE)

test-dbt: $(DEMO_DONE) ## build the demos, run their dbt unit and data tests, check the values in their marts

test-functional: test-iceberg test-delta ## run dbt on Iceberg, then on Delta, and check the tables

# These tests build the demos, so `make lint-sql` need not build them again.
test-iceberg: $(SETUP_DONE)
	$(FUNCTIONAL) tests/functional -m "not nightly" --table-format iceberg $(or $(PYTEST_ARGS),--demos-in $(DEMO))
	@$(if $(PYTEST_ARGS),,touch $(DEMO_DONE))

test-delta: $(SETUP_DONE)
	$(FUNCTIONAL) tests/functional -m "both_formats and not nightly and not delta_nightly" --table-format delta $(PYTEST_ARGS)

# The demos through Kafka, PostgreSQL and MariaDB are in this run, so their SQL is linted here.
NIGHTLY_DEMO := .scratch/nightly_demo
DEMO_TESTS := $(addprefix tests/functional/,test_demo.py test_openedge_demo.py test_soliddb_demo.py nightly/test_kafka_demo.py)
test-nightly: $(SETUP_DONE) ## run the tests that `make test` leaves out, on Iceberg and Delta, lint their SQL, and run four demos on a cluster
	$(if $(PYTEST_ARGS),,$(PARALLEL) tests/kernel tests/staging --compiled -m nightly)
	$(FUNCTIONAL) tests/functional --compiled -m nightly --table-format iceberg $(or $(PYTEST_ARGS),--demos-in $(NIGHTLY_DEMO))
	$(if $(PYTEST_ARGS),,scripts/with_env.sh --scratch-in $(NIGHTLY_DEMO) scripts/check_sql.sh)
	$(FUNCTIONAL) tests/functional --compiled -m "both_formats and (nightly or delta_nightly)" --table-format delta $(PYTEST_ARGS)
	$(if $(PYTEST_ARGS),,$(SCRATCH) pytest $(DEMO_TESTS) --compiled --spark-workers 2)

# 46 shapes of 510 streams are 23,460. FORMAT=delta runs all tests that need tables on Delta, except those of landing and of two runs.
FORMAT ?= iceberg
test-properties: $(SETUP_DONE) ## 23,460 random streams, 50 killed runs, a history of 1,000,000 versions; by hand or nightly
	$(if $(PYTEST_ARGS),,$(SCRATCH) pytest tests/unit/test_stream_shapes.py --all-shapes --streams 510)
	$(SCRATCH) pytest tests/kernel/test_random_streams.py tests/kernel/test_planned_batches.py --compiled --all-shapes --streams 510 $(PYTEST_ARGS)
	$(SCRATCH) pytest tests/functional/properties --compiled --table-format $(FORMAT) --all-shapes --streams 510 $(PYTEST_ARGS)
	$(SCRATCH) pytest tests/functional/nightly/test_kills.py --compiled --table-format $(FORMAT) --kills 50 $(PYTEST_ARGS)
	$(SCRATCH) pytest tests/functional/test_land_kafka.py --compiled --table-format iceberg --landing-kills 20 $(PYTEST_ARGS)
	$(SCRATCH) pytest $(addprefix tests/functional/nightly/test_,lost_worker.py postgres.py two_runs.py) --compiled --table-format iceberg --transactions 100000 $(PYTEST_ARGS)
	$(SCRATCH) pytest tests/functional/test_files_stay.py --compiled --table-format $(FORMAT) --versions 1000000 $(PYTEST_ARGS)

test-mutations: $(SETUP_DONE) ## break each rule of history on purpose: the tests must notice
	scripts/with_env.sh python -m tests.mutations.check

# For example: make bench FORMAT=delta BENCH_ARGS="--keys 100000 --changes 10000 --repeats 5"
BENCH_ARGS ?=
bench: $(SETUP_DONE) ## measure each step of a table's chain against its baselines: plain appends, MERGEs, dbt snapshot
	$(WITH_ENV) python -m benchmarks --table-format $(FORMAT) $(BENCH_ARGS)

bench-statements: $(SETUP_DONE) ## count Spark's jobs and compiled classes for further small batches, model by model
	$(WITH_ENV) python -m benchmarks.statements --table-format $(FORMAT) $(BENCH_ARGS)

bench-sweeps: $(SETUP_DONE) ## the same as one size varies: changes, keys, columns, closed versions, tables, threads; hours
	$(WITH_ENV) python -m benchmarks.sweeps --table-format $(FORMAT) $(BENCH_ARGS)

bench-start: $(SETUP_DONE) ## measure whole `dbt run` commands on Iceberg, also with an archive of classes, and on a Connect server
	$(WITH_ENV) python -m benchmarks.new_process --table-format $(FORMAT) $(BENCH_ARGS)

bench-compaction: $(SETUP_DONE) ## measure 200 small batches, then the effect of `compact`; an hour
	$(WITH_ENV) python -m benchmarks.compaction --table-format $(FORMAT) $(BENCH_ARGS)

bench-soliddb: $(SETUP_DONE) ## measure how fast solidDB rows are decoded, compared with reading decoded rows
	$(WITH_ENV) python -m benchmarks.soliddb_decoding $(BENCH_ARGS)

bench-kafka: $(SETUP_DONE) ## measure how fast messages are landed and decoded, compared with a plain copy of the topic
	$(WITH_ENV) python -m benchmarks.kafka_throughput --table-format $(FORMAT) $(BENCH_ARGS)

bench-joins: $(SETUP_DONE) ## measure `temporal_join`, compared with a plain equi-join of the same versions
	$(WITH_ENV) python -m benchmarks.temporal_join $(BENCH_ARGS)

bench-joined: $(SETUP_DONE) ## measure a run of a `joined_history`, compared with the same join built as a table
	$(WITH_ENV) python -m benchmarks.joined_history --table-format $(FORMAT) $(BENCH_ARGS)

docs: setup ## build the dbt docs of your warehouse: target/static_index.html
	$(WITH_ENV) dbt docs generate --static
	@echo "Open target/static_index.html in a browser."

# In an environment of its own: the site takes no package of the project.
site: .scratch/site/.done ## build the site of docs/ into build/site; a dead link is an error
	.scratch/site/bin/mkdocs build --strict --quiet

.scratch/site/.done: requirements-site.txt
	python3 -m venv .scratch/site
	.scratch/site/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-site.txt
	@touch $@

# hatchling sets times and permissions of all files itself, so one commit gives the same files everywhere.
dist: $(SETUP_DONE) ## build the wheel and the sdist into dist/, reproducibly, with the locks of an image
	@SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(WITH_ENV) python -m hatchling build --directory dist
	@cp requirements-build.txt requirements-connect.txt dist
	@cd dist && sha256sum *.whl *.tar.gz

lock: $(SETUP_DONE) ## recreate requirements*.txt from pyproject.toml (LOCK_ARGS=--upgrade for newer versions)
	scripts/lock.sh $(LOCK_ARGS)

clean: ## remove temporary files; .venv, profiles.yml and the warehouse stay
	rm -rf .scratch target logs dbt_packages metastore_db derby.log spark-warehouse artifacts build dist
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -path ./.venv -prune -o -name __pycache__ -type d -exec rm -rf {} +
