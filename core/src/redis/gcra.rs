//! GCRA, the generic cell rate algorithm, as a Lua function for scripts.

/// `gcra(key, interval, limit, wanted)` takes up to `wanted` requests from a bucket of `limit`
/// requests that refills one request in `interval` nanoseconds. Returns how many it took and in
/// how many nanoseconds the bucket is full again. The key stores when the bucket is full, by
/// the clock of Redis, as `seconds.nanoseconds`, because a Lua number is not precise enough for
/// both. If the clock is set back, the bucket is at worst empty.
pub(crate) const GCRA: &str = r"
    local function gcra(key, interval, limit, wanted)
        local time = redis.call('TIME')
        local second, nano = tonumber(time[1]), tonumber(time[2]) * 1000
        local whole, taken = interval * limit, 0
        local kept = redis.call('GET', key)
        if kept then
            local s, n = string.match(kept, '^(%d+)%.(%d+)$')
            if s then taken = (tonumber(s) - second) * 1e9 + tonumber(n) - nano end
            taken = math.min(math.max(taken, 0), whole)
        end
        local granted = math.min(math.floor((whole - taken) / interval), wanted)
        if granted > 0 then
            taken = taken + granted * interval
            local at = nano + taken
            local value = string.format('%d.%09d', second + math.floor(at / 1e9), at % 1e9)
            redis.call('SET', key, value, 'PX', math.ceil(taken / 1e6))
        end
        return granted, taken
    end
";
