//! GCRA, the generic cell rate algorithm, as a Lua function that scripts begin
//! with.

/// `gcra(key, interval, limit, wanted)` takes up to `wanted` from a bucket of
/// `limit`, each of which takes `interval` nanoseconds to come back. Answers how
/// many it took and after how many nanoseconds the bucket is full again. What is
/// kept is the time at which it will be, by Redis' own clock, as
/// `seconds.nanoseconds`: a number of Lua has not enough digits for both. A clock
/// that was set back costs no more than an empty bucket.
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
