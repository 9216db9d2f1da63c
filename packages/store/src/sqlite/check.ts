/** Whether a file is a whole store, looked at without changing it. */
import { DatabaseSync } from 'node:sqlite';
import { errorText } from '@rackwright/platform';
import { APPLICATION_ID, schemaProblem } from './schema.ts';

/** The problem of the file; undefined: it is a store that this program can open. */
export function sqliteFileProblem(path: string): string | undefined {
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(path, { readOnly: true });
    const id = database.prepare('PRAGMA application_id').get()?.['application_id'];
    if (id !== APPLICATION_ID) return `${path} is no store of this program`;
    const version = Number(database.prepare('PRAGMA user_version').get()?.['user_version']);
    const problem = schemaProblem(path, version);
    if (problem !== undefined) return problem;
    const result = database.prepare('PRAGMA quick_check(1)').get()?.['quick_check'];
    return result === 'ok' ? undefined : `${path} is damaged: ${String(result)}`;
  } catch (error) {
    return `${path} cannot be read: ${errorText(error)}`;
  } finally {
    database?.close();
  }
}
