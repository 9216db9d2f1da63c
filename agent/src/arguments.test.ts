import { describe, expect, test } from 'vitest';
import { parseArguments } from './arguments.ts';

describe('the command line of the agent', () => {
  test('runs, joins, and takes a configuration anywhere', () => {
    expect(parseArguments(['run'])).toEqual({
      kind: 'run',
      config: '/etc/rackwright/agent.yaml',
    });
    expect(parseArguments(['--config', 'a.yaml', 'join', 'cp:7000', 'rwj1.x'])).toEqual({
      kind: 'join',
      address: 'cp:7000',
      token: 'rwj1.x',
      newKey: false,
      config: 'a.yaml',
    });
  });

  test('joins with a new key when told to, and runs with none', () => {
    const join = parseArguments(['join', '--new-key', 'cp:7000', 'rwj1.x']);
    expect(join).toMatchObject({ kind: 'join', newKey: true });
    expect(parseArguments(['run', '--new-key'])).toMatchObject({ kind: 'help' });
  });

  test('checks a configuration, and nothing beside it', () => {
    expect(parseArguments(['--check-config', '--config', 'a.yaml'])).toEqual({
      kind: 'checkConfig',
      config: 'a.yaml',
    });
    expect(parseArguments(['run', '--check-config'])).toMatchObject({
      kind: 'help',
      problem: '--check-config does nothing else',
    });
  });

  test('makes a site for nginx', () => {
    expect(parseArguments(['nginx', '--config', 'a.yaml'])).toEqual({
      kind: 'nginx',
      config: 'a.yaml',
    });
    expect(parseArguments(['nginx', '/etc/nginx'])).toMatchObject({ kind: 'help' });
  });

  test('explains itself when it does not understand', () => {
    expect(parseArguments([])).toEqual({ kind: 'help' });
    expect(parseArguments(['-h'])).toEqual({ kind: 'help' });
    for (const args of [['join', 'cp:7000'], ['run', 'x'], ['walk'], ['--config'], ['--fast']]) {
      expect(parseArguments(args)).toMatchObject({ kind: 'help', problem: expect.any(String) });
    }
  });
});
