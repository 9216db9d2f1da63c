import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type PowerCalls, stateIn } from './calls.ts';

const calls: PowerCalls = {
  ...{ onPath: '/on', offPath: '/off', statePath: '/', method: '', onBody: '', offBody: '' },
  ...{ stateField: 'relays.0.on', onValues: [], offValues: [], secretHeader: '', plainHttp: false },
};
const read = (text: string, changes: Partial<PowerCalls> = {}) => {
  const state = stateIn(Buffer.from(text), { ...calls, ...changes });
  return state.kind === 'state' ? state.power : 'none';
};

test.each([
  ['{"relays":[{"on":true}]}', {}, 'on'],
  ['{"relays":[{"on":0}]}', {}, 'off'],
  ['{"POWER":"OFF"}', { stateField: 'POWER' }, 'off'],
  [' ON\n', { stateField: '' }, 'on'],
  ['{"s":"running"}', { stateField: 's', onValues: ['Running'], offValues: ['halted'] }, 'on'],
  // The words that are given replace the usual ones.
  ['{"s":"on"}', { stateField: 's', onValues: ['running'], offValues: ['halted'] }, 'none'],
  ['{"relays":[]}', {}, 'none'],
  ['{"relays":[{"on":"starting"}]}', {}, 'none'],
  ['{"relays":[{"on":{"value":true}}]}', {}, 'none'],
  ['{"relays":', {}, 'none'],
  ['{}', { stateField: 'constructor.name' }, 'none'],
  ['null', { stateField: 'a' }, 'none'],
] as const)('%s is read as it is configured', (text, changes, power) => {
  expect(read(text, changes)).toBe(power);
});

test('any bytes are a state or none, and are never repeated', () => {
  const any = fc.oneof(
    fc.uint8Array({ maxLength: 400 }),
    fc.json().map((text) => new Uint8Array(Buffer.from(text))),
  );
  fc.assert(
    fc.property(any, fc.constantFrom('', 'a', 'a.b', '0', '__proto__'), (bytes, stateField) => {
      const state = stateIn(bytes, { ...calls, stateField });
      if (state.kind === 'none') expect(state.why.length).toBeLessThan(100);
    }),
  );
});
