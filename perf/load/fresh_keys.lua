-- wrk script: asks about /documents/SALT-N, where N changes with each hundredth request, as a forward proxy would ask.
-- Prints one JSON line at the end, as requests.lua does, and the keys that have had their hundred.
local salt = assert(os.getenv("BENCH_SALT"))
sent = 0 -- global: thread:get sees no local
local thread

function setup(t)
  thread = t
end

function request()
  local n = math.floor(sent / 100)
  sent = sent + 1
  return "GET /auth HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Original-URI: /documents/" .. salt .. "-" .. n ..
    "\r\nX-Original-Method: GET\r\nX-Forwarded-For: 192.0.2.7\r\n\r\n"
end

function done(summary, latency)
  local e = summary.errors
  io.write(string.format(
    '\nBENCH {"requests":%d,"sent":%d,"seconds":%.6f,"p50_us":%d,"p95_us":%d,"p99_us":%d,"max_us":%d,' ..
    '"errors":{"connect":%d,"read":%d,"write":%d,"status":%d,"timeout":%d}}\n',
    summary.requests, thread:get("sent"), summary.duration / 1e6, latency:percentile(50), latency:percentile(95),
    latency:percentile(99), latency.max, e.connect, e.read, e.write, e.status, e.timeout))
end
