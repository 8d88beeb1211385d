//! Lanes in Redis: what keeps one organization's backlog from standing before
//! another's single job.
//!
//! Of each lane a *window* of jobs is in the stream at the most. What is beyond it
//! waits in the lane's *overflow*, a list, and is let in as the lane's jobs leave the
//! stream. So whoever comes waits behind a window of each busy lane, whatever waits
//! behind those. Every way in and out of the stream leads through the scripts here,
//! which count: a count says how many entries of its lane the stream holds. Entries
//! carry their lane, so that what nobody can decode is counted too; entries without
//! one (an older process pushed them) are nobody's.
//!
//! Redis may lose keys, and older processes do not count. [`MEND`] puts it right.
//!
//! While a lane overflows it has a *floor*: the push time of the job of it that left
//! the stream last. What waits of the lane was pushed later, give or take what runs
//! at the same time. The floor goes when the lane is empty, or when a job has
//! left that was pushed after the last one that had to wait.
//!
//! The names of overflows are made in the scripts. Redis Cluster allows that, because
//! they share the hash tag, and so the slot, of the keys that are handed in.

use std::sync::LazyLock;

use redis::Script;

/// What the scripts share. `KEYS`: stream, counts, floors, the beginning of overflows'
/// names. `ARGV`: now in ms, the window.
///
/// What needs memory after something has been taken away is called in a way that
/// cannot end the script: Redis refuses such calls when it is full.
const COMMON: &str = r"
local stream, counts, floors, overflow = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local now, window = ARGV[1], tonumber(ARGV[2])

