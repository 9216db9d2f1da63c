import { generateKeyPairSync } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { create, toBinary } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  buildManifest,
  buildRevocation,
  buildStatement,
  publicKeyOf,
  signBytes,
  statementSha256,
} from '@rackwright/erasure';
import { agent, StorageDeviceSchema, Transport } from '@rackwright/messages';
import { describe, expect, test } from 'vitest';
import { runOver } from './command-io.fixture.ts';
import { exitCodes, exitCodeTexts } from './failure.ts';

test('exit codes are told apart, and all stand in the help and in the README', async () => {
  const { out } = await runOver(['--help']);
  const readme = await readFile(new URL('../README.md', import.meta.url), 'utf8');
  const codes = Object.values(exitCodes);
  expect(new Set(codes).size).toBe(codes.length);
  for (const [name, code] of Object.entries(exitCodes)) {
    const text = exitCodeTexts[name as keyof typeof exitCodes];
    expect(out).toContain(`\n  ${code} ${text}\n`);
    expect(readme).toContain(`\n| ${code} | ${text} |\n`);
  }
});

describe('the command line', () => {
  test('explains each of its commands, in lines of 80 columns', async () => {
    const commands: string[] = [];
    const ahead: string[][] = [[]];
    for (let route = ahead.pop(); route !== undefined; route = ahead.pop()) {
      const { code, out, err } = await runOver([...route, '--help']);
      expect([code, err]).toEqual([exitCodes.done, '']);
      expect(out).toContain(`USAGE\n  ${['rackwright', ...route].join(' ')}`);
      expect(out.split('\n').filter((line) => line.length > 80)).toEqual([]);
      const [, routes] = out.split('COMMANDS\n');
      if (routes === undefined) commands.push(route.join(' '));
      for (const [, name] of routes?.matchAll(/^ {2}(\S+) {2,}/gm) ?? []) {
        if (name !== undefined) ahead.push([...route, name]);
      }
    }
    expect(commands).toContain('host power reset');
    expect(new Set(commands).size).toBe(commands.length);
    expect(commands.length).toBeGreaterThan(45);
  });

  test.each([
    [
      ['host', 'lst'],
      '`rackwright host` has no command "lst"; did you mean `rackwright host list`?',
    ],
    [['hots', 'list'], 'did you mean `rackwright host`?'],
    [['zzzzzz'], '`rackwright --help` lists them'],
    [['host', 'list', '--colums', 'name'], 'no flag --colums; did you mean --columns?'],
    [['host', 'list', '--caFle', '/x'], 'did you mean --ca-file?'],
    [
      ['host', 'get', 'h1', '--wait'],
      'no flag --wait; `rackwright host watch HOST --until available` waits',
    ],
    [['apply', 'f.yaml'], 'one argument too many; `rackwright apply --help` lists what it takes'],
    [['host', 'list', '-x'], 'has no flag -x; `rackwright host list --help` lists what it takes'],
    [['host', 'find', 'a', 'b'], '"b" is one argument too many; `rackwright host find TEXT`'],
    [['host', 'list', '--rack', 'a', '--rack', 'b'], '--rack is given twice, as "a" and "b"'],
    [['host', 'list', '--rack', '--sort', 'a'], '--rack needs a value'],
    [['host', 'find', 'a', '-o', 'tabel'], 'json, yaml or name; did you mean table?'],
    [['host', 'get'], 'Which host? `rackwright host get HOST`'],
    [['host', 'create', 'h1'], '--rack'],
    [['host', 'list', '-o', 'xml'], 'xml'],
    [['host', 'watch', '--until', 'available'], '--until needs the host'],
    [['host', 'update', 'h1'], 'give at least one flag'],
    [
      ['host', 'create', 'h1', '--rack', 'r1', '--label', 'x'],
      '--label is "x"; it must be NAME=VALUE',
    ],
    [['host', 'update', 'h1', '--priority', 'a'], 'INTERFACE.STEP=NUMBER'],
    [['host', 'hold', 'h1', '--reason', 'x'], '--scope'],
    [['host', 'hold', 'h1', '--scope', 'work'], '--reason'],
    [
      ['host', 'hold', 'h1', '--scope', 'work', '--reason', 'x', '--for', '2x'],
      '--for is "2x"; it must be a duration as 90s, 30m, 2h or 3d',
    ],
    [
      ['host', 'hold', 'h1', '--scope', 'work', '--reason', 'x', '--until', 'noon'],
      '--until is "noon"; it must be a time as 2026-01-31T12:00:00Z',
    ],
    [
      ['host', 'hold', 'h1', '--scope', 'power', '--reason', 'x', '--for', '1h', '--until', 'now'],
      'not both',
    ],
    [['host', 'adopt', 'h1'], '--to'],
    [['host', 'diff', 'h1'], '--from'],
    [['host', 'each', 'retry'], 'give --selector, --filter or --rack'],
    [['host', 'each', 'erase', '--rack', 'r1'], '"erase" is none of verify, inspect, clean'],
    [
      ['host', 'get', 'h1', '--at', 'noon'],
      '--at is "noon"; it must be a time as 2026-01-31T12:00:00Z, or how long ago as 90s',
    ],
    [['host', 'history', 'h1', '--since', 'x'], '--since is "x"'],
    [['audit', 'list', '--limit', '0'], '"0" is not allowed; it must be a whole number, 1 to'],
    [['host', 'service', 'h1'], 'give at least one --step'],
    [['host', 'start', 'h1', 'abc'], '"abc" is no plan hash; copy all 64 characters from'],
    [['host', 'provision', 'h1'], 'which image? `rackwright host provision HOST IMAGE`'],
    [['host', 'clean'], 'which host? `rackwright host clean HOST`, or many by --filter or --rack'],
    [['host', 'clean', 'h1', '--rack', 'r1'], 'h1 and --filter or --rack both say which hosts'],
    [['host', 'clean', 'h1', '--timeout', '1m'], '--timeout ends a wait: give --wait too'],
    [['host', 'clean', 'h1', '--wait', '--timeout', '1x'], '"1x" is no time'],
    [['host', 'clean', '--rack', 'r1', '--parallel', '65'], 'it must be from 1 to 64'],
    [['host', 'clean', '--rack', 'r1', '--request-id', 'a'], '--request-id names one request'],
    [['abandoned', 'resolve', 'u1'], '--reason'],
    [['discovered', 'accept', 'm-1'], 'Which host? `rackwright discovered accept MACHINE HOST`'],
    [['expected', 'create', 'h1', '--serial', 'a'], '--rack'],
    [['expected', 'import', 'none.yaml'], 'none.yaml does not exist'],
    [['rack', 'update', 'r1', '--discovery-rules', 'none.yaml'], 'none.yaml does not exist'],
    [['rack', 'update', 'r1'], 'nothing to change: give --display-name, --label, --runs'],
    [['fleet', 'update'], 'give --wipe-budget, --verification, --organisation, --customer'],
    [
      ['fleet', 'update', '--registry-credential', 'box:5000'],
      '--registry-credential is "box:5000"; it must be REGISTRY=CREDENTIAL',
    ],
    [
      ['fleet', 'update', '--pool-priority', 'fast=1'],
      '--pool-priority is "fast=1"; it must be POOL:INTERFACE.STEP=NUMBER',
    ],
    [
      ['fleet', 'update', '--priority', 'deploy.x=1234567890'],
      'it must be INTERFACE.STEP=NUMBER, the number 0 to 999999999',
    ],
    [
      ['host', 'create', 'h1', '--rack', 'r1', '--cipher-suite', 'x'],
      '"x" is not allowed; it must be a whole number, 0 to 999999999',
    ],
    [['host', 'get', 'h1', '--request-id', 'a'], '--request-id'],
    [['host', 'power', 'off', 'h1', '--boot-old-disk', 'a'], '--boot-old-disk'],
    [['host', 'power', 'on', 'h1', '--graceful'], '--graceful'],
    [['host', 'power', 'off', 'h1', '--graceful', '--force'], 'give one of them'],
    [['host', 'power', 'reset', 'h1', '--force', '--shutdown-timeout', '60'], 'waits for nobody'],
  ])('%j ends with exit code 2 and says what is right', async (args, message) => {
    const { code, err, out } = await runOver(args);
    expect(err).toContain(message);
    expect(out).toBe('');
    expect(code).toBe(exitCodes.usage);
  });
});

