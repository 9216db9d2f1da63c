import { describe, expect, test } from 'vitest';
import { parseOptions } from './options.ts';

describe('the command line of the demo', () => {
  test('has a default for everything', () => {
    expect(parseOptions([])).toEqual({
      kind: 'run',
      options: {
        hosts: 8,
        racks: 2,
        seed: 1,
        faults: [],
        scripts: [],
        programs: undefined,
        nats: false,
        check: false,
        verbose: false,
      },
    });
  });

  test('takes faults for a host by name, or for one that the seed chooses', () => {
    const parsed = parseOptions(['--fault', 'silent:h2', '--fault', 'disk-lies', '--check']);
    expect(parsed).toMatchObject({
      options: {
        faults: [
          { name: 'silent', host: 'h2' },
          { name: 'disk-lies', host: undefined },
        ],
        check: true,
      },
    });
  });

  test('gives a single host a single rack, so that no rack is empty', () => {
    expect(parseOptions(['--hosts', '1'])).toMatchObject({ options: { hosts: 1, racks: 1 } });
    expect(parseOptions(['--hosts', '2'])).toMatchObject({ options: { hosts: 2, racks: 2 } });
  });

  test.for([
    [['--hosts', '0'], '--hosts is "0"; it must be a whole number from 1 to 64'],
    [['--hosts', '1', '--racks', '2'], 'from 1 to 1'],
    [['--fault', 'sleepy'], 'wrong-password'],
    [['--fault', 'silent:h9'], 'hosts are h1 to h8'],
    [['--fast'], '--fast'],
    [['there'], 'there'],
  ] as const)('refuses %j and says what would be right', ([args, text]) => {
    const parsed = parseOptions(args);
    expect(parsed).toMatchObject({ kind: 'wrong' });
    expect(parsed.kind === 'wrong' && parsed.message).toContain(text);
  });
});
