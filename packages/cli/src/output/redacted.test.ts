import { expect, test } from 'vitest';
import { redacted } from './redacted.ts';

test('fields that may hold a secret are left out at any depth', () => {
  const spec = {
    deploy: { firstBoot: { userData: '#cloud-config\npassword: x', metaData: {} } },
    gate: { webhookUrl: 'https://hooks.example/T0/B1/secret' },
    steps: [{ name: 'run', arguments: { key: 'x' }, exit: { lastOutput: 'token x', code: 1 } }],
  };
  expect(redacted({ name: 'pools/web', spec })).toEqual({
    name: 'pools/web',
    spec: {
      deploy: { firstBoot: { userData: '(left out)', metaData: {} } },
      gate: { webhookUrl: '(left out)' },
      steps: [
        { name: 'run', arguments: '(left out)', exit: { lastOutput: '(left out)', code: 1 } },
      ],
    },
  });
});

test('credentials and query of a URL are left out', () => {
  expect(redacted('https://ann:pw@mirror.example/os.raw?sig=abc failed')).toBe(
    'https://mirror.example/os.raw(left out) failed',
  );
  const sha = `#sha256=${'0a'.repeat(32)}`;
  expect(redacted(`https://mirror.example/os.raw${sha}`)).toBe(
    `https://mirror.example/os.raw${sha}`,
  );
  expect(redacted('racks/r1 is away; see https://x.example/a.')).toBe(
    'racks/r1 is away; see https://x.example/a.',
  );
});
