"""The benchmark harness: script/bench NAME runs one cell, script/bench --table judges the latest results.

A cell (perf/bench/cells) compares the gateway with what a user would otherwise run, both sides in one run on one
machine, in interleaved pairs, since the machine's clock drifts by more than the differences that matter.  The
verdict is by CPU per request wherever the load generator can be the limit.  Each run is kept whole as JSON under
perf/results, with a fingerprint of the conditions; failed pairs are counted, never dropped in silence.
"""
