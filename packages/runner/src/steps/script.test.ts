import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import { BmcIdentitySchema } from '@rackwright/messages';
import type * as agent from '@rackwright/messages/agent';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { environmentOf, interpreters, runScript } from './script.ts';
import type { Step } from './step.ts';
import { guid, placeIn, runStep } from './steps.fixture.ts';

let folder = '';
let step: Step;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'rackwright-script-'));
  step = runScript(await placeIn(folder));
});

afterEach(() => rmSync(folder, { recursive: true }));

const outputOf = (result: { readonly output?: agent.StepOutput }): string =>
  Buffer.from(result.output?.tail ?? []).toString();

test('the step runs the script, keeps its output, and leaves no file', async () => {
  const script =
    'echo "$RACKWRIGHT_HOST $RACKWRIGHT_RUN $GREETING"; stat -c %a "$0"; echo over >&2';
  const environment = JSON.stringify({ GREETING: 'hello' });
  const run = runStep(step, { script, environment });
  const { result } = await run.end;
  expect(result).toMatchObject({
    kind: 'complete',
    output: { exit: { code: 0, signal: '', outputBytes: 24n, lastOutput: expect.anything() } },
  });
  expect(outputOf(result as { output?: agent.StepOutput })).toBe('h1 uid/7 hello\n700\nover\n');
  expect(run.output()).toBe('h1 uid/7 hello\n700\nover\n');
  expect(existsSync(join(folder, 'script'))).toBe(false);
});

test('the result names the exit code and the last line of the script', async () => {
  const { result } = await runStep(step, { script: 'echo no such volume >&2; exit 3' }).end;
  expect(result).toMatchObject({
    kind: 'failed',
    type: 'exitCode',
    message: 'exit code 3: no such volume',
    output: { exit: { code: 3, lastOutput: 'no such volume' } },
  });
});

test('the result names the signal that ended the script', async () => {
  const { result } = await runStep(step, { script: 'kill -SEGV $$' }).end;
  expect(result).toMatchObject({
    type: 'exitCode',
    message: 'ended by SIGSEGV, and it wrote nothing',
    output: { exit: { signal: 'SIGSEGV' } },
  });
  expect(result).not.toHaveProperty('output.exit.code', 0);
});

test('the step keeps the end of a long output and counts all of it', async () => {
  const script = 'i=0; while [ $i -lt 20000 ]; do echo "line $i"; i=$((i+1)); done';
  const { result } = await runStep(step, { script }).end;
  const output = result.kind === 'complete' ? result.output : undefined;
  expect(output?.tail).toHaveLength(64 * 1024);
  expect(output?.exit?.outputBytes).toBe(208_890n);
  expect(Buffer.from(output?.tail ?? []).toString()).toMatch(/line 19999\n$/);
});

test('the step runs what another interpreter of the list understands', async () => {
  const script = 'console.log(process.argv.length)';
  const run = runStep(step, { script, interpreter: '/usr/bin/node' });
  expect((await run.end).result.kind).toBe('complete');
  expect(run.output()).toBe('2\n');
});

test('a cancelled script is stopped with all processes that it has started', async () => {
  const run = runStep(step, { script: 'sleep 300 & echo on; wait' });
  await expect.poll(run.output, { interval: 10 }).not.toBe('');
  run.stop();
  expect((await run.end).result).toMatchObject({
    kind: 'failed',
    type: 'cancelled',
    output: { exit: { signal: 'SIGTERM' } },
  });
});

