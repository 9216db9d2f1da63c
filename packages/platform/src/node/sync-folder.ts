import type { FileCalls } from './file-calls.ts';

/** Makes the names in a folder durable: those made, renamed and removed before. */
export async function syncFolder(calls: FileCalls, path: string): Promise<void> {
  const folder = await calls.open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
