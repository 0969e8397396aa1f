# make demo: models trained, evaluated and compared.    make test: the tests.
# Both make .venv and install what requirements.txt pins; the second time that takes no time.

PYTHON ?= python3
PY := .venv/bin/python
MODELS := bahdanau transformer rnn
DEMO := $(MODELS:%=runs/grammar/%/demo)
ATTENTION := runs/grammar/bahdanau/alignments
FIGURE_3A := The agreement on the European Economic Area was signed in August 1992.

BUDGET ?= 1

.PHONY: help demo demo-runs reproduce test test-long lint format tensorboard clean-demo

help:
	@echo "make demo         trains, evaluates and compares three models (10 to 20 minutes)"
	@echo "make reproduce    the paper's figure 2 on the Bible: six models, about three hours (BUDGET=0.1: a tenth)"
	@echo "make test         runs the tests"
	@echo "make test-long    kills, hostile input and an hour of training: over an hour"
	@echo "make lint         checks style and formatting"
	@echo "make format       formats the code"
	@echo "make tensorboard  serves the curves of all runs"
	@echo "make clean-demo   deletes the demo's runs, so that make demo begins anew"

.venv/created:
	@$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "Python 3.11 or later is needed: make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv .venv
	touch $@

.venv/installed: requirements.txt .venv/created
	$(PY) -m pip install --disable-pip-version-check -r requirements.txt
	touch $@

.venv/installed-dev: requirements-dev.txt requirements.txt .venv/created
	$(PY) -m pip install --disable-pip-version-check -r requirements-dev.txt
	touch $@ .venv/installed

# Two trainings at a time, one thread each: faster than one after the other with two threads each.
demo: .venv/installed
	@$(MAKE) --no-print-directory -j2 demo-runs
	@$(PY) -m scripts.plot_bleu_by_length $(DEMO) --output runs/grammar/demo_bleu_by_length.png
	@$(PY) -m scripts.plot_alignments $(ATTENTION) --source "$(FIGURE_3A)" \
		--output runs/grammar/demo_alignment.png
	@echo "curves: make tensorboard    (that is: .venv/bin/tensorboard --logdir runs)"

demo-runs: $(ATTENTION)/alignments.json $(DEMO:%=%/evaluation/test/scores.json)

# An interrupted training goes on where it stopped.
runs/grammar/%/demo/evaluation/test/scores.json:
	@if [ -d runs/grammar/$*/demo ]; then $(PY) train.py resume=runs/grammar/$*/demo; \
	else $(PY) train.py +experiment=demo model=$* name=demo; fi
	@$(PY) evaluate.py run=runs/grammar/$*/demo search=greedy ter=false threads=1

# Attention is drawn from a model that has learnt all words of the lexicon.
$(ATTENTION)/alignments.json:
	@if [ -d $(ATTENTION) ]; then $(PY) train.py resume=$(ATTENTION); \
	else $(PY) train.py +experiment=alignments name=alignments; fi
	@$(PY) -m scripts.score_alignments $(ATTENTION) --method balanced --json $@

# The paper's figure 2 on real text. Interrupted, it goes on where it stopped.
reproduce: .venv/installed
	@$(PY) -m scripts.reproduce bottleneck --budget $(BUDGET)

test: .venv/installed-dev
	$(PY) -m pytest -n 2

# Twenty kills, ten minutes of hostile input, an hour of training: LONG_RUN_MINUTES, FUZZ_MINUTES.
test-long: .venv/installed-dev
	$(PY) -m pytest tests/long

lint: .venv/installed-dev
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

format: .venv/installed-dev
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

tensorboard: .venv/installed
	.venv/bin/tensorboard --logdir runs

clean-demo:
	rm -rf $(DEMO) $(ATTENTION)
