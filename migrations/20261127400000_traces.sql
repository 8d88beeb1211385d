-- The trace of a message.

SET LOCAL lock_timeout = '5s';

ALTER TABLE messages
    -- Where the request that sent it stands in its trace, as in the header `traceparent`. NULL
    -- unless traces are on and this one is recorded.
    ADD COLUMN traceparent text;

-- Nothing has been released with this type: no API of a version before runs.
ALTER TYPE new_message ADD ATTRIBUTE traceparent text;
