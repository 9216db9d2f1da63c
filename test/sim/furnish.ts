/** What stands in the store of a simulated rack when it begins, as the operators' API writes it. */
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { reservedValues } from '@rackwright/controlplane';
import {
  type HostGoal,
  HostSpecSchema,
  HostState,
  HostStatusSchema,
  PowerCycleCheck,
  store as wire,
} from '@rackwright/messages';
import { type StateStore, storeKey } from '@rackwright/store';
import { bmcPassword } from './bmc.ts';
import { shutdownTimeoutOf } from './manners.ts';
import { simSecrets } from './operators/secrets.ts';
import { agentPublicKey } from './rack-agent.ts';
import type { WorldView } from './view.ts';
import { registryName } from './workflows/images.ts';
import type { ownStepsOf } from './workflows/own-steps.ts';
import { hooksUrl } from './workflows/recipes.ts';

/** The rack, with the key of its agent. */
export async function putRack(store: StateStore): Promise<void> {
  const record = create(wire.RackRecordSchema, { rack: { name: 'racks/r1' }, agentPublicKey });
  await store.put('racks.r1', toBinary(wire.RackRecordSchema, record), 'absent');
}

/** Where the BMC of the machine of this number is. */
export function bmcAddress(index: number): string {
  return `10.0.0.${index}`;
}

/** Stores the right password as the next version of the credential. */
export async function putCredential(store: StateStore, random: WorldView['random']): Promise<void> {
  const name = 'credentials/c1';
  const found = await store.get('credentials.c1');
  const kept =
    found.kind === 'found' ? fromBinary(wire.CredentialRecordSchema, found.value) : undefined;
  const version = (kept?.credential?.version ?? 0n) + 1n;
  const record = create(wire.CredentialRecordSchema, {
    credential: { name, version, username: 'admin' },
    ...simSecrets(random).seal(name, version, bmcPassword),
  });
  const value = toBinary(wire.CredentialRecordSchema, record);
  await store.put('credentials.c1', value, found.kind === 'found' ? found.revision : 'absent');
}

/** What templates may reach, and the programs of the site's own in cleans. */
export async function putFleet(
  store: StateStore,
  ownCleanSteps: ReturnType<typeof ownStepsOf> = [],
): Promise<void> {
  const templates = { webhookUrls: [hooksUrl], imageRepositories: [`${registryName}/tools`] };
  const fleet = { name: 'fleet', spec: { templates, ownCleanSteps: [...ownCleanSteps] } };
  const value = toBinary(wire.FleetRecordSchema, create(wire.FleetRecordSchema, { fleet }));
  await store.put('fleet.fleet', value, 'absent');
}

const { IMMEDIATE, UNSPECIFIED } = PowerCycleCheck;

/** A host that is only known so far. */
export async function putHost(
  store: StateStore,
  index: number,
  goal: HostGoal,
  seed: number,
): Promise<void> {
  const name = `hosts/h${index}`;
  const timeoutSeconds = shutdownTimeoutOf(seed, index);
  const spec = create(HostSpecSchema, {
    goal,
    ...(timeoutSeconds === undefined ? {} : { shutdown: { timeoutSeconds } }),
    // Every second host reads its disks again at once.
    cleaning: { powerCycleCheck: (seed + index) % 2 === 1 ? IMMEDIATE : UNSPECIFIED },
    rack: 'racks/r1',
    bmc: { address: bmcAddress(index), credential: 'credentials/c1' },
    bootMacs: [`52:54:00:00:00:${index.toString(16).padStart(2, '0')}`],
  });
  const status = create(HostStatusSchema, { state: HostState.NEW, dirty: true, useEpoch: 1n });
  const record = create(wire.HostRecordSchema, { host: { name, uid: `u${index}`, spec, status } });
  const held = { holder: name, holderUid: `u${index}` };
  const reservation = toBinary(wire.ReservationSchema, create(wire.ReservationSchema, held));
  for (const { key } of reservedValues(spec)) await store.put(key, reservation, 'absent');
  const value = toBinary(wire.HostRecordSchema, record);
  await store.put(storeKey('hosts', `h${index}`), value, 'absent');
}
