"""The gateway's own metrics, read between two moments: what it asked of others, what its caches knew, where its time went."""

import urllib.request


def scrape(port):
    """Series, as written with its labels, to value."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        return parse(answer.read().decode())


def parse(text):
    out = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            series, _, value = line.rpartition(" ")
            out[series] = float(value)
    return out


def delta(before, after):
    return {series: value - before.get(series, 0) for series, value in after.items()}


def hits(seen, kind="token"):
    """Shares of the requests that each layer answered: {"l1", "l2", "l3"}, the last one being all that no cache knew."""
    asked = seen.get(f'subzero_cache_requests_total{{layer="l1",kind="{kind}"}}', 0)
    if not asked:
        return None
    found = {layer: seen.get(f'subzero_cache_hits_total{{layer="{layer}",kind="{kind}"}}', 0) / asked for layer in ("l1", "l2")}
    return dict(found, l3=max(0.0, 1 - sum(found.values())))


def calls(seen, requests):
    """Calls a request to those that are asked: by the gateway's own count of answers."""
    out = {"redis": 0.0, "provider": 0.0, "fga": 0.0}
    for series, value in seen.items():
        if series.startswith("subzero_dependency_duration_seconds_count{"):
            name = series.split('"')[1].split(":")[0]
            name = "provider" if name == "issuer" else name
            if name in out:
                out[name] += value / requests
    return out


STAGES = {"identify": 'subzero_request_duration_seconds_sum{handler="auth"}',
          "authorize": 'subzero_request_duration_seconds_sum{handler="authz"}'}


def stages(seen):
    """Microseconds a request: of the stages that have a clock, of the whole, and what no stage claims (the edge, the limits,
    the writing of the answer).  None where the gateway counted nothing."""
    whole = [seen.get(f'subzero_request_duration_seconds_{part}{{handler="decide"}}', 0) for part in ("sum", "count")]
    if not whole[1]:
        return None
    out = {name: seen.get(series, 0) * 1e6 / whole[1] for name, series in STAGES.items()}
    total = whole[0] * 1e6 / whole[1]
    return dict(out, unclaimed=total - sum(out.values()), total=total)
