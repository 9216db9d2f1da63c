/**
 * The programs `backup` and `restore` of the control plane, for the owner of its data folder.
 *
 *     rackwright-controlplane backup --config FILE --to FILE.tar
 *     rackwright-controlplane restore --config FILE --from FILE.tar
 */
import { dirname } from 'node:path';
import type { ControlPlaneConfig } from '../config.ts';
import { type BackupParts, makeBackup } from './backup.ts';
import { BackupError, type BackupManifest } from './manifest.ts';
import { type RestoreParts, restoreBackup } from './restore.ts';
import { storesInBackup } from './store-drivers.ts';

/** Makes a backup, and says what to do with it. */
export async function backupCommand(
  config: ControlPlaneConfig,
  to: string,
  parts: BackupParts,
): Promise<readonly string[]> {
  const manifest = await permitted(makeBackup(config, to, parts), to, config);
  const { store, secretsKey } = manifest;
  return [
    `${to}: ${contents(manifest)}`,
    ...(secretsKey.included
      ? [
          'It holds the keys to all that this control plane can do: keep it as you keep those.',
          'The key of secrets is in it.',
        ]
      : [
          'Its private keys are sealed, and nothing can be restored without what seals them.',
          `The key of secrets is not in it (it comes from ${secretsKey.source}): keep key ` +
            `${secretsKey.keyIds.join(', ')} apart from it.`,
        ]),
    'Tokens are not in it: keep the admin token yourself.',
    ...storesInBackup[store.driver].afterBackup,
  ];
}

/** Restores a backup, and says what to do next. */
export async function restoreCommand(
  config: ControlPlaneConfig,
  from: string,
  parts: RestoreParts,
): Promise<readonly string[]> {
  const manifest = await permitted(restoreBackup(config, from, parts), from, config);
  return [
    `${from}: ${contents(manifest)}, of ${manifest.time}`,
    ...storesInBackup[manifest.store.driver].afterRestore,
    'The admin token is not in a backup: use your copy, or start once with --new-admin-token.',
    'Start the control plane. Every host that an agent has worked for is then held, for what was ' +
      'done since is not in the backup. For each rack look, and accept the loss:',
    '  rackwright rack explain RACK',
    '  rackwright rack accept-restored-store RACK --reason WHY',
    'What was revoked since, tokens and agents, is valid again: revoke it anew.',
  ];
}

/** The package's program has dropped root by the time that files are opened. */
async function permitted<T>(
  act: Promise<T>,
  file: string,
  { dataFolder }: ControlPlaneConfig,
): Promise<T> {
  try {
    return await act;
  } catch (cause) {
    if (!(cause instanceof Error && 'code' in cause && cause.code === 'EACCES')) throw cause;
    const path = 'path' in cause && typeof cause.path === 'string' ? cause.path : '';
    const isOfFile = path === file || path.startsWith(`${file}.`) || path === dirname(file);
    const advice = isOfFile
      ? 'name a file in a folder of that user, as ' +
        '/usr/share/doc/rackwright-controlplane/README shows'
      : `where root has made what is there, chown -R rackwright: ${dataFolder}; without the ` +
        'package run it as the owner of that folder';
    throw new BackupError(
      `${cause.message}: the user that this runs as has no right to it. The package’s program ` +
        `runs as rackwright, also when root calls it: ${advice}`,
      { cause },
    );
  }
}

function contents({ store, files }: BackupManifest): string {
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  const { holdsState } = storesInBackup[store.driver];
  const state = holdsState ? `state at revision ${store.revision} and ` : '';
  return `${state}identity, ${files.length} files, ${bytes} bytes`;
}
