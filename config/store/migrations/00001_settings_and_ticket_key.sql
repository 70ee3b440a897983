-- +goose Up
CREATE TABLE IF NOT EXISTS arkvory_download_settings (
    id         boolean     PRIMARY KEY DEFAULT true CHECK (id),
    revision   bigint      NOT NULL CHECK (revision > 0),
    overrides  text        NOT NULL CHECK (octet_length(overrides) <= 524288),
    updated_by text        NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now()
);

COMMENT ON TABLE arkvory_download_settings IS
    'Arkvory: live settings of the download queue, one row. Exclude from backups: they fit this hardware and this link; without the row the environment rules.';

CREATE TABLE IF NOT EXISTS arkvory_download_ticket_key (
    id         boolean     PRIMARY KEY DEFAULT true CHECK (id),
    key        bytea       NOT NULL CHECK (octet_length(key) = 32),
    created_at timestamptz NOT NULL DEFAULT now()
);

COMMENT ON TABLE arkvory_download_ticket_key IS
    'Arkvory: the secret that signs queue tickets, one row. Exclude from backups: an installation that is restored makes its own.';
