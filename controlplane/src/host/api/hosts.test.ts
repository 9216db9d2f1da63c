import { create as createMessage } from '@bufbuild/protobuf';
import {
  BmcProtocol,
  BootMethod,
  type ErasureLevel,
  HostGoal,
  HostPower,
  HostSpecSchema,
  HostState,
  WatchHostsResponse_Kind as Kind,
} from '@rackwright/messages';
import { storeKey } from '@rackwright/store';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import {
  addSurroundings,
  type Fixture,
  failureOf,
  specOf,
  startFixture,
  violatedFields,
} from '../../services/rpc.fixture.ts';
import { hasAllReservations } from '../fleet/reservations.ts';
import { releaseReserved, reservedValues } from '../index.ts';

let fixture: Fixture;
let hosts: Fixture['hosts'];

beforeEach(async () => {
  fixture = await startFixture();
  ({ hosts } = fixture);
  await addSurroundings(fixture);
});

afterEach(() => fixture.stop());

const create = (n: number, more: object = {}) =>
  hosts.createHost({ hostId: `h${n}`, host: { spec: { ...specOf(n), ...more } } });

describe('CreateHost', () => {
  test('answers the host as Get does, new and dirty', async () => {
    const created = await hosts.createHost({
      hostId: 'h1',
      host: { labels: { site: 'a' }, spec: specOf(1) },
    });
    expect(created).toMatchObject({ name: 'hosts/h1', labels: { site: 'a' } });
    expect(created.uid).toMatch(/^[0-9a-f]{32}$/);
    expect(created.status).toMatchObject({ dirty: true, useEpoch: 1n, agentConnected: false });
    const found = await hosts.getHost({ name: 'hosts/h1' });
    expect(found.uid).toBe(created.uid);
    expect(found.status?.state).toBe(HostState.NEW);
  });

  test('leaves optional fields that were not set unset, and keeps those that were', async () => {
    await create(1);
    const { spec } = await hosts.getHost({ name: 'hosts/h1' });
    expect(spec?.bmc?.port).toBeUndefined();
    expect(spec?.retired).toBeUndefined();
    expect(spec?.cleaning).toBeUndefined();
    await create(2, { retired: false, cleaning: { allowDiskless: false } });
    const second = (await hosts.getHost({ name: 'hosts/h2' })).spec;
    expect(second?.retired).toBe(false);
    expect(second?.cleaning?.allowDiskless).toBe(false);
    expect(second?.cleaning?.allowUnprovenIdentity).toBeUndefined();
  });

  test('reports everything that is wrong together, each with what is right', async () => {
    const error = await failureOf(
      hosts.createHost({
        hostId: 'Host_1',
        host: {
          labels: { 'Bad Key': 'x' },
          spec: {
            rack: 'racks/none',
            bmc: { address: 'https://bmc:443', port: 70_000, credential: 'bmc' },
            bootMacs: ['52-54-00-AB-00-01', '01:00:5e:00:00:01', 'zz'],
            goal: 9 as HostGoal,
            cleaning: {
              level: 7 as ErasureLevel,
              priorityOverrides: { erase: 5 },
              bootMedia: [{ sha256: 'AB', sizeBytes: 2n ** 34n }],
            },
          },
        },
      }),
    );
    const violations = 'violations' in error ? error.violations : [];
    expect(error.kind).toBe('invalidArgument');
    expect(Object.fromEntries(violations.map((each) => [each.field, each.description]))).toEqual({
      host_id: expect.stringContaining('1 to 63 characters'),
      'host.labels': expect.stringContaining('"Bad Key"'),
      'host.spec.rack': expect.stringContaining('rackwright rack create none'),
      'host.spec.bmc.address': expect.stringContaining('the port goes into port'),
      'host.spec.bmc.port': expect.stringContaining('from 1 to 65535'),
      'host.spec.bmc.credential': expect.stringContaining('"credentials/bmc-admin"'),
      'host.spec.boot_macs[0]': expect.stringContaining('write it as "52:54:00:ab:00:01"'),
      'host.spec.boot_macs[1]': expect.stringContaining('group address'),
      'host.spec.boot_macs[2]': expect.stringContaining('like "52:54:00:12:34:56"'),
      'host.spec.goal': expect.stringContaining('does not know'),
      'host.spec.cleaning.level': expect.stringContaining('does not know'),
      'host.spec.cleaning.priority_overrides["erase"]': expect.stringContaining('interface.step'),
      'host.spec.cleaning.boot_media[0].sha256': expect.stringContaining('64 lower-case hex'),
      'host.spec.cleaning.boot_media[0].size_bytes': expect.stringContaining('1 to 8589934592'),
    });
  });

  test('refuses a host without anything', async () => {
    expect(await violatedFields(hosts.createHost({}))).toEqual(['host_id', 'host']);
    expect(await violatedFields(hosts.createHost({ hostId: 'h1', host: {} }))).toEqual([
      'host.spec.rack',
      'host.spec.bmc',
      'host.spec.boot_macs',
    ]);
  });

  test('refuses an id and every address that is taken, naming the holder', async () => {
    await create(1);
    expect((await failureOf(create(1))).message).toBe('hosts/h1 exists already.');
    const error = await failureOf(hosts.createHost({ hostId: 'h2', host: { spec: specOf(1) } }));
    expect(error.kind).toBe('alreadyExists');
    expect('violations' in error && error.violations.map(({ field }) => field)).toEqual([
      'host.spec.boot_macs[0]',
      'host.spec.bmc.address',
    ]);
    expect(error.message).toContain('hosts/h1');
    expect((await failureOf(hosts.getHost({ name: 'hosts/h2' }))).kind).toBe('notFound');
    await hosts.createHost({ hostId: 'h2', host: { spec: specOf(2) } });
  });

  test('lets one of many win that want the same addresses', async () => {
    const spec = specOf(1);
    const outcomes = await Promise.allSettled(
      Array.from({ length: 6 }, (_, n) => hosts.createHost({ hostId: `h${n}`, host: { spec } })),
    );
    const won = outcomes.filter(({ status }) => status === 'fulfilled').length;
    expect(won).toBeLessThanOrEqual(1);
    expect((await hosts.listHosts({})).hosts).toHaveLength(won);
  });

  test('a repeated request id answers the same host', async () => {
    const request = { hostId: 'h1', host: { spec: specOf(1) }, requestId: 'a1' };
    const first = await hosts.createHost(request);
    expect((await hosts.createHost(request)).uid).toBe(first.uid);
    expect((await failureOf(hosts.createHost({ ...request, requestId: 'a2' }))).kind).toBe(
      'alreadyExists',
    );
  });

  test('a request to validate only writes nothing', async () => {
    const request = { hostId: 'h1', host: { spec: specOf(1) }, validateOnly: true };
    expect((await hosts.createHost(request)).name).toBe('hosts/h1');
    expect((await hosts.listHosts({})).hosts).toEqual([]);
    await create(2, { bootMacs: specOf(1).bootMacs });
  });
});