describe('the settings', () => {
  test('settings that are missing are named with every place where they may stand', async () => {
    const { code, err } = await runOver(['host', 'list'], {
      environment: { RACKWRIGHT_SERVER: 'a:1' },
    });
    expect(code).toBe(exitCodes.usage);
    expect(err).not.toContain('--server');
    for (const place of ['--token-file', 'RACKWRIGHT_TOKEN_FILE', 'caFile in the file']) {
      expect(err).toContain(place);
    }
    expect(err).toContain('/home/me/.config/rackwright/config.yaml');
  });

  test('come from flags before the environment before the file', async () => {
    const files = {
      '/home/me/.config/rackwright/config.yaml': 'server: file:1\ntokenFile: /t\ncaFile: /ca',
    };
    const missing = async (args: string[], environment: Record<string, string>) =>
      (await runOver(['rack', 'list', ...args], { files, environment })).err;
    expect(await missing([], {})).toContain('--token-file names /t, which');
    expect(await missing([], { RACKWRIGHT_TOKEN_FILE: '/e' })).toContain('names /e, which');
    expect(await missing(['--token-file', '/f'], { RACKWRIGHT_TOKEN_FILE: '/e' })).toContain(
      'names /f, which',
    );
  });

  test('settings with an unknown key, no file or a token that is none are refused', async () => {
    const run = (files: Record<string, string>, args: string[] = []) =>
      runOver(['rack', 'list', '--config', '/c', ...args], { files });
    expect((await run({ '/c': 'servr: a:1' })).err).toContain('did you mean server?');
    expect((await run({})).err).toContain('/c does not exist');
    const config = 'server: a:1\ntokenFile: /t\ncaFile: /ca';
    const secret = 'secret: here\nand: there';
    const { err, code } = await run({ '/c': config, '/t': secret, '/ca': '' });
    expect(err).toContain('holds no token');
    expect(err).not.toContain('here');
    expect(code).toBe(exitCodes.usage);
    const bad = await run({ '/c': config.replace('a:1', 'a'), '/t': 'x', '/ca': '' });
    expect(bad.err).toContain('it must be HOST:PORT');
  });

  test('a command whose settings name an unreachable server exits with code 6', async () => {
    const files = { '/c': 'server: 127.0.0.1:1\ntokenFile: /t\ncaFile: /ca', '/t': 'x', '/ca': '' };
    const { code, err } = await runOver(['rack', 'list', '--config', '/c'], { files });
    expect(err).toContain('There is no connection');
    expect(code).toBe(exitCodes.unreachable);
  });
});

