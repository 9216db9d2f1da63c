import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { nodeDisk, nodeExec } from '@rackwright/platform/node';
import { afterAll, describe, expect, test } from 'vitest';
import { openKeySource, shownConfig } from './key-source.ts';
import { formatKey } from './key-text.ts';
import { SecretError } from './secrets.ts';

const folder = await mkdtemp(join(tmpdir(), 'rackwright-key-'));
afterAll(() => rm(folder, { recursive: true }));
const parts = { disk: nodeDisk(), exec: nodeExec(), credentialsFolder: folder };
const key = (fill: number) => new Uint8Array(32).fill(fill);
const marker = 'c2VjcmV0LW1hcmtlcg';

async function file(text: string, mode = 0o600): Promise<string> {
  const path = join(folder, `key-${Math.random()}`);
  await writeFile(path, text);
  await chmod(path, mode);
  return path;
}

async function refusal(reading: Promise<unknown>): Promise<string> {
  const error = await reading.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (error instanceof SecretError) return error.message;
  throw new Error(`expected a SecretError, got ${String(error)}`);
}

const readFileAt = (path: string) => openKeySource({ kind: 'file', path }, parts).read();
const run = (...command: string[]) => openKeySource({ kind: 'command', command }, parts).read();

describe('keys in a file', () => {
  test('are one a line, beside comments', async () => {
    const path = await file(`# new\n${formatKey(key(2))}\n  ${formatKey(key(1))}`);
    expect(await readFileAt(path)).toEqual([key(2), key(1)]);
  });

  test.each([0o640, 0o604, 0o660])('are not read when others can: mode %o', async (mode) => {
    const path = await file(formatKey(key(1)), mode);
    expect(await refusal(readFileAt(path))).toContain(`chmod 600 ${path}`);
  });

  test('are not read when they belong to another user, whatever the mode', async () => {
    const path = await file(formatKey(key(1)));
    const disk = {
      ...nodeDisk(),
      stat: async () => ({ sizeBytes: 45, mode: 0o600, isOurs: false }),
    };
    const message = await refusal(openKeySource({ kind: 'file', path }, { disk }).read());
    expect(message).toContain('belongs to another user');
    expect(message).toContain(`chown USER ${path}`);
  });

  test('keys that may not be read are shown with what would be right', async () => {
    const path = await file(formatKey(key(1)));
    const refused = Object.assign(new Error('EACCES: permission denied'), { code: 'EACCES' });
    const disk = { ...nodeDisk(), read: () => Promise.reject(refused) };
    const message = await refusal(openKeySource({ kind: 'file', path }, { disk }).read());
    expect(message).toContain('EACCES');
    expect(message).toContain(`chown USER ${path}`);
  });

  test('are asked for when the file is missing, made for the user that reads it', async () => {
    const path = join(folder, 'nothing');
    expect(await refusal(readFileAt(path))).toContain(`${path} is missing`);
    expect(await refusal(readFileAt(path))).toContain(`chown USER ${path}`);
  });

  test.each([
    ['', 'holds no key'],
    ['# only words\n', 'holds no key'],
    [`${marker}\n`, 'line 1 must hold 32 bytes in base64, not 13'],
    [`${formatKey(key(1))}${marker} \u0000!`, 'line 2 is not base64'],
    [formatKey(key(1)).repeat(9), 'holds 9 keys; at most 8'],
    ['x'.repeat(20_000), 'more than 16384 bytes'],
  ])('are refused with the line that is wrong, and none of it: %#', async (text, problem) => {
    const path = await file(text);
    const message = await refusal(readFileAt(path));
    expect(message).toContain(problem);
    expect(message).not.toContain(marker);
  });
});

describe('keys from systemd', () => {
  const read = (name: string, credentialsFolder: string | undefined = folder) => {
    const { credentialsFolder: _, ...others } = parts;
    const at = credentialsFolder === '' ? {} : { credentialsFolder };
    return openKeySource({ kind: 'systemdCredential', name }, { ...others, ...at }).read();
  };

  test('are read where it says, by rights of an access list, too', async () => {
    await writeFile(join(folder, 'kek'), formatKey(key(3)));
    await chmod(join(folder, 'kek'), 0o440);
    expect(await read('kek')).toEqual([key(3)]);
    await chmod(join(folder, 'kek'), 0o444);
    expect(await refusal(read('kek'))).toContain('open to others');
  });

  test('need a unit that names them', async () => {
    expect(await refusal(read('kek', ''))).toContain('LoadCredential=kek:PATH');
    expect(await refusal(read('other'))).toContain('credential other is missing');
  });
});

describe('keys from a program', () => {
  test('are those that it prints', async () => {
    expect(await run('/bin/echo', formatKey(key(4)).trim())).toEqual([key(4)]);
  });

  test('are not taken from one that fails, whose words and arguments are kept', async () => {
    const script = `echo ${marker}; echo no ${marker} at the vault >&2; exit 3`;
    const message = await refusal(run('/bin/sh', '-c', script));
    expect(message).toContain('the program /bin/sh gave no secrets key: it ended with code 3');
    expect(message).not.toContain(marker);
    expect(await refusal(run('/no/such/program'))).toContain('could not be started');
  });

  test('are told apart from other words without repeating those', async () => {
    const message = await refusal(run('/bin/echo', `${marker}!`));
    expect(message).toContain('the output of /bin/echo: line 1 is not base64');
    expect(message).not.toContain(marker);
    const flood = await refusal(run('/bin/sh', '-c', 'yes | head -c 100000'));
    expect(flood).toContain('more than 16384 bytes');
  });

  test('are not told by the configuration that is logged', () => {
    const command = ['/bin/from-vault', '--token', marker];
    const config = { a: 1, secrets: { key: { kind: 'command' as const, command } } };
    const shown = shownConfig(config);
    expect(JSON.stringify(shown)).not.toContain(marker);
    expect(shown.secrets.key.command).toEqual(['/bin/from-vault', '(arguments: 2, not shown)']);
    expect(shown.a).toBe(1);
    expect(shownConfig({})).toEqual({});
  });

  test('get no shell', async () => {
    const text = `$(touch ${join(folder, 'touched')})`;
    expect(await refusal(run('/bin/echo', text))).toContain('is not base64');
    expect(await nodeDisk().stat(join(folder, 'touched'))).toBeUndefined();
  });
});
