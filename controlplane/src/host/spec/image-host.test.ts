/**
 * Which registries are asked for callers with a scope: those that the fleet names, and no others.
 */
import { Role } from '@rackwright/messages';
import { operatorClients } from '@rackwright/rpc';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { addSide, type Names, tokenFor } from '../../services/access.fixture.ts';
import { type Fixture, failureOf, startFixture } from '../../services/rpc.fixture.ts';

type Clients = ReturnType<typeof operatorClients>;

let fixture: Fixture;
let names: Names;
let scoped: Clients;
let unscoped: Clients;

beforeAll(async () => {
  fixture = await startFixture();
  names = await addSide(fixture, 'aa');
  const scope = { racks: [names.rack] };
  const as = async (id: string, of: typeof scope | undefined) =>
    operatorClients(fixture.channel, await tokenFor(fixture, id, Role.OPERATOR, of));
  [scoped, unscoped] = [await as('hand', scope), await as('all', undefined)];
});

afterAll(() => fixture.stop());

const digest = `sha256:${'a'.repeat(64)}`;
const places = ['127.0.0.1:22', '10.0.0.1:5432', 'registry.example'];
const imagesAt = (place: string) => [
  ...[`${place}/os:1`, `${place}/os@${digest}`],
  `https://${place}/disk.raw#sha256=${'a'.repeat(64)}`,
];

/** Every call that resolves or fetches an image of hosts. */
const ways: Record<string, (as: Clients, image: string) => Promise<unknown>> = {
  provision: ({ hosts }, image) => hosts.provisionHost({ name: names.host, image }),
  reimage: ({ hosts }, image) => hosts.reimageHost({ name: names.host, image }),
  plan: ({ plans }, image) =>
    plans.planRun({ parent: names.host, run: { case: 'provision', value: { image } } }),
  prefetch: ({ racks }, image) => racks.prefetchImage({ name: names.rack, image }),
  'plan a rollout': ({ pools }, image) =>
    pools.planRollout({
      name: names.imagePool,
      pool: { name: names.imagePool, spec: { image } },
      updateMask: { paths: ['spec.image'] },
    }),
};

const reasonOf = async (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => '',
    async () => {
      const failure = await failureOf(call);
      return 'reason' in failure ? (failure.reason ?? '') : '';
    },
  );

test.each(Object.entries(ways))(
  'the call %s has no registry asked that the fleet does not name',
  async (_, way) => {
    for (const place of places) {
      for (const image of imagesAt(place)) {
        const refused = await failureOf(way(scoped, image));
        expect(refused, image).toMatchObject({ reason: 'IMAGE_HOST_NOT_NAMED' });
        // Whether or not anything listens there: the same words.
        expect(refused.message).toContain(`and ${place} is none of them`);
        expect(await reasonOf(way(unscoped, image)), image).not.toBe('IMAGE_HOST_NOT_NAMED');
      }
    }
  },
);

test('a registry that the fleet names may be asked', async () => {
  await fixture.fleet.updateFleet({
    fleet: { spec: { registries: [{ registry: 'registry.example' }] } },
    updateMask: { paths: ['spec.registries'] },
  });
  for (const [what, way] of Object.entries(ways)) {
    const image = `registry.example/os@${digest}`;
    expect(await reasonOf(way(scoped, image)), what).not.toBe('IMAGE_HOST_NOT_NAMED');
    const other = await reasonOf(way(scoped, `registry.example:5000/os@${digest}`));
    expect(other, what).toBe('IMAGE_HOST_NOT_NAMED');
  }
});
