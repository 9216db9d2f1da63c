import { create } from '@bufbuild/protobuf';
import { TemplatePolicySchema } from '@rackwright/messages';
import { describe, expect, test } from 'vitest';
import { reachProblem } from './reach.ts';
import { missingSecret, secretUses } from './step-secrets.ts';

const secretEnvironment = JSON.stringify({
  TOKEN: { credential: 'credentials/hub', part: 'password' },
  WHO: { credential: 'credentials/hub', part: 'username' },
});
const given = { script: 'env', secretEnvironment };
const step = { step: 'run.script', arguments: given };

describe('a step that names a credential', () => {
  test('may be given only what the fleet gives to steps', () => {
    expect(reachProblem(undefined, step)).toContain(
      'rackwright fleet update --template-credential hub',
    );
    const other = create(TemplatePolicySchema, { credentials: ['credentials/bmc'] });
    expect(reachProblem(other, step)).toContain('credentials/hub');
    const policy = create(TemplatePolicySchema, { credentials: ['credentials/hub'] });
    expect(reachProblem(policy, step)).toBeUndefined();
    const odd = { ...step, arguments: { script: 'x', secretEnvironment: '[1]' } };
    expect(reachProblem(policy, odd)).toContain('cannot be read');
    const call = { url: 'https://x.example/', secretHeaders: secretEnvironment };
    const hooks = create(TemplatePolicySchema, { webhookUrls: ['https://x.example/'] });
    expect(reachProblem(hooks, { step: 'webhook', arguments: call })).toContain('credentials/hub');
  });

  test('names the command that creates a missing credential', () => {
    expect(missingSecret(given, new Map())).toContain('rackwright credential create hub');
    expect(missingSecret(given, new Map([['credentials/hub', 1n]]))).toBeUndefined();
  });

  test('orders them by name and version', () => {
    const uses = secretUses(given, new Map([['credentials/hub', 7n]]));
    expect(uses.map((use) => [use.variable, use.credential, use.credentialVersion])).toEqual([
      ['TOKEN', 'credentials/hub', 7n],
      ['WHO', 'credentials/hub', 7n],
    ]);
  });
});
