import { expect, test } from 'vitest';
import { runOver } from '../../command-io.fixture.ts';
import { stepsOfText } from './step-list.ts';

test('a list in YAML has names, and steps with arguments, in their order', () => {
  const text = '- hold\n- step: wait\n  arguments: {seconds: 60, quietly: true}\n- reboot\n';
  expect(stepsOfText('list.yaml', text)).toEqual([
    { step: 'hold', arguments: {} },
    { step: 'wait', arguments: { seconds: '60', quietly: 'true' } },
    { step: 'reboot', arguments: {} },
  ]);
});

test('a list in JSON is read as well', () => {
  expect(stepsOfText('x', '["hold", {"step": "reboot"}]').map(({ step }) => step)).toEqual([
    'hold',
    'reboot',
  ]);
});

test.each([
  ['{}', 'must hold a list of names'],
  ['[]', 'must hold a list of names'],
  ['- 3', 'step 1 must be a name or an object'],
  ['- {arguments: {}}', 'step 1 lacks the name'],
  ['- hold\n- {step: wait, argument: {}}', 'step 2 has argument; it may have step and arguments'],
  ['- {step: wait, arguments: {seconds: [1]}}', 'seconds must be a text, a number'],
  ['- [unclosed', 'neither YAML nor JSON'],
])('%j is refused before anything is asked', (text, message) => {
  expect(() => stepsOfText('f', text)).toThrow(message);
});

test.each([
  [['--steps', '/none'], '--steps names /none, which does not exist'],
  [['--steps', '-'], 'reads standard input'],
  [['--steps', '/f', '--step', 'hold'], 'give --step or --steps, not both'],
  [['--step', 'wait,seconds'], '--step is "seconds"; it must be NAME=VALUE'],
])('host clean %j ends with exit code 2', async (flags, message) => {
  const { code, err } = await runOver(['host', 'clean', 'h1', ...flags], { files: { '/f': '[]' } });
  expect(err).toContain(message);
  expect(code).toBe(2);
});
