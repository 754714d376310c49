-- Token bucket; see src/guard/limit.c, which takes the same steps on the same integers.
-- KEYS[1]: "tokens at", micro-tokens and the microsecond of Redis's clock at which they were that many.
-- ARGV: capacity, n, d (n/d micro-tokens come back in a microsecond), cost, fill (us that fill an empty bucket), want.
-- Answers {granted, tokens, microseconds since they were that many, 1 when what stood there was no bucket}.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local capacity, n, d = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local cost, fill, want = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])

local stored, at, unreadable = capacity, now, 0
local raw = redis.pcall('GET', KEYS[1])
if type(raw) == 'string' then
  local a, b = string.match(raw, '^(%d+) (%d+)$')
  if a and #a <= 15 and #b <= 16 then
    stored, at = tonumber(a), tonumber(b)
  else
    unreadable = 1
  end
elseif type(raw) == 'table' then -- an error: another type
  unreadable = 1
end

local elapsed = now - at
if elapsed < 0 then elapsed = 0 elseif elapsed > fill then elapsed = fill end
local tokens = stored + math.floor(elapsed * n / d)
if tokens > capacity then tokens = capacity end
if tokens < cost then
  return {0, stored, now - at, unreadable} -- a denial writes nothing
end

local granted = 1
if want > 1 then granted = math.min(want, math.floor(tokens / cost)) end
tokens = tokens - granted * cost
if now > at then at = now end
local value = string.format('%.0f %.0f', tokens, at)
if n == 0 then
  redis.call('SET', KEYS[1], value)
else -- kept until it is full again
  local full = at + math.ceil((capacity - tokens) * d / n)
  redis.call('SET', KEYS[1], value, 'PX', string.format('%.0f', math.ceil((full - now) / 1000) + 1))
end
return {granted, tokens, now - at, unreadable}
