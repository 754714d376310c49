-- wrk script: sends the raw requests of the file named in $BENCH_REQUESTS in turn, and prints one JSON line at the end.
-- Requests are separated by lines that hold nothing but "%%"; line ends are CRLF already.
local requests = {}
local at = 0

function init()
  local file = assert(io.open(assert(os.getenv("BENCH_REQUESTS")), "rb"))
  local text = file:read("*a")
  file:close()
  for request in text:gmatch("(.-)%%%%\n") do
    requests[#requests + 1] = request
  end
  assert(#requests > 0, "no request in the file")
end

function request()
  at = at % #requests + 1
  return requests[at]
end

function done(summary, latency)
  local e = summary.errors
  io.write(string.format(
    '\nBENCH {"requests":%d,"bytes":%d,"seconds":%.6f,"p50_us":%d,"p95_us":%d,"p99_us":%d,"max_us":%d,' ..
    '"errors":{"connect":%d,"read":%d,"write":%d,"status":%d,"timeout":%d}}\n',
    summary.requests, summary.bytes, summary.duration / 1e6, latency:percentile(50), latency:percentile(95), latency:percentile(99), latency.max,
    e.connect, e.read, e.write, e.status, e.timeout))
end