test.each<[string, Record<string, string>, string]>([
  ['no script', {}, 'script: is missing'],
  ['a long one', { script: 'x'.repeat(70_000) }, 'script: has 70000 bytes'],
  ['an interpreter of its own', { script: ':', interpreter: '/bin/dd' }, '"/bin/dd" is not one of'],
  ['a list', { script: ':', environment: '[]' }, 'environment: must be a JSON object'],
  ['a number', { script: ':', environment: '{"A":1}' }, 'the value of A must be a text'],
  ['a bad name', { script: ':', environment: '{"A=B":""}' }, '"A=B" is no name of a variable'],
  ['our names', { script: ':', environment: '{"RACKWRIGHT_RUN":""}' }, 'are our own'],
  ['a typo', { script: ':', interpeter: 'x' }, 'unknown arguments interpeter'],
])('the step refuses %s and starts nothing', async (_name, given, problem) => {
  const { result } = await runStep(step, given).end;
  expect(result).toMatchObject({
    kind: 'failed',
    type: 'invalidArgument',
    message: expect.stringContaining(problem),
  });
});

test('the step accepts exactly the interpreters that its description lists', () => {
  const described = step.description.typedArguments?.find(({ name }) => name === 'interpreter');
  expect(described?.values).toEqual([...interpreters]);
});

test('the step starts no script on another machine than the intended one', async () => {
  const script = `echo done > ${folder}/touched`;
  const stranger = Buffer.from('ff112233445566778899aabbccddeeff', 'hex');
  const expected = (id: Uint8Array) => create(BmcIdentitySchema, { guid: id });
  const ends = [
    runStep(step, { script }, { destructive: true, expectedIdentity: expected(stranger) }),
    runStep(step, { script }, { destructive: true }),
    // Unset counts as destructive.
    runStep(step, { script }, {}),
  ];
  const types: unknown[] = [];
  for (const { end } of ends) {
    const { result } = await end;
    types.push(result.kind === 'failed' ? result.type : result.kind);
  }
  expect(types).toEqual(['identityMismatch', 'identityUnproven', 'identityUnproven']);
  expect(existsSync(join(folder, 'touched'))).toBe(false);
  const mine = { destructive: true, expectedIdentity: expected(guid) };
  expect((await runStep(step, { script }, mine).end).result.kind).toBe('complete');
  expect(readFileSync(join(folder, 'touched'), 'utf8')).toBe('done\n');
});

test('the script gets secrets in its environment, and no output shows them', async () => {
  const secret = 'hunter2-hunter2';
  const script = 'echo "as $WHO"; printf "it is %s" "$TOKEN"; printf %s "$TOKEN" | wc -c; exit 4';
  const named = { credential: 'credentials/hub', part: 'password' };
  const given = { script, secretEnvironment: JSON.stringify({ TOKEN: named, WHO: named }) };
  const secretEnvironment = { TOKEN: secret, WHO: 'robot' };
  const run = runStep(step, given, { destructive: false }, { secretEnvironment });
  const { result } = await run.end;
  expect(result).toMatchObject({ kind: 'failed', message: 'exit code 4: it is [secret]15' });
  expect(outputOf(result as { output?: agent.StepOutput })).toBe('as [secret]\nit is [secret]15\n');
  expect(run.output()).toBe('as [secret]\nit is [secret]15\n');
});

test('a script does not run without the secrets that it names', async () => {
  const secretEnvironment = JSON.stringify({ TOKEN: { credential: 'credentials/hub' } });
  const script = `touch ${join(folder, 'ran')}`;
  const { result } = await runStep(step, { script, secretEnvironment }).end;
  expect(result).toMatchObject({ kind: 'failed', type: 'invalidArgument' });
  expect(existsSync(join(folder, 'ran'))).toBe(false);
  const odd = await runStep(step, { script, secretEnvironment: '[]' }).end;
  expect(odd.result).toMatchObject({ kind: 'failed', type: 'invalidArgument' });
});

test('a program finds the trace of its operation in its environment, where there is one', () => {
  const whose = { operationId: 'uid/7/1/1', hostName: 'hosts/h1' };
  expect(environmentOf({ ...whose, traceParent: '00-a-b-01' }, '/bin')).toMatchObject({
    TRACEPARENT: '00-a-b-01',
  });
  expect(environmentOf(whose, '/bin')).not.toHaveProperty('TRACEPARENT');
});