describe('a password', () => {
  test('has no flag, and its file has to exist', async () => {
    const args = ['credential', 'create', 'c1', '--username', 'root'];
    expect((await runOver([...args, '--password', 'x'])).code).toBe(exitCodes.usage);
    const { out } = await runOver(['credential', 'create', '--help']);
    expect(out).not.toMatch(/--password[^-]/);
    const missing = await runOver([...args, '--password-file', '/p']);
    expect(missing.err).toContain('/p does not exist');
  });
});

describe('erasure verify', () => {
  const trust = privatePem();
  const agentKey = privatePem();

  test('accepts what was signed and refuses every changed byte, offline', async () => {
    const statement = makeStatement();
    const files = {
      '/1.json': statement,
      '/1.json.sig': signBytes(statement, trust),
      '/trust.pem': publicKeyOf(trust),
    };
    const args = ['erasure', 'verify', '/1.json', '--trust', '/trust.pem'];
    const good = await runOver(args, { files });
    expect(good).toMatchObject({ code: exitCodes.done, err: '' });
    expect(good.out).toContain('verified: Model SER-1 of hosts/h1: erased by overwrite');
    for (const at of [0, Math.floor(statement.length / 2), statement.length - 1]) {
      const changed = statement.slice();
      changed[at] = (changed[at] ?? 0) ^ 1;
      const bad = await runOver(args, { files: { ...files, '/1.json': changed } });
      expect(bad.code).toBe(exitCodes.notVerified);
      expect(bad.out).toContain('DOES NOT VERIFY');
    }
  });

  test('refuses another key and goes on to the next file', async () => {
    const statement = makeStatement();
    const files = {
      '/1.json': statement,
      '/1.json.sig': signBytes(statement, privatePem()),
      '/2.json': statement,
      '/2.json.sig': signBytes(statement, trust),
      '/trust.pem': publicKeyOf(trust),
    };
    const args = ['erasure', 'verify', '/1.json', '/2.json', '--trust', '/trust.pem'];
    const { code, out, err } = await runOver(args, { files });
    expect(code).toBe(exitCodes.notVerified);
    expect(out).toMatch(/\/1\.json: DOES NOT VERIFY[\s\S]*\/2\.json: verified/);
    expect(err).toContain('1 of 2 do not verify');
  });

  test('ends with a code of its own for each way to prove nothing', async () => {
    const host = { name: 'hosts/h1', uid: 'uid-1' };
    const run = async (statement: Uint8Array, document?: Uint8Array, flags: string[] = []) => {
      const signed = (name: string, bytes: Uint8Array) => ({
        [name]: bytes,
        [`${name}.sig`]: signBytes(bytes, trust),
      });
      const files = {
        ...signed('/1.json', statement),
        ...(document === undefined ? {} : signed('/2.json', document)),
        '/trust.pem': publicKeyOf(trust),
      };
      const names = document === undefined ? ['/1.json'] : ['/1.json', '/2.json'];
      const args = ['erasure', 'verify', ...names, '--trust', '/trust.pem', ...flags];
      return await runOver(args, { files });
    };
    const { METADATA_ONLY } = agent.ErasureMethod;
    expect((await run(makeStatement({ method: METADATA_ONLY }))).code).toBe(8);
    const { UNVERIFIED } = agent.VerdictKind;
    expect((await run(makeStatement({ verdict: UNVERIFIED }))).code).toBe(9);
    const createdAt = '2026-01-01T00:00:00.000Z';
    const later = { host, createdAt, runnerSession: 's', devices: [], previousSha256: null };
    const statement = makeStatement();
    expect((await run(statement, buildManifest({ ...later, useEpoch: 4 }))).code).toBe(10);
    const revocation = buildRevocation({
      host,
      certificate: 'erasureCertificates/c1',
      certificateSha256: statementSha256(statement),
      deviceSerial: 'SER-1',
      reason: 'dataReturned',
      detail: 'byte 0x5a is left',
      offset: 4096,
      useEpoch: 3,
      createdAt,
    });
    expect(await run(statement, revocation)).toMatchObject({
      code: 11,
      out: expect.stringMatching(/REVOKED[\s\S]*dataReturned: byte 0x5a is left/),
    });
    const unknown = await run(statement, undefined, ['--require-revocations']);
    expect(unknown).toMatchObject({ code: 12, err: expect.stringContaining('is not known') });
    const known = ['--require-revocations', '--revocations-complete'];
    expect((await run(statement, undefined, known)).code).toBe(0);
  });

  test('prints a page for host and device, and says what does not verify', async () => {
    const statement = makeStatement();
    const files: Record<string, Uint8Array | string> = {
      '/1.json': statement,
      '/1.json.sig': signBytes(statement, trust),
      '/trust.pem': publicKeyOf(trust),
    };
    const args = ['erasure', 'print', '/1.json', '--trust', '/trust.pem', '--html', '/o.html'];
    const { code, out } = await runOver([...args, '--pdf', '/o.pdf'], { files });
    expect([code, out]).toEqual([exitCodes.done, '2 pages written to /o.html and /o.pdf\n']);
    const html = Buffer.from(files['/o.html'] ?? '').toString();
    expect(html).toContain('1 certificate, all valid; no manifest is given');
    expect(html).toContain('Erased: clear, by one overwrite with zeros. Model SER-1');
    expect(
      Buffer.from(files['/o.pdf'] ?? '')
        .subarray(0, 8)
        .toString(),
    ).toBe('%PDF-1.4');
    files['/1.json.sig'] = signBytes(statement, privatePem());
    await runOver(args, { files });
    const refused = Buffer.from(files['/o.html'] ?? '').toString();
    expect(refused).toContain('THE CERTIFICATE DOES NOT VERIFY');
    expect((await runOver(args.slice(0, 5), { files })).code).toBe(exitCodes.usage);
  });

  test('names a file that is missing', async () => {
    const args = ['erasure', 'verify', '/1.json', '--trust', '/trust.pem'];
    expect(await runOver(args)).toMatchObject({ code: exitCodes.usage });
    const { code } = await runOver(['erasure', 'verify', '--trust', '/trust.pem']);
    expect(code).toBe(exitCodes.usage);
  });

  function makeStatement(change: Partial<agent.DeviceOutcome> = {}): Uint8Array {
    const outcome = create(agent.DeviceOutcomeSchema, {
      device: create(StorageDeviceSchema, {
        device: 'sda',
        transport: Transport.SATA,
        model: 'Model',
        serial: 'SER-1',
        sizeBytes: 1_000_000n,
      }),
      method: agent.ErasureMethod.OVERWRITE,
      verdict: agent.VerdictKind.ERASED,
      placesRead: 1088n,
      bytesRead: 4_456_448n,
      verification: { level: agent.VerificationLevel.SAMPLED, places: 1024n },
      bytesExamined: 1_000_000n,
      challengeBlocksWritten: 64n,
      startTime: timestampFromMs(1_700_000_000_000),
      endTime: timestampFromMs(1_700_000_009_000),
      challengeSeed: new Uint8Array(32).fill(1),
    });
    const payload = toBinary(
      agent.StepEvidenceSchema,
      create(agent.StepEvidenceSchema, {
        operationId: 'uid-1/1/2/1',
        hostUid: 'uid-1',
        runnerSession: 'session',
        bootId: 'boot',
        runnerVersion: '0.1.0',
        devices: [Object.assign(outcome, change)],
        toolVersions: { node: '24.21.0' },
        mode: agent.StepMode.RUN,
        identityWitnesses: ['uuid'],
      }),
    );
    const publicKey = Buffer.from(
      publicKeyOf(agentKey).replaceAll(/-----[A-Z ]+-----|\s/g, ''),
      'base64',
    );
    return buildStatement({
      host: { name: 'hosts/h1', uid: 'uid-1' },
      operationId: 'uid-1/1/2/1',
      useEpoch: 3,
      evidence: { payload, signature: signBytes(payload, agentKey), publicKey },
      deviceIndex: 0,
    });
  }
});

function privatePem(): string {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
}
