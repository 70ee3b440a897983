// Package store keeps the live settings where they outlive the process and are shared by several: in PostgreSQL or in a file of the state directory. It also keeps the key of
// the queue tickets in PostgreSQL.
//
// # Model
//
//	ARKVORY_DATABASE_URL set  ->  Postgres    all processes with that database
//	else ARKVORY_STATE_DIR    ->  File        all processes with that directory
//	else                      ->  config.MemoryRecords
//
// A record has a revision that grows by one with each change. A change names the revision that it was made for and is refused when there is another by now: compare and swap is
// one statement on one row, or a comparison and a rename under one lock. What the fields mean is judged by whoever applies them (proxy/live); a store gives
// back byte for byte what it was given.
//
// # Tables
//
//	arkvory_download_settings     one row: revision, overrides (text, at most 512 KiB), updated_by, updated_at
//	arkvory_download_ticket_key   one row: key (32 bytes), created_at; a secret
//	arkvory_migrations            which migrations were carried out
//
// All three are to be left out of backups (pg_dump --exclude-table='arkvory_*'): settings fit the hardware they were made on, and an installation that is restored
// makes its own key. Their comments say so. When only some of them come back, those that are missing are made again.
//
// Migrations are embedded and carried out by goose when a process first needs the database, under an advisory lock of a transaction, so that many processes may start at once.
// They only ever add: a database that a newer version has migrated is used as it is, which lets an installation roll back. An account without the right to make tables
// is enough when somebody else made them; what it needs then is SELECT, INSERT and UPDATE.
//
// # Hearing of changes
//
// Watch wakes by LISTEN/NOTIFY, or by looking at the file's inode and time once a second. It is a hint: the caller polls too.
//
// # Who calls it, and failure
//
// cmd/arkvory-sidecar opens one store and gives it to the desk of proxy/live and to the tickets. Opening connects to nothing. Every call ends with its context. A failed
// one says why in the closed words of [config.StoreError], from which hosts, accounts and passwords are absent: errors of the driver and of the server
// name them, so none of their texts is passed on. A change that fails was not made, with one exception that its error names: the answer to its commit was lost. A frozen server
// that wakes finds the transaction without a commit and takes it back. The next call connects anew; nothing has to be restarted.
//
// # Poolers
//
// Statements are not prepared by name, time limits are set per transaction, and no startup parameter but the application's name is sent: transaction pooling of pgbouncer
// carries all but LISTEN, and then polling finds changes.
//
// # Decisions
//
//   - Overrides are text, not jsonb, which would sort fields, drop repeated ones and rewrite numbers that a newer version wrote.
//   - No row says "nobody changed anything". Rejected: a row of revision 0 by migration, which a restore without data would lack.
//   - Time limits by SET LOCAL in a transaction of a change. Rejected: startup parameters, which poolers refuse; one autocommitted statement, which a frozen server carries out
//     after its client was told that nothing changed.
//   - An advisory lock of a transaction around goose. Rejected: goose's own session lock, which a pooler may hand to somebody else.
//   - flock on a file beside the record. Rejected: a lock on the record itself, which the rename takes away; a lock file that exists or not, which a crash leaves.
//   - The file's mode is 0600 when written and not judged when read: unlike a key it is no secret, and volumes of Kubernetes widen modes. Who may write to
//     the state directory may choose the settings.
package store
