//! Scripts for what must be atomic in Redis. All keys of a script belong to one queue and
//! share its hash tag; times are arguments. The scripts that add to the stream or delete
//! from it are in [`fairness`](super::fairness).

use std::sync::LazyLock;

use redis::Script;

/// Creates the group, beginning with the first entry, unless it exists. It needs no memory
/// for that check, so that the jobs of a full Redis can be read.
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

/// Removes consumers without jobs: those that are idle for too long, or with `ARGV[4]` the
/// own one. In one script, because a consumer must not get a job between the check and its
/// removal: the job would be lost with it.
pub(super) static REMOVE_CONSUMERS: LazyLock<Script> = LazyLock::new(|| {
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

/// Returns how many jobs are waiting, fetched and delayed; when the first waiting entry
/// was added to the stream; and the keys with a backlog, each followed by its watermark. An
/// acknowledged entry is deleted at once, so the entries that are not pending are waiting,
/// and so are those of the backlogs.
///
/// An entry from a backlog has kept its push time. Its field `in` says when it was added to
/// the stream: from entry to entry that time never decreases.
pub(super) static INSPECT: LazyLock<Script> = LazyLock::new(|| {
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
        local added_at = false
        if first then
            local fields = {}
            for i = 1, #first[2], 2 do fields[first[2][i]] = first[2][i + 1] end
            added_at = fields['in'] or fields['at'] or string.match(first[1], '^%d+')
        end
        local waiting = redis.call('XLEN', KEYS[1]) - pending
        local watermarks = redis.call('HGETALL', KEYS[3])
        for i = 1, #watermarks, 2 do
            waiting = waiting + redis.call('LLEN', KEYS[4] .. watermarks[i])
            watermarks[i + 1] = string.match(watermarks[i + 1], '^%d+')
        end
        return {waiting, pending, redis.call('ZCARD', KEYS[2]), added_at, watermarks}",
    )
});

/// Writes as a push does, to a stream of its own (`KEYS[1]`), which it deletes. A full Redis, a
/// replica and one that cannot save refuse it, and so does one whose ACL forbids scripts or
/// streams.
pub(super) static PROBE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"
        redis.call('XADD', KEYS[1], '*', 'p', '')
        redis.call('DEL', KEYS[1])
        return 1",
    )
});
