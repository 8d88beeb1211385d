//! What must happen in Redis in one piece. All keys of a script belong to one
//! queue and share its hash tag; times are handed in. Those that let jobs into the
//! stream or take them out are in [`lanes`](super::fairness).

use std::sync::LazyLock;

use redis::Script;

/// Makes the group from the first entry on; leaves an existing one alone, without asking
/// for memory: a full Redis must be read empty.
pub(super) static CREATE_GROUP: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"
        local groups = redis.pcall('XINFO', 'GROUPS', KEYS[1])
        if not groups.err then
            for _, flat in ipairs(groups) do
                for i = 1, #flat, 2 do
                    if flat[i] == 'name' and flat[i + 1] == ARGV[1] then return 1 end
                end
            end
        end
        local made = redis.pcall('XGROUP', 'CREATE', KEYS[1], ARGV[1], '0', 'MKSTREAM')
        if made.err and not string.find(made.err, 'BUSYGROUP', 1, true) then
            return made
        end
        return 1",
    )
});

/// In one script, because a consumer must not be given a job between the look at
/// it and its removal: the job would be lost with it.
pub(super) static SWEEP: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"
        local consumers = redis.pcall('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])
        if consumers.err then return 0 end
        local removed = 0
        for _, flat in ipairs(consumers) do
            local c = {}
            for i = 1, #flat, 2 do c[flat[i]] = flat[i + 1] end
            local gone
            if c['name'] == ARGV[2] then
                gone = ARGV[4] == '1'
            else
                gone = c['idle'] > tonumber(ARGV[3])
            end
            if gone and c['pending'] == 0 then
                redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], c['name'])
                removed = removed + 1
            end
        end
        return removed",
    )
});

/// Waiting, fetched, delayed, dead; when the first waiting entry came into the stream;
/// and, by turns, the lanes that overflow and their floors. An acknowledged entry is
/// deleted in the same breath, so that what is in the stream and not pending is
/// waiting, and so is what overflows.
///
/// An entry that was let in from an overflow has kept the time of its push, and says
/// in `in` when it was let in: along the stream that never falls.
pub(super) static LOOK: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"
        local last, pending = '0-0', 0
        local groups = redis.pcall('XINFO', 'GROUPS', KEYS[1])
        if not groups.err then
            for _, flat in ipairs(groups) do
                local g = {}
                for i = 1, #flat, 2 do g[flat[i]] = flat[i + 1] end
                if g['name'] == ARGV[1] then
                    last, pending = g['last-delivered-id'], g['pending']
                end
            end
        end
        local first = redis.call('XRANGE', KEYS[1], '(' .. last, '+', 'COUNT', 1)[1]
        local came = false
        if first then
            local fields = {}
            for i = 1, #first[2], 2 do fields[first[2][i]] = first[2][i + 1] end
            came = fields['in'] or fields['at'] or string.match(first[1], '^%d+')
        end
        local waiting = redis.call('XLEN', KEYS[1]) - pending
        local floors = redis.call('HGETALL', KEYS[4])
        for i = 1, #floors, 2 do
            waiting = waiting + redis.call('LLEN', KEYS[5] .. floors[i])
            floors[i + 1] = string.match(floors[i + 1], '^%d+')
        end
        return {
            waiting, pending,
            redis.call('ZCARD', KEYS[2]), redis.call('LLEN', KEYS[3]), came, floors
        }",
    )
});

/// Does what a push does (`KEYS[1]` is a stream for that alone, and gone afterwards): whoever can run it can
/// push. A full Redis, a replica and one that cannot save refuse it, and so does one
/// whose rules forbid us scripts or streams.
pub(super) static PROBE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"
        redis.call('XADD', KEYS[1], '*', 'p', '')
        redis.call('DEL', KEYS[1])
        return 1",
    )
});