local function add(call, name, job, at, tries, let_in)
    local id
    if name ~= '' and tries == '0' and not let_in then
        id = call('XADD', stream, '*', 'j', job, 'at', at, 'l', name)
    elseif name ~= '' and tries == '0' then
        id = call('XADD', stream, '*', 'j', job, 'at', at, 'l', name, 'in', let_in)
    else
        local entry = {'XADD', stream, '*', 'j', job, 'at', at, 'n', tries}
        if name ~= '' then entry[#entry + 1] = 'l'; entry[#entry + 1] = name end
        if let_in then entry[#entry + 1] = 'in'; entry[#entry + 1] = let_in end
        id = call(unpack(entry))
    end
    return type(id) == 'string'
end

local function count_of(name)
    return tonumber(redis.call('HGET', counts, name) or 0)
end

-- Sets a lane's count to `count` and what may be let in of what waits, and its floor
-- to `at`. Answers the count. `at` is nil where none of the lane's jobs has left.
local function let_in(name, count, at)
    local list, free = overflow .. name, window - count
    local waiting = {}
    -- One more than may come in tells whether any stays behind.
    if free > 0 then waiting = redis.call('LRANGE', list, 0, free) end
    local moved, last = 0, nil
    for i = 1, math.min(#waiting, free) do
        local pushed, tries, job = string.match(waiting[i], '^(%d+):(%d+):(.*)$')
        if not add(redis.pcall, name, job, pushed, tries, now) then break end
        moved, last = i, pushed
    end
    if moved > 0 then redis.call('LTRIM', list, moved, -1) end
    count = count + moved
    if count == 0 then
        redis.call('HDEL', counts, name)
    else
        redis.pcall('HSET', counts, name, count)
    end
    if #waiting > moved or free <= 0 and redis.call('EXISTS', list) == 1 then
        if at then redis.pcall('HSET', floors, name, at) end
        return count
    end
    local floor = redis.call('HGET', floors, name)
    if floor then
        local till = last or string.match(floor, '/(%d+)$')
        at = at or string.match(floor, '^%d+')
        if count == 0 or not till or tonumber(at) > tonumber(till) then
            redis.call('HDEL', floors, name)
        else
            redis.pcall('HSET', floors, name, at .. '/' .. till)
        end
    end
    return count
end

local lanes = {}

-- Lets a job in, or leaves it to wait behind its lane's others.
local function admit(name, job, tries)
    if name == '' then
        add(redis.call, name, job, now, tries)
        return
    end
    local lane = lanes[name]
    if not lane then
        lane = {
            count = count_of(name), added = 0,
            waits = redis.call('EXISTS', overflow .. name) == 1,
        }
        lanes[name] = lane
    end
    if not lane.waits and lane.count + lane.added < window then
        add(redis.call, name, job, now, tries)
        lane.added = lane.added + 1
    else
        redis.call('RPUSH', overflow .. name, now .. ':' .. tries .. ':' .. job)
        lane.waits = true
    end
end

local function settle()
    for name, lane in pairs(lanes) do
        if not lane.waits then
            redis.call('HSET', counts, name, lane.count + lane.added)
        else
            if redis.call('HEXISTS', floors, name) == 0 then
                -- Everything of the lane was pushed after the first entry there is.
                local first = redis.call('XRANGE', stream, '-', '+', 'COUNT', 1)[1]
                local at = '0'
                for i = 1, first and #first[2] or 0, 2 do
                    if first[2][i] == 'at' then at = first[2][i + 1] end
                end
                redis.call('HSET', floors, name, at)
            end
            let_in(name, lane.count + lane.added, nil)
        end
    end
end
";

fn script(body: &str) -> Script {
    Script::new(&format!("{COMMON}{body}"))
}

/// Pushes jobs: `ARGV` goes on with lane and job, again and again.
pub(super) static PUSH: LazyLock<Script> = LazyLock::new(|| {
    script(
        r"
for i = 3, #ARGV, 2 do admit(ARGV[i], ARGV[i + 1], '0') end
settle()
return 1",
    )
});

/// Lets due jobs in and says how many were due. `KEYS` goes on with the delayed jobs,
/// `ARGV` with how many at the most. Their push time is now, so that what was pushed
/// last is last in its lane.
pub(super) static PROMOTE: LazyLock<Script> = LazyLock::new(|| {
    script(
        r"
local due = redis.call('ZRANGEBYSCORE', KEYS[5], '-inf', now, 'LIMIT', 0, ARGV[3])
for _, member in ipairs(due) do
    local colon = string.find(member, ':', 1, true)
    local tries, name = string.match(string.sub(member, 1, colon - 1), '^(%d+)/?(.*)$')
    admit(name, string.sub(member, colon + 1), tries)
    redis.call('ZREM', KEYS[5], member)
end
settle()
return #due",
    )
});

/// Ends jobs. `KEYS` goes on with the delayed and the dead jobs, `ARGV` with the group
/// and the number of dead jobs to keep, then with what follows from each ending:
/// - `again`, lane, job, push time, tries: back to the stream, at once;
/// - `later`, member, due time: to the delayed jobs;
/// - `dead`, entry: to the dead jobs;
/// - `gone`, how many lanes, for each its name, its newest push time and its number of
///   ids, then all ids: out of the stream. This comes last.
///
/// Done twice it does no harm: at worst a job is handed back twice. Only entries that
/// were there are taken off the count.
pub(super) static END: LazyLock<Script> = LazyLock::new(|| {
    script(
        r"
local group, dead_max = ARGV[3], tonumber(ARGV[4])
local i = 5
while ARGV[i] do
    local what = ARGV[i]
    if what == 'gone' then
        local first = i + 2 + 3 * tonumber(ARGV[i + 1])
        redis.pcall('XACK', stream, group, unpack(ARGV, first))
        for record = i + 2, first - 1, 3 do
            local name, last = ARGV[record], first + tonumber(ARGV[record + 2]) - 1
            local gone = redis.call('XDEL', stream, unpack(ARGV, first, last))
            if gone > 0 and name ~= '' then
                let_in(name, math.max(count_of(name) - gone, 0), ARGV[record + 1])
            end
            first = last + 1
        end
        break
    elseif what == 'again' then
        local name = ARGV[i + 1]
        add(redis.call, name, ARGV[i + 2], ARGV[i + 3], ARGV[i + 4], now)
        if name ~= '' then redis.call('HINCRBY', counts, name, 1) end
        i = i + 5
    elseif what == 'later' then
        redis.call('ZADD', KEYS[5], 'LT', ARGV[i + 2], ARGV[i + 1])
        i = i + 3
    else
        redis.call('LPUSH', KEYS[6], ARGV[i + 1])
        redis.call('LTRIM', KEYS[6], 0, dead_max - 1)
        i = i + 2
    end
end
return 1",
    )
});

/// Counts the stream anew where the counts do not add up to it, and lets in what waits
/// and may. `KEYS` goes on with a mark, `ARGV` with how many ms the mark keeps others
/// from doing it too, and how long a stream may be to be counted. A lane that
/// overflows unknown to everybody is pushed anew by the relay, and known with that.
pub(super) static MEND: LazyLock<Script> = LazyLock::new(|| {
    script(
        r"
if not redis.call('SET', KEYS[5], 1, 'NX', 'PX', ARGV[3]) then return 0 end
local length, counted = redis.call('XLEN', stream), 0
for _, count in ipairs(redis.call('HVALS', counts)) do counted = counted + tonumber(count) end
if counted ~= length and length <= tonumber(ARGV[4]) then
    local found, from, page = {}, '-', nil
    repeat
        page = redis.call('XRANGE', stream, from, '+', 'COUNT', 1000)
        for _, entry in ipairs(page) do
            from = '(' .. entry[1]
            for i = 1, #entry[2], 2 do
                if entry[2][i] == 'l' then
                    local name = entry[2][i + 1]
                    found[name] = (found[name] or 0) + 1
                end
            end
        end
    until #page < 1000
    redis.call('DEL', counts)
    for name, count in pairs(found) do redis.call('HSET', counts, name, count) end
end
for _, name in ipairs(redis.call('HKEYS', floors)) do
    let_in(name, count_of(name), nil)
end
return 1",
    )
});