describe('UpdateHost', () => {
  test('changes what the mask names and nothing else', async () => {
    const { etag } = await hosts.createHost({
      hostId: 'h1',
      host: { labels: { a: '1' }, spec: { ...specOf(1), retired: true } },
    });
    expect(etag).not.toBe('');
    const updated = await hosts.updateHost({
      host: {
        name: 'hosts/h1',
        labels: { b: '2' },
        spec: { goal: HostGoal.MANAGEABLE, bmc: { port: 6230 } },
      },
      updateMask: { paths: ['spec.goal', 'spec.bmc.port'] },
    });
    expect(updated.labels).toEqual({ a: '1' });
    expect(updated.spec).toMatchObject({ goal: HostGoal.MANAGEABLE, retired: true });
    expect(updated.spec?.bmc).toMatchObject({ port: 6230, address: '192.0.2.1' });
    expect((await hosts.getHost({ name: 'hosts/h1' })).spec).toEqual(updated.spec);
  });

  test('takes what the power should be, and refuses a wish that it does not know', async () => {
    await create(1);
    const update = (power: HostPower) =>
      hosts.updateHost({
        host: { name: 'hosts/h1', spec: { power } },
        updateMask: { paths: ['spec.power'] },
      });
    expect((await update(HostPower.OFF)).spec?.power).toBe(HostPower.OFF);
    expect(await violatedFields(update(77 as HostPower))).toEqual(['host.spec.power']);
    expect((await hosts.getHost({ name: 'hosts/h1' })).spec?.power).toBe(HostPower.OFF);
  });

  test('makes an optional field unset that the mask names and the host leaves out', async () => {
    await create(1, { retired: true });
    const updated = await hosts.updateHost({
      host: { name: 'hosts/h1' },
      updateMask: { paths: ['spec.retired'] },
    });
    expect(updated.spec?.retired).toBeUndefined();
  });

  test('an update without a mask changes what the host has set', async () => {
    await create(1, { retired: true });
    const host = { name: 'hosts/h1', labels: { a: '1' } };
    const updated = await hosts.updateHost({ host });
    expect(updated).toMatchObject({ labels: { a: '1' }, spec: { retired: true } });
  });

  test('names unknown and fixed paths, and what the merged host lacks', async () => {
    await create(1);
    const host = { name: 'hosts/h1', spec: { ...specOf(1), rack: 'racks/r2', bootMacs: [] } };
    const paths = ['spec.bmc.colour', 'status', 'spec.rack', 'spec.boot_macs'];
    const fields = await violatedFields(hosts.updateHost({ host, updateMask: { paths } }));
    expect(fields.sort()).toEqual([
      'host.spec.boot_macs',
      'host.spec.rack',
      'host.spec.rack',
      'update_mask',
      'update_mask',
    ]);
  });

  test('refuses a stale etag and accepts the present one', async () => {
    const { etag } = await create(1);
    await hosts.updateHost({ host: { name: 'hosts/h1', labels: { a: '1' } } });
    const host = { name: 'hosts/h1', etag, labels: { a: '2' } };
    expect(await failureOf(hosts.updateHost({ host }))).toMatchObject({
      kind: 'aborted',
      reason: 'ETAG_MISMATCH',
    });
    const present = (await hosts.getHost({ name: 'hosts/h1' })).etag;
    await hosts.updateHost({ host: { ...host, etag: present } });
    const foreign = { ...host, etag: 'ffff.1' };
    expect((await failureOf(hosts.updateHost({ host: foreign }))).kind).toBe('aborted');
    const nonsense = { ...host, etag: 'x' };
    expect(await violatedFields(hosts.updateHost({ host: nonsense }))).toEqual(['etag']);
  });

  test('moves reservations: old addresses are free, taken ones refused', async () => {
    await create(1);
    await create(2);
    const move = (n: number, bootMacs: string[]) =>
      hosts.updateHost({
        host: { name: `hosts/h${n}`, spec: { bootMacs } },
        updateMask: { paths: ['spec.boot_macs'] },
      });
    expect((await failureOf(move(1, specOf(2).bootMacs))).kind).toBe('alreadyExists');
    await move(1, specOf(9).bootMacs);
    await move(2, specOf(1).bootMacs);
    expect((await failureOf(move(2, specOf(9).bootMacs))).kind).toBe('alreadyExists');
    expect((await hosts.getHost({ name: 'hosts/h2' })).spec?.bootMacs).toEqual(specOf(1).bootMacs);
  });

  test('keeps its new address reserved when a refused update releases it meanwhile', async () => {
    const { uid } = await create(1);
    const { store } = fixture;
    const spec = createMessage(HostSpecSchema, { bootMacs: specOf(9).bootMacs });
    const put = store.put.bind(store);
    vi.spyOn(store, 'put').mockImplementation(async (...given) => {
      const isHost = given[0] === storeKey('hosts', 'h1');
      if (isHost) await releaseReserved({ store }, { name: 'hosts/h1', uid }, reservedValues(spec));
      return put(...given);
    });
    const updateMask = { paths: ['spec.boot_macs'] };
    await hosts.updateHost({ host: { name: 'hosts/h1', spec }, updateMask });
    expect(await hasAllReservations(store, uid, spec)).toBe(true);
  });

  test('many updates at once without an etag lose none', async () => {
    await create(1);
    const keys = ['a', 'b', 'c', 'd'];
    await Promise.all(
      keys.map((key) =>
        hosts.updateHost({
          host: {
            name: 'hosts/h1',
            spec: { cleaning: { priorityOverrides: { [`deploy.${key}`]: 1 } } },
          },
          updateMask: { paths: [key === 'a' ? 'spec.cleaning.priority_overrides' : 'spec.goal'] },
        }),
      ),
    );
    const { spec } = await hosts.getHost({ name: 'hosts/h1' });
    expect(spec?.cleaning?.priorityOverrides).toEqual({ 'deploy.a': 1 });
  });

  test('an update of a host that does not exist is not found', async () => {
    const host = { name: 'hosts/h9', labels: { a: '1' } };
    expect((await failureOf(hosts.updateHost({ host }))).kind).toBe('notFound');
    expect(await violatedFields(hosts.updateHost({ host: { name: 'h9' } }))).toEqual(['host.name']);
    expect(await violatedFields(hosts.updateHost({}))).toEqual(['host']);
  });
});

