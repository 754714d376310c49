-- Sliding window; see src/guard/limit.c, which takes the same steps on the same integers.
-- KEYS[1]: "number current previous": which window of Redis's clock, its count, and the count of the one before.
-- ARGV: limit, window (ms), cost, want.
-- Answers {granted, current, previous, milliseconds into the window, 1 when what stood there was no window}.
local time = redis.call('TIME')
local now = math.floor((time[1] * 1000000 + time[2]) / 1000)
local limit, window, cost, want = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])

local number = math.floor(now / window)
local elapsed = now - number * window
local current, previous, unreadable = 0, 0, 0
local raw = redis.pcall('GET', KEYS[1])
if type(raw) == 'string' then
  local a, b, c = string.match(raw, '^(%d+) (%d+) (%d+)$')
  if a and #a <= 14 and #b <= 10 and #c <= 10 then
    local stored = tonumber(a)
    if number < stored then -- the clock went back
      number, elapsed = stored, 0
    end
    if number == stored then
      current, previous = math.min(tonumber(b), limit), math.min(tonumber(c), limit)
    elseif number == stored + 1 then
      previous = math.min(tonumber(b), limit)
    end
  else
    unreadable = 1
  end
elseif type(raw) == 'table' then -- an error: another type
  unreadable = 1
end

local old = previous * (window - elapsed)
if (current + cost - 1) * window + old >= limit * window then
  return {0, current, previous, elapsed, unreadable} -- a denial writes nothing
end

local granted = 1
if want > 1 then
  granted = math.min(want, math.floor((math.ceil((limit * window - old) / window) - current) / cost))
end
current = current + granted * cost
local life = (number + 2) * window - now + 1 -- until it counts for nothing
redis.call('SET', KEYS[1], string.format('%.0f %.0f %.0f', number, current, previous), 'PX', string.format('%.0f', life))
return {granted, current, previous, elapsed, unreadable}
