//! Fairness in Redis: a job does not wait for the whole backlog of another fairness key.
//!
//! The stream contains at most a *quota* of jobs of each key. Further jobs wait in the key's
//! *backlog*, a list, and move to the stream when jobs of the key leave it. So a new job
//! waits for at most a quota of each busy key. Only the scripts in this file add to the
//! stream and delete from it, and they count the entries of each key. Entries carry their
//! key, so that an entry that cannot be decoded is counted too; entries without a key, which
//! an older process pushed, are not counted.
//!
//! Redis may lose keys, and older processes do not count. [`REPAIR`] corrects the counts.
//!
//! While a key has a backlog it has a *low watermark*: the push time of its job that left the
//! stream last. Its waiting jobs were pushed later, except for those that run at the same
//! time. The watermark is deleted when the key has no jobs, or when a job left that was
//! pushed after the last one that had to wait in the backlog.
//!
//! The scripts compute the names of the backlogs. Redis Cluster allows that, because the
//! names share the hash tag, and so the slot, of the given keys.

use std::sync::LazyLock;

use redis::Script;

/// The common part of the scripts. `KEYS`: stream, counts, watermarks, the prefix of the
/// backlogs' names. `ARGV`: now in ms, the quota.
///
/// After something was removed, calls that need memory are made with `pcall`: a full Redis
/// refuses them, and that must not end the script.
const COMMON: &str = r"
local stream, counts, watermarks, backlog = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local now, quota = ARGV[1], tonumber(ARGV[2])

-- Adds an entry to the stream. `moved_at` is set if the job comes from the backlog.
local function add(call, name, job, at, moved_at)
    local id
    if name == '' then
        id = call('XADD', stream, '*', 'j', job, 'at', moved_at or at)
    elseif moved_at then
        id = call('XADD', stream, '*', 'j', job, 'at', at, 'l', name, 'in', moved_at)
    else
        id = call('XADD', stream, '*', 'j', job, 'at', at, 'l', name)
    end
    return type(id) == 'string'
end

local function count_of(name)
    return tonumber(redis.call('HGET', counts, name) or 0)
end