describe('ListHosts', () => {
  test('pages through all hosts once, in order, whatever the size', async () => {
    for (const n of [1, 2, 3, 4, 5]) await create(n);
    for (const pageSize of [1, 2, 5, 100]) {
      const names: string[] = [];
      let pageToken = '';
      do {
        const page = await hosts.listHosts({ pageSize, pageToken });
        expect(page.hosts.length).toBeLessThanOrEqual(pageSize);
        names.push(...page.hosts.map(({ name }) => name));
        pageToken = page.nextPageToken;
      } while (pageToken !== '');
      expect(names).toEqual(['hosts/h1', 'hosts/h2', 'hosts/h3', 'hosts/h4', 'hosts/h5']);
    }
  });

  test('refuses sizes out of bounds and tokens of other lists', async () => {
    for (const n of [1, 2]) await create(n);
    const all = (await hosts.listHosts({})).hosts.map(({ name }) => name);
    for (const pageSize of [0, 1_001, 4_294_967_295]) {
      const page = await hosts.listHosts({ pageSize });
      expect(page.hosts.map(({ name }) => name)).toEqual(all);
    }
    expect(await violatedFields(hosts.listHosts({ pageToken: 'x' }))).toEqual(['page_token']);
    expect(await violatedFields(hosts.listHosts({ rack: 'r1' }))).toEqual(['rack']);
    const { nextPageToken } = await hosts.listHosts({ pageSize: 1 });
    const other = hosts.listHosts({ pageToken: nextPageToken, rack: 'racks/r1' });
    expect(await violatedFields(other)).toEqual(['page_token']);
    const foreign = Buffer.from(JSON.stringify(['other', '', 'hosts.h1'])).toString('base64url');
    expect(await violatedFields(hosts.listHosts({ pageToken: foreign }))).toEqual(['page_token']);
  });

  test('shows one rack when asked', async () => {
    await fixture.racks.createRack({ rackId: 'r2' });
    await create(1);
    await create(2, { rack: 'racks/r2' });
    const { hosts: found } = await hosts.listHosts({ rack: 'racks/r2' });
    expect(found.map(({ name }) => name)).toEqual(['hosts/h2']);
  });
});

