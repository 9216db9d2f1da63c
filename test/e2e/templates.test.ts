/** Templates by the command, against a real control plane. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  type ControlPlaneProcess,
  startControlPlaneProcess,
} from '../peers-tests/python-client/control-plane-process.ts';
import { typed } from './command.ts';
import { programOf } from './programs.ts';

let controlPlane: ControlPlaneProcess;

beforeAll(async () => {
  controlPlane = await startControlPlaneProcess(programOf('controlplane'));
  const { operators: server, tokenFile, caFile } = controlPlane;
  await writeFile(fileOf('cli.yaml'), JSON.stringify({ server, tokenFile, caFile }));
});

afterAll(() => controlPlane.stop());

function fileOf(name: string): string {
  return join(controlPlane.folder, name);
}

const rackwright = (line: string, input?: string) =>
  typed({ RACKWRIGHT_CONFIG: fileOf('cli.yaml') }, line.split(' '), input);

const source = `description: Set the clock
variables:
  server: { default: "{{ host.rack }}.example.org" }
steps:
  - { name: clock, script: "ntpd -q -p {{ vars.server }}", timeout: 5m, onFailure: hold }
`;

test('a template is checked, kept, shown, changed and deleted by the command', async () => {
  const file = fileOf('clock.yaml');
  await writeFile(file, source.replace('5m', '5 m').replace('vars.server', 'vars.sever'));
  const wrong = await rackwright(`template check ${file}`);
  expect(wrong.code).toBe(2);
  expect(wrong.err.split('\n').slice(0, 3)).toEqual([
    `${file}:5:43: there is no variable "sever"; did you mean "server"?`,
    `${file}:5:68: must be a time as "90s", "5m" or "2h"`,
    `rackwright: ${file} has 2 problems`,
  ]);
  expect((await rackwright(`template create Clock ${file}`)).err).toMatch(
    /:5:68: [^]*1 field is wrong:\n {2}template_id is "Clock"/,
  );

  await writeFile(file, source);
  const right = await rackwright(`template check ${file}`);
  expect(right).toMatchObject({
    code: 0,
    out: `${file}: no problem; steps: 1, variables: 1\n`,
    err: '',
  });
  const made = await rackwright(`template create clock ${file} --label team=time`);
  expect(made.out).toMatch(/^name +templates\/clock\ndescription +Set the clock\n/);
  expect(made.out).toMatch(/^server +string +\{\{ host\.rack \}\}\.example\.org/m);
  expect(made.out).toMatch(/^clock +script +yes +300s +0 +hold/m);
  expect((await rackwright(`template create clock ${file}`)).code).toBe(4);
  expect((await rackwright('template check -', source)).out).toMatch(/^-: no problem/);

  const changed = await rackwright('template update clock -', source.replace('Set', 'Wind'));
  expect(changed.out).toMatch(/^description +Wind the clock\nd.*\nlabels +team=time$/m);
  const list = await rackwright('template list');
  expect(list.out).toMatch(/^templates\/clock +1 +\d+s ago +Wind the clock$/m);
  expect(list.out).toMatch(/^templates\/rackwright-diagnose +\d +built in +/m);
  const kept = await rackwright('template get clock --source');
  expect(kept.out).toBe(source.replace('Set', 'Wind'));
  const json: unknown = JSON.parse((await rackwright('template get clock -o json')).out);
  expect(json).toMatchObject({ name: 'templates/clock', steps: [{ timeout: '300s' }] });

  expect((await rackwright('template delete rackwright-diagnose')).code).toBe(2);
  const gone = await rackwright('template delete clock --request-id once');
  expect(gone.out).toBe('templates/clock deleted\n');
  expect((await rackwright('template delete clock --request-id once')).code).toBe(0);
  expect((await rackwright('template delete clock')).code).toBe(3);
});

test('the source of a built-in template can be made one’s own', async () => {
  const file = fileOf('own.yaml');
  const { out } = await rackwright('template get rackwright-diagnose --source');
  await writeFile(file, out);
  expect((await rackwright(`template create diagnose ${file}`)).code).toBe(0);
  expect(await readFile(file, 'utf8')).toBe(
    (await rackwright('template get diagnose --source')).out,
  );
});

test('an unreadable template is reported before any request is sent', async () => {
  expect(await rackwright('template check /nowhere.yaml')).toMatchObject({
    code: 2,
    err: 'rackwright: there is no file /nowhere.yaml\n',
  });
  const file = fileOf('latin1.yaml');
  await writeFile(file, Buffer.from([0x61, 0xe4, 0x62]));
  expect((await rackwright(`template check ${file}`)).err).toContain('is no UTF-8 text');
});
