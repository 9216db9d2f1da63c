import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { TemplatePolicySchema } from '@rackwright/messages';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { commandImageOf, policyProblems, reachProblem } from './reach.ts';

const digest = `sha256:${'a'.repeat(64)}`;
const policy = (changes: MessageInitShape<typeof TemplatePolicySchema>) =>
  create(TemplatePolicySchema, changes);

const command = (image: string) => ({
  step: 'run.command',
  arguments: { image },
});
const webhook = (url: string) => ({ step: 'webhook', arguments: { url } });

describe('an image', () => {
  const allowed = policy({
    imageRepositories: ['registry.example.org/tools/*', 'localhost:5000/one'],
  });

  test.each([
    ['registry.example.org/tools/check', true],
    ['registry.example.org/tools/a/b', true],
    ['registry.example.org/tools', false],
    ['registry.example.org/toolsx/check', false],
    ['registry.example.org/other/tools/check', false],
    ['registry.example.org:5000/tools/check', false],
    ['xregistry.example.org/tools/check', false],
    ['localhost:5000/one', true],
    ['localhost:5000/one/more', false],
    ['localhost:5000/onemore', false],
  ])('an image of %s is let in: %s', (name, isIn) => {
    const refusal = reachProblem(allowed, command(`${name}@${digest}`));
    if (isIn) expect(refusal).toBeUndefined();
    else expect(refusal).toContain('the fleet allows no command from');
  });

  test.each([
    ['registry.example.org/tools/check:v1', 'is named by no digest'],
    ['tools/check', 'must begin with its registry'],
    ['', 'must begin with its registry'],
  ])('an image named as "%s" is refused with what would be right', (name, text) => {
    expect(reachProblem(allowed, command(name))).toContain(text);
  });

  test('is let in by nobody when there is no policy', () => {
    const name = `registry.example.org/tools/check@${digest}`;
    expect(reachProblem(undefined, command(name))).toContain(
      'rackwright fleet update --image-repository registry.example.org/tools/check',
    );
    expect(reachProblem(undefined, { ...command('x'), step: 'run.script' })).toBeUndefined();
  });
});