describe('WatchHosts', () => {
  test('sends what is there, says so, then every change, and resumes without a gap', async () => {
    await create(1);
    const seen: [Kind, string][] = [];
    let position = '';
    for await (const event of hosts.watchHosts({})) {
      seen.push([event.kind, event.host?.name ?? '']);
      if (event.position !== '') position = event.position;
      if (event.kind === Kind.SYNCED) await create(2);
      if (event.host?.name === 'hosts/h2') break;
    }
    expect(seen[0]).toEqual([Kind.UPDATED, 'hosts/h1']);
    expect(seen).toContainEqual([Kind.SYNCED, '']);
    await create(3);
    const resumed: string[] = [];
    for await (const event of hosts.watchHosts({ position })) {
      resumed.push(event.host?.name ?? '');
      if (event.host?.name === 'hosts/h3') break;
    }
    expect(resumed).not.toContain('hosts/h1');
  });

  test('a watch of one host tells of no other', async () => {
    await create(1);
    await create(2);
    const labels: string[] = [];
    for await (const event of hosts.watchHosts({ name: 'hosts/h1' })) {
      if (event.host !== undefined) expect(event.host.name).toBe('hosts/h1');
      if (event.kind === Kind.SYNCED) {
        await hosts.updateHost({ host: { name: 'hosts/h2', labels: { n: 'no' } } });
        await hosts.updateHost({ host: { name: 'hosts/h1', labels: { n: 'yes' } } });
      }
      labels.push(event.host?.labels['n'] ?? '');
      if (labels.includes('yes')) break;
    }
    expect(labels).not.toContain('no');
  });

  test('ends clearly when the position is of another incarnation or none at all', async () => {
    const watch = async (position: string) => {
      for await (const _ of hosts.watchHosts({ position })) break;
    };
    expect(await failureOf(watch('ffff.1'))).toMatchObject({
      kind: 'outOfRange',
      reason: 'POSITION_OF_OTHER_INCARNATION',
    });
    expect(await failureOf(watch(`${fixture.store.incarnation}.999999`))).toMatchObject({
      kind: 'outOfRange',
      reason: 'POSITION_COMPACTED',
    });
    expect(await violatedFields(watch('x'))).toEqual(['position']);
  });
});

