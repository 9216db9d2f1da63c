/** rackwright secrets … */
import { counted, type SecretsKey, SecretsKeySchema, SecretsService } from '@rackwright/messages';
import { buildCommand, buildRouteMap } from '@stricli/core';
import { briefs } from '../../briefs.ts';
import type { CliContext, CommandIo } from '../../command-io.ts';
import { connectionFlags, outputFlag, requestFlag, type SharedFlags } from '../../flags.ts';
import { isForPrograms, printAs, printFields, printLines } from '../../output/show.ts';
import { ago } from '../../output/time.ts';
import { callsOf } from '../frame/calls.ts';

const shared = { ...connectionFlags, ...outputFlag };
const aliases = { o: 'output' } as const;

const withSecrets = callsOf(SecretsService);

const show = buildCommand({
  docs: { brief: 'Show which key seals secrets, and how many are under which' },
  parameters: { flags: shared, aliases },
  async func(this: CliContext, flags: SharedFlags) {
    const key = await withSecrets(this.io, flags, (secrets) => secrets.getSecretsKey({}));
    print(this.io, flags, key);
  },
});

const rotate = buildCommand({
  docs: {
    brief: 'Read the keys again; the first one becomes the one that seals',
    fullDescription:
      'Write the new key before the old one, each as a line of its own, where the configuration ' +
      'of every replica says that keys are (`openssl rand -base64 32` makes one); then ask for ' +
      'this. Once every replica has the new key, it seals, and every secret moves to it, without ' +
      'a stop. When `rackwright secrets show` counts no record under the old key, its line goes; ' +
      'keep that key elsewhere for as long as any backup made before: nothing else opens those.',
  },
  parameters: { flags: { ...shared, ...requestFlag }, aliases },
  async func(this: CliContext, flags: SharedFlags & { requestId: string }) {
    const { before, after } = await withSecrets(this.io, flags, async (secrets) => {
      const { keyId } = await secrets.getSecretsKey({});
      const { requestId } = flags;
      return { before: keyId, after: await secrets.rotateSecretsKey({ requestId }) };
    });
    print(this.io, flags, after);
    if (isForPrograms(flags.output) || after.keyId !== before || after.nextKeyId !== '') return;
    printLines(this.io, [
      `${after.source} still begins with the key that seals: write a new one before it`,
    ]);
  },
});

/** All commands on the key of secrets. */
export const secretsRoutes = buildRouteMap({
  routes: { show, rotate },
  docs: { brief: briefs.secrets },
});

function print(io: CommandIo, { output }: SharedFlags, key: SecretsKey): void {
  if (isForPrograms(output)) {
    printAs(io, output, SecretsKeySchema, key);
    return;
  }
  const { clock } = io;
  const requestedText =
    key.nextKeyId === '' ? '' : `${ago(clock, key.askedTime)} by ${key.askedBy}`;
  printFields(io, [
    ['seals', `${key.keyId}, since ${ago(clock, key.activeTime)}`],
    ['next', key.nextKeyId],
    ['asked for', requestedText],
    ['source', key.source],
    ...key.uses.map(
      ({ keyId, records, here }) =>
        [`under ${keyId}`, `${counted(records, 'record')}${here ? '' : ', key not here'}`] as const,
    ),
    ...key.replicas.map(
      ({ replica, keyIds, problem, lastSeenTime }) =>
        [
          `replica ${replica}`,
          `${ago(clock, lastSeenTime)}: ${[keyIds.join(', '), problem].filter(Boolean).join('; ')}`,
        ] as const,
    ),
    ['waits for', key.waitsFor],
    ['keep', oldKeysToKeep(clock, key)],
  ]);
}

/**
 * The server does not count backups: a person who removes a key's line has to know that they need
 * it.
 */
function oldKeysToKeep(clock: CommandIo['clock'], { keyId, uses, activeTime }: SecretsKey): string {
  const unused = uses.filter((use) => use.records === 0 && use.keyId !== keyId);
  if (unused.length === 0) return '';
  const keys = unused.map((use) => use.keyId).join(', ');
  const when = ago(clock, activeTime);
  return `key ${keys} elsewhere, as long as any backup from before secrets left it (${when})`;
}