-- Moves jobs of a key from its backlog to the stream, as many as its quota allows, and
-- sets its count, which is `count` before, and its watermark. `at` is the push time of the
-- last job that left the stream, or nil if none left now. Returns the count.
local function move_backlog(name, count, at)
    local list, free = backlog .. name, quota - count
    local waiting = {}
    -- One job more than may move, to see whether any stays in the backlog.
    if free > 0 then waiting = redis.call('LRANGE', list, 0, free) end
    local moved, last = 0, nil
    for i = 1, math.min(#waiting, free) do
        local pushed, job = string.match(waiting[i], '^(%d+):(.*)$')
        if not add(redis.pcall, name, job, pushed, now) then break end
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
        if at then redis.pcall('HSET', watermarks, name, at) end
        return count
    end
    local watermark = redis.call('HGET', watermarks, name)
    if watermark then
        local last_moved = last or string.match(watermark, '/(%d+)$')
        at = at or string.match(watermark, '^%d+')
        if count == 0 or not last_moved or tonumber(at) > tonumber(last_moved) then
            redis.call('HDEL', watermarks, name)
        else
            redis.pcall('HSET', watermarks, name, at .. '/' .. last_moved)
        end
    end
    return count
end

local pushed = {}

-- Adds a job to the stream, or to the end of its key's backlog.
local function push(name, job)
    if name == '' then
        add(redis.call, name, job, now)
        return
    end
    local key = pushed[name]
    if not key then
        key = {
            count = count_of(name), added = 0,
            has_backlog = redis.call('EXISTS', backlog .. name) == 1,
        }
        pushed[name] = key
    end
    if not key.has_backlog and key.count + key.added < quota then
        add(redis.call, name, job, now)
        key.added = key.added + 1
    else
        redis.call('RPUSH', backlog .. name, now .. ':' .. job)
        key.has_backlog = true
    end
end

-- Saves the counts and watermarks of the keys that were pushed to.
local function save_pushed()
    for name, key in pairs(pushed) do
        if not key.has_backlog then
            redis.call('HSET', counts, name, key.count + key.added)
        else
            if redis.call('HEXISTS', watermarks, name) == 0 then
                -- All jobs of the key were pushed after the first entry of the stream.
                local first = redis.call('XRANGE', stream, '-', '+', 'COUNT', 1)[1]
                local at = '0'
                for i = 1, first and #first[2] or 0, 2 do
                    if first[2][i] == 'at' then at = first[2][i + 1] end
                end
                redis.call('HSET', watermarks, name, at)
            end
            move_backlog(name, key.count + key.added, nil)
        end
    end
end
";

fn script(body: &str) -> Script {
    Script::new(&format!("{COMMON}{body}"))
}

/// Pushes jobs. `ARGV` continues with the key and the job of each.
pub(super) static PUSH: LazyLock<Script> = LazyLock::new(|| {
    script(
        r"
for i = 3, #ARGV, 2 do push(ARGV[i], ARGV[i + 1]) end
save_pushed()
return 1",
    )
});

/// Pushes due delayed jobs and returns how many. `KEYS` continues with the delayed jobs and a
/// stream of its own, `ARGV` with the most jobs to push. It writes to that stream as a push does,
/// and deletes it: a Redis that takes no pushes refuses the script also if no job is due. Their
/// push time is now, so that the jobs of a key are in the order of their push times.
pub(super) static PROMOTE: LazyLock<Script> = LazyLock::new(|| {
    script(
        r"
redis.call('XADD', KEYS[6], '*', 'p', '')
redis.call('DEL', KEYS[6])
local due = redis.call('ZRANGEBYSCORE', KEYS[5], '-inf', now, 'LIMIT', 0, ARGV[3])
for _, member in ipairs(due) do
    local colon = string.find(member, ':', 1, true)
    push(string.sub(member, 1, colon - 1), string.sub(member, colon + 1))
    redis.call('ZREM', KEYS[5], member)
end
save_pushed()
return #due",
    )
});

/// Ends jobs. `KEYS` continues with the delayed jobs, `ARGV` with the group, then with what to
/// do:
/// - `again`, key, job, push time: add the job to the stream again;
/// - `later`, member, due time: add it to the delayed jobs;
/// - `gone`, how many keys, for each its name, its newest push time and its number of ids,
///   then all ids: delete these entries from the stream. This comes last.
///
/// To run it twice is harmless: at worst a job is pushed twice. Only entries that were in the
/// stream are subtracted from the count.
pub(super) static END: LazyLock<Script> = LazyLock::new(|| {
    script(
        r"
local group, i = ARGV[3], 4
while ARGV[i] do
    local what = ARGV[i]
    if what == 'gone' then
        local first = i + 2 + 3 * tonumber(ARGV[i + 1])
        redis.pcall('XACK', stream, group, unpack(ARGV, first))
        for record = i + 2, first - 1, 3 do
            local name, last = ARGV[record], first + tonumber(ARGV[record + 2]) - 1
            local gone = redis.call('XDEL', stream, unpack(ARGV, first, last))
            if gone > 0 and name ~= '' then
                move_backlog(name, math.max(count_of(name) - gone, 0), ARGV[record + 1])
            end
            first = last + 1
        end
        break
    elseif what == 'again' then
        local name = ARGV[i + 1]
        add(redis.call, name, ARGV[i + 2], ARGV[i + 3], now)
        if name ~= '' then redis.call('HINCRBY', counts, name, 1) end
        i = i + 4
    else
        redis.call('ZADD', KEYS[5], 'LT', ARGV[i + 2], ARGV[i + 1])
        i = i + 3
    end
end
return 1",
    )
});

/// Counts the stream again if the counts do not add up to its length, and moves what the
/// quotas allow from the backlogs. `KEYS` continues with a mark, `ARGV` with how many ms the
/// mark keeps other consumers from doing the same, and the longest stream that is counted. A
/// backlog whose watermark was lost is found when the relay pushes a job of its key.
pub(super) static REPAIR: LazyLock<Script> = LazyLock::new(|| {
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
for _, name in ipairs(redis.call('HKEYS', watermarks)) do
    move_backlog(name, count_of(name), nil)
end
return 1",
    )
});
