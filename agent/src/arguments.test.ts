import { describe, expect, test } from 'vitest';
import { nodeProblem, parseArguments } from './arguments.ts';

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
      config: 'a.yaml',
    });
  });

  test('explains itself when it does not understand', () => {
    expect(parseArguments([])).toEqual({ kind: 'help' });
    expect(parseArguments(['-h'])).toEqual({ kind: 'help' });
    for (const words of [['join', 'cp:7000'], ['run', 'x'], ['walk'], ['--config'], ['--fast']]) {
      expect(parseArguments(words)).toMatchObject({ kind: 'help', problem: expect.any(String) });
    }
  });
});

describe('the Node that starts the agent', () => {
  test('has to be new enough', () => {
    for (const version of ['24.18.1', '24.21.0', '26.0.0']) {
      expect(nodeProblem(version)).toBeUndefined();
    }
    for (const version of ['20.20.2', '24.18.0', '24.9.9']) {
      expect(nodeProblem(version)).toContain('too old');
    }
  });
});
