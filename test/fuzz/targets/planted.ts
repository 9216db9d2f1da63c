/** Parsers with one defect each, which the fuzzer has to find. */
import { DecodeError } from '../../../packages/bytes/src/index.ts';
import { type Bounds, type Target, textOf, texts } from '../target.ts';

const left: unknown[] = [];

/** One parser of "TYPE LENGTH TEXT", with a defect behind a condition. */
function plant(
  name: string,
  defect: (text: string) => unknown,
  bounds: Partial<Bounds> = {},
): Target {
  return {
    name: `planted.${name}`,
    form: 'text',
    seeds: texts('head:abc;tail:defghijklm', 'head:12;tail:34'),
    refusals: [DecodeError],
    tokens: ['<', '>'],
    // Only the defect that is planted is to be found, however slow the machine is.
    bounds: { inputBytesMax: 48, growthBytesMax: 2 ** 20, callCpuMs: 60_000, ...bounds },
    parse: (input) => {
      const text = textOf(input);
      if (!text.startsWith('head:')) throw new DecodeError('no head');
      return text.includes('<') ? defect(text) : text.split(';');
    },
  };
}

export const targets: readonly Target[] = [
  plant('throws', (text) => JSON.parse(text.slice(0, 1)).length),
  plant(
    'loops',
    () => {
      for (let round = 0; ; round += 1) if (round < 0) return round;
    },
    { hangCpuMs: 300 },
  ),
  plant('waits', () => new Promise(() => {})),
  plant(
    'slows',
    (text) => {
      const until = process.cpuUsage().user + 60_000;
      while (process.cpuUsage().user < until);
      return text.length;
    },
    { callCpuMs: 20 },
  ),
  plant('grows', (text) => left.push(Array.from({ length: 2_000 }, () => text))),
  plant(
    'swells',
    () => {
      const all: unknown[] = [];
      for (;;) all.push(Array.from({ length: 200_000 }).fill(0));
    },
    // A heap that is full keeps the collector busy.
    { hangCpuMs: 60_000 },
  ),
  plant('answersLarge', () => 'x'.repeat(2_000_000)),
  plant('peaks', () => Buffer.alloc(64 * 2 ** 20, 1).length, {
    peakBytesMax: 32 * 2 ** 20,
    hangCpuMs: 60_000,
  }),
  plant('pollutes', () => {
    const prototype: object = Object.getPrototypeOf({});
    Object.defineProperty(prototype, 'polluted', { value: 1, configurable: true });
  }),
  plant('isWell', (text) => text.length),
];