describe('a webhook', () => {
  const allowed = policy({
    webhookUrls: ['https://hooks.example.org/rack', 'http://10.0.0.1:8080/a/'],
  });

  test.each([
    ['https://hooks.example.org/rack', true],
    ['https://hooks.example.org/rack/', true],
    ['https://hooks.example.org/rack/x?token=1', true],
    ['https://hooks.example.org/rack?x', true],
    ['https://HOOKS.example.org:443/rack/x', true],
    ['https://hooks.example.org/rackwright', false],
    ['https://hooks.example.org/', false],
    ['http://hooks.example.org/rack/x', false],
    ['https://hooks.example.org:8443/rack/x', false],
    ['https://hooks.example.org.evil.org/rack/x', false],
    ['https://hooks.example.org@evil.org/rack/x', false],
    ['https://evil.org/https://hooks.example.org/rack/x', false],
    ['https://hooks.example.org/rack/../admin', false],
    ['https://hooks.example.org/rack/..', false],
    ['https://hooks.example.org/rack/%2e%2e/admin', false],
    ['https://hooks.example.org/rack/..%2fadmin', false],
    ['https://hooks.example.org/rack\\..\\admin', false],
    ['https://hooks.example.org/rack/..;/admin', false],
    ['https://hooks.example.org/rack/..;x=y/admin', false],
    ['https://hooks.example.org/rack/;/admin', false],
    ['https://hooks.example.org/rack/..%3b/admin', false],
    ['https://hooks.example.org/rack/%2e%2e;/admin', false],
    ['https://hooks.example.org/rack/%252e%252e/admin', false],
    ['https://hooks.example.org/rack//admin', false],
    ['https://hooks.example.org/rack/%c0%ae%c0%ae/admin', false],
    ['https://hooks.example.org/rack/\uff0e\uff0e/admin', false],
    ['https://hooks.example.org/rack/%ef%bc%8e%ef%bc%8e/admin', false],
    ['https://hooks.example.org/rack/a%0d%0ab', false],
    ['https://hooks.example.org/rack/a%20b/%c3%a4.v1', true],
    ['https://hooks.example.org/rack/./x', false],
    ['http://10.0.0.1:8080/a/x', true],
    ['http://10.0.0.1:8080/a', false],
    ['file:///etc/passwd', false],
    ['//hooks.example.org/rack', false],
    ['', false],
    [' https://hooks.example.org/rack', false],
  ])('a webhook to %s is let in: %s', (url, isIn) => {
    const refusal = reachProblem(allowed, webhook(url));
    expect([refusal, refusal === undefined]).toEqual([refusal, isIn]);
  });

  test.each([
    ['https://other.org/services/T0/secret?key=secret', 'https://other.org/PATH/'],
    ['https://other.org:8443/?key=secret', 'https://other.org:8443/'],
  ])('a webhook to %s is let in by %s, with none of its secrets said', (url, advised) => {
    const refusal = reachProblem(allowed, webhook(url));
    expect(refusal).toContain(`\`rackwright fleet update --webhook-url ${advised}\``);
    expect(refusal).not.toContain('secret');
    expect(refusal).not.toContain('T0');
  });

  test('whatever is let in stays below a prefix, as a browser reads it', () => {
    const part = fc.constantFrom('rack', '..', '.', '%2e%2e', '%2F', '\\', 'x', '', '?', '#', '@');
    fc.assert(
      fc.property(fc.array(part, { maxLength: 6 }), fc.constantFrom('/', ''), (parts, glue) => {
        const url = `https://hooks.example.org/${parts.join(glue)}`;
        if (reachProblem(allowed, webhook(url)) !== undefined) return;
        const { origin, pathname } = new URL(url);
        expect(origin).toBe('https://hooks.example.org');
        expect(decodeURIComponent(pathname).split(/[/\\]/)).toEqual(
          expect.arrayContaining(['rack']),
        );
        expect(`${decodeURIComponent(pathname)}/`).toMatch(/^\/rack\//);
      }),
    );
  });
});

describe('the image of an operation', () => {
  const allowed = policy({
    imageRepositories: ['registry.example.org/*', 'localhost:5000/*'],
    plainHttpRegistries: ['localhost:5000'],
    registryCredentials: { 'registry.example.org': 'credentials/pull' },
  });
  const of = (name: string, versions: [string, bigint][] = []) =>
    commandImageOf(command(`${name}@${digest}`), allowed, new Map(versions));

  test('names the credential of its registry, in its version', () => {
    expect(of('registry.example.org/a', [['credentials/pull', 7n]])).toMatchObject({
      kind: 'ok',
      image: { credential: 'credentials/pull', credentialVersion: 7n, plainHttp: false },
    });
    expect(of('localhost:5000/a')).toMatchObject({
      kind: 'ok',
      image: { credential: '', plainHttp: true, reference: `localhost:5000/a@${digest}` },
    });
  });

  test('is refused when the policy or the credential is gone', () => {
    expect(of('registry.example.org/a')).toEqual({
      kind: 'refused',
      problem: expect.stringContaining('credentials/pull, which the fleet names'),
    });
    expect(of('other.example.org/a')).toMatchObject({ kind: 'refused' });
  });
});

test('a policy is checked entry by entry', () => {
  const good = {
    imageRepositories: ['registry.example.org/*', 'registry.example.org/a/b', 'box:5000/a/*'],
    plainHttpRegistries: ['box:5000', '10.0.0.1'],
    webhookUrls: ['https://hooks.example.org', 'http://10.0.0.1:8080/a/'],
    registryCredentials: { 'box:5000': 'credentials/pull' },
  };
  expect(policyProblems(policy(good))).toEqual([]);
  const bad = policyProblems(
    policy({
      imageRepositories: [
        ...['registry.example.org', '*', 'a/*', 'registry.example.org/a*', ''],
        ...['registry.example.org/*/a', `registry.example.org/a@${digest}`],
      ],
      plainHttpRegistries: ['http://box:5000', 'box'],
      webhookUrls: ['hooks.example.org', 'https://h.example.org/?x', 'https://a:b@h.example.org/'],
      registryCredentials: { 'box:5000': 'pull', box: 'credentials/pull' },
    }),
  );
  expect(bad.map(({ field }) => field)).toEqual([
    ...[0, 1, 2, 3, 4, 5, 6].map((index) => `image_repositories[${index}]`),
    ...[0, 1].map((index) => `plain_http_registries[${index}]`),
    ...[0, 1, 2].map((index) => `webhook_urls[${index}]`),
    ...[0, 1].map((index) => `registry_credentials[${index}]`),
  ]);
  const many = policyProblems(policy({ webhookUrls: Array(101).fill('https://h.example.org/') }));
  expect(many).toEqual([
    { field: 'webhook_urls', description: 'has 101 entries; at most 100 are kept' },
  ]);
});
