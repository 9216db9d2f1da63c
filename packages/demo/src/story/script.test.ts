import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parseScript } from './script.ts';

test('the parser reads every command that its module header names', () => {
  const text = `
    # a test of a user's own
    wait h1 available 60
    wait all available
    wait r1 away
    wait accepted 30 180
    wait discovered 10
    strangers 40
    boot all
    boot u1
    manifest 30
    kill r1
    start r1
    kill n1
    start n1
    fault h3 silent
    fault h3 none
    swap h3
    mark before
    run host clean h1
    fail host delete h1 --reason "wrong address"
    run host explain h1 expect "waits for the BMC" expect "to do: "
    fail host start h2 plan:h2 expect "no longer holds"
    see host explain h1 expect BMC
    sleep 0.5
    say All is  well
  `;
  expect(parseScript(text)).toEqual([
    { kind: 'waitHost', host: 'h1', state: 'available', seconds: 60 },
    { kind: 'waitHost', host: 'all', state: 'available', seconds: 600 },
    { kind: 'waitRack', rack: 'r1', connected: false },
    { kind: 'waitCount', of: 'accepted', count: 30, seconds: 180 },
    { kind: 'waitCount', of: 'discovered', count: 10, seconds: 600 },
    { kind: 'strangers', count: 40 },
    { kind: 'boot', machine: 'all' },
    { kind: 'boot', machine: 'u1' },
    { kind: 'manifest', count: 30 },
    { kind: 'kill', name: 'r1' },
    { kind: 'start', name: 'r1' },
    { kind: 'kill', name: 'n1' },
    { kind: 'start', name: 'n1' },
    { kind: 'fault', host: 'h3', fault: 'silent' },
    { kind: 'fault', host: 'h3', fault: 'none' },
    { kind: 'swap', host: 'h3' },
    { kind: 'mark', name: 'before' },
    { kind: 'run', args: ['host', 'clean', 'h1'], texts: [] },
    { kind: 'fail', args: ['host', 'delete', 'h1', '--reason', 'wrong address'], texts: [] },
    { kind: 'run', args: ['host', 'explain', 'h1'], texts: ['waits for the BMC', 'to do: '] },
    { kind: 'fail', args: ['host', 'start', 'h2', 'plan:h2'], texts: ['no longer holds'] },
    { kind: 'see', args: ['host', 'explain', 'h1'], texts: ['BMC'] },
    { kind: 'sleep', seconds: 0.5 },
    { kind: 'say', text: 'All is  well' },
  ]);
});

test.for([
  ['reboot h1', 'it must begin with wait'],
  ['wait r1 gone', 'wait RACK connected, or away'],
  ['kill h1', 'kill RACK'],
  ['strangers 65', 'strangers NUMBER'],
  ['boot h1', 'boot MACHINE, or all'],
  ['wait accepted many', 'wait accepted NUMBER [SECONDS]'],
  ['fault h1 sleepy', 'fault HOST KIND'],
  ['swap all', 'swap HOST'],
  ['mark', 'mark NAME'],
  ['sleep long', 'a number of seconds'],
  ['run', 'a rackwright command'],
  ['run expect TEXT', 'a rackwright command'],
  ['run host list expect', 'run COMMAND expect TEXT'],
  ['fail host list expect "" expect x', 'fail COMMAND expect TEXT'],
  ['run host list expect x y', 'run COMMAND expect TEXT'],
  ['see host list', 'see COMMAND expect TEXT'],
])('the parser refuses "%s" with its line and what would be right', ([line = '', right = '']) => {
  expect(() => parseScript(`# first\n${line}`)).toThrow(/^line 2/);
  expect(() => parseScript(line)).toThrow(right);
});

const folder = join(import.meta.dirname, '../../scripts');

const scripts = readdirSync(folder).filter((name) => name.endsWith('.txt'));

test.each(scripts)('the parser reads %s, which comes with the demo', (name) => {
  expect(parseScript(readFileSync(join(folder, name), 'utf8'))).not.toEqual([]);
});

test('no explanation in a script that comes with the demo goes without what it has to say', () => {
  for (const name of scripts) {
    const commands = parseScript(readFileSync(join(folder, name), 'utf8'));
    const unchecked = commands.filter((command) => {
      return 'texts' in command && command.args[1] === 'explain' && command.texts.length === 0;
    });
    expect(unchecked).toEqual([]);
  }
});
