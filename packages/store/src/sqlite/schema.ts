/** The tables of the SQLite driver, and how to tell a store from another file. */

/** Marks the file as ours ("RAKW"); SQLite keeps it in the file's header. */
export const APPLICATION_ID = 0x52414b57;
/**
 * The number of the tables, and of the form of the records in them. Raised with every change that
 * another version of this program would misread; a file with another number is refused. 7 is the
 * first that was released.
 */
export const SCHEMA_VERSION = 7;

/**
 * `changes` is the log, trimmed per key. Its changes are found by the revisions that they name; an
 * index would cost a page per write. `live` is 0 for a delete. `previous` is the revision of
 * the key's change before, or 0: by it the past of a key is gone through, and a watcher sees that
 * the log was trimmed. The last change of all is never trimmed, so that the highest revision is the
 * store's. `packed` is the dictionary that the value is packed with, or 0. `newest` names the last
 * change of each key, deletes included, and how many are kept of it; of changes after the one in
 * `indexed` it may not know yet. `entries` is the store's log, beside the keys. `dictionaries` are
 * what values are packed with, by the number that they name.
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
  CREATE TABLE entries (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    time_ms INTEGER NOT NULL,
    value BLOB NOT NULL
  ) STRICT;
  CREATE TABLE dictionaries (
    id INTEGER PRIMARY KEY,
    value BLOB NOT NULL
  ) STRICT;
  CREATE TABLE indexed (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    revision INTEGER NOT NULL
  ) STRICT;
  INSERT INTO indexed VALUES (1, 0);
  PRAGMA application_id = ${APPLICATION_ID};
  PRAGMA user_version = ${SCHEMA_VERSION};
`;

/**
 * Why this program does not read a store of this schema, and which one does; undefined: it reads
 * it.
 */
export function schemaProblem(path: string, version: number): string | undefined {
  if (version === SCHEMA_VERSION) return undefined;
  const remedy =
    version > SCHEMA_VERSION
      ? 'start the newer program that wrote it'
      : 'no release wrote it: start with an empty data folder';
  return `the store ${path} has schema ${version}; this program reads ${SCHEMA_VERSION}: ${remedy}`;
}