describe('requests to a host', () => {
  test('are answered by the host loop, with its own words for refusals', async () => {
    await create(1);
    const refused = await failureOf(hosts.cleanHost({ name: 'hosts/h1' }));
    expect(refused.kind).toBe('failedPrecondition');
    expect(refused.message).not.toBe('');
    expect((await failureOf(hosts.verifyHost({ name: 'hosts/h9' }))).kind).toBe('notFound');
    expect(await violatedFields(hosts.inspectHost({ name: 'x', requestId: 'a b' }))).toEqual([
      'name',
      'request_id',
    ]);
    const steps = [{ step: 'Erase disks' }];
    expect(await violatedFields(hosts.cleanHost({ name: 'hosts/h1', steps }))).toEqual([
      'steps[0].step',
    ]);
  });

  test('the deletion of a host without a run frees its addresses', async () => {
    await create(1);
    const deleted = await hosts.deleteHost({ name: 'hosts/h1', reason: 'wrong rack' });
    expect(deleted.name).toBe('hosts/h1');
    for await (const event of hosts.watchHosts({ name: 'hosts/h1' })) {
      if (event.kind === Kind.DELETED) break;
      if (event.kind === Kind.SYNCED && (await hosts.listHosts({})).hosts.length === 0) break;
    }
    const again = await hosts.createHost({ hostId: 'h2', host: { spec: specOf(1) } });
    expect(again.uid).not.toBe(deleted.uid);
  });

  test('list clean steps without any agent, and say that they are not complete', async () => {
    await create(1);
    const { steps, complete, collectedAt } = await hosts.listCleanSteps({ name: 'hosts/h1' });
    expect(steps.map(({ name }) => name)).toContain('deploy.erase_devices');
    expect(complete).toBe(false);
    expect(collectedAt).toBeUndefined();
  });

  test('list clean steps with the priorities of host, pool and fleet, and say whose', async () => {
    const cleaning = { priorityOverrides: { 'deploy.polish': 5 } };
    const spec = { ...specOf(1), cleaning };
    await hosts.createHost({ hostId: 'h1', host: { labels: { pool: 'gpu' }, spec } });
    await fixture.fleet.updateFleet({
      fleet: {
        spec: {
          priorityOverrides: { 'deploy.erase_devices': 70 },
          pools: [{ pool: 'gpu', priorityOverrides: { 'deploy.erase_devices_metadata': 80 } }],
        },
      },
    });
    const { steps, warnings } = await hosts.listCleanSteps({ name: 'hosts/h1' });
    const ran = steps.filter(({ enabled }) => enabled);
    expect(ran.map(({ name, priority, priorityFrom }) => [name, priority, priorityFrom])).toEqual([
      ['deploy.erase_devices_metadata', 80, 'pool'],
      ['deploy.erase_devices', 70, 'fleet'],
    ]);
    expect(warnings[0]).toBe('priority_overrides names deploy.polish, which is no known step');
    const none = await failureOf(hosts.listCleanSteps({ name: 'hosts/h9' }));
    expect(none.kind).toBe('notFound');
  });

  test('show the timeline, newest first, with who and why', async () => {
    await create(1);
    await hosts.updateHost({ host: { name: 'hosts/h1', labels: { a: '1' } } });
    const { revisions } = await hosts.listHostRevisions({ name: 'hosts/h1' });
    expect(revisions.at(-1)).toMatchObject({ actor: 'user:admin', cause: 'created' });
    expect(revisions[0]?.host?.labels).toEqual({ a: '1' });
    expect(revisions.map(({ revision }) => revision)).toEqual(
      revisions.map(({ revision }) => revision).toSorted((a, b) => Number(b - a)),
    );
    const one = await hosts.listHostRevisions({ name: 'hosts/h1', pageSize: 1 });
    expect(one.revisions).toHaveLength(1);
    expect((await failureOf(hosts.listHostRevisions({ name: 'hosts/h9' }))).kind).toBe('notFound');
  });
});

