/** The tables of the SQLite driver, and how to tell a store from another file. */

/** Marks the file as ours ("RAKW"); SQLite keeps it in the file's header. */
export const APPLICATION_ID = 0x52414b57;
/**
 * Raised with every change of the tables, and of the records in them that an older program would
 * misread; a file with a higher one is refused.
 */
export const SCHEMA_VERSION = 7;

/** What version 2 added: `entries`, the store's log, beside the keys. */
const ENTRIES = `
  CREATE TABLE entries (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    time_ms INTEGER NOT NULL,
    value BLOB NOT NULL
  ) STRICT;
`;

/** What version 6 added: what values are packed with, by the number that they name. */
const DICTIONARIES = `
  CREATE TABLE dictionaries (
    id INTEGER PRIMARY KEY,
    value BLOB NOT NULL
  ) STRICT;
`;

/** What version 7 added: up to which change the table `newest` says everything. */
const INDEXED = `
  CREATE TABLE indexed (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    revision INTEGER NOT NULL
  ) STRICT;
  INSERT INTO indexed SELECT 1, coalesce(max(revision), 0) FROM changes;
`;

/**
 * What brings the tables from a version to the next that changed them. Nobody knows when changes of
 * version 1 were made. Since version 5 changes of one key are found by the revisions that they
 * name; until then there was an index, of which each write changed a page.
 */
const UPGRADES: readonly { readonly from: number; readonly sql: string }[] = [
  { from: 1, sql: `ALTER TABLE changes ADD COLUMN time_ms INTEGER NOT NULL DEFAULT 0; ${ENTRIES}` },
  {
    from: 4,
    sql: `
      ALTER TABLE newest ADD COLUMN kept INTEGER NOT NULL DEFAULT 1;
      UPDATE newest SET kept = (SELECT count(*) FROM changes AS c WHERE c.key = newest.key);
      DROP INDEX changes_by_key;
    `,
  },
  {
    from: 5,
    sql: `ALTER TABLE changes ADD COLUMN packed INTEGER NOT NULL DEFAULT 0; ${DICTIONARIES}`,
  },
  { from: 6, sql: INDEXED },
];

/**
 * Brings the tables of an older version to the present ones. Versions 3 and 4 have the tables of
 * version 2. Records of 3 hold sealed secrets in another form, and the authority that was a file,
 * which a program of version 2 would not find. Those of 4 say where credentials may go and which
 * agents' keys are refused for ever: a program of version 3 would send the one anywhere and let the
 * other in.
 */
export function upgradeFrom(version: number): string {
  const steps = UPGRADES.filter(({ from }) => version <= from).map(({ sql }) => sql);
  return `${steps.join('')} PRAGMA user_version = ${SCHEMA_VERSION};`;
}

/**
 * `changes` is the log, trimmed per key. `live` is 0 for a delete. `previous` is the revision of
 * the key's change before, or 0: by it the past of a key is gone through, and a watcher sees that
 * the log was trimmed. The last change of all is never trimmed, so that the highest revision is the
 * store's. `packed` is the dictionary that the value is packed with, or 0. `newest` names the last
 * change of each key, deletes included, and how many are kept of it; of changes after the one in
 * `indexed` it may not know yet.
 */
export const SCHEMA = `
  CREATE TABLE identity (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    incarnation TEXT NOT NULL
  ) STRICT;
  CREATE TABLE changes (
    revision INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    live INTEGER NOT NULL CHECK (live IN (0, 1)),
    write_id TEXT NOT NULL,
    previous INTEGER NOT NULL,
    value BLOB NOT NULL,
    time_ms INTEGER NOT NULL DEFAULT 0,
    packed INTEGER NOT NULL DEFAULT 0
  ) STRICT;
  CREATE TABLE newest (
    key TEXT PRIMARY KEY,
    revision INTEGER NOT NULL,
    kept INTEGER NOT NULL DEFAULT 1
  ) STRICT, WITHOUT ROWID;
  PRAGMA application_id = ${APPLICATION_ID};
  ${ENTRIES}
  ${DICTIONARIES}
  ${INDEXED}
  PRAGMA user_version = ${SCHEMA_VERSION};
`;
