//! What must happen in Redis in one piece. All keys of a script belong to one
//! queue and share its hash tag; times are handed in.

use std::sync::LazyLock;

use redis::Script;

/// Makes the group from the first entry on; leaves an existing one alone.
pub(super) static CREATE_GROUP: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"
        local made = redis.pcall('XGROUP', 'CREATE', KEYS[1], ARGV[1], '0', 'MKSTREAM')
        if made.err and not string.find(made.err, 'BUSYGROUP', 1, true) then
            return made
        end
        return 1",
    )
});

/// Moves due jobs to the stream and says how many. Their `at` is the time they
/// came into the stream, so that `at` never falls along it.
pub(super) static PROMOTE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"
        local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, ARGV[2])
        for _, member in ipairs(due) do
            local colon = string.find(member, ':', 1, true)
            local attempts = string.sub(member, 1, colon - 1)
            local job = string.sub(member, colon + 1)
            if attempts == '0' then
                redis.call('XADD', KEYS[2], '*', 'j', job, 'at', ARGV[1])
            else
                redis.call('XADD', KEYS[2], '*', 'j', job, 'at', ARGV[1], 'n', attempts)
            end
            redis.call('ZREM', KEYS[1], member)
        end
        return #due",
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

/// Waiting, fetched, delayed, dead, and the `at` of the first waiting entry. An
/// acknowledged entry is deleted in the same breath, so that what is in the stream
/// and not pending is waiting.
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
        local at = false
        if first then
            at = string.match(first[1], '^%d+')
            for i = 1, #first[2], 2 do
                if first[2][i] == 'at' then at = first[2][i + 1] end
            end
        end
        return {
            redis.call('XLEN', KEYS[1]) - pending, pending,
            redis.call('ZCARD', KEYS[2]), redis.call('LLEN', KEYS[3]), at
        }",
    )
});