describe('a BMC', () => {
  test('a Redfish BMC has no cipher suite, and an IPMI one no certificate', async () => {
    const fieldsOf = (bmc: object) =>
      violatedFields(
        hosts.createHost({
          hostId: 'h1',
          host: { spec: { ...specOf(1), bmc: { ...specOf(1).bmc, ...bmc } } },
        }),
      );
    const certificateSha256 = 'ab'.repeat(32);
    expect(await fieldsOf({ protocol: BmcProtocol.REDFISH, cipherSuite: 3 })).toEqual([
      'host.spec.bmc.cipher_suite',
    ]);
    expect(await fieldsOf({ certificateSha256 })).toEqual(['host.spec.bmc.certificate_sha256']);
    expect(await fieldsOf({ protocol: BmcProtocol.REDFISH, certificateSha256: 'AB' })).toEqual([
      'host.spec.bmc.certificate_sha256',
    ]);
    expect(await fieldsOf({ protocol: 9 })).toEqual(['host.spec.bmc.protocol']);
    await create(1, {
      bmc: { ...specOf(1).bmc, protocol: BmcProtocol.REDFISH, certificateSha256 },
    });
  });

  test('an IPMI BMC has no virtual media, and a Redfish one has', async () => {
    const boot = { method: BootMethod.VIRTUAL_MEDIA };
    const spec = { ...specOf(1), boot };
    const fields = await violatedFields(hosts.createHost({ hostId: 'h1', host: { spec } }));
    expect(fields).toEqual(['host.spec.boot.method']);
    await create(1, { boot, bmc: { ...specOf(1).bmc, protocol: BmcProtocol.REDFISH } });
  });
});
