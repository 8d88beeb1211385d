-- Mail servers as a fifth type of provider. Alone in its migration: a value that
-- is added to an enumeration cannot be used in the transaction that adds it.

ALTER TYPE provider_type ADD VALUE 'SMTP';
