-- People: users and their second factor, memberships in organizations, sessions, invitations,
-- links that set a password, identities at an OpenID Connect provider, and the count of wrong
-- passwords.

SET LOCAL lock_timeout = '5s';

-- A person who signs in. The address is stored as it is, in lower case, unlike those of
-- recipients: it is the name of an account of this installation, the members of an organization
-- see it, it must be unique, and it is deleted with the user and not with a message.
CREATE TABLE users (
    id uuid PRIMARY KEY,
    email text NOT NULL CHECK (email = lower(email)),
    name text NOT NULL,
    -- Argon2id, in the PHC form. NULL: the user signs in at the OpenID Connect provider only.
    password_hash text,
    -- The sealed secret of the second factor; pending until totp_enabled_at is set.
    totp_secret_sealed bytea,
    totp_enabled_at timestamptz,
    -- The time step of the last accepted code: no code is accepted twice.
    totp_last_step bigint,
    -- Whether the user may see and change what belongs to the installation.
    is_operator boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL,
    CONSTRAINT users_email_key UNIQUE (email)
);

-- SHA-256 of the codes that replace the second factor once. They are random (80 bits), so a slow
-- hash would add cost and no safety.
CREATE TABLE user_recovery_codes (
    user_id uuid NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    code_hash bytea NOT NULL CHECK (length(code_hash) = 32),
    PRIMARY KEY (user_id, code_hash)
);

-- Who a user is at the OpenID Connect provider.
CREATE TABLE user_identities (
    issuer text NOT NULL,
    subject text NOT NULL,
    user_id uuid NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (issuer, subject)
);

CREATE INDEX user_identities_user_idx ON user_identities (user_id);

-- The role of a user in an organization.
CREATE TABLE memberships (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    user_id uuid NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    role text NOT NULL CHECK (role IN ('OWNER', 'ADMIN', 'DEVELOPER', 'VIEWER')),
    created_at timestamptz NOT NULL,
    -- When the user last began a session in the organization.
    last_signed_in_at timestamptz,
    CONSTRAINT memberships_user_key UNIQUE (user_id, organization_id)
);

CREATE INDEX memberships_organization_idx ON memberships (organization_id, created_at, id);

-- A session ends with the membership that it stands for.
CREATE TABLE sessions (
    id uuid PRIMARY KEY,
    -- SHA-256 of the random token in the cookie.
    token_hash bytea NOT NULL CHECK (length(token_hash) = 32),
    user_id uuid NOT NULL,
    organization_id uuid NOT NULL,
    created_at timestamptz NOT NULL,
    -- Written at most once a minute.
    last_used_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    CONSTRAINT sessions_token_hash_key UNIQUE (token_hash),
    CONSTRAINT sessions_membership_fkey FOREIGN KEY (user_id, organization_id)
        REFERENCES memberships (user_id, organization_id) ON DELETE CASCADE
);

CREATE INDEX sessions_membership_idx ON sessions (user_id, organization_id);
CREATE INDEX sessions_last_used_idx ON sessions (last_used_at);

-- An invitation ends when it is accepted, deleted or expired; its row is deleted then.
CREATE TABLE invitations (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    email text NOT NULL CHECK (email = lower(email)),
    role text NOT NULL CHECK (role IN ('OWNER', 'ADMIN', 'DEVELOPER', 'VIEWER')),
    -- What a new user is called where the user does not say.
    name text,
    -- Only the operator's command sets it.
    makes_operator boolean NOT NULL DEFAULT false,
    token_hash bytea NOT NULL CHECK (length(token_hash) = 32),
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    -- The user or the API key that invited; NULL where the operator did.
    created_by uuid,
    CONSTRAINT invitations_token_hash_key UNIQUE (token_hash),
    CONSTRAINT invitations_email_key UNIQUE (organization_id, email)
);

CREATE INDEX invitations_list_idx ON invitations (organization_id, created_at, id);

-- Links by which the operator lets a user set a new password, once.
CREATE TABLE password_resets (
    token_hash bytea PRIMARY KEY CHECK (length(token_hash) = 32),
    user_id uuid NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);

CREATE INDEX password_resets_user_idx ON password_resets (user_id);

-- Wrong passwords and codes of an account, whether it exists or not: the key is the SHA-256 of
-- its address, so a name that somebody tried is not stored. In PostgreSQL, so that all processes
-- count together and Redis may be away.
CREATE TABLE sign_in_attempts (
    account_hash bytea PRIMARY KEY CHECK (length(account_hash) = 32),
    window_started_at timestamptz NOT NULL,
    failures integer NOT NULL
);

CREATE INDEX sign_in_attempts_window_idx ON sign_in_attempts (window_started_at);

-- The actor of a change may be a user. The rows that exist satisfied the narrower check.
ALTER TABLE audit_logs
    DROP CONSTRAINT audit_logs_actor_type_check,
    ADD CONSTRAINT audit_logs_actor_type_check
        CHECK (actor_type IN ('api_key', 'recipient', 'system', 'user')) NOT VALID;
