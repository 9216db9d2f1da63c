import { expect, test } from 'vitest';
import { parseArguments, usage } from './arguments.ts';

const run = {
  config: '/etc/rackwright/controlplane.yaml',
  restored: false,
  acceptNewIdentity: false,
  acceptUnprovenDurability: false,
  newAdminToken: false,
};

test('the program serves, checks a configuration, and copies its state', () => {
  expect(parseArguments([])).toEqual({ kind: 'run', options: run });
  expect(parseArguments(['--config', 'a.yaml', '--restored', '--new-admin-token'])).toEqual({
    kind: 'run',
    options: { ...run, config: 'a.yaml', restored: true, newAdminToken: true },
  });
  expect(parseArguments(['--config', 'a.yaml', '--check-config'])).toEqual({
    kind: 'checkConfig',
    config: 'a.yaml',
  });
  const { config } = run;
  const backup = parseArguments(['backup', '--to', 'x.tar']);
  expect(backup).toEqual({ kind: 'backup', config, file: 'x.tar' });
  const restore = parseArguments(['restore', '--config', 'a', '--from', 'x.tar']);
  expect(restore).toEqual({ kind: 'restore', config: 'a', file: 'x.tar' });
});

test('a request for help in any command shows all commands and options', () => {
  for (const args of [['--help'], ['-h'], ['help'], ['backup', '--help'], ['restore', '-h']]) {
    expect(parseArguments(args)).toEqual({ kind: 'help' });
  }
  for (const word of ['backup --to', 'restore --from', '--check-config', '--restored']) {
    expect(usage).toContain(word);
  }
  const options = ['--accept-new-identity', '--accept-unproven-durability', '--new-admin-token'];
  for (const word of [...options, '--config', '--help']) expect(usage).toContain(word);
});

test.each([
  [['--frozen'], '--frozen'],
  [['bakcup', '--to', 'x.tar'], 'bakcup'],
  [['serve'], 'serve'],
  [['backup'], 'backup needs --to FILE.tar'],
  [['backup', '--from', 'x.tar'], '--from'],
  [['restore', '--to', 'x.tar'], '--to'],
  [['restore', '--from', 'x.tar', 'more'], 'more'],
  [['--config'], '--config'],
])('%j is refused by its name', (args, problem) => {
  expect(parseArguments(args)).toEqual({
    kind: 'wrong',
    problem: expect.stringContaining(problem),
  });
});
