/** Two hosts that are given one address at the same moment. */
import { create } from '@bufbuild/protobuf';
import { HostSpecSchema } from '@rackwright/messages';
import { storeKey } from '@rackwright/store';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import {
  addSurroundings,
  type Fixture,
  failureOf,
  specOf,
  startFixture,
} from '../../services/rpc.fixture.ts';
import { hasAllReservations } from '../fleet/reservations.ts';
import { reservedValues } from '../index.ts';

let fixture: Fixture;

beforeEach(async () => {
  fixture = await startFixture();
  await addSurroundings(fixture);
});

afterEach(() => fixture.stop());

test.each([
  ['before it was reserved for good', 'nothing was changed', 1],
  ['while its record was written', 'Nothing starts on hosts/h1', 9],
] as const)(
  'an update that loses a new address to another host %s says what became of it',
  async (when, said, kept) => {
    const { hosts, store } = fixture;
    for (const n of [1, 2]) await hosts.createHost({ hostId: `h${n}`, host: { spec: specOf(n) } });
    const spec = create(HostSpecSchema, { bootMacs: specOf(9).bootMacs });
    const [mac] = reservedValues(spec);
    const move = (name: string) =>
      hosts.updateHost({ host: { name, spec }, updateMask: { paths: ['spec.boot_macs'] } });
    const put = store.put.bind(store);
    let isFirst = true;
    vi.spyOn(store, 'put').mockImplementation(async (...given) => {
      const rivals = async (key: string | undefined) => {
        if (given[0] !== key || !isFirst) return;
        isFirst = false;
        await move('hosts/h2');
      };
      await rivals(kept === 9 ? storeKey('hosts', 'h1') : undefined);
      const written = await put(...given);
      await rivals(kept === 1 ? mac?.key : undefined);
      return written;
    });
    const failure = await failureOf(move('hosts/h1'));
    expect(failure, when).toMatchObject({
      kind: 'alreadyExists',
      message: expect.stringContaining(said),
    });
    const bootMacsOf = async (name: string) => (await hosts.getHost({ name })).spec?.bootMacs;
    expect(await bootMacsOf('hosts/h1')).toEqual(specOf(kept).bootMacs);
    expect(await bootMacsOf('hosts/h2')).toEqual(specOf(9).bootMacs);
    const { uid } = await hosts.getHost({ name: 'hosts/h2' });
    expect(await hasAllReservations(store, uid, spec)).toBe(true);
  },
);
