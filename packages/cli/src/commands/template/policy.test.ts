/** What templates may reach outside, changed by flags. */
import { create } from '@bufbuild/protobuf';
import { TemplatePolicySchema } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { parsePolicy } from './policy.ts';

const now = create(TemplatePolicySchema, {
  imageRepositories: ['registry.example.org/tools/*'],
  registryCredentials: { 'registry.example.org': 'credentials/pull' },
  webhookUrls: ['https://hooks.example.org/allowed/', 'https://old.example.org/'],
});

test('what is let in takes nothing from what was let in before', () => {
  const { paths, over } = parsePolicy({
    webhookUrl: ['https://new.example.org/a/', 'https://old.example.org/'],
    registryCredential: ['box:5000=box'],
    imageRepository: ['box:5000/check'],
  });
  expect(paths).toEqual([
    'spec.templates.image_repositories',
    'spec.templates.registry_credentials',
    'spec.templates.webhook_urls',
  ]);
  expect(over(now)).toEqual({
    imageRepositories: ['registry.example.org/tools/*', 'box:5000/check'],
    credentials: [],
    plainHttpRegistries: [],
    registryTokenServices: {},
    registryCredentials: {
      'registry.example.org': 'credentials/pull',
      'box:5000': 'credentials/box',
    },
    webhookUrls: [
      'https://hooks.example.org/allowed/',
      'https://old.example.org/',
      'https://new.example.org/a/',
    ],
  });
});

test('one is taken back by its name, all by "none", and what is not there is told', () => {
  const one = parsePolicy({
    noWebhookUrl: ['https://old.example.org/'],
    noRegistryCredential: ['registry.example.org'],
  });
  expect(one.over(now)).toMatchObject({
    imageRepositories: now.imageRepositories,
    registryCredentials: {},
    webhookUrls: ['https://hooks.example.org/allowed/'],
  });
  const all = parsePolicy({ webhookUrl: ['none'], registryCredential: ['none'] });
  expect(all.over(now)).toMatchObject({ registryCredentials: {}, webhookUrls: [] });
  const other = parsePolicy({ noImageRepository: ['box:5000/check'] });
  expect(() => other.over(now)).toThrow(
    '--no-image-repository is "box:5000/check", which is not there; there is registry.example.org',
  );
});

test('nothing asked for is no change', () => {
  expect(parsePolicy({}).paths).toEqual([]);
});

test('the token service of a registry is named, and taken back', () => {
  const { paths, over } = parsePolicy({ registryTokenService: ['box:5000=auth.example.org'] });
  expect(paths).toEqual(['spec.templates.registry_token_services']);
  const named = over(now).registryTokenServices;
  expect(named).toEqual({ 'box:5000': 'auth.example.org' });
  const before = create(TemplatePolicySchema, { registryTokenServices: named });
  const taken = parsePolicy({ noRegistryTokenService: ['box:5000'] });
  expect(taken.over(before).registryTokenServices).toEqual({});
  expect(() => parsePolicy({ registryTokenService: ['box:5000'] })).toThrow('REGISTRY=HOST');
});

test('an internal address is listed beside the others, and taken back', () => {
  const { paths, internal } = parsePolicy({ internalAddress: ['127.0.0.1:5000'] });
  expect(paths).toEqual(['spec.internal_addresses']);
  expect(internal(['169.254.1.1'])).toEqual(['169.254.1.1', '127.0.0.1:5000']);
  const taken = parsePolicy({ noInternalAddress: ['127.0.0.1:5000'] });
  expect(taken.internal(['127.0.0.1:5000', '169.254.1.1'])).toEqual(['169.254.1.1']);
});
