/** The fleet's flags: templates' reach, priorities, limits and words of certificates. */
import { create } from '@bufbuild/protobuf';
import { FleetSpecSchema } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { pathOf } from '../frame/fields.ts';
import { fleetChange, fleetFlags, fleetRows } from './spec.ts';

const now = create(FleetSpecSchema, {
  internalAddresses: ['169.254.1.1'],
  pools: [{ pool: 'gpu', priorityOverrides: { 'a.b': 5 } }],
  templates: {
    imageRepositories: ['registry.example.org/tools/*'],
    registryCredentials: { 'registry.example.org': 'credentials/pull' },
    webhookUrls: ['https://hooks.example.org/allowed/', 'https://old.example.org/'],
  },
});

test('a new entry of an allow list keeps the entries before it', () => {
  const { paths, dependsOnNow, over } = fleetChange({
    webhookUrl: ['https://new.example.org/a/', 'https://old.example.org/'],
    registryCredential: ['box:5000=box'],
    imageRepository: ['box:5000/check'],
    internalAddress: ['127.0.0.1:5000'],
  });
  expect(paths).toEqual([
    'spec.templates.image_repositories',
    'spec.templates.registry_credentials',
    'spec.templates.webhook_urls',
    'spec.internal_addresses',
  ]);
  expect(dependsOnNow).toBe(true);
  expect(over(now)).toMatchObject({
    internalAddresses: ['169.254.1.1', '127.0.0.1:5000'],
    templates: {
      imageRepositories: ['registry.example.org/tools/*', 'box:5000/check'],
      registryCredentials: {
        'registry.example.org': 'credentials/pull',
        'box:5000': 'credentials/box',
      },
      webhookUrls: [
        'https://hooks.example.org/allowed/',
        'https://old.example.org/',
        'https://new.example.org/a/',
      ],
    },
  });
});

test('an entry is taken back by its name, all by "none", and an unknown name is told', () => {
  const one = fleetChange({
    noWebhookUrl: ['https://old.example.org/'],
    noRegistryCredential: ['registry.example.org'],
    noInternalAddress: ['169.254.1.1'],
  });
  expect(one.over(now)).toMatchObject({
    internalAddresses: [],
    templates: { registryCredentials: {}, webhookUrls: ['https://hooks.example.org/allowed/'] },
  });
  const all = fleetChange({ webhookUrl: ['none'], registryCredential: ['none'] });
  expect(all.over(now)).toMatchObject({ templates: { registryCredentials: {}, webhookUrls: [] } });
  const other = fleetChange({ noImageRepository: ['box:5000/check'] });
  expect(() => other.over(now)).toThrow(
    '--no-image-repository is "box:5000/check", which is not there; there is registry.example.org',
  );
});

test('the token service of a registry is named, and taken back', () => {
  const { paths, over } = fleetChange({ registryTokenService: ['box:5000=auth.example.org'] });
  expect(paths).toEqual(['spec.templates.registry_token_services']);
  const registryTokenServices = { 'box:5000': 'auth.example.org' };
  expect(over(now)).toMatchObject({ templates: { registryTokenServices } });
  const before = create(FleetSpecSchema, { templates: { registryTokenServices } });
  const taken = fleetChange({ noRegistryTokenService: ['box:5000'] }).over(before);
  expect(taken.templates).toEqual({ registryTokenServices: {} });
  expect(() => fleetChange({ registryTokenService: ['box:5000'] })).toThrow('REGISTRY=HOST');
});

test('values are sent as given, without a read of the present ones', () => {
  const { paths, dependsOnNow, over } = fleetChange({
    ...{ wipeBudget: '8/60', verification: ['none'], customer: '', priority: ['a.b=1', 'c.d-'] },
  });
  expect([paths, dependsOnNow]).toEqual([
    [
      ...['spec.wipe_budget', 'spec.verification', 'spec.erasure_report.customer'],
      ...['spec.priority_overrides.`a.b`', 'spec.priority_overrides.`c.d`'],
    ],
    false,
  ]);
  expect(over(now)).toEqual({
    ...{ wipeBudget: { hosts: 8, seconds: 60 }, verification: undefined },
    ...{ erasureReport: { customer: '' }, priorityOverrides: { 'a.b': 1 } },
  });
});

test('priorities of other pools stay', () => {
  const { over } = fleetChange({ poolPriority: ['gpu:a.b-', 'gpu:c.d=2', 'cpu:a.b=1'] });
  expect(over(now).pools).toEqual([
    { pool: 'gpu', priorityOverrides: { 'c.d': 2 } },
    { pool: 'cpu', priorityOverrides: { 'a.b': 1 } },
  ]);
  expect(fleetChange({ poolPriority: ['none'] }).over(now).pools).toEqual([]);
});

test('a command without a flag is refused with the list of flags', () => {
  expect(() => fleetChange({})).toThrow(
    /give --wipe-budget, --verification, .*, --priority, .* or --internal-address$/,
  );
});

/** Every field of the fleet's spec, and of the messages in it that flags set one by one. */
test('each field has a flag, or commands of its own', () => {
  const ownCommands = ['spec.registries', 'spec.own_clean_steps'];
  const oneByOne = ['templates', 'erasureReport'];
  const fields = FleetSpecSchema.fields.flatMap(({ localName, message }) => {
    if (!oneByOne.includes(localName)) return [pathOf(localName)];
    return (message?.fields ?? []).map((each) => pathOf(`${localName}.${each.localName}`));
  });
  const flags = Object.entries(fleetFlags).flatMap(([name, flag]) => {
    if (name.startsWith('no')) return [];
    const text = { priority: 'a.b=1', poolPriority: 'p:a.b=1', wipeBudget: '1' }[name] ?? 'none';
    return fleetChange({ [name]: 'variadic' in flag ? [text] : text }).paths;
  });
  const said = flags.map((path) => path.replace(/\.`.*/, ''));
  expect([...said, ...ownCommands].sort()).toEqual(fields.sort());
});

test('all given values are shown, with credentials by their ids', () => {
  expect(fleetRows(now)).toEqual([
    ['wipe budget', ''],
    ['images from', 'registry.example.org/tools/*'],
    ['credential for', 'registry.example.org=pull'],
    ['webhooks to', 'https://hooks.example.org/allowed/'],
    ['webhooks to', 'https://old.example.org/'],
    ['internal', '169.254.1.1'],
    ['pool gpu', 'a.b=5'],
  ]);
});
